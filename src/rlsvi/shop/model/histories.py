"""Visits: those that are going on, and those that have ended, as rows of arrays."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rlsvi.core.compile import Floats, Ints, Longs

NEVER = np.iinfo(np.int32).max  # when an answer came that has not come


class Histories(NamedTuple):
    """Visits one after another: visit i has rows first[i] .. first[i + 1] - 1, one for each slot filled."""

    first: Longs  # (visits + 1,)
    customer: Floats  # (visits, q)
    product: Ints  # (rows,)
    x: Ints  # (rows,) 1 liked, -1 not liked, 0 without an answer
    reward: Floats  # (rows,)
    when: Ints  # (rows,) slots that were filled when the answer came: it is known from that slot on


@dataclass
class OpenVisit:
    """A visit that is going on."""

    customer: list[float]
    at: float  # time of its last event
    product: list[int] = field(default_factory=list)
    x: list[int] = field(default_factory=list)
    reward: list[float] = field(default_factory=list)
    when: list[int] = field(default_factory=list)

    def show(self, product: int) -> None:
        """Fill the next slot."""
        self.product.append(product)
        self.x.append(0)
        self.reward.append(0.0)
        self.when.append(NEVER)

    def answer(self, row: int, reward: float, liked: bool) -> None:
        """Record the answer to what slot `row` has shown."""
        self.x[row], self.reward[row], self.when[row] = 1 if liked else -1, reward, len(self.product)

    def settle(self, reward: float, liked: bool) -> None:
        """Give every slot without an answer this reward, of which nothing was known during the visit."""
        for row, x in enumerate(self.x):
            if x == 0:
                self.x[row], self.reward[row] = 1 if liked else -1, reward

    @property
    def answered(self) -> bool:
        """Whether every slot filled so far has its answer."""
        return 0 not in self.x


class VisitLog:
    """Visits that have ended, in arrays that grow by doubling."""

    def __init__(self, customer: int) -> None:
        self.count = 0
        self._all = Histories(
            np.zeros(65, np.int64),
            np.zeros((64, customer)),
            np.zeros(256, np.int32),
            np.zeros(256, np.int32),
            np.zeros(256),
            np.zeros(256, np.int32),
        )

    @property
    def rows(self) -> int:
        """The number of slots filled in all visits."""
        return int(self._all.first[self.count])

    def histories(self) -> Histories:
        """Return views of what is used."""
        first, customer = self._all[:2]
        rows = [part[: self.rows] for part in self._all[2:]]
        return Histories._make([first[: self.count + 1], customer[: self.count], *rows])

    def append(self, visit: OpenVisit) -> None:
        """Append a visit."""
        begin, rows = self.rows, len(visit.product)
        first, customer = self._all[:2]
        parts: list[Any] = list(self._all[2:])
        if self.count == len(customer):
            room = 2 * (self.count + 1)  # there may be none yet: a file of the learner has no room to spare
            first, customer = _longer(first, room + 1), _longer(customer, room)
        if begin + rows > len(parts[0]):
            parts = [_longer(part, 2 * (begin + rows)) for part in parts]
        customer[self.count] = visit.customer
        for part, values in zip(parts, (visit.product, visit.x, visit.reward, visit.when), strict=True):
            part[begin : begin + rows] = values
        first[self.count + 1] = begin + rows
        self._all = Histories._make([first, customer, *parts])
        self.count += 1

    def drop(self, oldest: int) -> None:
        """Remove the `oldest` first visits."""
        used = self.histories()
        parts = [part[used.first[oldest] :].copy() for part in used[2:]]
        self.load(
            Histories._make([used.first[oldest:] - used.first[oldest], used.customer[oldest:].copy(), *parts])
        )

    def load(self, histories: Histories) -> None:
        """Replace all visits."""
        self.count, self._all = len(histories.customer), histories


def _longer(array: Any, length: int) -> Any:
    longer = np.zeros((length, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
