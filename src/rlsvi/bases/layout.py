"""Observations of any Gymnasium space as vectors, and their measured numbers scaled to [0, 1].

A vector has first the measured numbers, then the discrete ones. A Box is measured; Discrete, MultiDiscrete and
MultiBinary are discrete, counted from 0; a Text is a discrete number, its code, which is the same for equal texts;
Dict and Tuple are flattened. A layout is plain data that can be stored.
"""

from collections.abc import Mapping
from hashlib import blake2b
from math import prod
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from rlsvi.core.checks import LARGEST_NUMBER, shown, whole
from rlsvi.core.compile import Bools, Floats, compiled
from rlsvi.core.elementary import all_between

UNBOUNDED = 1e9  # a bound beyond this does not say where observations lie
EXACT = 2**53  # float64 holds all whole numbers up to this one
COUNTED = spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary
KINDS = "Box, Discrete, MultiDiscrete, MultiBinary, Text, and Dict or Tuple of these"
CODES = 2**52  # of texts: two of a million texts have the same with a chance of one in ten thousand
REMEDY = (
    "Every observation must be of the environment's observation_space: correct the environment, or bring them "
    "into one form by gymnasium.wrappers.TransformObservation"
)


class TableOnlyError(ValueError):
    """Observations that features cannot be made of, because of their kind, number or size, but a table can."""


class Layout(NamedTuple):
    """Where the numbers of an observation are, and which values they take."""

    tree: Any  # ["box", shape], ["counted", firsts, shape], ["text", []], or as below, of these
    # ["dict", [[key, tree], ..]] or ["tuple", [tree, ..]]
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

    @property
    def texts(self) -> bool:
        """Whether there is a text among the parts of an observation."""
        return any(leaf[0] == "text" for leaf in leaves_of(self.tree))

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
    refuse_unserved(space)
    layout = Layout(None, [], [], [])
    layout = layout._replace(tree=_tree(space, layout))
    if not layout.size:
        raise TableOnlyError(
            f"the observation space {space} holds nothing to learn from: put numbers into it, by "
            "gymnasium.wrappers.TransformObservation"
        )
    return layout


def _tree(space: Any, layout: Layout) -> Any:
    """Return the tree of a space, and append the possible values of its numbers to the lists of a layout."""
    if isinstance(space, spaces.Box):
        if space.dtype is not None and space.dtype.kind in "iu":
            _check_exact(space, space.low[space.bounded_below], space.high[space.bounded_above])
        for least, most in zip(space.low.ravel().tolist(), space.high.ravel().tolist(), strict=True):
            known = abs(least) < UNBOUNDED and abs(most) < UNBOUNDED and least < most
            layout.low.append(float(least) if known else None)
            layout.high.append(float(most) if known else None)
        return ["box", list(space.shape)]
    if isinstance(space, COUNTED):
        if isinstance(space, spaces.MultiBinary):
            n, start = np.full(space.shape, 2), np.zeros(space.shape, np.int64)
        else:
            n = np.asarray(space.n if isinstance(space, spaces.Discrete) else space.nvec)
            start = np.asarray(space.start)
        _check_exact(space, n, start)
        layout.counts.extend(int(k) for k in n.ravel())
        return ["counted", [int(k) for k in start.ravel()], list(n.shape)]
    if isinstance(space, spaces.Text):
        layout.counts.append(CODES)
        return ["text", []]
    if isinstance(space, spaces.Dict):
        return ["dict", [[key, _tree(part, layout)] for key, part in space.spaces.items()]]
    return ["tuple", [_tree(part, layout) for part in space.spaces]]


def _sizes(tree: Any) -> tuple[int, int]:
    """Return how many measured and discrete numbers a tree has, or raise an error if it is none."""
    kind, *parts = tree
    if kind in ("dict", "tuple"):
        (inner,) = parts
        sizes = [_sizes(part) for part in ([part for _, part in inner] if kind == "dict" else inner)]
        return sum(m for m, _ in sizes), sum(n for _, n in sizes)
    *firsts, shape = parts
    size = prod(whole("a side", side, 0) for side in shape)
    if kind in ("box", "text") and not firsts:
        return (size, 0) if kind == "box" else (0, size)
    if kind != "counted" or len(firsts) != 1 or len([whole("first", n, -EXACT, EXACT) for n in firsts[0]]) != size:
        raise ValueError(f"tree has a part {kind!r:.40} that is no space")
    return 0, size


def leaves_of(tree: Any) -> list[Any]:
    """Return the parts of a tree that are no Dict or Tuple, in their order."""
    if tree[0] not in ("dict", "tuple"):
        return [tree]
    return [leaf for part in tree[1] for leaf in leaves_of(part[1] if tree[0] == "dict" else part)]


def vector_of(layout: Layout, observation: Any) -> Floats:
    """Return an observation as a checked vector (measured, then discrete)."""
    measured: list[Any] = []
    counted: list[Any] = []
    _collect(layout.tree, observation, measured, counted)
    x = np.concatenate([*measured, *counted]) if len(measured) + len(counted) != 1 else (measured + counted)[0]
    if not all_between(x, -LARGEST_NUMBER, LARGEST_NUMBER):
        raise ValueError(
            f"observation holds NaN, infinity or more than {LARGEST_NUMBER:g}: {shown(observation)}. Correct the "
            "environment, or replace such numbers by gymnasium.wrappers.TransformObservation"
        )
    whole = x[layout.measured :]
    if whole.size and not ((whole >= 0) & (whole < layout.counts) & (whole == np.floor(whole))).all():
        raise ValueError(
            f"observation {shown(observation)} lies outside of the observation space of the environment: correct "
            "one of them, or wrap it by gymnasium.wrappers.TransformObservation, which takes another space"
        )
    return x


def _collect(tree: Any, observation: Any, measured: list[Any], counted: list[Any], path: str = "") -> None:
    """Append the numbers of an observation to one of the lists, part by part; an error names the part."""
    kind, *parts = tree
    where = f"observation{path}"
    if kind == "dict":
        _check_keys(where, [key for key, _ in parts[0]], observation)
        for key, part in parts[0]:
            _collect(part, observation[key], measured, counted, f"{path}[{key!r}]")
        return
    if kind == "tuple":
        if not isinstance(observation, tuple | list) or len(observation) != len(parts[0]):
            found = f"{len(observation)} parts" if isinstance(observation, tuple | list) else shown(observation)
            raise ValueError(f"{where} must be a tuple of {len(parts[0])} parts, got {found}. {REMEDY}")
        for i, (part, value) in enumerate(zip(parts[0], observation, strict=True)):
            _collect(part, value, measured, counted, f"{path}[{i}]")
        return
    if kind == "text":
        counted.append(np.array([_code(where, observation)]))
        return
    try:
        given = np.asarray(observation)
        if given.dtype.kind not in "biufO":
            raise TypeError(given.dtype)
        x, exact = np.asarray(given, dtype=np.float64), is_exact(given)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{where} must be numbers of shape {tuple(parts[-1])}, got {shown(observation)}. {REMEDY}"
        ) from None
    if list(x.shape) != parts[-1]:
        raise ValueError(
            f"{where} must have shape {tuple(parts[-1])}, got {x.shape}: {shown(observation)}. {REMEDY}"
        )
    if not exact:
        raise ValueError(
            f"observation holds whole numbers beyond 2^53, which float64 cannot tell apart: {shown(observation)}. "
            "Split or divide them by gymnasium.wrappers.TransformObservation"
        )
    (measured if kind == "box" else counted).append(x.ravel() if kind == "box" else x.ravel() - parts[0])


def _check_keys(where: str, keys: list[Any], observation: Any) -> None:
    """Raise an error unless an observation has just these keys."""
    if not isinstance(observation, Mapping):
        raise ValueError(f"{where} must be a dictionary with the keys {keys}, got {shown(observation)}. {REMEDY}")
    lost = [key for key in keys if key not in observation]
    new = [key for key in observation if key not in keys]
    if lost or new:
        what = [f"it lacks {lost}"] * bool(lost) + [f"{new} is new"] * bool(new)
        raise ValueError(f"{where} must have the keys {keys}: {' and '.join(what)}. {REMEDY}")


class Code(float):
    """The number that stands for a text, in an observation that was made of a vector."""


def code_of(text: str) -> int:
    """Return the number of a text: the first 52 bits of its BLAKE2b digest of 8 bytes."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 12


def _code(where: str, observation: Any) -> float:
    """Return the code of a text, which may be in an array of one text."""
    text = observation.item() if isinstance(observation, np.ndarray) and observation.shape == () else observation
    if isinstance(text, Code):
        return float(text)
    if not isinstance(text, str):
        raise ValueError(f"{where} must be a text, got {shown(observation)}. {REMEDY}")
    return float(code_of(text))


def observation_of(layout: Layout, x: Floats) -> Any:
    """Return the observation of a vector: the inverse of `vector_of`, up to the types of numbers.

    In the place of a text there is its code, of which `vector_of` makes the same number.
    """
    return _part(layout.tree, x, [0, layout.measured])


def _part(tree: Any, x: Floats, at: list[int]) -> Any:
    """Return a part of an observation; `at` is where the next measured and the next discrete number are in x."""
    kind, *parts = tree
    if kind == "dict":
        return {key: _part(part, x, at) for key, part in parts[0]}
    if kind == "tuple":
        return tuple(_part(part, x, at) for part in parts[0])
    which, size = (0 if kind == "box" else 1), prod(parts[-1])
    found = x[at[which] : at[which] + size]
    at[which] += size
    if kind == "box":
        return found.reshape(parts[-1])
    if kind == "text":
        return Code(found[0])
    return (found.astype(np.int64) + np.array(parts[0], np.int64)).reshape(parts[-1])


def is_exact(array: Any) -> bool:
    """Return whether float64 holds the numbers of an array exactly, as far as they are of an integer type."""
    if array.dtype.kind not in "iu" or array.dtype.itemsize <= 4:
        return True
    return all(abs(int(extreme)) <= EXACT for extreme in (array.min(initial=0), array.max(initial=0)))


def _check_exact(space: Any, *bounds: Any) -> None:
    """Raise an error if a space declares whole numbers that float64 cannot tell apart."""
    if not all(is_exact(array) for array in bounds):
        raise TableOnlyError(
            f"the space {space!s:.80} holds whole numbers beyond 2^53, which float64 cannot tell apart: split or "
            "divide them by gymnasium.wrappers.TransformObservation, or, if they do not occur, declare narrower "
            "bounds by TransformObservation(env, lambda x: x, space)"
        )


# ---- Spaces that no features can be made of ----------------------------------------------------------------


def refuse_unserved(space: Any) -> None:
    """Raise an error if a space has a part that is neither numbers nor text; it names the part and a remedy."""
    found = _unserved(space)
    if found is None:
        return
    path, part = found
    mission = len(path) == 1 and type(part).__name__ == "MissionSpace"  # the text of a task of MiniGrid
    if isinstance(part, spaces.OneOf):
        remedy = "flatten all to numbers by gymnasium.wrappers.FlattenObservation(env)"
    elif mission:
        declared = f"gymnasium.spaces.Dict({{**env.observation_space, {path[0]!r}: gymnasium.spaces.Text(100)}})"
        remedy = f"declare it as text, by gymnasium.wrappers.TransformObservation(env, lambda x: x, {declared})"
    else:
        remedy = (
            "turn the observation into a fixed number of numbers by "
            "gymnasium.wrappers.TransformObservation(env, function, gymnasium.spaces.Box(..))"
        )
    inner = space.spaces if isinstance(space, spaces.Dict) else {}
    kept = [key for key, each in inner.items() if _unserved(each) is None]
    if kept:
        keep = f"gymnasium.wrappers.FilterObservation(env, {kept!r})"
        picture = ", or keep the picture alone by minigrid.wrappers.ImgObsWrapper(env)" * mission
        remedy = f"If it does not matter, drop {path[0]!r} by {keep}{picture}; if it does, {remedy}"
    where = "observation" + "".join(f"[{key!r}]" for key in path)
    raise TableOnlyError(
        f"{where} is {type(part).__name__}, and only {KINDS} become numbers. "
        f"{remedy[0].upper() + remedy[1:]}, or give a basis such as bases.StateFeatures(function)"
    )


def _unserved(space: Any, path: tuple[Any, ...] = ()) -> tuple[tuple[Any, ...], Any] | None:
    """Return the first part that cannot be served, and the keys that lead to it."""
    if isinstance(space, spaces.Box | COUNTED | spaces.Text):
        return None
    if isinstance(space, spaces.Dict | spaces.Tuple):
        items = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        return next((found for key, part in items if (found := _unserved(part, (*path, key)))), None)
    return path, space


# ---- Measured numbers scaled to [0, 1], by given bounds or by the observed range within those of the space -----
#
# The bounds of a space often lie far beyond everything that happens, and features of unvisited regions are wasted.
# A range grows only when an observation leaves it, and then by at least half its width, so this happens O(log)
# times. All features must then be recomputed from the original observations.

MARGIN, GROWTH = 0.1, 1.5
LEAST_WIDTH = 1e-9  # the least width of a range, relative to its numbers


class Ranges(NamedTuple):
    """The range of each measured number; NaN if nothing is known yet."""

    low: Floats  # (m,)
    high: Floats
    least: Floats  # limits of the ranges; infinite if there is no bound
    most: Floats
    observed: Bools  # whether it follows what is observed; the others are given

    def of(self, kept: Bools) -> "Ranges":
        """Return the ranges of some of the numbers."""
        low, high, least, most, observed = self
        return Ranges(low[kept], high[kept], least[kept], most[kept], observed[kept])

    def around(self, mean: Floats, half: Floats) -> "Ranges":
        """Return ranges of a half width around a mean, where none are given."""
        low = np.where(self.observed, mean - half, self.low)
        return self._replace(low=low, high=np.where(self.observed, mean + half, self.high))


class Seen(NamedTuple):
    """What ranges depend on: the mean, standard deviation, minimum and maximum of each number of many rows."""

    mean: Floats  # (m,)
    deviation: Floats
    least: Floats
    most: Floats


def seen_in(x: Floats) -> Seen:
    """Return what is needed of the numbers x (N, m)."""
    return Seen(x.mean(axis=0), x.std(axis=0), x.min(axis=0), x.max(axis=0))


def ranges_of(low: list[float | None], high: list[float | None], *, observed: bool = False) -> Ranges:
    """Return the ranges given by bounds (None: no bound); with `observed`, all are unknown within the bounds."""
    least = np.array([-np.inf if v is None else v for v in low], dtype=np.float64)
    most = np.array([np.inf if v is None else v for v in high], dtype=np.float64)
    open_ = np.full(len(least), observed) | np.isinf(least) | np.isinf(most)
    return Ranges(np.where(open_, np.nan, least), np.where(open_, np.nan, most), least, most, open_)


def grown(ranges: Ranges, x: Floats) -> Ranges | None:
    """Return ranges that also contain x (N, m), as far as the bounds allow, or None if these already do."""
    if not x.size:
        return None
    inside = np.clip(x, ranges.least, ranges.most)
    least, most = inside.min(axis=0), inside.max(axis=0)
    new, below, above = np.isnan(ranges.low), least < ranges.low, most > ranges.high
    if not (new | below | above).any():
        return None
    width = ranges.high - ranges.low
    low = np.where(below, np.fmin(least, ranges.high - GROWTH * width), ranges.low)
    high = np.where(above, np.fmax(most, ranges.low + GROWTH * width), ranges.high)
    pad = np.where(most > least, MARGIN * (most - least), np.fmax(1.0, LEAST_WIDTH * np.abs(most)))
    low, high = np.where(new, least - pad, low), np.where(new, most + pad, high)
    return ranges._replace(low=np.fmax(low, ranges.least), high=np.fmin(high, ranges.most))


def scaled(ranges: Ranges, x: Floats) -> Floats:
    """Scale x (.., m) to [0, 1]; values outside the ranges are clipped."""
    z, m = np.empty(x.shape), len(ranges.low)
    rows = np.ascontiguousarray(x, dtype=np.float64).reshape(-1, m)
    scale_rows(rows, ranges.low, ranges.high, z.reshape(-1, m))
    return z


@compiled
def scale_rows(x: Floats, low: Floats, high: Floats, z: Floats) -> None:
    """Set z to scaled rows: a single row, as in acting, takes a fraction of the time that NumPy needs to begin."""
    for row in range(x.shape[0]):
        for i in range(x.shape[1]):
            part = (x[row, i] - low[i]) / (high[i] - low[i])
            if part < 0.0:
                part = 0.0
            elif part > 1.0:
                part = 1.0
            z[row, i] = part
