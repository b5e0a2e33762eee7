"""What a shop's recommender would earn, judged by the events of the past before it serves any customer.

The recommender learns from one half of the visits and is judged by the other, and back. It is judged by importance
sampling, which needs the probabilities with which products were shown. Where a log cannot tell, nothing is told.
"""

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from rlsvi.core.compile import Bools, Floats, Longs
from rlsvi.core.interval import Interval, check_level
from rlsvi.offline.value import ROBUST, WEIGHTED, by_step, rows_by_step, student_interval, weighted_sum
from rlsvi_shop.catalogue import with_features
from rlsvi_shop.events import Event, Events, row_of
from rlsvi_shop.model.draws import Draws, best_by_sample, customer_row
from rlsvi_shop.model.learner import ShopLearner
from rlsvi_shop.requests import check_type, list_of
from rlsvi_shop.settings import RewardSettings, ShopSettings

AT_ONCE = 20_000  # events that are read at once


class SampleValue(NamedTuple):
    """What some visits of a log say of a policy that draws one of the samples for each visit."""

    estimates: dict[str, Interval]  # of the reward per visit, by estimator; none if the visits cannot tell
    effective: float | None  # the effective number of visits of importance sampling; None without propensities
    why: str  # why there is no estimate


class ShopValue(NamedTuple):
    """Estimates of the reward per visit, each with its interval."""

    logged: Interval  # of the policy that made the events
    halves: tuple[SampleValue, SampleValue]  # by the first half of the visits, and by the second
    visits: int  # that are judged by
    left_out: Counter[str]  # how many others have ended, by the reason why they cannot be judged by
    level: float  # the probability of the intervals

    @property
    def estimates(self) -> dict[str, Interval]:
        """The mean of both halves, by estimator; none if one of them cannot judge."""
        first, second = (half.estimates for half in self.halves)
        return {name: _mean(first[name], second[name]) for name in first if name in second}

    @property
    def why(self) -> str:
        """Why the log cannot judge the recommender; empty if it can."""
        return next((half.why for half in self.halves if half.why), "")

    def __str__(self) -> str:
        known = {"the policy of the log": self.logged, **self.estimates}
        lines = [f"reward per visit, with {100 * self.level:g}% intervals"]
        lines += [f"{name:<30}{interval}" for name, interval in known.items()]
        effective = [half.effective for half in self.halves if half.effective is not None]
        also = f", {sum(effective):.1f} effective visits of importance sampling" if effective else ""
        lines += [f"{self.visits} visits{also}"]
        lines += [f"{number} visits were left out because {why}" for why, number in self.left_out.items()]
        return "\n".join(lines + ([f"This log cannot judge the recommender: {self.why}."] if self.why else []))


def judge(
    settings: ShopSettings, events: Iterable[Event] | Events | None = None, *, level: float = 0.95
) -> ShopValue:
    """Estimate the reward per visit of the recommender, from events that another policy has made.

    What is judged is the recommender as it serves: every visit draws one of the samples of the posterior, and
    keeps it. A sample chooses among the products that were offered at the time, and in `among` if that is known.

    The visits are split in two halves, in the order in which they began. The samples that are judged by each half
    are learned from the other one, so nothing is judged by the data that it was fitted to. Visits that have not
    ended are left out, and so are those that cannot be judged by, such as one without a propensity, if they are
    at most a tenth of a half. A product without an answer has the reward `reward.unanswered`, or 0 if that is not
    given.

    Parameters
    ----------
    settings
        The settings of the shop.
    events
        The events, in order. If None, those of the shop's database.
    level
        The probability of the intervals.

    Returns
    -------
    ShopValue
        Estimates by importance sampling and by its doubly robust form, or, in `why`, the reason why this log
        cannot judge the recommender. It needs a log that chose products at random, with the probability of each as
        its propensity, and enough visits in which the recommender would have shown the same products.

    Examples
    --------
    >>> import polars
    >>> from rlsvi_shop import Events, ShopSettings, import_events, judge
    >>> settings = ShopSettings(database="sqlite:///shop.db", slots=1)
    >>> products = ["tea", "coffee"] * 100
    >>> clicks = {"visit": range(200), "product": products, "reward": [1.0, 0.0] * 100, "propensity": 0.5}
    >>> events = Events(settings.database)
    >>> _ = import_events(events, settings, polars.DataFrame(clicks).with_columns(polars.col("visit").cast(str)))
    >>> value = judge(settings, events)
    >>> value.logged.value, value.visits
    (0.5, 200)
    >>> events.close()
    """
    check_type("settings", settings, ShopSettings, 'a ShopSettings, such as ShopSettings.from_toml("shop.toml")')
    check_level(level)
    if events is None:
        with Events(settings.database, create=False) as opened:
            return judge(settings, opened, level=level)
    stored = with_features(_as_they_count(_all_of(events), settings.reward), settings)
    begun = list(dict.fromkeys(event.visit for event in stored if event.visit))
    if len(begun) < 4:
        raise ValueError(f"events must have at least 4 visits, to learn from one half of them, got {len(begun)}")
    halves = set(begun[: len(begun) // 2]), set(begun[len(begun) // 2 :])
    first, second = (_steps_of_half(settings, stored, halves[1 - i]) for i in (0, 1))
    returns = np.concatenate([np.add.reduceat(steps.reward, steps.start[:-1]) for steps in (first, second)])
    mean, n = float(returns.mean()), returns.size
    logged = student_interval(mean, (returns - mean) / n, n, level)
    return ShopValue(
        logged,
        (value_of_samples(first, level), value_of_samples(second, level)),
        n,
        first.left_out + second.left_out,
        float(level),
    )


def _as_they_count(events: list[Event], limits: RewardSettings) -> list[Event]:
    """Return the events with corrected rewards, within the limits, and without the corrections themselves."""
    last = {(event.visit, event.product): event.reward for event in events if event.correction}
    found = []
    for event in events:
        if event.kind == "answered":
            reward = last.get((event.visit, event.product), event.reward)
            if event.correction or reward is None:
                continue
            event = event._replace(reward=min(max(reward, limits.low), limits.high))
        found.append(event)
    return found


def _all_of(events: Iterable[Event] | Events) -> list[Event]:
    if not isinstance(events, Events):
        given = list_of("events", events, "Event")
        for event in given:
            row_of(event)  # which checks it
        return given
    found: list[Event] = []
    while some := events.since(found[-1].id if found else 0, AT_ONCE):
        found += some
    return found


def _mean(a: Interval, b: Interval) -> Interval:
    """Return the mean of two estimates whose errors are taken to be independent."""
    value = (a.value + b.value) / 2
    half = math.hypot(a.high - a.low, b.high - b.low) / 4
    return Interval(value, value - half, value + half)


def _steps_of_half(settings: ShopSettings, events: list[Event], learned: set[str]) -> "LoggedSteps":
    """Return the visits that are not in `learned`, with what samples that are learned from those would show."""
    learner = ShopLearner(settings)
    for event in events:
        if not event.visit or event.visit in learned:
            learner.take(event)
    draws, products = learner.refresh(), learner.products
    del learner  # which has the size of the posterior
    return steps_of(settings, products, draws, (event for event in events if event.visit not in learned))


# ---- past visits as steps -----------------------------------------------------------------------------------


class LoggedSteps(NamedTuple):
    """The recommendations of visits that have ended; visit e has start[e] .. start[e + 1] - 1.

    Memory is that of a few numbers for each recommendation and sample: none is as large as the catalogue.
    """

    start: Longs  # (E + 1,)
    reward: Floats  # (R,) 0 where it is not known
    propensity: Floats  # (R,) the probability of what was shown, given what was shown before in the visit
    chance: Floats  # (R, S) how likely each sample would have shown the same product: 0 or 1, since it is certain
    shown_value: Floats  # (R,) the value of what was shown, by the posterior mean
    chosen_value: Floats  # (R, S) and of what each sample would have shown
    left_out: Counter[str]  # how many other visits have ended, by the reason why nothing can be judged by them
    why: str  # why nothing can be judged by all visits, which are there if too many would have to be left out


def steps_of(
    settings: ShopSettings, products: dict[str, int], draws: Draws, events: Iterable[Event]
) -> LoggedSteps:
    """Return the steps of visits that have ended, and what the samples 1 .. S of the posterior would have shown.

    A sample chooses among the products that were offered at that time, and new to the visit, and in `among` if the
    event has it.
    """
    every = draws._replace(offered=np.ones(len(products), np.bool_))  # the samples know only what is offered now
    offered = np.zeros(len(products), np.bool_)
    visits: dict[str, _LoggedVisit] = {}
    ended: list[_LoggedVisit] = []
    added: set[str] = set()
    for event in events:
        if event.kind in ("added", "removed"):
            offered[products[event.product]] = event.kind == "added"
            added.add(event.product)
            continue
        if event.visit not in visits:
            visits[event.visit] = _LoggedVisit(settings, products, event)
        visit = visits[event.visit]
        if visit.take(event, every, offered, min(settings.slots, len(added))) and visit.steps:
            ended.append(visit)
    if not ended:
        raise ValueError("no visit of the events has ended: close visits, or judge by others")
    left_out, why = Counter(visit.unfit for visit in ended if visit.unfit), ""
    if left_out.total() > MOST_LEFT_OUT * len(ended):
        left_out, why = (
            Counter(),
            "; ".join(f"in {number} of {len(ended)} visits {each}" for each, number in left_out.items()),
        )
    kept = [visit for visit in ended if why or not visit.unfit]
    rows = ((visit.rewards[a], *step) for visit in kept for a, step in visit.steps.items())
    return LoggedSteps._make(
        [
            np.cumsum([0, *(len(visit.steps) for visit in kept)]),
            *map(np.array, zip(*rows, strict=True)),
            left_out,
            why,
        ]
    )


class _LoggedVisit:
    def __init__(self, settings: ShopSettings, products: dict[str, int], first: Event) -> None:
        self._settings, self._products = settings, products
        self._customer = settings.customer.encode_stored(first.features)
        self._answers: dict[int, float] = {}  # 1 or -1 by product
        self.steps: dict[int, tuple[Any, ...]] = {}  # by product, as the columns of `LoggedSteps` after the reward
        self.rewards: dict[int, float] = {}  # by product
        self.unfit = ""  # why nothing can be judged by it
        self._over = False

    def take(self, event: Event, draws: Draws, offered: Bools, enough: int) -> bool:
        """Take an event, and return whether the visit ends with it: it is closed, or has enough answers."""
        if self._over:
            return False
        if event.product and event.product not in self._products:  # which is not learned from either
            self.unfit = UNKNOWN
        elif event.kind == "recommended":
            if not 0 < (event.propensity or 0) <= 1:
                self.unfit = WITHOUT
            elif self.steps and event.sample is not None and event.agreeing is None:
                self.unfit = EARLIER
            a = self._products[event.product]
            self.rewards[a] = self._settings.reward.unanswered or 0.0
            self.steps[a] = self._step(event, draws, offered)
        elif event.kind == "answered" and (a := self._products[event.product]) in self.steps:
            self.rewards[a] = event.reward or 0.0
            self._answers[a] = 1.0 if self.rewards[a] > self._settings.reward.liked_above else -1.0
        self._over = event.kind == "closed" or (event.kind == "answered" and len(self._answers) >= enough)
        return self._over

    def _step(self, event: Event, draws: Draws, offered: Bools) -> tuple[Any, ...]:
        """Return what the samples would have shown when a product was shown, and what they expect of it."""
        a, allowed = self._products[event.product], offered.copy()
        if event.among is not None:
            allowed &= np.isin(np.arange(len(allowed)), [self._products.get(name, -1) for name in event.among])
        allowed[list(self.steps)] = False
        allowed[a] = True  # also if it was removed in this moment
        known = [product for product in self.steps if product in self._answers]  # in order of slots
        u = customer_row(draws, self._customer, known, [self._answers[n] for n in known], len(self.steps))
        best, *_ = best_by_sample(draws, u, allowed)
        chosen, told = best[1:], np.flatnonzero(u)
        value = (
            draws.base[min(len(self.steps), self._settings.slots)]
            + u[told] @ draws.weight[0][np.ix_(told, np.append(a, chosen))]
        )
        return event.propensity or np.nan, (chosen == a).astype(np.float64), float(value[0]), value[1:]


HINT = "show products at random to some of your visitors, and log the probability of what is shown as propensity"
UNKNOWN = "a product was shown that was never added: add it before it is shown"
WITHOUT = f"a product was shown without a propensity above 0 and up to 1: {HINT}"
EARLIER = (
    "an earlier version of this service filled later slots, with propensities that ignored the slots before: give "
    "judge the events of later visits alone"
)
# What visits that are left out would have said is not known. If they are a share p of all, the value of the others
# is off by p times the difference between both: with a tenth, by at most a tenth of the value
# if they are worth between nothing and twice as much, which is less than most logs can tell.
MOST_LEFT_OUT = 0.1


# ---- the estimates ------------------------------------------------------------------------------------------
#
# A visit e has a weight after each of its slots: the mean over samples of the product of 1 / propensity up to
# there, or 0 from the first slot on in which the sample would have shown another product. Weights have an expected
# value of 1. Rewards of every slot are weighted, and divided by the sum of the weights of this slot. The doubly
# robust estimate weights what the model of the posterior mean gets wrong, and adds its values of first slots:
#
#     value = mean of first + sum over slots t of (sum over visits of weight_t error_t) / (sum of weight_t)
#
# This model comes from other visits. It need not be right, since weights correct it. Fitted Q evaluation, which
# relies on such a model alone, was too low, and is not offered.

LEAST_VISITS = 50  # effective visits
LEAST_REWARDS = 10  # visits that make up the spread of the estimate, see `_estimate`
DEVIATION = 0.3, 2.5  # by how much the mean of weights may differ from 1: in all, and in standard errors
LARGEST_LOG, SMALLEST_DIVISOR = 300.0, 1e-300  # of the logarithm of a weight; of a divisor


def value_of_samples(steps: LoggedSteps, level: float) -> SampleValue:
    """Return the value of a policy that draws one of the samples for each visit, by visits of other policies."""
    if steps.why:
        return SampleValue({}, None, steps.why)
    row = rows_by_step(steps.start)
    with np.errstate(divide="ignore"):
        ratio = np.log(steps.chance) - np.log(steps.propensity)[:, None]
    logs = np.cumsum(by_step(row, ratio), axis=1)  # a visit that has ended keeps its weights
    # They are finite, so that those of very long visits are too small, which their mean tells.
    weight = np.exp(np.minimum(logs, LARGEST_LOG)) / steps.chance.shape[1]
    each = weight.sum(axis=2)
    total = each.sum(axis=0)
    effective = float(total[-1] ** 2 / np.square(each[:, -1]).sum()) if total[-1] > 0 else 0.0
    if effective < LEAST_VISITS:
        return SampleValue(
            {},
            effective,
            f"visits in which it would have shown the same products count as {effective:.1f} visits, and "
            f"{LEAST_VISITS} are needed: log more visits, or with policies that are closer to the recommender",
        )
    mean, error = each.mean(axis=0), each.std(axis=0) / math.sqrt(len(each))
    if (wrong := np.abs(mean - 1) > np.minimum(DEVIATION[0], DEVIATION[1] * error) + 1e-6).any():
        slot = int(np.argmax(wrong))
        return SampleValue(
            {},
            effective,
            f"the weights of slot {slot} have the mean {mean[slot]:.2f}, and should have 1: the recommender shows "
            f"products that the log could not have shown, or propensities are wrong: {HINT}",
        )
    following = np.roll(steps.chosen_value, -1, axis=0)
    following[steps.start[1:] - 1] = 0.0
    wrong_by = steps.reward[:, None] + following - steps.shown_value[:, None]
    terms = (weight * by_step(row, wrong_by)).sum(axis=2)
    first = steps.chosen_value[steps.start[:-1]].mean(axis=1)
    plain, spread_over = _estimate(each, each * by_step(row, steps.reward), np.zeros(len(each)), level)
    if spread_over < LEAST_REWARDS:
        return SampleValue(
            {},
            effective,
            f"its estimate rests on the rewards of {spread_over:.1f} visits, and {LEAST_REWARDS} are needed: log "
            "more visits, since rewards are rare",
        )
    robust, _ = _estimate(each, terms, first, level)
    return SampleValue({WEIGHTED: plain, ROBUST: robust}, effective, "")


def _estimate(weight: Floats, terms: Floats, first: Floats, level: float) -> tuple[Interval, float]:
    """Return the estimate of weighted terms (E, T), and how many visits make up its spread.

    If d is what each of the visits adds to the error of the estimate, (sum of d^2)^2 / (sum of d^4) visits make up
    the spread: all of them if these are of one size, and as many as have a reward if few have one. So many, less
    one, are the degrees of freedom of Student's interval.
    """
    total = weight.sum(axis=0)
    value, parts = weighted_sum(weight / total, terms / total, first)
    squares = np.square(parts / max(float(np.abs(parts).max()), SMALLEST_DIVISOR))
    count = float(squares.sum() ** 2 / max(float(np.square(squares).sum()), SMALLEST_DIVISOR))
    return student_interval(value, parts, count, level), count
