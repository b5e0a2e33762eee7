"""Observations that consist of parts: MultiDiscrete, MultiBinary, Dict and Tuple spaces.

A log has their numbers as the environment gives them, in the order of the space: the parts of a Dict or Tuple one
after another, each in the order of its elements. Agents see a vector in the order of bases/layout.py instead, in
which discrete numbers come last and are counted from 0.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsvi.bases.layout import Layout, vector_of
from rlsvi.core.compile import Bools, Floats
from rlsvi.offline.columns import Columns

if TYPE_CHECKING:
    import polars as pl


def raw_numbers(layout: Layout) -> Callable[[Any], Any]:
    """Return the function that turns an observation into its numbers as a log contains them."""
    order, firsts = _order(layout)
    kind = np.float64 if layout.measured else np.int64
    return lambda observation: (vector_of(layout, observation)[order] + firsts).astype(kind)


def read_parts(columns: Columns, name: str, layout: Layout, needed: Bools) -> Floats:
    """Return the vectors of a column of observations, (rows, n), checked; 0 where not needed."""
    order, firsts = _order(layout)
    raw = columns.joined(list(_columns(columns, name, layout)), needed).astype(np.float64)
    x: Floats = np.zeros(raw.shape)
    x[:, order] = np.where(needed[:, None], raw - firsts, 0.0)
    counted = x[:, layout.measured :]
    outside = (counted < 0) | (counted >= np.array(layout.counts)) | (counted != np.floor(counted))
    columns.refuse(
        columns.of(name)[0], outside.any(axis=1), f"outside of the observation space ({_words(layout)})"
    )
    return x


def _order(layout: Layout) -> tuple[Any, Floats]:
    """Return where the vector has each number of the log, and what is subtracted from it there."""
    order: list[int] = []
    firsts: list[float] = []
    at = {"box": 0, "counted": layout.measured}
    for kind, *rest in _leaves(layout.tree):
        size = _size([kind, *rest])
        order += range(at[kind], at[kind] + size)
        firsts += [0] * size if kind == "box" else rest[0]
        at[kind] += size
    return np.array(order, np.int64), np.array(firsts, np.float64)


def _leaves(tree: Any) -> Iterator[Any]:
    if tree[0] in ("box", "counted"):
        yield tree
    else:
        for _, part in _parts(tree):
            yield from _leaves(part)


def _parts(tree: Any) -> list[tuple[str, Any]]:
    """Return the parts of a Dict or Tuple by their names; those of a Tuple are called 0, 1, .."""
    return [(str(key), part) for key, part in (tree[1] if tree[0] == "dict" else enumerate(tree[1]))]


def _size(tree: Any) -> int:
    return sum(int(np.prod(leaf[-1])) for leaf in _leaves(tree))


def _columns(columns: Columns, name: str, layout: Layout) -> "Iterator[tuple[pl.Series, int]]":
    """Yield the columns of the parts in their order, and how many numbers each has in a row."""
    names, tree = columns.of(name), layout.tree
    several = tree[0] in ("dict", "tuple")
    if several and columns.is_named(name):  # observation_KEY
        for key, part in _parts(tree):
            yield from _fields(columns.column(f"{name}_{key}"), part)
    elif len(names) == 1 and not columns.is_named(name):
        yield from _fields(columns.frame[names[0]], tree)
    elif several and len(names) == len(tree[1]):
        for column, (_, part) in zip(names, _parts(tree), strict=True):
            yield from _fields(columns.frame[column], part)
    else:
        yield from columns.equal_parts(name, _size(tree))


def _fields(series: "pl.Series", tree: Any) -> "Iterator[tuple[pl.Series, int]]":
    """Yield the columns that a column consists of: the fields of a Struct, or itself."""
    import polars as pl

    if not isinstance(series.dtype, pl.Struct) or tree[0] not in ("dict", "tuple"):
        yield series, _size(tree)
        return
    fields = [field.name for field in series.dtype.fields]
    for i, (key, part) in enumerate(_parts(tree)):
        field = fields[i] if tree[0] == "tuple" and i < len(fields) else key
        if field not in fields:
            has = ", ".join(fields)
            raise ValueError(f"the log is wrong in column {series.name!r}: it has no field {key!r}, it has {has}")
        yield from _fields(series.struct.field(field).alias(f"{series.name}.{field}"), part)


def _words(layout: Layout) -> str:
    """Return what the discrete numbers of an observation are."""
    counted = [leaf for leaf in _leaves(layout.tree) if leaf[0] == "counted"]
    firsts, counts = [first for leaf in counted for first in leaf[1]], layout.counts
    return "discrete numbers are " + ", ".join(
        f"{first} to {first + n - 1}" for first, n in zip(firsts[:10], counts, strict=False)
    )
