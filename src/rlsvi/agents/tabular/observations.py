"""Observations of any kind as keys of a table."""

import hashlib
from typing import Any

import numpy as np

from rlsvi.bases.layout import Layout, is_exact, vector_of
from rlsvi.core.compile import Floats

SIZE = 16  # bytes of a key: two of 2^32 observations have the same with a chance of 2^-65


def vector_or_bytes(layout: Layout | None, observation: Any) -> Floats | bytes:
    """Return a checked observation as a vector if the layout of its space is known, otherwise as bytes."""
    if layout is not None:
        return vector_of(layout, observation) + 0.0  # a copy, in which -0.0 is 0.0
    return plain_bytes(observation)


def key_of(x: Floats | bytes) -> bytes:
    """Return a key of constant length, whatever the size of the observation."""
    return hashlib.blake2b(x if isinstance(x, bytes) else x.tobytes(), digest_size=SIZE).digest()


def plain_bytes(observation: Any) -> bytes:
    """Return bytes that differ between observations that differ; equal numbers of any type are equal."""
    if isinstance(observation, str | bytes):
        text = observation if isinstance(observation, bytes) else observation.encode()
        return _tagged("text", text)
    if isinstance(observation, dict):
        parts = sorted(plain_bytes(key) + plain_bytes(value) for key, value in observation.items())
        return _tagged("dict", *parts)
    if isinstance(observation, tuple | list | frozenset | set):
        items = [plain_bytes(item) for item in observation]
        return _tagged("items", *(sorted(items) if isinstance(observation, frozenset | set) else items))
    if isinstance(observation, bool | int | float | np.generic | np.ndarray):
        return _numbers(observation)
    raise ValueError(
        f"observation {observation!r:.80} cannot be looked up in a table: only numbers, arrays, text, and tuples, "
        "lists, sets or dictionaries of these; wrap the environment (gymnasium.wrappers.TransformObservation)"
    )


def _numbers(observation: Any) -> bytes:
    array = np.asarray(observation)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"observation holds {array.dtype}, which is neither numbers nor text: {observation!r:.80}"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"observation holds NaN or infinity: {observation}")
    if is_exact(array):
        return _tagged(str(array.shape), (array.astype(np.float64) + 0.0).tobytes())
    return _tagged(str(array.shape) + array.dtype.str, array.tobytes())


def _tagged(kind: str, *parts: bytes) -> bytes:
    """Return parts with their lengths, so that no two sequences of parts look alike."""
    return b"".join([kind.encode(), b":", *(b"%d:%b" % (len(part), part) for part in parts)])
