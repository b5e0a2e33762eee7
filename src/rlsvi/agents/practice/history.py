"""What the practice agent has seen: observations as rows, and the transitions between them.

A table needs every distinct observation and transition once, with its count: nothing that a regression needs is
lost, and the history of a finite problem stops growing. Features need every step in its order, so that returns can
be followed through an episode. Successive transitions share the observation between them.
"""

from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np

from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import LARGEST_NUMBER
from rlsvi.core.compile import Bools, Floats, Longs
from rlsvi.envs.actions import starts_of

END = -1


class Transitions(NamedTuple):
    """Transitions, as columns."""

    row: Longs  # (T,) row of the observation
    action: Longs  # (T,), or (T, k) with the numbers of the values of its parts
    reward: Floats
    next: Longs  # (T,) row of the next observation; -1 at the end of an episode
    times: Floats  # how many times it happened


class Experience:
    """Observations as rows (n,), with their legal actions, and the transitions between them, in growing arrays.

    parts : how many values each part of an action has, if it is their values that are legal or not.
    """

    def __init__(self, width: int, actions: int, parts: tuple[int, ...] = ()) -> None:
        self.parts = parts
        self._x, self._legal = np.zeros((64, width)), np.zeros((64, actions), dtype=np.bool_)
        whole, real = np.zeros((3, 64), dtype=np.int64), np.zeros((2, 64))
        action = np.zeros((64, len(parts)), np.int64) if parts else whole[1]
        self._columns = Transitions(whole[0], action, real[0], whole[2], real[1])
        self._rows = self._steps = 0

    @property
    def x(self) -> Floats:
        """The observations, (N, n)."""
        return self._x[: self._rows]

    @property
    def legal(self) -> Bools:
        """The legal actions of each observation, (N, A)."""
        return self._legal[: self._rows]

    @property
    def transitions(self) -> Transitions:
        """The transitions, in the order of their first occurrence."""
        columns: Any = self._columns
        return Transitions(*(column[: self._steps] for column in columns))

    def _add_row(self, x: Floats, legal: Bools) -> int:
        i = self._rows
        if i == len(self._x):
            self._x, self._legal = longer(self._x), longer(self._legal)
        self._x[i], self._legal[i] = x, legal
        self._rows += 1
        return i

    def _add_transition(self, *values: Any) -> int:
        i = self._steps
        if i == len(self._columns.row):
            self._columns = Transitions(*(longer(column) for column in self._columns))
        for column, value in zip(self._columns, values, strict=True):
            column[i] = value
        self._steps += 1
        return i


def best_values(Q: Floats, legal: Bools, parts: tuple[int, ...] = ()) -> Floats:
    """Return the highest value of a legal action in each row, given Q (N, A).

    Of actions with parts, Q contains the values of the values of parts, and the best action has the best of each.
    """
    if not legal.all():
        Q = np.where(legal, Q, -np.inf)
    best: Floats = np.maximum.reduceat(Q, starts_of(parts), axis=1).sum(axis=1) if parts else Q.max(axis=1)
    return best


def longer(array: Any) -> Any:
    """Return a copy with room for half as many entries again."""
    room = np.zeros((len(array) + len(array) // 2 + 64, *array.shape[1:]), array.dtype)
    room[: len(array)] = array
    return room


class CountedHistory(Experience):
    """Every distinct observation once, and every distinct transition with its count."""

    def __init__(self, width: int, actions: int) -> None:
        super().__init__(width, actions)
        self._row_of: dict[bytes, int] = {}
        self._place_of: dict[tuple[int, int, float, int], int] = {}

    def copy(self) -> Self:
        """Return an independent copy."""
        other = copy(self)
        other._x, other._legal = self._x.copy(), self._legal.copy()
        columns: Any = self._columns
        other._columns = Transitions(*(column.copy() for column in columns))
        other._row_of, other._place_of = self._row_of.copy(), self._place_of.copy()
        return other

    def row(self, x: Floats, legal: Bools) -> int:
        """Return the row of an observation, adding it if new. Actions that were ever legal in it stay legal."""
        key = x.tobytes()
        i = self._row_of.get(key)
        if i is None:
            i = self._row_of[key] = self._add_row(x, legal)
        self._legal[i] |= legal
        return i

    def find(self, x: Floats) -> int | None:
        """Return the row of an observation, if it is known."""
        return self._row_of.get(x.tobytes())

    def add(self, row: int, action: int, reward: float, following: int, times: float = 1.0) -> int:
        """Count a transition `times` more times, and return its index among the distinct ones."""
        key = row, action, reward, following
        i = self._place_of.get(key)
        if i is None:
            i = self._place_of[key] = self._add_transition(*key, 0.0)
        self._columns.times[i] += times
        return i

    @classmethod
    def read(cls, file: Archive, actions: int) -> Self:
        """Read a history from a file, after checking it."""
        x, legal, kept = _arrays_in(file, actions, ())
        kept = kept._replace(times=file.take("history.times", kept.row.shape))
        history = cls(x.shape[1], actions)
        for observation, its_legal in zip(x, legal, strict=True):
            history.row(observation, its_legal)
        for transition in zip(*(column.tolist() for column in kept), strict=True):
            history.add(*transition)
        distinct = (history._rows, history._steps) == (len(x), len(kept.row))
        if not distinct or (kept.times < 1).any() or not legal.any(axis=1).all():
            raise ArchiveError("is damaged: an observation or a transition in its history makes no sense")
        return history


class EpisodeHistory(Experience):
    """Every step in the order played.

    Nothing that was added is ever changed: copies share their arrays, and each appends its own steps after those
    in common, so a copy costs nothing. Only one of two copies may be added to.
    """

    def __init__(self, width: int, actions: int, parts: tuple[int, ...] = ()) -> None:
        super().__init__(width, actions, parts)
        self._last = np.zeros(64, dtype=np.bool_)

    @classmethod
    def of(cls, x: Floats, legal: Bools, steps: Transitions, last: Bools, parts: tuple[int, ...] = ()) -> Self:
        """Return a history made of checked arrays."""
        history = cls(0, 0, parts)
        history._x, history._legal, history._columns, history._last = x, legal, steps, last
        history._rows, history._steps = len(x), len(last)
        return history

    @property
    def last(self) -> Bools:
        """Whether a step was the last of its episode, (T,)."""
        return self._last[: self._steps]

    def copy(self) -> Self:
        """Return a copy to add to."""
        return copy(self)

    def find(self, x: Floats) -> None:
        """Return None: measured observations are not looked up."""

    def row(self, x: Floats, legal: Bools) -> int:
        """Return the row of an observation: the last one if it is the same, otherwise a new one."""
        i = self._rows - 1
        if i >= 0 and self._x[i].tobytes() == x.tobytes() and (self._legal[i] == legal).all():
            return i
        return self._add_row(x, legal)

    def add(self, row: int, action: Any, reward: float, following: int) -> int:
        """Add a step, and return its index."""
        if self._steps == len(self._last):
            self._last = longer(self._last)
        i = self._add_transition(row, action, reward, following, 1.0)
        self._last[i] = following == END
        return i

    def end_episode(self) -> None:
        """Mark the step added last as the last of its episode, though it may not have terminated."""
        self._last[self._steps - 1] = True

    def returns(self) -> Floats:
        """Return the sum of rewards of every complete episode."""
        sums = np.concatenate([[0.0], np.cumsum(self.transitions.reward)])[np.flatnonzero(self.last) + 1]
        totals: Floats = np.diff(sums, prepend=0.0)
        return totals

    def recent(self, steps: int) -> "EpisodeHistory":
        """Return a history of only the most recent steps."""
        first = max(0, self._steps - steps)
        row = int(self._columns.row[first])
        columns: Any = self.transitions
        kept = Transitions(*(column[first:].copy() for column in columns))
        kept.row[:] -= row
        kept.next[kept.next != END] -= row
        return self.of(self.x[row:].copy(), self.legal[row:].copy(), kept, self.last[first:].copy(), self.parts)

    @classmethod
    def read(cls, file: Archive, actions: int, parts: tuple[int, ...] = ()) -> Self:
        """Read a history from a file, after checking it."""
        x, legal, steps = _arrays_in(file, actions, parts)
        last = file.take("history.last", steps.row.shape, np.bool_)
        if ((steps.next == END) & ~last).any() or not legal.any(axis=1).all():
            raise ArchiveError("is damaged: an observation or a step in its history makes no sense")
        return cls.of(x, legal, steps, last, parts)


History = CountedHistory | EpisodeHistory


def _arrays_in(file: Archive, actions: int, parts: tuple[int, ...]) -> tuple[Floats, Bools, Transitions]:
    """Read observations, legal actions and transitions, all of whose indices lie within bounds."""
    (N, width), (T,) = file.shape("history.x", 2), file.shape("history.row", 1)
    if N < 1 or T < 1:
        raise ArchiveError("is damaged: its history is empty")
    x, legal = (
        file.take("history.x", (N, width), most=LARGEST_NUMBER),
        file.take("history.legal", (N, actions), np.bool_),
    )
    action = file.take_within("history.action", (T, len(parts)) if parts else (T,), np.int64, 0, actions - 1)
    if parts and (np.searchsorted(starts_of(parts), action, side="right") != 1 + np.arange(len(parts))).any():
        raise ArchiveError("is damaged: an action in its history has a value of another part")
    steps = Transitions(
        file.take_within("history.row", (T,), np.int64, 0, N - 1),
        action,
        file.take("history.reward", (T,), most=LARGEST_NUMBER),
        file.take_within("history.next", (T,), np.int64, END, N - 1),
        np.ones(T),
    )
    return x, legal, steps
