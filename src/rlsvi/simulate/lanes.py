"""Nested named tuples of arrays, for many runs at once on a graphics card.

The leaves of a tree (arrays and numbers) are on the card once if all runs have the same and no run writes to them,
and otherwise stacked along the last axis. A kernel gives each thread the tree of its own run, made of views.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from rlsvi.core import card

KERNEL = """
def play(runs, lanes, todo, done, status, begin, on_the_mean, explore, offset, regret, out, ints, floats):
    t = cuda.grid(1)
    if t < todo.size:
        p = todo[t]
        i, first = lanes[p], done[p]
        me = {me}
        trace = Trace(ints[:0], ints[:0], floats[:0])
        history = History(out[0, first:, p], out[1, first:, p], out[2, first:, p], out[3, first:, p], trace)
        mean, e = max(on_the_mean - begin - first, 0), explore.kind[i]
        rule, values = explore.rules[e], explore.parameters[e, first:]
        finished, status[p] = run(
            me.table, me.mind, mean, rule, values, offset, me.streams, me.V, me.Q, regret, history, me.work
        )
        done[p] = first + finished
"""


class Leaf(NamedTuple):
    """A leaf of the tree of one run, those of all runs if they differ, and whether the card has it only once."""

    one: Any
    rows: Sequence[Any] | None
    shared: bool

    @property
    def bytes(self) -> int:
        """The number of bytes of every run."""
        return 0 if self.shared else int(np.asarray(self.one).nbytes)

    def placed(self, runs: int) -> Any:
        """Return the leaf of so many runs on the card."""
        if not isinstance(self.one, np.ndarray):
            return self.one if self.rows is None else card.cuda().to_device(np.array(self.rows))
        if self.one.size == 0:  # never read; cut to its shape in the kernel
            return card.cuda().to_device(np.zeros([max(n, 1) for n in self.one.shape], self.one.dtype))
        if self.shared:
            return card.cuda().to_device(np.ascontiguousarray(self.one))
        return card.stacked(self.one, runs) if self.rows is None else card.stacked_rows(self.rows)


def leaves(tree: Any) -> list[Any]:
    """Return the arrays and numbers of nested named tuples, in order."""
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, tuple) else [tree]


def rebuilt(tree: Any, new: Iterator[Any]) -> Any:
    """Return nested named tuples like `tree`, of other leaves."""
    if not isinstance(tree, tuple):
        return next(new)
    return type(tree)(*[rebuilt(part, new) for part in tree])


def frozen(tree: Any) -> Any:
    """Return the same tree with arrays that cannot be written to."""
    return rebuilt(tree, (_read_only(leaf) for leaf in leaves(tree)))


def _read_only(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        leaf = leaf.view()
        leaf.flags.writeable = False
    return leaf


def kinds_of(tree: Any) -> list[type]:
    """Return the classes of nested named tuples, in order."""
    return [type(tree), *(kind for part in tree for kind in kinds_of(part))] if isinstance(tree, tuple) else []


def compared(tree: Any, others: Iterable[Any]) -> list[Leaf]:
    """Return the leaves of a tree, and those of all runs where they differ; all must have the same size."""
    ones = leaves(tree)
    rows: list[list[Any]] = [[] for _ in ones]
    for other in others:
        same = kinds_of(other) == kinds_of(tree)
        for one, leaf, its in zip(ones, leaves(other), rows, strict=True):
            if not same or size_of(one) != size_of(leaf):
                raise ValueError("runs on a card must have agents of the same kind, and problems of the same size")
            its.append(one if np.array_equal(one, leaf) else leaf)  # equal ones need no memory of their own
    found = []
    for one, its in zip(ones, rows, strict=True):
        differ = any(leaf is not one for leaf in its)
        written = isinstance(one, np.ndarray) and one.flags.writeable
        found.append(Leaf(one, its if differ else None, np.size(one) == 0 or not (differ or written)))
    return found


def size_of(leaf: Any) -> Any:
    """Return what must be the same in all runs: the shape and type of an array, the value of a whole number."""
    if isinstance(leaf, np.ndarray):
        return leaf.shape, leaf.dtype
    return float if isinstance(leaf, float) else leaf


def kernel_of(tree: Any, parts: Sequence[Leaf], names: dict[str, Any]) -> Any:
    """Return the kernel that lets every run of a tree with these leaves play; `names` are those it uses."""
    kinds: list[Any] = []
    me = _lane(tree, iter(parts), "runs", kinds)
    return _kernel(KERNEL.format(me=me), tuple(kinds), tuple(names.items()))


@cache
def _kernel(source: str, kinds: tuple[Any, ...], names: tuple[tuple[str, Any], ...]) -> Any:
    space = {f"K{k}": kind for k, kind in enumerate(kinds)} | dict(names) | {"cuda": card.cuda()}
    exec(source, space)
    return card.kernel(space["play"])


def _lane(tree: Any, parts: Iterator[Leaf], name: str, kinds: list[Any]) -> str:
    """Return the expression of the tree of run i."""
    if isinstance(tree, tuple):
        kinds.append(type(tree))
        kind = f"K{len(kinds) - 1}"
        return f"{kind}({', '.join(_lane(part, parts, f'{name}[{k}]', kinds) for k, part in enumerate(tree))})"
    one, _, shared = next(parts)
    if isinstance(one, np.ndarray) and one.size == 0:
        return f"{name}[{', '.join(':0' if n == 0 else ':' for n in one.shape)}]"
    if shared:
        return name
    return f"{name}[..., i]" if isinstance(one, np.ndarray) else f"{name}[i]"
