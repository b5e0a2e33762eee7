"""Files that grow by whole records: each is written in one system call, or not at all."""

import errno
import os
from pathlib import Path


class AppendedFile:
    """A file open for appending. A killed process leaves whole records, and so does a full disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = open(path, "ab", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise cannot_write(path, error) from error

    def write(self, record: bytes) -> None:
        """Append a record. If it does not fit on the disk, what was written of it is removed."""
        try:
            written = self._file.write(record)
            if written < len(record):
                self._file.truncate(os.fstat(self._file.fileno()).st_size - written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def cannot_write(path: Path, error: OSError) -> OSError:
    """Return an error of the same kind that names the file."""
    return type(error)(error.errno, f"cannot write to {path}: {error.strerror}")
