"""Observations of any Gymnasium space as vectors: first the measured numbers, then the discrete ones.

A Box is measured; Discrete, MultiDiscrete and MultiBinary are discrete, counted from 0; Dict and Tuple are
flattened. A layout is plain data that can be stored in a file.
"""

from math import prod
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from rlsvi.core.checks import LARGEST, shown, whole
from rlsvi.core.compile import Floats

# ---- Observations that no features can be made of, and what to do about them -------------------------------


SERVED = spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary
KINDS = "Box, Discrete, MultiDiscrete, MultiBinary, and Dict or Tuple of these"


def refuse_unserved(space: Any) -> None:
    """Raise an error if a space has a part that is neither numbers nor counted; it names the part and a remedy."""
    found = _first(space, ())
    if found is None:
        return
    path, part = found
    where = "observation" + "".join(f"[{key!r}]" for key in path)
    raise ValueError(
        f"observations cannot be learned from: {where} is {type(part).__name__}, only {KINDS} become numbers. "
        f"{_remedy(space, path, part)}, or give a basis such as bases.StateFeatures(function)"
    )


def _first(space: Any, path: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any] | None:
    """Return the first part that cannot be served, and the keys that lead to it."""
    if isinstance(space, SERVED):
        return None
    if isinstance(space, spaces.Dict | spaces.Tuple):
        items = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        return next((found for key, part in items if (found := _first(part, (*path, key)))), None)
    return path, space


def _remedy(space: Any, path: tuple[Any, ...], part: Any) -> str:
    """Return how to wrap the environment: drop a key, flatten, or turn the observation into numbers."""
    if isinstance(space, spaces.Dict):
        kept = [key for key, each in space.spaces.items() if _first(each, ()) is None]
        if kept:
            keep = f"gymnasium.wrappers.FilterObservation(env, {kept!r})"
            return f"If it does not matter, drop {path[0]!r} by {keep}; if it does, {_numbers(part)}"
    remedy = _numbers(part)
    return remedy[0].upper() + remedy[1:]


def _numbers(part: Any) -> str:
    """Return how to turn a part into numbers."""
    if isinstance(part, spaces.Text | spaces.OneOf):
        return "flatten all to numbers by gymnasium.wrappers.FlattenObservation(env)"
    return (
        "turn the observation into a fixed number of numbers by "
        "gymnasium.wrappers.TransformObservation(env, function, gymnasium.spaces.Box(..))"
    )


UNBOUNDED = 1e9  # a bound beyond this does not say where observations lie
EXACT = 2**53  # float64 holds all whole numbers up to this one


class TableOnlyError(ValueError):
    """Observations that features cannot be made of, because of their number or size, but a table can."""


class Layout(NamedTuple):
    """Where the numbers of an observation are, and which values they take."""

    tree: Any  # ["box", shape], ["counted", firsts, shape], ["dict", [[key, tree], ..]] or ["tuple", [tree, ..]]
    low: list[float | None]  # (m,) of measured numbers; None: unknown
    high: list[float | None]
    counts: list[int]  # of discrete numbers: the number of values

    @property
    def measured(self) -> int:
        """The number of measured numbers."""
        return len(self.low)

    @property
    def size(self) -> int:
        """The number of all numbers."""
        return len(self.low) + len(self.counts)

    def check(self) -> None:
        """Raise an error unless the parts fit together, as those of a space do."""
        low, high, counts = self.low, self.high, self.counts
        if not all(isinstance(part, list) for part in (low, high, counts)) or len(low) != len(high):
            raise ValueError("low, high and counts must be lists, and low and high equally long")
        if not all(v is None or isinstance(v, int | float) for v in (*low, *high)):
            raise ValueError("low and high must be numbers, or None where there is no bound")
        if not all(isinstance(n, int) and 1 <= n <= EXACT for n in counts):
            raise ValueError("counts must be positive whole numbers")
        try:
            sizes = _sizes(self.tree)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"tree must be that of a space, as bases.of makes it: {error!s:.200}") from None
        if not (low or counts) or sizes != (len(low), len(counts)):
            raise ValueError("tree must have as many numbers as low and counts")


def layout_of(space: Any) -> Layout:
    """Return the layout of a space, or raise an error that suggests a remedy."""
    low: list[float | None] = []
    high: list[float | None] = []
    counts: list[int] = []
    refuse_unserved(space)
    tree = _tree(space, low, high, counts)
    if not low and not counts:
        raise ValueError(
            f"the observation space {space} holds nothing to learn from: put numbers into it, by "
            "gymnasium.wrappers.TransformObservation"
        )
    return Layout(tree, low, high, counts)


def _tree(space: Any, low: list[float | None], high: list[float | None], counts: list[int]) -> Any:
    """Flatten a space, appending the possible values of its numbers to the lists."""
    if isinstance(space, spaces.Box):
        if space.dtype is not None and space.dtype.kind in "iu":
            _check_exact(space, space.low[space.bounded_below], space.high[space.bounded_above])
        for least, most in zip(space.low.ravel().tolist(), space.high.ravel().tolist(), strict=True):
            known = abs(least) < UNBOUNDED and abs(most) < UNBOUNDED and least < most
            low.append(float(least) if known else None)
            high.append(float(most) if known else None)
        return ["box", list(space.shape)]
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        if isinstance(space, spaces.MultiBinary):
            n, start = np.full(space.shape, 2), np.zeros(space.shape, np.int64)
        else:
            n = np.asarray(space.n if isinstance(space, spaces.Discrete) else space.nvec)
            start = np.asarray(space.start)
        _check_exact(space, n, start)
        counts.extend(int(k) for k in n.ravel())
        return ["counted", [int(k) for k in start.ravel()], list(n.shape)]
    if isinstance(space, spaces.Dict):
        return ["dict", [[key, _tree(part, low, high, counts)] for key, part in space.spaces.items()]]
    return ["tuple", [_tree(part, low, high, counts) for part in space.spaces]]


def _sizes(tree: Any) -> tuple[int, int]:
    """Return how many measured and discrete numbers a tree has, or raise an error if it is none."""
    kind, *parts = tree
    if kind in ("dict", "tuple"):
        (inner,) = parts
        sizes = [_sizes(part) for part in ([part for _, part in inner] if kind == "dict" else inner)]
        return sum(m for m, _ in sizes), sum(n for _, n in sizes)
    *firsts, shape = parts
    size = prod(whole("a side", side, 0) for side in shape)
    if kind == "box" and not firsts:
        return size, 0
    if kind != "counted" or len(firsts) != 1 or len([whole("first", n, -EXACT, EXACT) for n in firsts[0]]) != size:
        raise ValueError(f"tree has a part {kind!r:.40} that is no space")
    return 0, size


def _check_exact(space: Any, *bounds: Any) -> None:
    """Raise an error if a space declares whole numbers that float64 cannot tell apart."""
    if not all(is_exact(array) for array in bounds):
        raise TableOnlyError(
            f"the space {space!s:.80} holds whole numbers beyond 2^53, which float64 cannot tell apart: split or "
            "divide them by gymnasium.wrappers.TransformObservation, or, if they do not occur, declare narrower "
            "bounds by TransformObservation(env, lambda x: x, space)"
        )


def vector_of(layout: Layout, observation: Any) -> Floats:
    """Return an observation as a checked vector (measured, then discrete)."""
    measured: list[Any] = []
    counted: list[Any] = []
    _collect(layout.tree, observation, measured, counted)
    x = np.concatenate([*measured, *counted]) if len(measured) + len(counted) != 1 else (measured + counted)[0]
    if not (np.abs(x) <= LARGEST).all():
        raise ValueError(
            f"observation holds NaN, infinity or more than {LARGEST:g}: {shown(observation)}. Correct the "
            "environment, or replace such numbers by gymnasium.wrappers.TransformObservation"
        )
    whole = x[layout.measured :]
    if whole.size and not ((whole >= 0) & (whole < layout.counts) & (whole == np.floor(whole))).all():
        raise ValueError(
            f"observation {shown(observation)} lies outside of the observation space of the environment: correct "
            "one of them, or wrap it by gymnasium.wrappers.TransformObservation, which takes another space"
        )
    return x


def _collect(tree: Any, observation: Any, measured: list[Any], counted: list[Any]) -> None:
    kind, *parts = tree
    try:
        if kind == "dict":
            for key, part in parts[0]:
                _collect(part, observation[key], measured, counted)
            return
        if kind == "tuple":
            for part, value in zip(parts[0], observation, strict=True):
                _collect(part, value, measured, counted)
            return
        x, exact = np.asarray(observation, dtype=np.float64), is_exact(np.asarray(observation))
    except (TypeError, KeyError, IndexError, ValueError, OverflowError) as error:
        if isinstance(error, ValueError) and str(error).startswith("observation"):
            raise
        raise ValueError(
            f"observation {shown(observation)} is not of the environment's observation space"
        ) from None
    if list(x.shape) != parts[-1]:
        raise ValueError(f"observation must have shape {tuple(parts[-1])}, got {x.shape}: {shown(observation)}")
    if not exact:
        raise ValueError(
            f"observation holds whole numbers beyond 2^53, which float64 cannot tell apart: {shown(observation)}. "
            "Split or divide them by gymnasium.wrappers.TransformObservation"
        )
    (measured if kind == "box" else counted).append(x.ravel() if kind == "box" else x.ravel() - parts[0])


def is_exact(array: Any) -> bool:
    """Return whether float64 holds the numbers of an array exactly, as far as they are of an integer type."""
    if array.dtype.kind not in "iu":
        return True
    return all(abs(int(extreme)) <= EXACT for extreme in (array.min(initial=0), array.max(initial=0)))


def observation_of(layout: Layout, x: Floats) -> Any:
    """Return the observation of a vector: the inverse of `vector_of`, up to the types of numbers."""
    at = [0, layout.measured]
    return _part(layout.tree, x, at)


def _part(tree: Any, x: Floats, at: list[int]) -> Any:
    kind, *parts = tree
    if kind == "dict":
        return {key: _part(part, x, at) for key, part in parts[0]}
    if kind == "tuple":
        return tuple(_part(part, x, at) for part in parts[0])
    which, shape = (0 if kind == "box" else 1), parts[-1]
    size = int(np.prod(shape))
    found = x[at[which] : at[which] + size]
    at[which] += size
    if kind == "box":
        return found.reshape(shape)
    return (found.astype(np.int64) + np.array(parts[0], np.int64)).reshape(shape)
