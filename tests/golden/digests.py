"""Digests of arrays, and summaries of those whose last bits depend on the processor."""

import hashlib

import numpy as np

TOLERANCE = 1e-5  # of a summary, relative to the sum of all sizes: a search for a maximum is only so exact


def digest(arrays):
    """A digest of the shapes and numbers of arrays. Whole numbers count alike whatever their type.

    Zeros have no sign, and all NaN are one: processors differ in both.
    """
    found = hashlib.sha256()
    for array in arrays:
        kind = {"b": "<i8", "i": "<i8", "u": "<u8", "f": "<f8"}[array.dtype.kind]
        if array.dtype.kind == "f":
            array = np.where(np.isnan(array), np.nan, array + 0.0)
        found.update(f"{'number' if kind == '<f8' else 'whole'}{array.shape}".encode())
        found.update(np.ascontiguousarray(array, dtype=kind).tobytes())
    return found.hexdigest()[:32]


def summary(arrays):
    """How many numbers there are, how many are finite, the sum of their sizes, their sum, and a weighted sum."""
    numbers = np.concatenate([np.ravel(array).astype(np.float64) for array in arrays])
    finite = np.where(np.isfinite(numbers), numbers, 0.0)
    weights = (np.arange(len(finite)) % 7 - 3) / 3
    sums = np.abs(finite).sum(), finite.sum(), (weights * finite).sum()
    return [len(numbers), int(np.isfinite(numbers).sum()), *map(float, sums)]


def recorded_form(value, rounded):
    """What is recorded of an array or a tuple of arrays: a summary of rounded numbers, or else a digest."""
    arrays = [np.asarray(each) for each in (value if isinstance(value, tuple) else (value,))]
    fractions = any(array.dtype.kind == "f" for array in arrays)
    return summary(arrays) if rounded and fractions else digest(arrays)


def agree(found, expected):
    """Whether two recorded forms are alike: digests if they are equal, summaries within a tolerance."""
    if not (isinstance(found, list) and isinstance(expected, list)):
        return found == expected
    within = TOLERANCE * abs(expected[2]) + 1e-12
    return found[:2] == expected[:2] and bool(np.allclose(found[2:], expected[2:], rtol=0, atol=within))
