"""What the page of a shop shows, as numbers and texts that JSON can hold."""

import math
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from scipy.special import stdtrit

from rlsvi.core.compile import Floats
from rlsvi_shop.events import Events, events
from rlsvi_shop.recommender import Visit, state_of_learner
from rlsvi_shop.requests import name_of
from rlsvi_shop.samples import ServedDraws
from rlsvi_shop.settings import ShopSettings

COLUMNS = ("product", "shown", "mean", "value", "offered")  # that products are sorted by
MOST_PRODUCTS = 1000  # products of an answer
STEPS = 2  # of counting past events, in one request
LATEST_BUCKETS = 4  # buckets
WIDEST_BUCKET = 32_768  # events of one of the latest buckets, at most
ENOUGH_REWARDS = 30  # rewards below which nothing is said about a difference
NAMED = 3  # products that rise, and that fall
KEPT_BUCKETS = 4 * LATEST_BUCKETS  # after each two have become one, there are still enough for two periods
LearnerState = tuple[float | None, int, str]
VISITS = 10  # latest ones
RECENT = 200  # events among which they are looked for
SLOTS = 50  # of a visit, the latest ones
NAMES = "id", "at", "kind", "visit", "product", "slot", "reward", "explored", "features", "correction", "agreeing"
SPREADS = 2.0  # standard deviations to each side of a value that the page draws
LONGEST_FEATURE = 80  # characters of a customer's feature
STEP = 20_000  # events of one step
MOST_BUCKETS = 32
SMALLEST_BUCKET = 64  # events of a bucket, at first
BUCKET: list[sa.ColumnElement[Any]] = [sa.literal_column("bucket"), sa.literal_column("later")]
OF_VISITS = "visit <> ''"  # as the index of visits has it: only so does SQLite know that it may use it


@dataclass(frozen=True)
class Bucket:
    """Sums over events that follow each other, from which the page draws a curve.

    Attributes
    ----------
    visits
        How many visits ended.
    mean, squares
        The mean of their rewards, and the sum of squared differences from it.
    recommended
        How many products were recommended.
    chosen, explored
        For how many of them there was a best guess, and how many were another product.
    begin, end
        The least and the greatest time of an event of a visit.
    served
        How many of the recommended products the shop itself chose.
    settled, missing
        How many of these were shown in visits that ended, and how many of them have no answer. They are counted
        only if the settings do not say what a missing answer is worth.
    """

    visits: int = 0
    mean: float = 0.0
    squares: float = 0.0
    recommended: int = 0
    chosen: int = 0
    explored: int = 0
    begin: float = math.inf
    end: float = -math.inf
    served: int = 0
    settled: int = 0
    missing: int = 0

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
            served=self.served + other.served,
            settled=self.settled + other.settled,
            missing=self.missing + other.missing,
        )


class RewardSums(NamedTuple):
    """Sums over rewards r with weights w: of w, w r, w^2, w^2 r and w^2 r^2."""

    w: float = 0.0
    wr: float = 0.0
    ww: float = 0.0
    wwr: float = 0.0
    wwrr: float = 0.0

    def plus(self, other: Iterable[float]) -> "RewardSums":
        """Return the sums over the rewards of both."""
        return RewardSums(*(mine + its for mine, its in zip(self, other, strict=True)))

    @property
    def number(self) -> float:
        """How many rewards of equal weight would say as much."""
        return self.w**2 / self.ww if self.ww else 0.0

    @property
    def mean(self) -> float:
        """The weighted mean."""
        return self.wr / self.w

    @property
    def variance(self) -> float:
        """The variance of the weighted mean."""
        return max(0.0, self.wwrr - 2 * self.mean * self.wwr + self.mean**2 * self.ww) / self.w**2


NOTHING = RewardSums()


@dataclass
class Period:
    """What the shop itself did while some events came.

    Attributes
    ----------
    bucket
        Sums over the events.
    rewards
        For every product the number of its rewards, their sum, and the sum of their squares.
    choices
        The rewards of products that the mean of the model preferred, weighted by the odds of exploring there, and
        those of the other products.
    """

    bucket: Bucket = Bucket()
    rewards: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    choices: tuple[RewardSums, RewardSums] = NOTHING, NOTHING

    def merged(self, other: "Period") -> "Period":
        """Return the sums over the events of both."""
        rewards = np.zeros((max(len(self.rewards), len(other.rewards)), 3))
        for some in (self.rewards, other.rewards):
            rewards[: len(some)] += some
        best, explored = (mine.plus(its) for mine, its in zip(self.choices, other.choices, strict=True))
        return Period(self.bucket.merged(other.bucket), rewards, (best, explored))


@dataclass
class ProductCount:
    """How often a product was shown and answered, the sum of its rewards, whether it was added and is offered.

    Parameters
    ----------
    place
        Its number, in the order of the first events of products.
    unanswered
        How often it had no answer when its visit was closed, and counts with the reward `unanswered`.
    """

    place: int
    shown: int = 0
    answers: int = 0
    unanswered: int = 0
    total: float = 0.0
    added: bool = False
    offered: bool = True

    @property
    def mean(self) -> float | None:
        """The mean reward, None without one."""
        known = self.answers + self.unanswered
        return self.total / known if known else None


class ShopStatistics:
    """The numbers of a shop, from its events and the newest samples; requests may come from several threads.

    Parameters
    ----------
    settings
        The settings of the shop.
    events
        Its events.
    newest
        Returns the newest samples of the posterior, None as long as there are none.
    learner
        Returns how the learner does, as `Recommender.learner_state`; None: what the database says.
    """

    def __init__(
        self,
        settings: ShopSettings,
        events: Events,
        newest: Callable[[], ServedDraws | None],
        learner: Callable[[], LearnerState] | None = None,
    ) -> None:
        self._settings, self._events, self._newest = settings, events, newest
        self._learner = learner or events.learner_state
        self._counts, self._lock = EventCounts(settings.slots, settings.reward.unanswered), Lock()

    def current(self, by: str = "shown", descending: bool = True, count: int = 25) -> dict[str, Any]:
        """Return the numbers now, with the first `count` products in the order of a column.

        Each call counts a bounded number of events that were not counted before: `read` is the last one that was
        counted, and `events` the last that there is.
        """
        newest = self._newest()
        with self._lock, self._events.reading() as reading:
            last = self._events.last()
            for _ in range(STEPS):
                if self._counts.read < last:
                    self._counts.step(reading, last)
            return {
                "now": time.time(),
                "events": last,
                "read": self._counts.read,
                **self._rewards(),
                "references": [{"name": k, "value": v} for k, v in self._settings.reference.items()],
                "liked_above": self._settings.reward.liked_above,
                "unanswered": self._settings.reward.unanswered,
                "products": self._products(newest, by, descending, count),
                "latest": self._latest(reading),
                "learner": _learner(self._learner(), newest, last, self._settings),
            }

    def _rewards(self) -> dict[str, Any]:
        """Return rewards and exploration over time, before the shop served, lately and in all; what changed."""
        found = sorted(self._counts.buckets.items())
        imported, own = ([bucket for (_, later), bucket in found if later is it] for it in (False, True))
        before, total = (reduce(Bucket.merged, some, Bucket()) for some in (imported, [*imported, *own]))
        periods = [period for _, period in sorted(self._counts.periods.items())]
        earlier, latest = (
            reduce(Period.merged, some, Period())
            for some in (periods[-2 * LATEST_BUCKETS : -LATEST_BUCKETS], periods[-LATEST_BUCKETS:])
        )
        lately = latest.bucket
        unanswered = lately.settled >= ENOUGH_REWARDS and 2 * lately.missing >= lately.settled
        return {
            "visits": total.visits,
            "before": {"number": before.visits, **_interval(before)} if before.visits else None,
            "recommended": total.recommended,
            "lately": {
                "number": lately.visits,
                **_interval(lately),
                "from": lately.begin if lately.visits else None,
                "gain": _gain(lately, before),
                "served": lately.served,
                "chosen": lately.chosen,
                "explored": _explored(lately),
                "cost": _cost(latest),
                "missing": {"number": lately.missing, "of": lately.settled} if unanswered else None,
            },
            "trends": _trends(earlier, latest, self._counts.products),
            "points": [*_points(imported), *_points(own, before.visits)],
        }

    def _products(self, newest: ServedDraws | None, by: str, descending: bool, count: int) -> dict[str, Any]:
        counts = self._counts.products
        keys = [(self._key(by, product, counted, newest), product) for product, counted in counts.items()]
        known = sorted((key for key in keys if key[0] is not None), reverse=descending)
        first = [*known[:count], *(key for key in keys if key[0] is None)][:count]  # without a number: last
        rows = [_product(product, counts[product], newest) for _, product in first]
        seen = [row for row in rows if row["value"] is not None]
        seen = [
            row for row in seen if row["shown"]
        ] or seen  # others, often wide, may go beyond the ends of the axis
        return {
            "count": len(counts),
            "offered": sum(counted.offered for counted in counts.values()),
            "rows": rows,
            "low": min((row["low"] for row in seen), default=None),
            "high": max((row["high"] for row in seen), default=None),
        }

    def _key(self, by: str, product: str, counted: ProductCount, newest: ServedDraws | None) -> Any:
        """Return what a product is sorted by, None if that is not known."""
        if by == "product":
            return name_of(product, self._settings.ids)
        return getattr(counted, by) if by != "value" else None if newest is None else newest.value_of(product)[0]

    def _latest(self, reading: sa.Connection) -> list[dict[str, Any]]:
        recent = sa.select(events.c.visit).where(events.c.visit != "").order_by(events.c.id.desc()).limit(RECENT)
        names = list(dict.fromkeys(row.visit for row in reading.execute(recent)))[:VISITS]
        theirs = (
            sa.select(*(events.c[name] for name in NAMES))
            .where(sa.text(OF_VISITS), events.c.visit.in_(names))
            .order_by(events.c.id)
        )
        rows: dict[str, list[Any]] = {name: [] for name in names}
        for row in reading.execute(theirs):
            rows[row.visit].append(row)
        return [_visit(name, rows[name], self._counts) for name in names]


def _points(buckets: Iterable[Bucket], visits: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the numbers of buckets in which visits ended; one that has just begun joins the one before."""
    found = [bucket for bucket in buckets if bucket.visits]
    if len(found) > 1 and 2 * found[-1].visits < found[-2].visits:
        found[-2:] = [found[-2].merged(found[-1])]
    for it in found:
        visits += it.visits
        yield {
            "visits": visits,
            "number": it.visits,
            **_interval(it),
            "explored": _explored(it),
            "from": it.begin,
            "to": it.end,
        }


def _interval(it: Bucket) -> dict[str, float | None]:
    """Return the mean reward of visits with Student's 95% interval, as far as they are known.

    If all visits earned the same, how much others would differ is not known, and there is no interval.
    """
    if it.visits < 2 or not it.squares:
        return _around(it.mean if it.visits else None, None)
    return _around(
        it.mean, float(stdtrit(it.visits - 1, 0.975)) * math.sqrt(it.squares / (it.visits - 1) / it.visits)
    )


def _explored(it: Bucket) -> float | None:
    return it.explored / it.chosen if it.chosen else None


def _gain(lately: Bucket, before: Bucket) -> dict[str, float | None] | None:
    """Return how much more visits earn lately than before the shop served, with a 95% interval (Welch's error).

    There is no interval if all visits of one of the two earned the same, see `_interval`.
    """
    fewest = min(lately.visits, before.visits)
    if fewest < 2:
        return None
    known = lately.squares and before.squares
    error = math.sqrt(sum(it.squares / (it.visits - 1) / it.visits for it in (lately, before)))
    return _around(lately.mean - before.mean, float(stdtrit(fewest - 1, 0.975)) * error if known else None)


def _cost(it: Period) -> dict[str, float | None] | None:
    """Return what exploration costs per visit, with a 95% interval; None if too little is known.

    Which sample chooses for a visit is decided by chance. So where the product that the mean prefers is shown with
    probability q, given the earlier slots of the visit, the odds of exploring are (1 - q) / q. With these as
    weights, the rewards of products that the mean preferred tell what would have been earned in place of the
    explored ones. The difference counts for every explored product. What it changes later in the visit does not
    count. Where several products are the best of the mean, neither they nor the others count.
    """
    best, explored = it.choices
    known = it.bucket.visits and min(explored.number, best.number) >= ENOUGH_REWARDS
    if not known or not explored.variance or not best.variance:  # without variance, all earned the same
        return None
    a_visit = it.bucket.explored / it.bucket.visits
    error = math.sqrt(explored.variance + best.variance)
    return _around(a_visit * (best.mean - explored.mean), 1.96 * a_visit * error)


def _around(value: float | None, half: float | None) -> dict[str, float | None]:
    if value is None or half is None:
        return {"mean": value, "low": None, "high": None}
    return {"mean": value, "low": value - half, "high": value + half}


def _trends(earlier: Period, latest: Period, products: dict[str, ProductCount]) -> dict[str, Any]:
    """Return the products that earn more or less per showing than in the period before, beyond noise.

    Both errors of the difference, with the rewards of both periods taken together and apart, may be too small if
    rewards are rare: the larger one is used, with Student's quantile. With m products to compare, each must be
    beyond the 1 - 0.05 / m interval, so that all of them are right with a probability of about 95%.
    """
    offered = np.array([count.offered for count in products.values()], dtype=np.bool_)
    sums = np.zeros((2, len(offered), 3))
    for part, period in zip(sums, (earlier, latest), strict=True):
        part[: len(period.rewards)] = period.rewards
    places = np.flatnonzero((sums[:, :, 0] >= ENOUGH_REWARDS).all(axis=0) & offered)
    number, total, squares = (sums[:, places, i] for i in range(3))
    mean, together = total / np.maximum(number, 1), number.sum(axis=0)
    apart = ((squares - number * mean**2) / (number - 1) / number).sum(axis=0)
    whole = (squares.sum(axis=0) - total.sum(axis=0) ** 2 / together) / (together - 1) * (1 / number).sum(axis=0)
    error, change = np.sqrt(np.maximum(0.0, np.maximum(apart, whole))), mean[1] - mean[0]
    limit = stdtrit(number.min(axis=0) - 1, 1 - 0.025 / max(1, len(places)))
    names, found = list(products), {}
    for name, sign in (("rising", 1), ("falling", -1)):
        clear = np.flatnonzero((sign * change > limit * error) & (error > 0))
        first = clear[np.argsort(-sign * change[clear] / error[clear], kind="stable")][:NAMED]
        rows = [
            {"product": names[places[i]], "before": float(mean[0, i]), "now": float(mean[1, i])} for i in first
        ]
        found[name] = {"count": len(clear), "rows": rows}
    return {"compared": len(places), **found}


def _learner(state: LearnerState, sample: ServedDraws | None, last: int, settings: ShopSettings) -> dict[str, Any]:
    """Return how the learner does, and how far the samples are behind: in events, and in seconds."""
    (at, failures, failure), now = state, time.time()
    worked = None if at is None else max(0.0, now - at)
    drawn = sample if sample is not None and sample.drawn else None
    how = state_of_learner(worked, failures, drawn.behind if drawn else 0.0, settings)
    return {
        "state": how,
        "worked": worked,
        "failure": failure if how == "failing" else None,
        "included": drawn.last if drawn else None,
        "behind": max(0, last - drawn.last) if drawn else None,
        "age": max(0.0, now - drawn.at) if drawn else None,
    }


def _product(product: str, counted: ProductCount, newest: ServedDraws | None) -> dict[str, Any]:
    """Return the numbers of a product: `value` is `Draws.value`, None if the samples do not know the product.

    `low` and `high` are two standard deviations below and above: the model's doubt about the first recommendation
    alone, given its values of the rest of the visit. They are no 95% interval of the value.
    """
    value, spread = (None, None) if newest is None else newest.value_of(product)
    interval = _around(value, None if spread is None else SPREADS * spread)
    return {
        "product": product,
        "shown": counted.shown,
        "answers": counted.answers,
        "mean": counted.mean,
        "value": value,
        "low": interval["low"],
        "high": interval["high"],
        "offered": counted.offered,
    }


def _visit(name: str, rows: list[Any], counts: "EventCounts") -> dict[str, Any]:
    visit, ended, names = Visit([]), False, set[str]()
    late = set[str]()  # answers that came after the end do not count, unless they are corrections
    for row in rows:
        if row.kind == "recommended" and not ended:
            names.add(row.product)
        if row.kind == "answered" and ended:
            (late.discard if row.correction else late.add)(row.product)
        visit.take(row)
        enough = row.kind == "answered" and len(visit.rewards) >= counts.enough(row.id)
        ended = ended or row.kind == "closed" or enough
    counted = {product: reward for product, reward in visit.rewards.items() if product not in late}
    total = math.fsum(counted.values())
    if ended and counts.unanswered is not None:
        total += counts.unanswered * len(names - set(counted))
    shown = [row for row in rows if row.kind == "recommended"]
    return {
        "visit": name,
        "at": rows[-1].at,
        "context": {
            str(key)[:LONGEST_FEATURE]: str(value)[:LONGEST_FEATURE] for key, value in visit.context.items()
        },
        "ended": ended,
        "reward": total,
        "shown": [
            {"product": row.product, "reward": visit.rewards.get(row.product), "explored": bool(row.explored)}
            for row in shown[-SLOTS:]
        ],
    }


# ---- sums over the table of events, kept up to date by reading only what is new -----------------------------


class EventCounts:
    """All sums, up to event number `read`.

    The database adds up: every step asks for sums over a bounded range of event numbers. Consecutive events share
    a bucket; when there are too many buckets, each two neighbours become one, so that a shop with millions of
    events has as few sums as a small one.

    A visit ends when it is closed, or when all slots, or all products if there are fewer, are answered. Which
    event ends it depends on earlier events alone, so that no visit ends twice. Its reward is the sum over the
    answers until then.

    Attributes
    ----------
    unanswered
        The reward of a product that has no answer when its visit is closed; None: it has none.
    served
        The first recommendation that the shop itself made, None if there is none; before, all is imported.
    buckets
        Sums by number of the bucket and by whether its events come after that.
    periods
        What the shop itself did in the latest buckets, which have at most `WIDEST_BUCKET` events each.
    """

    def __init__(self, slots: int, unanswered: float | None = None) -> None:
        self.slots, self.unanswered, self.read, self.width = slots, unanswered, 0, SMALLEST_BUCKET
        self.served: int | None = None
        self._first: list[int] = []  # the events that added the first products, as many as there are slots
        self.buckets: dict[tuple[int, bool], Bucket] = defaultdict(Bucket)
        self.periods: dict[int, Period] = defaultdict(Period)
        self.products: dict[str, ProductCount] = defaultdict(lambda: ProductCount(len(self.products)))

    def step(self, reading: sa.Connection, last: int) -> None:
        """Count the next events, not beyond number `last`: all of them or, if the database fails, none."""
        until = min(self.read + STEP, last)
        while last // self.width >= MOST_BUCKETS:
            self._widen()
        new, fine = sa.and_(events.c.id > self.read, events.c.id <= until), min(self.width, WIDEST_BUCKET)
        named = sa.select(events.c.id, events.c.kind, events.c.product).order_by(events.c.id)
        catalogue = reading.execute(named.where(new, events.c.kind.in_(["added", "removed"]))).all()
        known = {product for product, count in self.products.items() if count.added}
        new_ones = {product: event for event, kind, product in reversed(catalogue) if kind == "added"}
        added = sorted(event for product, event in new_ones.items() if product not in known)
        first = [*self._first, *added][: self.slots]
        served = self.served
        if served is None:  # the first recommendation made with samples, that is by the shop itself
            own = sa.select(sa.func.min(events.c.id)).where(new, events.c.kind == "recommended")
            served = reading.execute(own.where(events.c.sample.is_not(None))).scalar()
        ended = _ended(new, self.read, until, first)
        kept = None if served is None else max(served, (last // fine - KEPT_BUCKETS) * fine)  # periods begin here
        statements = [
            _sums(new, fine, served),
            _products(new, fine, served),
            sa.select(ended.c.end, ended.c.reward),
        ]
        statements += [_explored_rewards(new, fine, kept)] if kept is not None and kept <= until else []
        sums, products, ends, *compared = (reading.execute(it).all() for it in statements)
        by_product, by_end, by_choice, settled = list[Any](), dict[int, int](), list[Any](), list[Any]()
        if self.unanswered is not None:
            found = [list(reading.execute(it)) for it in _without_answer(ended, fine, served)]
            by_product, by_choice = found[0], [row for rows in found[2:] for row in rows]
            by_end = {row.end: row.number for row in found[1]}
        elif served is not None:
            settled = [row for row in reading.execute(_settled(ended, fine, served)).all() if row.later]
        for number, later, *rest in sums:
            self._add(number, bool(later), Bucket(0, 0.0, 0.0, *rest))
        for number, _, shown, missing in settled:
            self._add(number, True, Bucket(settled=shown, missing=missing))
        for number, later, product, shown, answers, total, squares in products:
            count = self.products[product]
            count.shown += shown
            count.answers += answers
            count.total += total
            if later and answers:
                self._add_rewards(number, product, answers, total, squares)
        reward = self.unanswered or 0.0
        for number, later, product, missing in by_product:
            count = self.products[product]
            count.unanswered += missing
            count.total += missing * reward
            if later:
                self._add_rewards(number, product, missing, missing * reward, missing * reward**2)
        for _, kind, product in catalogue:
            count = self.products[product]
            count.added, count.offered = count.added or kind == "added", kind == "added"
        for event, earned in ends:
            later = served is not None and event >= served
            self._add(event // fine, later, Bucket(visits=1, mean=earned + by_end.get(event, 0) * reward))
        for rows in compared:
            for number, explored, *some in rows:
                self._add_choice(number, explored, some)
        for number, explored, w, ww in by_choice:
            self._add_choice(number, explored, (w, w * reward, ww, ww * reward, ww * reward**2))
        for number in sorted(self.periods)[:-KEPT_BUCKETS]:
            del self.periods[number]
        self.read, self._first, self.served = until, first, served

    def enough(self, event: int) -> int:
        """Return with how many answers a visit has ended if the last of them is the event of this number."""
        return max(1, bisect_left(self._first, event))

    def _add(self, number: int, later: bool, bucket: Bucket) -> None:
        key = number * min(self.width, WIDEST_BUCKET) // self.width, later
        self.buckets[key] = self.buckets[key].merged(bucket)
        if later:
            self.periods[number].bucket = self.periods[number].bucket.merged(bucket)

    def _add_rewards(self, number: int, product: str, *sums: float) -> None:
        period, place = self.periods[number], self.products[product].place
        if place >= len(period.rewards):
            period.rewards = np.pad(period.rewards, ((0, len(self.products) - len(period.rewards)), (0, 0)))
        period.rewards[place] += sums

    def _add_choice(self, number: int, explored: bool, sums: Iterable[float]) -> None:
        period = self.periods[number]
        best, others = period.choices
        period.choices = (best, others.plus(sums)) if explored else (best.plus(sums), others)

    def _widen(self) -> None:
        narrow, self.buckets = self.buckets, defaultdict(Bucket)
        for (number, later), bucket in sorted(narrow.items()):
            self.buckets[number // 2, later] = self.buckets[number // 2, later].merged(bucket)
        if self.width < WIDEST_BUCKET:
            short, self.periods = self.periods, defaultdict(Period)
            for number, period in sorted(short.items()):
                self.periods[number // 2] = self.periods[number // 2].merged(period)
        self.width *= 2


def _number(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return sa.func.sum(sa.case((condition, 1), else_=0))


def _bucket(event: sa.ColumnElement[int], width: int, served: int | None) -> tuple[Any, Any]:
    """Return the columns for the bucket of an event, and for whether it comes after the shop began to serve."""
    later = sa.literal(0) if served is None else sa.case((event >= served, 1), else_=0)
    return (event // width).label("bucket"), later.label("later")


def _sums(new: sa.ColumnElement[bool], width: int, served: int | None) -> sa.Executable:
    """Return the statement for the sums of every bucket: recommended, chosen, explored, when, served."""
    numbers = events.c.kind == "recommended", events.c.explored.is_not(None), events.c.explored
    times = sa.func.min(events.c.at), sa.func.max(events.c.at)
    own = _number(events.c.sample.is_not(None))
    sums = sa.select(*_bucket(events.c.id, width, served), *map(_number, numbers), *times, own)
    return sums.where(new, events.c.visit != "").group_by(*BUCKET)


def _ended(new: sa.ColumnElement[bool], read: int, until: int, first: list[int]) -> sa.Subquery:
    """Return the visits that ended among the new events: visit, end (the event), reward, closed (1 if by closing).

    Parameters
    ----------
    first
        The events that added the first products. Before the second one, one answer is all there can be.
    """
    kinds = sa.and_(events.c.kind.in_(["answered", "closed"]), events.c.correction == 0)
    touched = sa.select(events.c.visit).where(new, kinds).distinct()
    answers = _number(events.c.kind == "answered").over(partition_by=events.c.visit, order_by=events.c.id)
    columns = events.c.visit, events.c.id, events.c.kind, events.c.reward, answers.label("answers")
    rows = (
        sa.select(*columns)
        .where(sa.text(OF_VISITS), events.c.visit.in_(touched), kinds, events.c.id <= until)
        .subquery()
        .c
    )
    fewer = [(rows.id < event, number) for number, event in enumerate(first) if number]
    enough = sa.case(*fewer, else_=max(1, len(first))) if fewer else sa.literal(max(1, len(first)))
    ended = sa.or_(rows.kind == "closed", rows.answers >= enough)
    end = sa.func.min(sa.case((ended, rows.id))).over(partition_by=rows.visit).label("end")
    ends = sa.select(rows.visit, rows.id, rows.kind, rows.reward, end).subquery().c
    reward = sa.func.sum(sa.func.coalesce(ends.reward, 0.0)).label("reward")
    until_then = sa.select(
        ends.visit, ends.end, reward, sa.func.max(sa.case((ends.kind == "closed", 1), else_=0)).label("closed")
    )
    return until_then.where(ends.id <= ends.end, ends.end > read).group_by(ends.visit, ends.end).subquery()


def _without_answer(ended: sa.Subquery, width: int, served: int | None) -> Iterator[sa.Executable]:
    """Yield the statements for the recommendations without an answer in visits that were closed.

    The first one counts them by bucket and product, the second one by the event that closed the visit. The third
    one has the sums of their weights, see `_weight`, and of their squares, by bucket and by whether they explored.
    """
    seen, named, shown, answered = _shown(ended)
    where = ended.c.closed == 1, named, shown, sa.not_(answered)
    number, both = sa.func.count().label("number"), ended.join(seen, shown)
    bucket, later = _bucket(ended.c.end, width, served)
    by_product = sa.select(bucket, later, seen.c.product, number).select_from(both).where(*where)
    yield by_product.group_by(*BUCKET, seen.c.product)
    yield sa.select(ended.c.end, number).select_from(both).where(*where).group_by(ended.c.end)
    if served is not None:
        w = _weight(seen)
        sums = sa.select(bucket, seen.c.explored, sa.func.sum(w), sa.func.sum(w * w)).select_from(both)
        sums = sums.where(*where, ended.c.end >= served, seen.c.propensity > 0, seen.c.explored.is_not(None))
        yield sums.group_by(BUCKET[0], seen.c.explored)


def _settled(ended: sa.Subquery, width: int, served: int | None) -> sa.Executable:
    """Return the statement for how many products were shown in visits that ended, and how many have no answer."""
    seen, named, shown, answered = _shown(ended)
    # A visit that ends with its last answer has an answer to all that it was shown.
    missing = _number(sa.and_(ended.c.closed == 1, sa.not_(answered)))
    sums = sa.select(*_bucket(ended.c.end, width, served), sa.func.count(), missing)
    return sums.select_from(ended.join(seen, shown)).where(named, shown).group_by(*BUCKET)


def _shown(ended: sa.Subquery) -> tuple[Any, sa.ColumnElement[bool], sa.ColumnElement[bool], sa.Exists]:
    """Return an alias of events with the conditions for those that showed something in visits that ended.

    The conditions are the one that an index needs, the one that joins, and whether the product has an answer.
    """
    seen, answer = events.alias("seen"), events.alias("answer")
    named: list[sa.ColumnElement[bool]] = [sa.literal_column(f"{it}.{OF_VISITS}") for it in ("seen", "answer")]
    same = answer.c.visit == seen.c.visit, answer.c.kind == "answered", answer.c.product == seen.c.product
    answered = (
        sa.select(answer.c.id).where(named[1], *same, answer.c.id < ended.c.end).correlate(seen, ended).exists()
    )
    shown = sa.and_(seen.c.visit == ended.c.visit, seen.c.kind == "recommended", seen.c.id < ended.c.end)
    return seen, named[0], shown, answered


def _weight(seen: Any) -> sa.ColumnElement[float]:
    """Return the weight of a recommendation in `Period`, of which its propensity and `explored` are known."""
    return sa.case((seen.c.explored, 1.0), else_=(1.0 - seen.c.propensity) / seen.c.propensity)


def _explored_rewards(new: sa.ColumnElement[bool], width: int, since: int) -> sa.Executable:
    """Return the statement for the `RewardSums` over answers, by bucket and by whether they were explored."""
    seen = events.alias("seen")
    same = sa.and_(
        seen.c.visit == events.c.visit, seen.c.kind == "recommended", seen.c.product == events.c.product
    )
    w, r = _weight(seen), events.c.reward
    sums = map(sa.func.sum, (w, w * r, w * w, w * w * r, w * w * r * r))
    bucket, _ = _bucket(events.c.id, width, None)
    found = sa.select(bucket, seen.c.explored, *sums).select_from(events.join(seen, same))
    where = new, events.c.id >= since, events.c.kind == "answered", events.c.correction == 0
    return found.where(
        *where, sa.text(f"seen.{OF_VISITS}"), seen.c.propensity > 0, seen.c.explored.is_not(None)
    ).group_by(BUCKET[0], seen.c.explored)


def _products(new: sa.ColumnElement[bool], width: int, served: int | None) -> sa.Executable:
    """Return the statement for how often products were shown and answered; sums of rewards and their squares."""
    shown, answers = _number(events.c.kind == "recommended"), _number(events.c.kind == "answered")
    sums = (sa.func.coalesce(sa.func.sum(it), 0.0) for it in (events.c.reward, events.c.reward * events.c.reward))
    kinds = events.c.kind.in_(["recommended", "answered"])
    found = sa.select(*_bucket(events.c.id, width, served), events.c.product, shown, answers, *sums)
    return found.where(new, kinds, events.c.correction == 0).group_by(*BUCKET, events.c.product)
