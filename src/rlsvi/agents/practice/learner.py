"""The learner of the practice agent: a counted history, and one regression over all of it."""

import logging
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.contract import EPISODES, STEPS, DivergenceWarning, Place, Step, warn
from rlsvi.agents.noise import Model
from rlsvi.agents.practice.empirical_bayes import empirical_prior
from rlsvi.agents.practice.episodes import EpisodeHistory
from rlsvi.agents.practice.history import END, CountedHistory
from rlsvi.agents.practice.length_scale import rescaled
from rlsvi.agents.practice.lookup import Lookup, Policy, counted_policy, feature_policy
from rlsvi.agents.practice.regression import FeatureRegression, Regression, TableRegression
from rlsvi.agents.practice.repeat import proposed_repeat
from rlsvi.agents.practice.value_iteration import (
    History,
    SweptValues,
    attainable,
    sweep,
    targets,
    usual_reward,
    values_of,
)
from rlsvi.agents.task import Task
from rlsvi.core.blas import one_thread
from rlsvi.core.compile import Floats, Words
from rlsvi.core.regression import FactorError

FAR = 10  # multiple of the largest plausible value beyond which values have diverged
TRIALS = 6  # ridges to try, each ten times the one before, when values diverge
MEAN_SWEEPS = 10  # multiple of the maximum number of sweeps, for the posterior mean
MANY = 5000  # steps up to which every episode has a plan of its own
SHARE = 0.05  # growth of the data after which to plan again then, with features
SLACK = 0.25  # of the memory, by which it may be exceeded before the oldest steps are dropped
RESCALINGS, RECOVERIES, PLANNED, SCALED, REPEAT = 2, 3, 4, 5, 6  # indices in BoundedLearner.counters
UNBOUNDED = -np.inf, np.inf
log = logging.getLogger("rlsvi")


class Planning(NamedTuple):
    """The prior of the weights, and the settings of value iteration."""

    noise: tuple[float, float, float, float, float]  # ridge, sigma, shape, scale, gamma
    bounds: Any  # of the targets: "attainable", two numbers, or None
    most: int  # maximum number of sweeps of a sample
    tolerance: float
    mean: float | None  # None: 0, or with a table by evidence, the mean of the cells tried
    alike: float
    by_evidence: bool  # whether the ridge of a table comes from the evidence (empirical_bayes.py)
    in_usual_rewards: bool  # whether the noise scale is in units of the squared usual reward
    trace: float | None  # lambda of the returns, with features; None: as for `BoundedLearner.trace`
    memory: int | None  # most steps to keep, with features
    repeat: int | None  # how long actions are held; None: by rule


class BoundedLearner:
    """One regression over the complete history. Learning returns a new learner and leaves this one unchanged."""

    def __init__(self, task: Task, lookup: Lookup, width: int, planning: Planning) -> None:
        self.task, self.lookup, self.planning = task, lookup, planning
        self.begin = planning.mean or 0.0
        self.history: History = (CountedHistory if lookup.table else EpisodeHistory)(width, lookup.actions)
        self.regression: Regression | None = None
        self.theta: Floats | None = None  # (A, d), or (A, rows) with a table; None: the prior mean
        self.start: Floats | None = None  # (N, A) values where sweeps start, if theta is for other features
        self.planned: SweptValues | None = None  # the last plan
        # Episodes, steps, rescalings, recoveries, steps at the last plan and scaling, how long actions are held.
        self.counters = np.array([0, 0, 0, 0, 0, 0, planning.repeat or 1], np.int64)

    @property
    def trace(self) -> float:
        """Lambda of the returns; docs/practice-evidence.md has the measurements that it was chosen by."""
        if self.planning.trace is not None:
            return self.planning.trace
        return 0.8 if self.lookup.waves is not None and self.counters[REPEAT] == 1 else 0.5

    def look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """Convert an observation to a row of the history, after checking it."""
        legal, x = self.task.legal(mask), self.lookup.row(observation)
        if len(x) != self.history.x.shape[1]:
            raise ValueError(
                f"the basis gives {len(x)} features of an observation, the agent has learned with "
                f"{self.history.x.shape[1]}: keep to the basis it has learned with"
            )
        known = None if learning or mask is not None else self.history.find(x)
        return Place(h, observation, legal if known is None else self.history.legal[known], x=x)

    def plan(self, sampled: bool, stream: Words, learning: bool = False) -> SweptValues | None:
        """Return a sample of the posterior, or its mean, which is computed once and kept."""
        if self.regression is None:
            return None
        if learning and sampled and self.theta is not None and not self._is_due():
            return self.planned or SweptValues(self.theta, self._values(), 0, 0.0, 0.0, 0.0, (0.0, 0.0))
        with one_thread():
            return self._plan(stream if sampled else None, self.planning.most * (1 if sampled else MEAN_SWEEPS))

    def values(self, plan: SweptValues | None, place: Place) -> Floats:
        """Return Q of every action."""
        if plan is None:
            return np.full(self.lookup.actions, self.begin)
        if self.lookup.table:
            i = self.history.find(place.x)
            known = i is not None and i < plan.theta.shape[1]
            return plan.theta[:, i] if known else np.full(self.lookup.actions, self.begin)
        Q: Floats = plan.theta @ self.lookup.features(place.x[None])[0]
        return Q

    def remember(self, steps: list[Step], plan: SweptValues | None, ended: bool) -> "BoundedLearner":
        """Return a learner that includes these transitions; this one stays unchanged, even if an error occurs."""
        later = copy(self)
        later.lookup, later.history = copy(self.lookup), self.history.copy()
        later.regression = self.regression.copy() if self.regression is not None else None
        later.counters = self.counters + np.array([ended, len(steps), 0, 0, 0, 0, 0])
        if plan is not None and plan.theta is not self.theta:
            later.planned, later.theta, later.start = plan, plan.theta, None
            later.counters[RECOVERIES] += plan.recoveries
            later.counters[PLANNED] = self.counters[STEPS]
        with one_thread():
            later._learn(steps, ended)
        return later

    def _is_due(self) -> bool:
        """Return whether to plan again: the data have grown by a share, or the features have changed."""
        _, steps, _, _, planned, scaled, _ = self.counters
        return bool(self.lookup.table or scaled > planned or steps < MANY or steps - planned > SHARE * planned)

    def _learn(self, steps: list[Step], ended: bool) -> None:
        """Add transitions. The regression is then as if the features had always been the present ones."""
        history, before, places = self.history, len(self.history.x), []
        for place, action, reward, following in steps:
            row = history.row(place.x, place.legal)
            then = END if following is None else history.row(following.x, following.legal)
            places.append(history.add(row, action, reward, then))
        if isinstance(history, EpisodeHistory):
            if ended:
                history.end_episode()
                self._decide_repeat(history)
            self._change_features(history, before)
        if self.regression is None:
            self.build()
        else:
            self.regression.extend(history.x[before:], self.lookup.features, self.lookup.threads)
            at, kept = np.array(places, dtype=np.int64), history.transitions
            self.regression.add(kept.row[at], kept.action[at], np.ones(len(places)))

    def _change_features(self, history: EpisodeHistory, before: int) -> None:
        """Change the features where the data call for it, and drop the oldest steps where there are too many."""
        old, memory = copy(self.lookup), self.planning.memory
        if memory is not None and len(history.last) > (1 + SLACK) * memory:
            self.history, self.regression = history.recent(memory), None
            history, before = self.history, 0
        doubled = old.centred and self.counters[STEPS] >= 2 * self.counters[SCALED]
        if not (self.lookup.follow(history.x[before:]) or doubled):
            return
        Q = self._prior(len(history.x)) if self.theta is None else old.values(self.theta, history.x)
        if doubled:
            model, bounds = self._model(Q), self._bounds()
            V, _ = values_of(history, Q, bounds)
            b = targets(history, V, model.gamma, self.trace, self.lookup.centred)
            self.lookup = rescaled(old, history, b, model.ridge, self.planning.alike)
        self.counters[RESCALINGS] += self.counters[SCALED] > 0
        self.counters[SCALED] = self.counters[STEPS]
        self.regression, self.start = None, Q
        log.info("features of %d observations worked out anew", len(history.x))

    def _decide_repeat(self, history: EpisodeHistory) -> None:
        """Decide after the first episode for how many steps actions are held, unless it was given."""
        if self.planning.repeat is not None or self.counters[EPISODES] != 1:
            return
        steps, measured = history.transitions, len(self.lookup.ranges.low)
        x = history.x[:, :measured]
        goes_on = steps.next != END
        self.counters[REPEAT] = proposed_repeat(x[steps.row[goes_on]], x[steps.next[goes_on]])
        if self.counters[REPEAT] > 1:
            log.info("observations change slowly: every action is held for %d steps", self.counters[REPEAT])

    def _values(self) -> Floats:
        """Return the values of all rows where sweeps start: those of the last plan, as far as it knows them."""
        if self.theta is None or self.regression is None:
            return self._prior(len(self.history.x))
        Q = self.regression.values(self.theta) if self.start is None else self.start
        return np.concatenate([Q, self._prior(len(self.history.x) - len(Q))])

    def _prior(self, rows: int) -> Floats:
        return np.full((rows, self.lookup.actions), self.begin)

    def build(self) -> None:
        """Build the regression from the history alone."""
        actions, steps = self.lookup.actions, self.history.transitions
        self.regression = TableRegression(actions)
        if not self.lookup.table:
            dim = self.lookup.features(self.history.x[:1]).shape[1]
            self.regression = FeatureRegression(actions, dim, self.planning.alike)
        self.regression.extend(self.history.x, self.lookup.features, self.lookup.threads)
        self.regression.add(steps.row, steps.action, steps.times)

    def _plan(self, stream: Words | None, most: int) -> SweptValues:
        """Return a sample of the posterior, or its mean if there is no stream, after at most `most` sweeps."""
        assert self.regression is not None
        within, gamma, Q = self._bounds(), self.planning.noise[-1], self._values()
        settings = within, most, self.planning.tolerance, self.trace, self.lookup.centred

        def swept(model: Model, first: bool) -> SweptValues:
            assert self.regression is not None
            return sweep(
                self.history, self.regression, model, Q if first else self._prior(len(Q)), stream, *settings
            )

        return steadied(swept, self._model(Q), self._largest(gamma, within))

    def _bounds(self) -> tuple[float, float]:
        """Return the bounds of values."""
        bounds = self.planning.bounds
        return attainable(self.history, self.planning.noise[-1]) if bounds == "attainable" else bounds or UNBOUNDED

    def _largest(self, gamma: float, bounds: tuple[float, float]) -> float:
        """Return the largest plausible value: the largest reward in every step, or the bounds given."""
        steps = self.history.transitions
        return largest_value(
            float(np.abs(steps.reward).max()), float(steps.times.sum()), gamma, self.begin, *bounds
        )

    def _model(self, Q: Floats) -> Model:
        """Return prior and noise; with a table, the prior that the values Q support best, unless it was given."""
        shape = (self.lookup.actions, 1 if self.regression is None else self.regression.dim)
        mean, unit = np.full(shape, self.begin), usual_reward(self.history)
        model = Model(mean, *self.planning.noise)
        if self.planning.in_usual_rewards:
            model = model._replace(scale=model.scale * unit**2)
        if not (isinstance(self.history, CountedHistory) and self.planning.by_evidence):
            return model
        b = targets(self.history, values_of(self.history, Q, self._bounds())[0], model.gamma)
        level, ridge = empirical_prior(self.history, b, self.planning.mean, unit, model)
        return model._replace(mean=np.full_like(mean, level), ridge=ridge)

    def exported(self, plan: SweptValues) -> Policy:
        """Return the layout of observations and the arrays of a policy that needs only NumPy."""
        policy = counted_policy if self.lookup.table else feature_policy
        layout, arrays = policy(self.task, self.lookup, self.history, plan.theta)
        return layout, arrays | {"held": self.counters[REPEAT]}

    def state(self) -> dict[str, Any]:
        """Return the history, the values where sweeps continue, and sums; features are recomputed on loading."""
        history, ranges, regression = self.history, self.lookup.ranges, self.regression
        assert regression is not None
        arrays: dict[str, Any] = {f"history.{name}": v for name, v in history.transitions._asdict().items()}
        arrays |= {"history.x": history.x, "history.legal": history.legal, "sums": regression.sums}
        arrays |= {"ranges.low": ranges.low, "ranges.high": ranges.high, "counters": self.counters}
        if isinstance(history, EpisodeHistory):
            del arrays["history.times"]
            arrays["history.last"] = history.last
        if self.lookup.waves is not None:
            arrays["waves"] = np.array([self.lookup.waves.features, self.lookup.waves.length])
        kept = {"theta": self.theta, "start": self.start}
        return arrays | {name: array for name, array in kept.items() if array is not None}


def largest_value(reward: float, steps: float, gamma: float, *known: float) -> float:
    """Return the largest plausible value: the largest reward in every step, or what is known of it."""
    longest = min(1 / max(1 - gamma, 1e-300), steps)
    return max(abs(v) for v in ((reward or 1.0) * longest, *known) if np.isfinite(v))


def steadied(swept: Callable[[Model, bool], SweptValues], model: Model, largest: float) -> SweptValues:
    """Return the result of sweeps; if values diverge, that of others with ten times the ridge.

    swept : a function of the model, and of whether this is the first attempt.
    """
    for trial in range(TRIALS):
        with np.errstate(over="ignore", invalid="ignore"):
            outcome = swept(model, trial == 0)
        if not diverged(outcome, largest):
            return outcome._replace(recoveries=trial)
        least, greatest = outcome.span
        warn(
            f"the values diverged ({least:.3g} to {greatest:.3g}, which no policy has): planned anew with ten "
            "times the ridge; a larger lam, or bounds of the targets, would prevent it",
            DivergenceWarning,
        )
        model = model._replace(ridge=10 * model.ridge)
    raise FactorError(
        f"the values diverge, with a ridge of {model.ridge / 10:g} too: scale the features down, or put the "
        'targets into bounds="attainable"'
    )


def diverged(outcome: SweptValues, largest: float) -> bool:
    """Return whether values are not finite, or far larger than any plausible value."""
    if not np.isfinite(outcome.theta).all() or not np.isfinite(outcome.Q).all():
        return True
    return max(abs(v) for v in outcome.span) > FAR * largest
