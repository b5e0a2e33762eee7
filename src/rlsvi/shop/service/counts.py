"""Sums over the table of events that the page shows, kept up to date by reading only what is new.

The database adds up: every step asks for sums over a bounded range of event numbers. Consecutive events share a
bucket; when there are too many buckets, each two neighbours become one, so that a shop with millions of events has
as few sums as a small one.
"""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Subquery,
    and_,
    case,
    func,
    literal,
    literal_column,
    not_,
    or_,
    select,
)

from rlsvi.shop.events import events

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
    recommended : how many products were recommended.
    chosen, explored : for how many of them it is known whether they explored, and how many did.
    begin, end : the least and the greatest time of an event of a visit.
    """

    visits: int = 0
    mean: float = 0.0
    squares: float = 0.0
    recommended: int = 0
    chosen: int = 0
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
            chosen=self.chosen + other.chosen,
            explored=self.explored + other.explored,
            begin=min(self.begin, other.begin),
            end=max(self.end, other.end),
        )


@dataclass
class ProductCount:
    """How often a product was shown and answered, the sum of its rewards, whether it was added and is offered.

    settled : how often it had no answer when its visit was closed, and counts with the reward `unanswered`.
    """

    shown: int = 0
    answers: int = 0
    settled: int = 0
    total: float = 0.0
    added: bool = False
    offered: bool = True

    @property
    def mean(self) -> float | None:
        """The mean reward, None without one."""
        known = self.answers + self.settled
        return self.total / known if known else None


class EventCounts:
    """All sums, up to event number `read`.

    A visit ends when it is closed, or when all slots, or all products if there are fewer, are answered. Which
    event ends it depends on earlier events alone, so that no visit ends twice. Its reward is the sum over the
    answers until then.

    Attributes
    ----------
    unanswered : the reward of a product that has no answer when its visit is closed; None: it has none.
    served : the first recommendation that the shop itself made, None if there is none; before, all is imported.
    buckets : sums by number of the bucket and by whether its events come after that.
    """

    def __init__(self, slots: int, unanswered: float | None = None) -> None:
        self.slots, self.unanswered, self.read, self.width = slots, unanswered, 0, SMALLEST
        self.served: int | None = None
        self._first: list[int] = []  # the events that added the first products, as many as there are slots
        self.buckets: dict[tuple[int, bool], Bucket] = defaultdict(Bucket)
        self.products: dict[str, ProductCount] = defaultdict(ProductCount)

    def step(self, reading: Connection, last: int) -> None:
        """Count the next events, not beyond number `last`: all of them or, if the database fails, none."""
        until = min(self.read + STEP, last)
        while until // self.width >= MOST_BUCKETS:
            self._widen()
        new = and_(events.c.id > self.read, events.c.id <= until)
        catalogue = reading.execute(_catalogue(new)).all()
        first = self._with_first(catalogue)
        served = reading.execute(_first_served(new)).scalar() if self.served is None else self.served
        ended = _ended(new, self.read, until, first)
        statements = _sums(new, self.width, served), _products(new), select(ended.c.end, ended.c.reward)
        sums, products, ends = (reading.execute(it).all() for it in statements)
        settled, missing = self._settled(reading, ended)
        for number, later, *rest in sums:
            self._add((number, bool(later)), Bucket(0, 0.0, 0.0, *rest))
        for product, shown, answers, total in products:
            count = self.products[product]
            count.shown, count.answers, count.total = (
                count.shown + shown,
                count.answers + answers,
                count.total + total,
            )
        for product, number in settled:
            count = self.products[product]
            count.settled, count.total = count.settled + number, count.total + number * (self.unanswered or 0.0)
        for _, kind, product in catalogue:
            count = self.products[product]
            count.added, count.offered = count.added or kind == "added", kind == "added"
        for event, reward in ends:
            whole = reward + missing.get(event, 0) * (self.unanswered or 0.0)
            later = served is not None and event >= served
            self._add((event // self.width, later), Bucket(visits=1, mean=whole))
        self.read, self._first, self.served = until, first, served

    def enough(self, event: int) -> int:
        """Return with how many answers a visit has ended if the last of them is the event of this number."""
        return max(1, bisect_left(self._first, event))

    def _settled(self, reading: Connection, ended: Subquery) -> tuple[Iterable[Any], dict[int, int]]:
        """Return how many recommendations had no answer when their visit was closed: by product, and by event."""
        if self.unanswered is None:
            return [], {}
        by_product, by_end = (reading.execute(it).all() for it in _without_answer(ended))
        return by_product, {row.end: row.number for row in by_end}

    def _with_first(self, catalogue: Iterable[Any]) -> list[int]:
        """Return the events that added the first products, with those that are new."""
        first, known = list(self._first), {name for name, count in self.products.items() if count.added}
        for event, kind, product in catalogue:
            if kind == "added" and product not in known and len(first) < self.slots:
                first.append(event)
                known.add(product)
        return first

    def _add(self, key: tuple[int, bool], bucket: Bucket) -> None:
        self.buckets[key] = self.buckets[key].merged(bucket)

    def _widen(self) -> None:
        narrow, self.width, self.buckets = self.buckets, 2 * self.width, defaultdict(Bucket)
        for (number, later), bucket in sorted(narrow.items()):
            self._add((number // 2, later), bucket)


def _number(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.sum(case((condition, 1), else_=0))


def _first_served(new: ColumnElement[bool]) -> Executable:
    """Return the statement for the first recommendation made with samples, that is by the shop itself."""
    return select(func.min(events.c.id)).where(new, events.c.kind == "recommended", events.c.sample.is_not(None))


def _sums(new: ColumnElement[bool], width: int, served: int | None) -> Executable:
    """Return the statement for the sums of every bucket: recommended, chosen, explored, and when."""
    bucket = events.c.id // width
    later = literal(0) if served is None else case((events.c.id >= served, 1), else_=0)
    numbers = events.c.kind == "recommended", events.c.explored.is_not(None), events.c.explored
    times = func.min(events.c.at), func.max(events.c.at)
    sums = select(bucket, later.label("later"), *map(_number, numbers), *times)
    return sums.where(new, events.c.visit != "").group_by(bucket, literal_column("later"))


def _ended(new: ColumnElement[bool], read: int, until: int, first: list[int]) -> Subquery:
    """Return the visits that ended among the new events: visit, end (the event), reward, closed (1 if by closing).

    first : the events that added the first products. Before the second one, one answer is all there can be.
    """
    kinds = events.c.kind.in_(["answered", "closed"])
    named: ColumnElement[bool] = literal_column(OF_VISITS)
    touched = select(events.c.visit).where(new, kinds).distinct()
    answers = _number(events.c.kind == "answered").over(partition_by=events.c.visit, order_by=events.c.id)
    columns = events.c.visit, events.c.id, events.c.kind, events.c.reward, answers.label("answers")
    rows = select(*columns).where(named, events.c.visit.in_(touched), kinds, events.c.id <= until).subquery().c
    fewer = [(rows.id < event, number) for number, event in enumerate(first) if number]
    enough = case(*fewer, else_=max(1, len(first))) if fewer else literal(max(1, len(first)))
    ended = or_(rows.kind == "closed", rows.answers >= enough)
    end = func.min(case((ended, rows.id))).over(partition_by=rows.visit).label("end")
    ends = select(rows.visit, rows.id, rows.kind, rows.reward, end).subquery().c
    reward = func.sum(func.coalesce(ends.reward, 0.0)).label("reward")
    until_then = select(
        ends.visit, ends.end, reward, func.max(case((ends.kind == "closed", 1), else_=0)).label("closed")
    )
    return until_then.where(ends.id <= ends.end, ends.end > read).group_by(ends.visit, ends.end).subquery()


def _without_answer(ended: Subquery) -> tuple[Executable, Executable]:
    """Return the statements for the recommendations without an answer in visits that were closed.

    The first one counts them by product, the second one by the event that closed the visit.
    """
    seen, answer = events.alias("seen"), events.alias("answer")
    named: list[ColumnElement[bool]] = [literal_column(f"{it}.{OF_VISITS}") for it in ("seen", "answer")]
    same = answer.c.visit == seen.c.visit, answer.c.kind == "answered", answer.c.product == seen.c.product
    answered = (
        select(answer.c.id).where(named[1], *same, answer.c.id < ended.c.end).correlate(seen, ended).exists()
    )
    shown = and_(seen.c.visit == ended.c.visit, seen.c.kind == "recommended", seen.c.id < ended.c.end)
    where = ended.c.closed == 1, named[0], shown, not_(answered)
    number = func.count().label("number")
    by_product = select(seen.c.product, number).select_from(ended.join(seen, shown)).where(*where)
    by_end = select(ended.c.end, number).select_from(ended.join(seen, shown)).where(*where)
    return by_product.group_by(seen.c.product), by_end.group_by(ended.c.end)


def _products(new: ColumnElement[bool]) -> Executable:
    """Return the statement for how often every product was shown and answered, and the sum of its rewards."""
    shown, answers = _number(events.c.kind == "recommended"), _number(events.c.kind == "answered")
    total = func.coalesce(func.sum(events.c.reward), 0.0)
    kinds = events.c.kind.in_(["recommended", "answered"])
    return select(events.c.product, shown, answers, total).where(new, kinds).group_by(events.c.product)


def _catalogue(new: ColumnElement[bool]) -> Executable:
    """Return the statement for the products that were added and removed, in order."""
    named = select(events.c.id, events.c.kind, events.c.product)
    return named.where(new, events.c.kind.in_(["added", "removed"])).order_by(events.c.id)
