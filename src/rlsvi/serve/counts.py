"""Sums over the table of events that the page shows, kept up to date by reading only what is new.

The database adds up: every step asks for sums over a bounded range of event numbers. Consecutive events share a
bucket; when there are too many buckets, each two neighbours become one, so that a shop with millions of events has
as few sums as a small one.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Executable, and_, case, func, literal_column, or_, select

from rlsvi.shop.tables import events

STEP = 20_000  # events of one step
MOST_BUCKETS = 32
SMALLEST = 64  # events of a bucket, at first
OF_VISITS = "visit <> ''"  # as the index of visits has it: only so does SQLite know that it may use it


@dataclass(frozen=True)
class Bucket:
    """Sums over consecutive events.

    Attributes
    ----------
    visits : how many visits ended.
    mean, squares : the mean of their rewards, and the sum of squared differences from it.
    recommended, explored : how many products were recommended, and how many of them explored.
    begin, end : the least and the greatest time of an event of a visit.
    """

    visits: int = 0
    mean: float = 0.0
    squares: float = 0.0
    recommended: int = 0
    explored: int = 0
    begin: float = math.inf
    end: float = -math.inf

    def merged(self, other: "Bucket") -> "Bucket":
        """Return the sums over the events of both."""
        visits, apart = self.visits + other.visits, other.mean - self.mean
        share = other.visits / visits if visits else 0.0
        return Bucket(
            visits=visits,
            mean=self.mean + share * apart,
            squares=self.squares + other.squares + self.visits * share * apart * apart,
            recommended=self.recommended + other.recommended,
            explored=self.explored + other.explored,
            begin=min(self.begin, other.begin),
            end=max(self.end, other.end),
        )


@dataclass
class ProductCount:
    """How often a product was shown and answered, the sum of its rewards, and whether it is offered."""

    shown: int = 0
    answers: int = 0
    total: float = 0.0
    offered: bool = True

    @property
    def mean(self) -> float | None:
        """The mean reward, None without an answer."""
        return self.total / self.answers if self.answers else None


class EventCounts:
    """All sums, up to event number `read`.

    A visit ends when it is closed, or when all slots, or all products if there are fewer, are answered. Its reward
    is the sum over the answers until then.
    """

    def __init__(self, slots: int) -> None:
        self.slots, self.read, self.width = slots, 0, SMALLEST
        self.buckets: dict[int, Bucket] = defaultdict(Bucket)
        self.products: dict[str, ProductCount] = defaultdict(ProductCount)

    def step(self, reading: Connection, last: int) -> None:
        """Count the next events, not beyond number `last`: all of them or, if the database fails, none."""
        until = min(self.read + STEP, last)
        while until // self.width >= MOST_BUCKETS:
            self._widen()
        new = and_(events.c.id > self.read, events.c.id <= until)
        statements = _sums(new, self.width), _ends(new, self.read, until), _products(new), _catalogue(new)
        sums, ends, products, catalogue = (reading.execute(it).all() for it in statements)
        for number, *rest in sums:
            self._add(number, Bucket(0, 0.0, 0.0, *rest))
        for product, shown, answers, total in products:
            count = self.products[product]
            count.shown, count.answers, count.total = (
                count.shown + shown,
                count.answers + answers,
                count.total + total,
            )
        for kind, product in catalogue:
            self.products[product].offered = kind == "added"
        for event, reward in self._ended(ends):
            self._add(event // self.width, Bucket(visits=1, mean=reward))
        self.read = until

    @property
    def enough(self) -> int:
        """With so many answers a visit has ended."""
        return max(1, min(self.slots, len(self.products)))

    def _add(self, number: int, bucket: Bucket) -> None:
        self.buckets[number] = self.buckets[number].merged(bucket)

    def _widen(self) -> None:
        narrow, self.width, self.buckets = self.buckets, 2 * self.width, defaultdict(Bucket)
        for number, bucket in sorted(narrow.items()):
            self._add(number // 2, bucket)

    def _ended(self, rows: Iterable[Any]) -> Iterator[tuple[int, float]]:
        """Yield the last event and the reward of the visits that ended among the new events."""
        enough = self.enough
        for closed, answers, before, answered, reward in rows:
            if before >= enough or (closed is not None and closed <= self.read):
                continue  # it had ended
            if answers >= enough:
                yield answered, reward
            elif closed is not None:
                yield closed, reward


def _number(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.sum(case((condition, 1), else_=0))


def _sums(new: ColumnElement[bool], width: int) -> Executable:
    """Return the statement for the sums of every bucket: recommended, explored, and when."""
    bucket = events.c.id // width
    recommended, explored = _number(events.c.kind == "recommended"), _number(events.c.explored)
    times = func.min(events.c.at), func.max(events.c.at)
    return select(bucket, recommended, explored, *times).where(new, events.c.visit != "").group_by(bucket)


def _ends(new: ColumnElement[bool], read: int, until: int) -> Executable:
    """Return the statement for the visits that were answered or closed among the new events.

    Rows: the event that closed the visit, answers until then, those of them not new, the last, the sum of rewards.
    """
    kinds = events.c.kind.in_(["answered", "closed"])
    named: ColumnElement[bool] = literal_column(OF_VISITS)
    touched = select(events.c.visit).where(new, kinds).distinct()
    closing = func.min(case((events.c.kind == "closed", events.c.id))).over(partition_by=events.c.visit)
    columns = events.c.visit, events.c.id, events.c.kind, events.c.reward, closing.label("closing")
    rows = select(*columns).where(named, events.c.visit.in_(touched), kinds, events.c.id <= until).subquery()
    c = rows.c
    answered = and_(c.kind == "answered", or_(c.closing.is_(None), c.id < c.closing))
    return select(
        func.min(c.closing),
        _number(answered),
        _number(and_(answered, c.id <= read)),
        func.max(case((answered, c.id))),
        func.sum(case((answered, c.reward), else_=0.0)),
    ).group_by(c.visit)


def _products(new: ColumnElement[bool]) -> Executable:
    """Return the statement for how often every product was shown and answered, and the sum of its rewards."""
    shown, answers = _number(events.c.kind == "recommended"), _number(events.c.kind == "answered")
    total = func.coalesce(func.sum(events.c.reward), 0.0)
    kinds = events.c.kind.in_(["recommended", "answered"])
    return select(events.c.product, shown, answers, total).where(new, kinds).group_by(events.c.product)


def _catalogue(new: ColumnElement[bool]) -> Executable:
    """Return the statement for the products that were added and removed, in order."""
    named = select(events.c.kind, events.c.product)
    return named.where(new, events.c.kind.in_(["added", "removed"])).order_by(events.c.id)
