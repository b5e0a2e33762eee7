"""What a shop's recommender would earn, judged by the events of the past before it serves any customer.

The recommender learns from one half of the visits and is judged by the other, and back.
"""

import math
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_matrix

from rlsvi.core.checks import shown
from rlsvi.core.compile import Bools, Floats, Longs
from rlsvi.core.interval import Interval
from rlsvi.offline.fitted import Fitted, fit_folds, half_width, weight_scales
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
from rlsvi.shop.model.draws import Draws, best_by_sample, customer_row
from rlsvi.shop.model.learner import ShopLearner
from rlsvi.shop.requests import check_type, list_of
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
    check_type("settings", settings, ShopSettings, 'a ShopSettings, such as ShopSettings.from_toml("shop.toml")')
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
    found, returns = zip(*(_value_of_half(settings, stored, halves[1 - i], level) for i in (0, 1)), strict=True)
    return ShopValue(_student(np.concatenate(returns), level), found)


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
    value = (a.value + b.value) / 2
    return Interval(
        value,
        value - math.hypot(a.value - a.low, b.value - b.low) / 2,
        value + math.hypot(a.high - a.value, b.high - b.value) / 2,
    )


def _student(returns: Floats, level: float) -> Interval:
    """Return the mean of the rewards of visits, with Student's interval."""
    mean, n = float(returns.mean()), returns.size
    wide = float(stats.t.ppf((1 + level) / 2, n - 1) * returns.std(ddof=1) / math.sqrt(n)) if n > 1 else math.inf
    return Interval(mean, mean - wide, mean + wide)


def _value_of_half(
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


# ---- past visits as steps -----------------------------------------------------------------------------------


class LoggedSteps(NamedTuple):
    """Recommendations that were answered, in visits that have ended; visit e has start[e] .. start[e + 1] - 1.

    Memory is that of the answers of every visit, and a number for each sample: none is as large as the catalogue.
    """

    start: Longs  # (E + 1,)
    features: Any  # (R, d) sparse: what was known, u of `Sizes`, and the slot, scaled to between -1 and 1
    shown: Longs  # (R,) the product
    reward: Floats  # (R,)
    propensity: Floats | None  # (R,) None if it is not known of all
    chosen: Longs  # (R, S) the product that each sample would have shown
    products: int  # N

    @property
    def visits(self) -> int:
        """The number of visits."""
        return len(self.start) - 1

    @property
    def last(self) -> Bools:
        """Which steps are the last of their visits, (R,)."""
        found = np.zeros(len(self.shown), np.bool_)
        found[self.start[1:] - 1] = True
        return found


class _Step(NamedTuple):
    """A recommendation: what was known, what was shown, and what each sample would have shown."""

    places: Longs  # where the features are not zero
    value: Floats
    product: int
    propensity: float | None
    chosen: Longs


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
    ended: list[list[tuple[_Step, float]]] = []
    added: set[str] = set()
    for event in events:
        if event.kind in ("added", "removed"):
            offered[products[event.product]] = event.kind == "added"
            added.add(event.product)
            continue
        if event.product and event.product not in products:  # it was never added: it is not learned from either
            continue
        visit = visits.get(event.visit)
        if visit is None:
            visit = visits[event.visit] = _LoggedVisit(settings, products, event)
        if visit.take(event, every, offered, min(settings.slots, len(added))):
            ended.append(visit.rewarded_steps())
            visit.steps.clear()
    return _join([visit for visit in ended if visit], every)


class _LoggedVisit:
    """A visit on its way to its end."""

    def __init__(self, settings: ShopSettings, products: dict[str, int], first: Event) -> None:
        self._settings, self._products = settings, products
        self._customer = settings.customer.encode_stored(first.features)
        self._answers: dict[int, float] = {}  # 1 or -1 by product
        self.steps: dict[int, tuple[_Step, float | None]] = {}  # with the reward, by product
        self._over = False

    def take(self, event: Event, draws: Draws, offered: Bools, enough: int) -> bool:
        """Take an event, and return whether the visit ends with it: it is closed, or has enough answers."""
        if self._over:
            return False
        if event.kind == "recommended":
            self.steps[self._products[event.product]] = self._step(event, draws, offered), None
        elif event.kind == "answered" and (a := self._products[event.product]) in self.steps:
            self.steps[a] = self.steps[a][0], event.reward or 0.0
            self._answers[a] = 1.0 if (event.reward or 0.0) > self._settings.reward.liked_above else -1.0
        elif event.kind == "closed":
            for a, (step, reward) in self.steps.items():
                self.steps[a] = step, self._settings.reward.unanswered if reward is None else reward
        self._over = event.kind == "closed" or (event.kind == "answered" and len(self._answers) >= enough)
        return self._over

    def rewarded_steps(self) -> list[tuple[_Step, float]]:
        """Return the steps that have a reward, with it."""
        return [(step, reward) for step, reward in self.steps.values() if reward is not None]

    def _step(self, event: Event, draws: Draws, offered: Bools) -> _Step:
        """Return what was known when a product was shown, and what the samples would have shown."""
        a, allowed = self._products[event.product], offered.copy()
        if event.among is not None:
            allowed[:] = False
            among = [self._products[name] for name in event.among if name in self._products]
            allowed[among] = offered[among]
        allowed[list(self.steps)] = False
        allowed[a] = True  # also if it was removed in this moment
        u = customer_row(draws, self._customer, list(self._answers), list(self._answers.values()))
        chosen, _ = best_by_sample(draws, u, 0, allowed)
        features = np.append(u, 2.0 * (event.slot or 0) / self._settings.slots - 1)
        index = np.flatnonzero(features)
        return _Step(index, features[index], a, event.propensity, chosen[1:].astype(np.int32))


def _join(visits: list[list[tuple[_Step, float]]], draws: Draws) -> LoggedSteps:
    """Return the steps of all visits in arrays."""
    if not visits:
        raise ValueError("no visit of the events has ended: close visits, or judge by others")
    steps = [step for visit in visits for step, _ in visit]
    known = all(step.propensity is not None for step in steps)
    indptr = np.cumsum([0, *(len(step.places) for step in steps)])
    parts = np.concatenate([step.value for step in steps]), np.concatenate([step.places for step in steps]), indptr
    _, e, N = draws.weight.shape
    return LoggedSteps(
        np.cumsum([0, *map(len, visits)]),
        csr_matrix(parts, shape=(len(steps), e + 1)),
        np.array([step.product for step in steps]),
        np.array([reward for visit in visits for _, reward in visit]),
        np.array([step.propensity for step in steps], dtype=np.float64) if known else None,
        np.array([step.chosen for step in steps]),
        N,
    )


# ---- fitted Q evaluation of S samples at once ---------------------------------------------------------------
#
# Each sample s is a policy that shows chosen[:, s]. Its values Q_h(i, a) = phi(i) . theta[h, a] solve
#
#     (Phi_a' Phi_a + ridge I) theta[h, a] = Phi_a' (r + Q_{h+1} of what follows, with the choice of s)
#
# for every product a, where Phi_a has the features of the steps in which a was shown. A visit draws a sample at
# random, so the value is the mean over samples. The interval is that of `offline.fitted`: errors are carried to
# the first slot, divided by 1 - leverage, summed over each visit, and the prior adds its own uncertainty. The
# solver is another one: features are sparse, and products are solved one after another, so that memory grows with
# the answers alone.

RIDGE = 0.1  # the precision of the prior of a weight, in steps


class FittedSamples(NamedTuple):
    """The mean over samples, and what the doubly robust estimate needs of each."""

    fitted: Fitted
    error: Floats  # (R, S) r + V(next) - Q of every step, by a model of other visits


class _Model(NamedTuple):
    """The features of steps by product shown, and by what each sample shows next, and factors of the precision."""

    taken: Any  # (R, N d)
    after: list[Any]  # S of (R, N d)
    factors: dict[int, Any]  # of the products that were shown
    size: int  # d

    def solve(self, y: Floats) -> Floats:
        """Return P^-1 y for right-hand sides (N d, S)."""
        found = y / RIDGE
        for a, factor in self.factors.items():
            part = slice(a * self.size, (a + 1) * self.size)
            found[part] = cho_solve(factor, y[part], check_finite=False)
        return found

    def following(self, theta: Floats) -> Floats:
        """Return the value of what follows each step under each sample, (R, S)."""
        return np.stack([after @ theta[:, s] for s, after in enumerate(self.after)], axis=1)

    def weights(self, reward: Floats, horizon: int) -> Floats:
        """Return theta_h of every slot and zeros after the last, (H + 1, N d, S)."""
        theta = np.zeros((horizon + 1, self.taken.shape[1], len(self.after)))
        for h in reversed(range(horizon)):
            theta[h] = self.solve(self.taken.T @ (reward[:, None] + self.following(theta[h + 1])))
        return theta

    def errors(self, reward: Floats, theta: Floats, h: int) -> Floats:
        """Return r + V(next) - Q of every step, as if all were in slot h, (R, S)."""
        found: Floats = reward[:, None] + self.following(theta[h + 1]) - self.taken @ theta[h]
        return found


def fitted_samples(steps: LoggedSteps, problem: OffPolicyProblem, level: float) -> FittedSamples:
    """Return the value, its interval, and what the doubly robust estimate needs."""
    model, E, R = _model(steps, np.ones(len(steps.shown), np.bool_)), steps.visits, len(steps.shown)
    theta = model.weights(steps.reward, problem.horizon)
    first = _first(steps, theta[0]).mean(axis=1)
    value, visit = float(first.mean()), np.repeat(np.arange(E), np.diff(steps.start))
    influence, prior = _influences(steps, model, theta, problem.horizon)
    untried = float(np.isin(steps.chosen, list(model.factors), invert=True).mean())
    prior, leverage = prior * weight_scales(problem, steps.features), _leverages(steps, model)
    half = half_width(influence, leverage, visit, first, prior, level, untried)
    error = _own_errors(steps, model, theta, problem)

    def refit(mine: Bools, left_out: Bools) -> tuple[Floats, Floats]:
        theta = _model(steps, ~mine).weights(np.where(mine, 0.0, steps.reward), problem.horizon)
        found = _first(steps, theta[0])[left_out].mean(axis=1)
        return found, _own_errors(steps, model, theta, problem)[mine]

    if steps.propensity is not None:
        fit_folds(problem.log, np.arange(R), first, error, refit)
    return FittedSamples(Fitted(value, value - half, value + half, first, np.zeros(R), untried), error)


def _block_features(features: Any, products: Longs, rows: Bools, count: int) -> Any:
    """Return features at the columns of the product of each row, (R, count d); nothing in the other rows."""
    R, d = features.shape
    lengths = np.where(rows, np.diff(features.indptr), 0)
    kept = np.repeat(rows, np.diff(features.indptr))
    columns = features.indices[kept] + d * np.repeat(products, lengths)
    return csr_matrix((features.data[kept], columns, np.append(0, np.cumsum(lengths))), shape=(R, count * d))


def _model(steps: LoggedSteps, used: Bools) -> _Model:
    """Return the model of some steps; the others have no features, and what follows them does not matter."""
    d, N, goes_on = steps.features.shape[1], steps.products, used & ~steps.last
    following = np.append(np.arange(1, len(used)), 0)
    next_features = steps.features[following]
    after = [_block_features(next_features, chosen[following], goes_on, N) for chosen in steps.chosen.T]
    factors = {}
    for a in np.unique(steps.shown[used]).tolist():
        x = steps.features[np.flatnonzero(used & (steps.shown == a))]
        factors[a] = cho_factor((x.T @ x).toarray() + RIDGE * np.eye(d), lower=True)
    return _Model(_block_features(steps.features, steps.shown, used, N), after, factors, d)


def _first(steps: LoggedSteps, theta: Floats) -> Floats:
    """Return the value of the first step of each visit under each sample, (E, S)."""
    rows, first = np.zeros(len(steps.shown), np.bool_), steps.start[:-1]
    rows[first] = True
    return np.stack(
        [
            (_block_features(steps.features, chosen, rows, steps.products) @ theta[:, s])[first]
            for s, chosen in enumerate(steps.chosen.T)
        ],
        axis=1,
    )


def _influences(steps: LoggedSteps, model: _Model, theta: Floats, horizon: int) -> tuple[Floats, Floats]:
    """Return how the value changes with the weight of each step, (R,), and with the prior in each slot, (H,)."""
    R, S = steps.chosen.shape
    unknown, first = _prior_uncertainty(steps, model), np.zeros(R)
    first[steps.start[:-1]] = 1.0 / steps.visits
    rows = first > 0
    at_first = [_block_features(steps.features, chosen, rows, steps.products) for chosen in steps.chosen.T]
    visits = np.stack([features.T @ first for features in at_first], axis=1)
    influence, prior = np.zeros(R), np.zeros(horizon)
    prior[0] = (first @ unknown).mean()
    following = np.where(steps.last[:, None], 0.0, np.roll(unknown, -1, axis=0))
    for h in range(horizon):
        weight = model.taken @ model.solve(visits)
        influence += (weight * model.errors(steps.reward, theta, h)).mean(axis=1)
        visits = np.stack([after.T @ weight[:, s] for s, after in enumerate(model.after)], axis=1)
        if h + 1 < horizon:
            prior[h + 1] = (weight * following).sum() / S
    return influence, prior


def _own_errors(steps: LoggedSteps, model: _Model, theta: Floats, problem: OffPolicyProblem) -> Floats:
    """Return r + V(next) - Q of every step in its own slot, (R, S)."""
    number, found = problem.step, np.zeros(steps.chosen.shape)
    for h in range(min(problem.horizon, int(number.max()) + 1)):
        at = number == h
        found[at] = model.errors(steps.reward, theta, h)[at]
    return found


def _leverages(steps: LoggedSteps, model: _Model) -> Floats:
    found = np.zeros(len(steps.shown))
    for a, factor in model.factors.items():
        mine = np.flatnonzero(steps.shown == a)
        x = steps.features[mine].toarray()
        found[mine] = np.einsum("id,di->i", x, cho_solve(factor, x.T, check_finite=False))
    return found


def _prior_uncertainty(steps: LoggedSteps, model: _Model) -> Floats:
    """Return ridge |P^-1 phi| of every step at the product that each sample would show there, (R, S)."""
    found = np.zeros(steps.chosen.shape)
    for a in np.unique(steps.chosen).tolist():
        chosen = steps.chosen == a
        mine = np.flatnonzero(chosen.any(axis=1))
        x, factor = steps.features[mine].toarray(), model.factors.get(a)
        solved = x if factor is None else RIDGE * cho_solve(factor, x.T, check_finite=False).T
        found[mine] += chosen[mine] * np.sqrt(np.square(solved).sum(axis=1))[:, None]
    return found


# ---- the estimates ------------------------------------------------------------------------------------------


def value_of_samples(steps: LoggedSteps, slots: int, level: float) -> OfflineValue:
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


def _problem(steps: LoggedSteps, slots: int) -> OffPolicyProblem:
    """Return the problem of the value of an episode of so many slots, without observations: they are features."""
    none: Any = None
    rows = np.arange(len(steps.shown))
    never = np.zeros(len(rows), np.bool_)
    log = LoggedEpisodes(
        steps.start, none, none, steps.shown, steps.reward, steps.last, never, none, none, steps.propensity, rows
    )
    return OffPolicyProblem(log, none, none, 1.0, slots, per_period=False)


def _add_weighted(
    steps: LoggedSteps, found: FittedSamples, level: float, estimates: dict[str, Interval], absent: dict[str, str]
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
