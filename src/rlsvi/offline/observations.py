"""Observations of a log: how each space of Gymnasium is written to a column, and read from it.

Discrete: a whole number. Text: text. Box: a list of numbers, or one column for each. MultiDiscrete, MultiBinary,
Dict and Tuple: the list of their numbers (parts.py).
"""

from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, Text

from rlsvi.bases.layout import layout_of, observation_of
from rlsvi.core.compile import Bools, Floats
from rlsvi.offline.columns import Columns, refuse
from rlsvi.offline.parts import raw_numbers, read_parts


class Observations:
    """One column of observations: `at(i)` is the observation of a row, as the environment gave it.

    first : the first state of a Discrete space.
    """

    def __init__(self, values: Any, at: Callable[[Any], Any], first: int = 0) -> None:
        self.values, self._at, self._first = values, at, first

    def at(self, i: int) -> Any:
        """Return the observation of row i."""
        return self._at(self.values[i])

    def key(self, i: int) -> Any:
        """Return what is the same for equal observations alone, and may be kept for many of them."""
        value = self.values[i]
        return blake2b(value.tobytes(), digest_size=16).digest() if isinstance(value, np.ndarray) else value

    def vectors(self) -> Floats:
        """Return all observations as vectors, (rows, n), as `bases.layout.vector_of` does one."""
        values = self.values[:, None] - self._first if self.values.ndim == 1 else self.values
        return np.ascontiguousarray(values, dtype=np.float64)

    def continues(self, following: "Observations") -> Bools:
        """Return for all rows but the last whether the next observation is that of the next row."""
        same: Bools = np.asarray(following.values[:-1] == self.values[1:])
        return same if same.ndim == 1 else np.all(same, axis=1)


def written(space: Any) -> Callable[[Any], Any]:
    """Return the function that turns an observation into what a log contains: a copy, checked."""
    if isinstance(space, Discrete):
        return int
    if isinstance(space, Text):
        return str
    if isinstance(space, Box):
        return lambda observation: np.array(observation).ravel()
    return raw_numbers(layout_of(space))


def read(columns: Columns, name: str, space: Any, needed: Bools) -> Observations:
    """Return a column of observations of a space, checked where they are needed."""
    if isinstance(space, Discrete):
        return Observations(_states(columns, name, space, needed), int, int(space.start))
    if isinstance(space, Text):
        return Observations(_texts(columns, name, space, needed), str)
    if isinstance(space, Box):
        shape = space.shape
        x = columns.vectors(name, int(np.prod(shape)), needed)
        return Observations(_typed(columns, name, x, space.dtype), lambda row: row.reshape(shape))
    layout = layout_of(space)
    x = read_parts(columns, name, layout, needed)
    return Observations(x, lambda row: observation_of(layout, row))


def _states(columns: Columns, name: str, space: Discrete, needed: Bools) -> Any:
    import polars as pl

    column = columns.name(name)
    series, rows = columns.frame[column].filter(pl.Series(needed)), columns.rows[needed]
    if not series.dtype.is_integer():
        raise ValueError(f"the log is wrong in column {column!r}: it holds {series.dtype}, not states of {space}")
    refuse(column, rows, series.is_null().to_numpy(), "there is no value")
    states, least, n = series.to_numpy().astype(np.int64), int(space.start), int(space.n)
    refuse(column, rows, (states < least) | (states >= least + n), f"states are {least} to {least + n - 1}")
    found = np.zeros(len(needed), np.int64)
    found[needed] = states
    return found


def _texts(columns: Columns, name: str, space: Text, needed: Bools) -> Any:
    import polars as pl

    column = columns.name(name)
    series = columns.frame[column]
    if series.dtype != pl.String:
        raise ValueError(f"the log is wrong in column {column!r}: it holds {series.dtype}, not text")
    columns.refuse(column, series.is_null().to_numpy() & needed, "there is no value")
    longer = series.str.len_chars().fill_null(0).to_numpy() > space.max_length
    columns.refuse(column, longer & needed, f"texts have at most {space.max_length} characters")
    return np.array(series.to_list(), dtype=object)


def _typed(columns: Columns, name: str, x: Any, dtype: Any) -> Any:
    """Return numbers in the type of a space; floating-point numbers of another precision stay as they are."""
    if x.dtype == dtype or (x.dtype.kind == "f" and np.dtype(dtype).kind == "f"):
        return x
    typed = x.astype(dtype)
    other = (typed.astype(x.dtype) != x).any(axis=1)
    columns.refuse(columns.of(name)[0], other, f"numbers must be of type {np.dtype(dtype)}, as the space says")
    return typed
