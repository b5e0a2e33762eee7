"""Samples of the posterior as a file that serving processes map into memory.

The file has two lines of text, a JSON header padded with spaces, and the arrays, each beginning at a multiple of
64 bytes. The second line has the length of the header, and a checksum of this length and of all that follows: a
changed bit is noticed wherever it is. The header lists the shape and place of every array. The file is written
under another name and renamed, so that a reader finds the old file or the new one. Reading it runs no code.
"""

import json
import math
import mmap
import os
import zlib
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rlsvi.core.archive import checked_target
from rlsvi.core.files import whole_file
from rlsvi.shop.model.draws import Draws

MAGIC = b"rlsvi draws 3\n"
ALIGNED = 64
LENGTH, CHECKSUM = 16, 11  # characters of these numbers in the second line; the last one is its end
LONGEST_HEADER = 2**28
TYPES = {
    "weight": "<f8",
    "base": "<f8",
    "z": "<f8",
    "offered": "|b1",
    "shown": "<i8",
    "value": "<f8",
    "spread": "<f8",
    "beta": "<f8",
}


class DrawsFileError(ValueError):
    """The file is not a complete file of draws of this version."""


class DrawsFile(NamedTuple):
    """The samples, mapped into memory and read-only, and what the file says about them."""

    draws: Draws
    header: dict[str, Any]


def write_draws(path: str | os.PathLike[str], draws: Draws, header: Mapping[str, Any]) -> None:
    """Write samples and what is known about them, a mapping that JSON can hold, completely or not at all."""
    target = checked_target(path, "write")
    arrays = {name: np.ascontiguousarray(getattr(draws, name), dtype=TYPES[name]) for name in TYPES}
    place, places = 0, {}
    for name, array in arrays.items():
        places[name] = [list(array.shape), place]
        place += _padded(array.nbytes)
    plain = {"customer": int(draws.customer), "arrays": places, "about": dict(header)}
    text = json.dumps(plain, allow_nan=False).encode()
    start = len(MAGIC) + LENGTH + CHECKSUM
    parts = [text.ljust(_padded(start + len(text)) - start)]
    parts += [array.tobytes().ljust(_padded(array.nbytes), b"\0") for array in arrays.values()]
    length = f"{len(text):>{LENGTH}}".encode()
    with whole_file(target) as file:
        file.write(MAGIC + length + _checksum(length, *parts))
        for part in parts:
            file.write(part)


def read_draws(path: str | os.PathLike[str]) -> DrawsFile:
    """Map a file of samples into memory, after checking all of it."""
    try:
        with Path(path).open("rb") as file:
            return _read(file)
    except (DrawsFileError, json.JSONDecodeError, RecursionError, UnicodeDecodeError) as error:
        raise DrawsFileError(
            f"{path} is not a complete file of draws: {error}; let the learner write it anew"
        ) from error


def _read(file: Any) -> DrawsFile:
    size = os.fstat(file.fileno()).st_size
    if file.read(len(MAGIC)) != MAGIC:
        raise DrawsFileError("it begins with other words")
    length, checksum = file.read(LENGTH), file.read(CHECKSUM)
    if not length.strip().isdigit() or not 0 < int(length) <= min(size, LONGEST_HEADER):
        raise DrawsFileError("the length of its header is wrong")
    mapped = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    if _checksum(length, mapped[file.tell() :].data) != checksum:
        raise DrawsFileError("its checksum is wrong")
    plain = json.loads(file.read(int(length)))
    start, arrays = _padded(file.tell()), {}
    for name, (shape, place) in _shapes(plain, size - start).items():
        flat = mapped[start + place : start + place + math.prod(shape) * np.dtype(TYPES[name]).itemsize]
        arrays[name] = flat.view(TYPES[name]).reshape(shape)
    draws = Draws(**arrays, customer=np.array(plain["customer"]))
    _check(draws)
    return DrawsFile(draws, plain["about"])


def _shapes(plain: Any, room: int) -> dict[str, tuple[tuple[int, ...], int]]:
    """Return shape and place of every array, after checking that they lie one after another within the file."""
    if not isinstance(plain, dict) or not isinstance(plain.get("about"), dict):
        raise DrawsFileError("its header is not complete")
    arrays, end, found = plain.get("arrays"), 0, {}
    if not isinstance(arrays, dict) or list(arrays) != list(TYPES) or type(plain.get("customer")) is not int:
        raise DrawsFileError("its header lists other arrays")
    for name, entry in arrays.items():
        if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], list) or entry[1] != end:
            raise DrawsFileError(f"its header does not say where {name} is")
        if not all(type(n) is int and 0 <= n < 2**40 for n in entry[0]) or len(entry[0]) > 3:
            raise DrawsFileError(f"{name} cannot have shape {entry[0]!r:.80}")
        found[name] = tuple(entry[0]), end
        end += _padded(math.prod(entry[0]) * np.dtype(TYPES[name]).itemsize)
    if end != room:
        raise DrawsFileError(f"it has {room} bytes of arrays, expected {end}")
    return found


def _check(draws: Draws) -> None:
    """Check that shapes agree and numbers are finite: compiled code relies on it."""
    if draws.weight.ndim != 3 or draws.z.ndim != 2 or draws.base.ndim != 1:
        raise DrawsFileError("an array has the wrong number of dimensions")
    S, e, N = draws.weight.shape
    m = draws.z.shape[1]
    per_product = (draws.z[:, :0].sum(axis=1), draws.offered, draws.shown, draws.value, draws.spread)
    if (
        S < 1
        or not 0 <= draws.customer <= e - 2 - m
        or draws.beta.shape != (S, m * (1 + draws.customer + m))
        or any(part.shape != (N,) for part in per_product)
    ):
        raise DrawsFileError("the shapes of its arrays do not belong together")
    if (draws.offered.view(np.uint8) > 1).any():
        raise DrawsFileError("offered holds more than true and false")
    for name in ("weight", "base", "z", "value", "spread", "beta"):
        if not np.isfinite(getattr(draws, name)).all():
            raise DrawsFileError(f"{name} holds numbers that are not finite")


def _checksum(*parts: Any) -> bytes:
    """Return the checksum of bytes, as the second line has it."""
    return f"{reduce(lambda found, part: zlib.crc32(part, found), parts, 0):>{CHECKSUM - 1}}\n".encode()


def _padded(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED
