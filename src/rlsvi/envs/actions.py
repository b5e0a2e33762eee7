"""The finite choice of actions that agents learn values of, out of any action space that has one.

Discrete actions are such a choice. Of MultiDiscrete and MultiBinary spaces it consists of all combinations, up to
`MOST_COMBINATIONS`; if there are more, an agent may choose the value of every part instead. Of a bounded Box it is
a grid that includes the bounds: five values of one number, 3 x 3 of two, and of three and four numbers the centre,
the middles of the faces, and the corners, which are 15 and 25 actions. Agents number the actions of the choice,
and return actions of the space.
"""

from functools import cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from gymnasium import spaces

from rlsvi.core.checks import shown, whole

if TYPE_CHECKING:  # help on the command line does without compiled code
    from rlsvi.core.compile import Floats, Longs

MOST_COMBINATIONS = 1000
MOST_ACTIONS = 100_000  # Discrete ones, or values of all parts together
NUMBERS = 4  # the most numbers of a Box of which there is a grid
VALUES = {1: 5, 2: 3}  # of each number, if there are one or two
UNBOUNDED = 1e9  # a bound beyond this does not say where actions lie
MOST_SHOWN = 16  # parts of an action that messages show
AT_ONCE = 2**20  # differences that are computed at once
OUTSIDE = 1e-6  # by how much of its range a number of a log may exceed its bounds, because of rounding


class Choices(NamedTuple):
    """Actions of a Box, MultiDiscrete or MultiBinary space, as plain data that a file can contain."""

    dtype: str  # of the numbers of an action
    shape: tuple[int, ...]  # of an action
    actions: tuple[tuple[float, ...], ...]  # the numbers of every action, in the order of its elements

    @property
    def table(self) -> Any:
        """All actions, (A, *shape), in the type of the space."""
        return np.array(self.actions, self.dtype).reshape(-1, *self.shape)

    def action(self, number: int) -> Any:
        """Return an action of the space, given its number: a new array."""
        return np.array(self.actions[number], self.dtype).reshape(self.shape)

    def number(self, action: Any) -> int:
        """Return the number of the choice that is nearest to an action of the space."""
        return int(_nearest(self, action))

    def outside(self, x: Any) -> Any:
        """Return which rows of numbers, (N, n), are not actions of the space."""
        low, high = self._bounds
        slack = OUTSIDE * (high - low)
        within = ((x >= low - slack) & (x <= high + slack)).all(axis=1)  # False for NaN
        return ~(within & (x == np.rint(x)).all(axis=1)) if np.dtype(self.dtype).kind in "biu" else ~within

    def nearest(self, x: Any) -> "tuple[Longs, Floats]":
        """Return the number of the choice nearest to each row, (N, n), and its distance, where each range is 1.

        Of equally near ones it is the first.
        """
        low, high = self._bounds
        actions, width = np.array(self.actions, np.float64), np.where(high > low, high - low, 1.0)
        best, least = np.zeros(len(x), np.int64), np.zeros(len(x))
        for rows in np.array_split(np.arange(len(x)), 1 + len(x) * actions.size // AT_ONCE):
            away = (((x[rows, None] - actions) / width) ** 2).sum(axis=2)
            best[rows], least[rows] = away.argmin(axis=1), np.sqrt(away.min(axis=1))
        return best, least

    @property
    def _bounds(self) -> "tuple[Floats, Floats]":
        """The least and the greatest value of each number: the corners of the space are among the choices."""
        actions = np.array(self.actions, np.float64)
        return actions.min(axis=0), actions.max(axis=0)

    def __str__(self) -> str:
        low, high = (" ".join(f"{number:g}" for number in bound) for bound in self._bounds)
        return f"shape {self.shape} and type {self.dtype} between [{low}] and [{high}]"

    @classmethod
    def read(cls, plain: Any) -> Self:
        """Return the choices of a file, checked."""
        dtype, shape, actions = plain
        sides = tuple(whole("a side", side, 1, MOST_COMBINATIONS) for side in shape)
        numbers = np.array(actions)
        fits = numbers.ndim == 2 and numbers.shape[1] == prod(sides) and 1 <= len(numbers) <= MOST_COMBINATIONS
        if np.dtype(dtype).kind not in "biuf" or not fits or not np.isfinite(numbers.astype(np.float64)).all():
            raise ValueError(f"the actions cannot be {shown(plain)}")
        made = cls(str(np.dtype(dtype)), sides, tuple(tuple(action) for action in actions))
        if not np.array_equal(made.table.reshape(numbers.shape).astype(np.float64), numbers):
            raise ValueError(f"the actions cannot be of type {dtype}")
        return made


class Parts(NamedTuple):
    """Actions of a MultiDiscrete or MultiBinary space of many combinations, as plain data that a file can contain.

    The values of all parts are numbered together, those of the first part first. An action is given by the numbers
    of the values of its parts, (k,).
    """

    dtype: str  # of the numbers of an action
    shape: tuple[int, ...]  # of an action
    counts: tuple[int, ...]  # how many values each part has, in the order of the elements of an action
    least: tuple[int, ...]  # the least value of each part

    def action(self, numbers: Any) -> Any:
        """Return an action of the space, given the numbers of its values: a new array."""
        return (np.asarray(numbers) - starts_of(self.counts) + self.least).astype(self.dtype).reshape(self.shape)

    def number(self, action: Any) -> "Longs":
        """Return the numbers of the values of an action of the space."""
        numbers: Longs = _nearest(self, action)
        return numbers

    @property
    def slices(self) -> list[slice]:
        """The numbers of the values of each part."""
        starts = starts_of(self.counts).tolist()
        return [slice(start, start + n) for start, n in zip(starts, self.counts, strict=True)]

    def outside(self, x: Any) -> Any:
        """Return which rows of numbers, (N, k), are not actions of the space."""
        least = np.array(self.least)
        return ~((x >= least) & (x < least + self.counts) & (x == np.rint(x))).all(axis=1)  # NaN is outside

    def nearest(self, x: Any) -> "tuple[Longs, Floats]":
        """Return the numbers of the values of each row, (N, k), and its distance to them, which is 0."""
        return x.astype(np.int64) - self.least + starts_of(self.counts), np.zeros(len(x))

    def __str__(self) -> str:
        most = np.array(self.least) + self.counts - 1
        more = " .." * (len(self.counts) > MOST_SHOWN)
        low, high = (" ".join(map(str, bound[:MOST_SHOWN])) + more for bound in (self.least, most.tolist()))
        return f"shape {self.shape} and type {self.dtype} between [{low}] and [{high}]"

    @classmethod
    def read(cls, plain: Any) -> Self:
        """Return the parts of a file, checked."""
        dtype, shape, counts, least = plain
        sides = tuple(whole("a side", side, 1, 2**31) for side in shape)
        made = cls(
            str(np.dtype(dtype)),
            sides,
            tuple(whole("the number of values", count, 1, 2**31) for count in counts),
            tuple(whole("the least value", value, -(2**62)) for value in least),
        )
        if np.dtype(dtype).kind not in "biu" or not len(counts) == len(least) == prod(sides):
            raise ValueError(f"the parts of actions cannot be {shown(plain)}")
        return made


def _nearest(choices: Choices | Parts, action: Any) -> Any:
    """Return what stands for an action of the space, or raise an error if it is none."""
    try:
        given = np.asarray(action, np.float64).reshape(1, prod(choices.shape))
        outside = choices.outside(given)[0]
    except (TypeError, ValueError):
        outside = True
    if outside:
        raise ValueError(f"action {shown(action)} is not an action of {choices}")
    return choices.nearest(given)[0][0]


@cache
def starts_of(parts: tuple[int, ...]) -> "Longs":
    """Return the number of the first value of each part, given how many values each has."""
    return np.concatenate([[0], np.cumsum(parts)[:-1]]).astype(np.int64)


def choices_of(space: Any) -> Choices | Parts | None:
    """Return the choice of actions of a space; None for Discrete actions. An error suggests a remedy."""
    if isinstance(space, spaces.Discrete):
        _check_count(space, int(space.n))
        return None
    if isinstance(space, spaces.Box):
        actions = _grid(space)
    elif isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        counts, least = sizes_of(space)
        if not counts:
            raise ValueError(f"env has the action space {space}, in which there is nothing to choose")
        if prod(counts) > MOST_COMBINATIONS:
            _check_count(space, sum(counts))
            return Parts(str(space.dtype), tuple(space.shape), counts, least)
        actions = list(product(*(part.tolist() for part in parts_of(space))))
    else:
        raise ValueError(
            f"env has the action space {space}, which offers no finite choice: list your own by "
            "gymnasium.wrappers.TransformAction(env, lambda k: actions[k], "
            "gymnasium.spaces.Discrete(len(actions))), where actions is that list"
        )
    return Choices(str(space.dtype), tuple(space.shape), tuple(actions))


def _check_count(space: Any, actions: int) -> None:
    """Raise an error if there are so many actions, or values of their parts, that every step would take long."""
    if actions > MOST_ACTIONS:
        raise ValueError(
            f"env has the action space {space}, but values are learned of at most {MOST_ACTIONS:,} actions: list "
            "fewer as actions and offer them by gymnasium.wrappers.TransformAction(env, lambda k: actions[k], "
            "gymnasium.spaces.Discrete(len(actions)))"
        )


def numbering(space: Any) -> tuple[int, int, Choices | None]:
    """Return the first number of an action, how many there are to choose among, and these unless Discrete."""
    first, n, choices = numbering_of_parts(space)
    if isinstance(choices, Parts):
        raise ValueError(f"env has the action space {space} of {too_many(choices)}")
    return first, n, choices


def numbering_of_parts(space: Any) -> tuple[int, int, Choices | Parts | None]:
    """Return the same, where values of parts are numbered if there are too many combinations."""
    choices = choices_of(space)
    if choices is None:
        return int(space.start), int(space.n), None
    return 0, sum(choices.counts) if isinstance(choices, Parts) else len(choices.actions), choices


def too_many(parts: Parts) -> str:
    """Return what is wrong with the number of combinations, and the remedy."""
    return (
        f"{shown(prod(parts.counts))} combinations, but values are learned of at most {MOST_COMBINATIONS}: let "
        "rlsvi.agent_for(env) learn, whose values are sums over parts, or list those to choose among, in which "
        "parts that matter less are fixed, as rlsvi.envs.Discretized(env, choices=[..])"
    )


def parts_of(space: spaces.MultiDiscrete | spaces.MultiBinary) -> list[Any]:
    """Return the values of every part of an action."""
    return [np.arange(n) + first for n, first in zip(*sizes_of(space), strict=True)]


def sizes_of(space: spaces.MultiDiscrete | spaces.MultiBinary) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return how many values each part of an action has, and the least of them."""
    if isinstance(space, spaces.MultiBinary):
        n = prod(space.shape)
        return (2,) * n, (0,) * n
    return tuple(space.nvec.ravel().tolist()), tuple(space.start.ravel().tolist())


def _grid(space: spaces.Box) -> list[tuple[float, ...]]:
    """Return actions of a Box: a grid of up to two numbers, and a central composite design of up to four."""
    low, high = (np.asarray(bound, np.float64).ravel() for bound in (space.low, space.high))
    n, listed = len(low), "list the actions to choose from, as in rlsvi.envs.Discretized(env, choices=[..])"
    if not 1 <= n <= NUMBERS:
        raise ValueError(
            f"env has the action space {space} of {n} numbers, but a grid of actions is made of 1 to {NUMBERS} "
            f"numbers only: {listed}"
        )
    for i, (least, most) in enumerate(zip(low, high, strict=True)):
        if not max(abs(least), abs(most)) < UNBOUNDED:
            raise ValueError(
                f"env has the action space {space}, whose number {i} has no bounds: give it bounds by "
                "gymnasium.wrappers.TransformAction(env, lambda action: action, gymnasium.spaces.Box(low, high)), "
                f"or {listed}"
            )
        if not least < most:
            raise ValueError(
                f"env has the action space {space}, whose number {i} is always {least:g}: leave it out by "
                f"gymnasium.wrappers.TransformAction(env, function, gymnasium.spaces.Box(low, high)), or {listed}"
            )
    is_whole = space.dtype is not None and space.dtype.kind != "f"
    values = [np.linspace(*ends, VALUES.get(n, 3)) for ends in zip(low, high, strict=True)]
    values = [np.rint(each) if is_whole else each.astype(space.dtype) for each in values]
    places = list(product(*(range(len(each)) for each in values)))
    if n > 2:
        places = [place for place in places if sum(k != 1 for k in place) in (0, 1, n)]  # a middle has number 1
    actions = (tuple(each[k] for each, k in zip(values, place, strict=True)) for place in places)
    kind = int if is_whole else float
    return list(dict.fromkeys(tuple(map(kind, action)) for action in actions))  # small integers coincide
