"""What the practice agent has seen: observations as rows, and the transitions between them.

Every step is kept in its order, so that returns can be followed through an episode. Successive transitions share
the observation between them.
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


class EpisodeHistory:
    """Observations as rows (n,), with their legal actions, and every step between them, in growing arrays.

    Nothing that was added is ever changed: copies share their arrays, and each appends its own steps after those
    in common, so a copy costs nothing. Only one of two copies may be added to.

    Parameters
    ----------
    parts
        How many values each part of an action has, if it is their values that are legal or not.
    """

    def __init__(self, width: int, actions: int, parts: tuple[int, ...] = ()) -> None:
        self.parts = parts
        self._x, self._legal = np.zeros((64, width)), np.zeros((64, actions), dtype=np.bool_)
        whole = np.zeros((3, 64), dtype=np.int64)
        action = np.zeros((64, len(parts)), np.int64) if parts else whole[1]
        self._columns = Transitions(whole[0], action, np.zeros(64), whole[2])
        self._last = np.zeros(64, dtype=np.bool_)
        self._rows = self._steps = 0

    @classmethod
    def of(cls, x: Floats, legal: Bools, steps: Transitions, last: Bools, parts: tuple[int, ...] = ()) -> Self:
        """Return a history made of checked arrays."""
        history = cls(0, 0, parts)
        history._x, history._legal, history._columns, history._last = x, legal, steps, last
        history._rows, history._steps = len(x), len(last)
        return history

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
        """The transitions, in the order played."""
        columns: Any = self._columns
        return Transitions(*(column[: self._steps] for column in columns))

    @property
    def last(self) -> Bools:
        """Whether a step was the last of its episode, (T,)."""
        return self._last[: self._steps]

    def copy(self) -> Self:
        """Return a copy to add to."""
        return copy(self)

    def row(self, x: Floats, legal: Bools) -> int:
        """Return the row of an observation: the last one if it is the same, otherwise a new one."""
        i = self._rows - 1
        if i >= 0 and self._x[i].tobytes() == x.tobytes() and (self._legal[i] == legal).all():
            return i
        i = self._rows
        if i == len(self._x):
            self._x, self._legal = longer(self._x), longer(self._legal)
        self._x[i], self._legal[i] = x, legal
        self._rows += 1
        return i

    def add(self, row: int, action: Any, reward: float, following: int) -> int:
        """Add a step, and return its index."""
        i = self._steps
        if i == len(self._last):
            self._columns, self._last = Transitions(*(longer(each) for each in self._columns)), longer(self._last)
        for column, value in zip(self._columns, (row, action, reward, following), strict=True):
            column[i] = value
        self._last[i] = following == END
        self._steps += 1
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
        )
        last = file.take("history.last", steps.row.shape, np.bool_)
        if ((steps.next == END) & ~last).any() or not legal.any(axis=1).all():
            raise ArchiveError("is damaged: an observation or a step in its history makes no sense")
        return cls.of(x, legal, steps, last, parts)
