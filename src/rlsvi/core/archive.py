"""Saved agents on disk: a zip file of NumPy arrays and one JSON header. Reading it runs no code.

The header lists every array with its type, its shape and the SHA-256 of its numbers. A file is refused if an array
is missing, renamed, exchanged, of another size, or not in the list. This finds accidents, not attackers: whoever
can write the file can write the SHA-256 too. An array is read only after the caller has specified its shape, and
only if the file is large enough to hold it.
"""

import hashlib
import json
import math
import os
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rlsvi.core.checks import shown
from rlsvi.core.files import whole_file

# ---- Arguments as JSON: plain values as they are, arrays stored separately, and dataclasses that a file may name


T = TypeVar("T", bound=type)
_KINDS: dict[str, Any] = {}


def storable(cls: T) -> T:
    """Allow files to contain instances of a dataclass: reading one calls its constructor, which validates it."""
    _KINDS[cls.__name__] = cls
    return cls


def to_plain(name: str, value: Any, arrays: dict[str, Any]) -> Any:
    """Return `value` as JSON, adding its arrays to `arrays`. Raises TypeError if a file cannot contain it."""
    if isinstance(value, np.ndarray):
        arrays[f"argument.{name}"] = value
        return {"array": f"argument.{name}"}
    if isinstance(value, np.random.SeedSequence):
        entropy = np.asarray(value.entropy, dtype=object).tolist()
        return {"type": "SeedSequence", "entropy": entropy, "spawn_key": [int(key) for key in value.spawn_key]}
    if _KINDS.get(type(value).__name__) is type(value):
        parts = {f.name: to_plain(f"{name}.{f.name}", getattr(value, f.name), arrays) for f in fields(value)}
        return {"type": type(value).__name__, **parts}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [to_plain(f"{name}.{i}", part, arrays) for i, part in enumerate(value)]
    if isinstance(value, np.number):
        return value.item()
    raise TypeError(f"{name} is {value!r}, which a file cannot hold")


def from_plain(plain: Any, read: Any) -> Any:
    """Return the argument of `to_plain`; `read(name)` returns an array."""
    if isinstance(plain, list):
        return [from_plain(part, read) for part in plain]
    if not isinstance(plain, dict):
        return plain
    if "array" in plain:
        return read(plain["array"])
    parts = {name: from_plain(part, read) for name, part in plain.items() if name != "type"}
    if plain["type"] == "SeedSequence":
        return np.random.SeedSequence(parts["entropy"], spawn_key=tuple(parts["spawn_key"]))
    kind = _KINDS.get(plain["type"])
    if kind is None:
        raise ArchiveError(
            f"holds {plain['type']!r:.100}, which nothing known here is called: import the module that defines it "
            "first, on the command line with --import MODULE"
        )
    if lacks := {f.name for f in fields(kind)} ^ set(parts):
        raise ValueError(f"{plain['type']} is not what it was: {', '.join(sorted(lacks))} differ")
    return kind(**parts)


FORMAT, VERSION = "rlsvi agent", 3
HEADER = "header.json"
LONGEST_HEADER = 2**26  # bytes
EXPANSION = 1032  # how many bytes a compressed byte can stand for, at most
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, MemoryError, ValueError, OverflowError)


class ArchiveError(ValueError):
    """The file is not a complete, readable agent of this version."""


def write(
    path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, Any], mode: int = 0o666
) -> None:
    """Write everything or nothing: to a temporary name, synced to disk, then renamed."""
    target = checked_target(path)
    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    listed = {
        name: [array.dtype.str, list(array.shape), hashlib.sha256(array.data).hexdigest()]
        for name, array in plain.items()
    }
    whole = {"format": FORMAT, "version": VERSION, **header, "arrays": listed}
    text = json.dumps(whole, indent=1, allow_nan=False)
    try:
        with (
            whole_file(target, mode=mode) as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        ):
            undated = zipfile.ZipInfo(HEADER)  # without a date, so that the same agent gives the same bytes
            archive.writestr(undated, text, compress_type=zipfile.ZIP_DEFLATED)
            for name, array in plain.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, array, allow_pickle=False)
    except OSError as error:
        raise type(error)(error.errno, f"cannot save to {target}: {error.strerror}") from error


def checked_target(path: str | os.PathLike[str], verb: str = "save", name: str = "path") -> Path:
    """Return a path that a file can be written to, as far as folders are concerned."""
    target = path_of(path, name)
    if target.is_dir() or not target.name:
        raise IsADirectoryError(f"cannot {verb} to {target}: it is a folder, name a file in it")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot {verb} to {target}: there is no folder {target.parent}")
    return target


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator["Archive"]:
    """Open a file for reading. Errors in it are raised as an ArchiveError that begins with its name."""
    path_of(path)
    try:
        with zipfile.ZipFile(path) as file:
            archive = Archive(file)
            yield archive
            archive.finish()
    except IsADirectoryError:
        raise IsADirectoryError(f"cannot load {path}: it is a folder, name the file of a saved agent") from None
    except (FileNotFoundError, PermissionError):
        raise
    except ArchiveError as error:
        raise ArchiveError(f"{path} {error}") from error
    except RecursionError:
        raise ArchiveError(f"{path} is refused: its header is nested too deeply") from None
    except DAMAGE as error:
        raise ArchiveError(f"{path} is damaged, truncated or not a saved agent: {error}") from error


class Archive:
    """An open file: its header, and its arrays, each of which can be taken once."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        self._file = file
        _check_sizes(file)
        self.header = _header(file)
        listed = self.header.get("arrays")
        if not isinstance(listed, dict):
            raise ArchiveError("is damaged: its header does not list its arrays")
        self._listed = {name: _listed(name, plain) for name, plain in listed.items()}
        there = sorted(entry.filename for entry in file.infolist())
        if there != sorted([HEADER, *(f"{name}.npy" for name in listed)]):
            odd = sorted(set(there) ^ {HEADER, *(f"{name}.npy" for name in listed)}) or ["an entry twice"]
            raise ArchiveError(
                f"is damaged: its contents and the list in its header differ: {', '.join(odd)[:200]}"
            )
        self._left = set(self._listed)

    def __contains__(self, name: str) -> bool:
        return name in self._listed

    def shape(self, name: str, dimensions: int) -> tuple[int, ...]:
        """Return the shape of an array that has not been read yet."""
        _, shape, _ = self._known(name)
        if len(shape) != dimensions:
            raise ArchiveError(f"is damaged: {name} has {len(shape)} dimensions, expected {dimensions}")
        return shape

    def dtype(self, name: str) -> Any:
        """Return the type of an array that has not been read yet."""
        return self._known(name)[0]

    def take(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: Any = np.float64,
        *,
        finite: bool = True,
        most: float = sys.float_info.max,
    ) -> Any:
        """Return an array after checking its shape and type, and, if `finite`, that numbers are at most `most`."""
        kind, found, _ = self._known(name)
        if found != tuple(shape) or kind != np.dtype(dtype):
            raise ArchiveError(f"is damaged: {name} is {kind}{found}, expected {np.dtype(dtype)}{tuple(shape)}")
        array = self.take_any(name)
        if finite and kind.kind == "f" and array.size and not -most <= array.min() <= array.max() <= most:
            raise ArchiveError(f"is damaged: {name} holds numbers that are not finite, or too large")
        return array

    def take_within(self, name: str, shape: tuple[int, ...], dtype: Any, least: int, most: int) -> Any:
        """Return an array of integers after checking that they lie within two inclusive bounds."""
        array = self.take(name, shape, dtype)
        if array.size and not least <= array.min() <= array.max() <= most:
            raise ArchiveError(f"is damaged: {name} points outside its tables, {least}..{most}")
        return array

    def take_any(self, name: str) -> Any:
        """Return an array of any shape and type, such as an argument of a constructor that checks it."""
        kind, shape, digest = self._known(name)
        array = self._read(name, kind, shape)
        if hashlib.sha256(array.data).hexdigest() != digest:
            raise ArchiveError(f"is damaged: {name} does not hold the numbers that it was saved with")
        return array

    def finish(self) -> None:
        """Raise an error if the file contains more than was taken from it."""
        if self._left:
            raise ArchiveError(f"is damaged: such a file does not hold {', '.join(sorted(self._left))[:200]}")

    def _known(self, name: str) -> tuple[Any, tuple[int, ...], str]:
        if name not in self._listed:
            raise ArchiveError(f"is damaged: it lacks {name}")
        return self._listed[name]

    def _read(self, name: str, kind: Any, shape: tuple[int, ...]) -> Any:
        """Read the array in place, up to the end of its entry, so that the checksum is verified."""
        info = self._file.getinfo(f"{name}.npy")
        data = math.prod(shape) * kind.itemsize
        if not data < info.file_size <= data + 2**16:
            raise ArchiveError(f"is damaged: {name} has {info.file_size} bytes, expected {data} and a header")
        with self._file.open(info) as entry:
            try:
                if np.lib.format.read_magic(entry) != (1, 0):
                    raise ValueError("another version of the format")
                found, fortran, dtype = np.lib.format.read_array_header_1_0(entry)
                if (found, fortran, dtype) != (shape, False, kind):
                    raise ValueError("not what the header of the file lists")
            except Exception as error:  # NumPy parses the header with Python's parser, which raises many
                raise ArchiveError(f"is refused: {name} is not a plain array ({error})") from error
            array = np.empty(shape, kind)
            flat = array.reshape(-1).view(np.uint8) if data else np.empty(0, np.uint8)
            done = 0
            while done < data:
                part = entry.read(min(data - done, 2**18))
                if not part:
                    raise ArchiveError(f"is damaged: {name} is cut short")
                flat[done : done + len(part)] = np.frombuffer(part, np.uint8)
                done += len(part)
            if entry.read(1):
                raise ArchiveError(f"is damaged: {name} holds more than an array")
        self._left.discard(name)
        return array


def path_of(path: Any, name: str = "path") -> Path:
    """Return `path` if it can be the name of a file or a folder."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{name} must be the name of a file, got {shown(path)}")
    try:
        found = b"\0" in os.fsencode(path)
    except (TypeError, UnicodeEncodeError):
        found = True
    if found:
        raise ValueError(f"{name} must be the name of a file, which cannot be {shown(path)}")
    return Path(path)


def _header(file: zipfile.ZipFile) -> dict[str, Any]:
    try:
        info = file.getinfo(HEADER)
    except KeyError:
        raise ArchiveError("is not a saved agent: it has no header") from None
    if info.file_size > LONGEST_HEADER:
        raise ArchiveError(f"is refused: its header has {info.file_size} bytes, more than {LONGEST_HEADER}")
    header = json.loads(file.read(info), parse_constant=_not_finite, parse_float=_finite)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ArchiveError("is not a saved agent: its header does not say so")
    if header.get("version") != VERSION:
        raise ArchiveError(
            f"is of version {header.get('version')} of the format, this program reads version {VERSION}: load it "
            f"with the rlsvi that wrote it ({header.get('rlsvi', 'unknown')}), or let the agent learn anew"
        )
    return header


def _not_finite(word: str) -> Any:
    raise ArchiveError(f"is damaged: its header holds {word:.40}, which is not a finite number")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else float(_not_finite(text))


def _check_sizes(file: zipfile.ZipFile) -> None:
    """Raise an error if the entries claim to hold more than a file of this size can hold."""
    entries = file.infolist()
    assert file.fp is not None
    if sum(entry.compress_size for entry in entries) > file.fp.seek(0, os.SEEK_END):
        raise ArchiveError("is damaged: it is smaller than its entries")
    for entry in entries:
        if entry.file_size > EXPANSION * entry.compress_size:
            raise ArchiveError(f"is damaged: {entry.filename:.80} cannot have {entry.file_size} bytes")


def _listed(name: str, plain: Any) -> tuple[Any, tuple[int, ...], str]:
    """Return the type, shape and digest of an array in the header, checked before the array is read."""
    try:
        kind, shape, digest = plain
        dtype = np.dtype(kind)
        sizes = tuple(shape)
        assert isinstance(digest, str)
    except (TypeError, ValueError, AssertionError):
        raise ArchiveError(f"is damaged: its header does not say what {name} is") from None
    sane = all(type(size) is int and 0 <= size < 2**40 for size in sizes) and len(sizes) <= 8
    if dtype.kind not in "biufU" or dtype.str != kind or not sane or math.prod(sizes) * dtype.itemsize >= 2**48:
        raise ArchiveError(f"is damaged: {name} cannot be an array of type {kind!r} and shape {shape!r:.60}")
    return dtype, sizes, digest
