"""What the page of a shop shows, as numbers and texts that JSON can hold."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from threading import Lock
from typing import Any, NamedTuple

from scipy.special import stdtrit
from sqlalchemy import ColumnElement, Connection, literal_column, select

from rlsvi.shop.events import Events
from rlsvi.shop.events import events as table
from rlsvi.shop.ids import name_of
from rlsvi.shop.samples import ServedDraws
from rlsvi.shop.service.counts import OF_VISITS, Bucket, EventCounts, ProductCount
from rlsvi.shop.settings import ShopSettings

COLUMNS = ("product", "shown", "mean", "value", "offered")  # that products are sorted by
MOST = 1000  # products of an answer
STEPS = 2  # of counting past events, in one request
LATELY = 4  # buckets
VISITS = 10  # latest ones
RECENT = 200  # events among which they are looked for
SLOTS = 50  # of a visit, the latest ones
NAMES = ("id", "at", "kind", "visit", "product", "slot", "reward", "explored", "features")
SHOWN = [table.c[name] for name in NAMES]
SPREADS = 2.0  # standard deviations to each side of a value that the page draws
LONGEST = 80  # characters of a customer's feature


class ProductValue(NamedTuple):
    """The posterior mean of the reward of a visit that begins with a product, for the average customer.

    low, high : two standard deviations below and above: the model's doubt about the first recommendation alone,
        given its values of the rest of the visit. They are no 95% interval of the value. All are None if the
        samples do not know the product.
    """

    value: float | None
    low: float | None
    high: float | None


class ShopStatistics:
    """The numbers of a shop, from its events and the newest samples; requests may come from several threads.

    Parameters
    ----------
    settings : the settings of the shop.
    events : its events.
    newest : returns the newest samples of the posterior, None as long as there are none.
    """

    def __init__(self, settings: ShopSettings, events: Events, newest: Callable[[], ServedDraws | None]) -> None:
        self._settings, self._events, self._newest = settings, events, newest
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
                "learner": None if newest is None else _learner(newest, last),
            }

    def _rewards(self) -> dict[str, Any]:
        """Return rewards and exploration over time, before the shop served, lately and in all."""
        found = sorted(self._counts.buckets.items())
        imported, own = ([bucket for (_, later), bucket in found if later is it] for it in (False, True))
        before, lately, total = (
            reduce(Bucket.merged, some, Bucket()) for some in (imported, own[-LATELY:], [*imported, *own])
        )
        return {
            "visits": total.visits,
            "before": {"number": before.visits, **_interval(before)} if before.visits else None,
            "recommended": total.recommended,
            "lately": {
                "number": lately.visits,
                **_interval(lately),
                "chosen": lately.chosen,
                "explored": _explored(lately),
            },
            "points": [*_points(imported), *_points(own, before.visits)],
        }

    def _products(self, newest: ServedDraws | None, by: str, descending: bool, count: int) -> dict[str, Any]:
        counts = self._counts.products
        known, unknown = [], []
        for product, counted in counts.items():
            key = self._key(by, product, counted, newest)
            if key is None:
                unknown.append(product)
            else:
                known.append((key, product))
        known.sort(reverse=descending)
        first = [*(product for _, product in known[:count]), *unknown][:count]  # without a number: last
        rows = [_product(product, counts[product], newest) for product in first]
        offered = sum(counted.offered for counted in counts.values())
        return {"count": len(counts), "offered": offered, "rows": rows, **_scale(rows)}

    def _key(self, by: str, product: str, counted: ProductCount, newest: ServedDraws | None) -> Any:
        """Return what a product is sorted by, None if that is not known."""
        if by == "product":
            return name_of(product, self._settings.ids)
        return _value(product, newest).value if by == "value" else getattr(counted, by)

    def _latest(self, reading: Connection) -> list[dict[str, Any]]:
        """Return the visits with the latest events, and what happened in them."""
        recent = select(table.c.visit).where(table.c.visit != "").order_by(table.c.id.desc()).limit(RECENT)
        names = list(dict.fromkeys(row.visit for row in reading.execute(recent)))[:VISITS]
        of_visits: ColumnElement[bool] = literal_column(OF_VISITS)
        theirs = select(*SHOWN).where(of_visits, table.c.visit.in_(names)).order_by(table.c.id)
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
        times = {"from": it.begin, "to": it.end}
        yield {"visits": visits, "number": it.visits, **_interval(it), "explored": _explored(it), **times}


def _interval(it: Bucket) -> dict[str, float | None]:
    """Return the mean reward of visits with Student's 95% interval, as far as they are known."""
    if it.visits < 2:
        return {"mean": it.mean if it.visits else None, "low": None, "high": None}
    half = float(stdtrit(it.visits - 1, 0.975)) * math.sqrt(it.squares / (it.visits - 1) / it.visits)
    return {"mean": it.mean, "low": it.mean - half, "high": it.mean + half}


def _explored(it: Bucket) -> float | None:
    return it.explored / it.chosen if it.chosen else None


def _learner(sample: ServedDraws, last: int) -> dict[str, Any]:
    """Return how far the samples are behind: in events, and in seconds."""
    age = max(0.0, time.time() - sample.at)
    return {"included": sample.last, "behind": max(0, last - sample.last), "age": age}


def _value(product: str, newest: ServedDraws | None) -> ProductValue:
    """Return what the posterior says of a product, if the samples know it."""
    value, spread = (None, None) if newest is None else newest.value_of(product)
    if value is None or spread is None:
        return ProductValue(None, None, None)
    return ProductValue(value, value - SPREADS * spread, value + SPREADS * spread)


def _product(product: str, counted: ProductCount, newest: ServedDraws | None) -> dict[str, Any]:
    seen = {"shown": counted.shown, "answers": counted.answers, "mean": counted.mean}
    return {"product": product, **seen, **_value(product, newest)._asdict(), "offered": counted.offered}


def _scale(rows: list[dict[str, Any]]) -> dict[str, float | None]:
    """Return the ends of the axis of intervals; those of products never shown, often wide, may go beyond."""
    known = [row for row in rows if row["value"] is not None]
    seen = [row for row in known if row["shown"]] or known
    low, high = min((row["low"] for row in seen), default=None), max((row["high"] for row in seen), default=None)
    return {"low": low, "high": high}


def _visit(name: str, rows: list[Any], counts: EventCounts) -> dict[str, Any]:
    """Return what happened in a visit, from its events in order."""
    rewards: dict[str, float] = {}
    ended, total, names = False, 0.0, set()
    for row in rows:
        if row.kind == "recommended":
            names.add(row.product)
        if row.kind == "answered":
            rewards[row.product] = row.reward
        if not ended:
            total = math.fsum(rewards.values())
            if row.kind == "closed" and counts.unanswered is not None:
                total += counts.unanswered * len(names - set(rewards))
            ended = row.kind == "closed" or (row.kind == "answered" and len(rewards) >= counts.enough(row.id))
    shown = [row for row in rows if row.kind == "recommended"]
    context = next((row.features for row in shown if row.slot == 0), None) or {}
    return {
        "visit": name,
        "at": rows[-1].at,
        "context": {str(key)[:LONGEST]: str(value)[:LONGEST] for key, value in context.items()},
        "ended": ended,
        "reward": total,
        "shown": [
            {"product": row.product, "reward": rewards.get(row.product), "explored": bool(row.explored)}
            for row in shown[-SLOTS:]
        ],
    }
