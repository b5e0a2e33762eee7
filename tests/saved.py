"""Saved files, taken apart and put together again, for tests."""

from rlsvi.core import archive


def read(path):
    """The header of a file, without what the format adds, and its arrays."""
    with archive.opened(path) as file:
        header = {k: v for k, v in file.header.items() if k not in ("format", "version", "arrays")}
        return header, {name: file.take_any(name) for name in file.header["arrays"]}


def write(path, header, arrays):
    """A file with this header and these arrays, whatever they are."""
    archive.write(path, header, arrays)
