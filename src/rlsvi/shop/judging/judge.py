"""The estimates: the recommender learns from one half of the visits and is judged by the other, and back."""

import math
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student_t

from rlsvi.core.checks import shown
from rlsvi.core.compile import Floats
from rlsvi.core.interval import Interval
from rlsvi.offline.log import LoggedEpisodes
from rlsvi.offline.off_policy import OffPolicyProblem
from rlsvi.offline.value import (
    FEW,
    FITTED,
    ROBUST,
    WEIGHTED,
    EpisodeWeights,
    OfflineValue,
    divergence,
    interval_of,
    sum_estimate,
    weighted_estimate,
)
from rlsvi.shop.catalogue import with_features
from rlsvi.shop.events import Event, Events, row_of
from rlsvi.shop.judging.fitted import FittedSamples, fitted_samples
from rlsvi.shop.judging.visits import JudgedSteps, steps_of
from rlsvi.shop.model.learner import ShopLearner
from rlsvi.shop.requests import a_list, an_instance
from rlsvi.shop.settings import ShopSettings

AT_ONCE = 20_000  # events that are read at once
UNCALIBRATED = (
    f"{FITTED}: its interval takes a linear model as true and is not calibrated; with the paper's customers\n"
    f"it was too low. Trust estimates by propensities from {FEW} effective visits on, and a trial more than any"
)


class ShopValue(NamedTuple):
    """Estimates of the reward per visit, each with its interval."""

    logged: Interval  # of the policy that made the events
    halves: tuple[OfflineValue, OfflineValue]  # by the first half of the visits, and by the second

    @property
    def estimates(self) -> dict[str, Interval]:
        """The mean of both halves, by every estimator that both have. They are independent given the policies."""
        first, second = (half.estimates for half in self.halves)
        return {name: _mean(first[name], second[name]) for name in first if name in second}

    def __str__(self) -> str:
        known = {"the policy of the log": self.logged, **self.estimates}
        lines = [f"{name:<30}{interval}" for name, interval in known.items()]
        effective = [half.effective for half in self.halves if half.effective is not None]
        notes = [f"{sum(half.episodes for half in self.halves)} visits"]
        notes += [f"{sum(effective):.1f} effective visits of importance sampling"] if effective else []
        notes += [UNCALIBRATED] if FITTED in self.estimates else []
        notes += [f"{name}: {why}" for half in self.halves for name, why in half.absent.items()]
        level = f"reward per visit, with {100 * self.halves[0].level:g}% intervals"
        return "\n".join([level, *lines, *dict.fromkeys(notes)])


def judge(
    settings: ShopSettings, events: Iterable[Event] | Events | None = None, *, level: float = 0.95
) -> ShopValue:
    """Estimate the reward per visit of the recommender, from events that another policy has made.

    What is judged is the recommender as it serves: every visit draws one of the samples of the posterior, and
    keeps it. A sample chooses among the products that were offered at the time, and in `among` if that is known.

    The visits are split in two halves, in the order in which they began. The samples that are judged by each half
    are learned from the other one, so nothing is judged by the data that it was fitted to. Visits that have not
    ended are left out.

    Parameters
    ----------
    settings : the settings of the shop.
    events : the events, in order. If None, those of the shop's database.
    level : the probability of the intervals.

    Returns
    -------
    Estimates by fitted Q evaluation and, if every recommendation has a propensity, by importance sampling and the
    doubly robust one. The interval of fitted Q evaluation is not calibrated: it takes a linear model of the rest
    of a visit as true. With the paper's customers, shown 4 of 8 products at random in 500 visits, the value was
    too low in 8 of 8 logs, and a 95% interval contained the truth in one. The other estimates need no such model,
    but at least 100 effective visits.
    """
    an_instance("settings", settings, ShopSettings, 'a ShopSettings, such as ShopSettings.from_toml("shop.toml")')
    if isinstance(level, bool) or not isinstance(level, int | float | np.number) or not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, such as 0.95, got {shown(level)}")
    if events is None:
        with Events(settings.database, create=False) as opened:
            return judge(settings, opened, level=level)
    stored = with_features(_all_of(events), settings)
    begun = list(dict.fromkeys(event.visit for event in stored if event.visit))
    if len(begun) < 4:
        raise ValueError(f"events must have at least 4 visits, to learn from one half of them, got {len(begun)}")
    halves = set(begun[: len(begun) // 2]), set(begun[len(begun) // 2 :])
    found, returns = zip(*(_judged(settings, stored, halves[1 - i], level) for i in (0, 1)), strict=True)
    return ShopValue(_student(np.concatenate(returns), level), found)


def _all_of(events: Iterable[Event] | Events) -> list[Event]:
    found: list[Event] = []
    if not isinstance(events, Events):
        for event in a_list("events", events, "Event"):
            row_of(event)  # which checks it
            found.append(event)
        return found
    while some := events.since(found[-1].id if found else 0, AT_ONCE):
        found += some
    return found


def _mean(a: Interval, b: Interval) -> Interval:
    value = (a.value + b.value) / 2
    return Interval(
        value,
        value - math.hypot(a.value - a.low, b.value - b.low) / 2,
        value + math.hypot(a.high - a.value, b.high - b.value) / 2,
    )


def _student(returns: Floats, level: float) -> Interval:
    """Return the mean of the rewards of visits, with Student's interval."""
    mean, n = float(returns.mean()), returns.size
    wide = float(student_t.ppf((1 + level) / 2, n - 1) * returns.std(ddof=1) / math.sqrt(n)) if n > 1 else math.inf
    return Interval(mean, mean - wide, mean + wide)


def _judged(
    settings: ShopSettings, events: list[Event], learned: set[str], level: float
) -> tuple[OfflineValue, Floats]:
    """Return what the visits that are not in `learned` say of the policy learned from those, and their rewards."""
    learner = ShopLearner(settings)
    for event in events:
        if not event.visit or event.visit in learned:
            learner.take(event)
    draws, products = learner.refresh(), learner.products
    del learner  # which has the size of the posterior
    steps = steps_of(settings, products, draws, (event for event in events if event.visit not in learned))
    return value_of_samples(steps, settings.slots, level), np.add.reduceat(steps.reward, steps.start[:-1])


def value_of_samples(steps: JudgedSteps, slots: int, level: float) -> OfflineValue:
    """Return the value of a policy that draws one of the samples for each visit, by steps of other policies."""
    problem, estimates, absent = _problem(steps, slots), dict[str, Interval](), dict[str, str]()
    found = fitted_samples(steps, problem, level)
    if why := divergence(problem, found.fitted):
        absent[FITTED] = why
    else:
        estimates[FITTED] = interval_of(found.fitted, steps.visits)
    effective = None
    if steps.propensity is None:
        absent |= dict.fromkeys((WEIGHTED, ROBUST), "not every recommendation has a propensity")
    else:
        effective = _add_weighted(steps, found, level, estimates, absent)
    return OfflineValue(
        estimates, absent, level, 1.0, slots, steps.visits, len(steps.shown), effective, found.fitted.untried
    )


def _problem(steps: JudgedSteps, slots: int) -> OffPolicyProblem:
    """Return the problem of the value of an episode of so many slots, without observations: they are features."""
    none: Any = None
    rows = np.arange(len(steps.shown))
    never = np.zeros(len(rows), np.bool_)
    log = LoggedEpisodes(
        steps.start, none, none, steps.shown, steps.reward, steps.last, never, none, none, steps.propensity, rows
    )
    return OffPolicyProblem(log, none, none, 1.0, slots, per_period=False)


def _add_weighted(
    steps: JudgedSteps, found: FittedSamples, level: float, estimates: dict[str, Interval], absent: dict[str, str]
) -> float:
    """Add the estimates that need propensities, and return the effective number of visits.

    A visit has a weight for every sample: the product over its steps of 1 / propensity, or 0 from the first step
    on in which the sample would have shown another product. Weights add up to one over visits and samples.
    """
    lengths = np.diff(steps.start)
    slot = np.arange(lengths.max())
    row = np.where(slot < lengths[:, None], steps.start[:-1, None] + slot, -1)
    same = steps.chosen == steps.shown[:, None]
    ratio = np.where(same, -np.log(np.asarray(steps.propensity))[:, None], -np.inf)
    logs = np.cumsum(np.where(row[:, :, None] < 0, 0.0, ratio[row]), axis=1)  # (E, T, S)
    top = logs.max(axis=(0, 2))[:, None]
    share = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
    total = share.sum(axis=(0, 2))
    share /= np.where(total > 0, total, 1.0)[:, None]
    weights = EpisodeWeights(share.sum(axis=2), row, np.ones(row.shape[1]))
    reached, nothing = int(weights.followed.sum()), np.zeros(steps.visits)
    if reached < row.shape[1]:
        absent[WEIGHTED] = f"no visit shows what a sample would show in more than {reached} slots"
    else:
        estimates[WEIGHTED] = weighted_estimate(weights, steps.reward, nothing, level)
    if FITTED in absent:
        absent[ROBUST] = "it needs fitted Q evaluation"
    elif not reached:
        absent[ROBUST] = "no visit begins with a product that a sample would show"
    else:
        error = np.where(row[:, :, None] < 0, 0.0, found.error[row])
        first, terms = found.fitted.first, (share * error).sum(axis=2)
        size = float(np.abs(first).max() + np.abs(error).max(axis=(0, 2)).sum())
        estimates[ROBUST] = sum_estimate(weights, terms, size, first, level)
    if reached and weights.effective < FEW:
        warnings.warn(
            f"importance sampling rests on {weights.effective:.1f} effective visits of {steps.visits}: the "
            "recommender differs much from the policy that made the events. Trust these intervals less",
            stacklevel=2,
        )
    return weights.effective
