"""The learner of the practice agent: a history, and one regression over all of it."""

import logging
import math
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.contract import EPISODES, STEPS, DivergenceWarning, Place, Step, flat, warn
from rlsvi.agents.diagnosis import UNSETTLED_CHANGE
from rlsvi.agents.practice.features import Lookup, check_size, sample_of
from rlsvi.agents.practice.held_actions import REPEAT, repeat_of
from rlsvi.agents.practice.parts import blocks_of, regression_of
from rlsvi.agents.practice.regression import END, EpisodeHistory, FeatureRegression, best_values
from rlsvi.bases.basis import MeasuredBasis
from rlsvi.bases.layout import Layout
from rlsvi.bases.observed import Observed
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import whole
from rlsvi.core.compile import Bools, Floats, Words, compiled
from rlsvi.core.machine import one_thread
from rlsvi.core.random import fill_normal
from rlsvi.core.random import gamma as gamma_variate
from rlsvi.core.regression import FactorError
from rlsvi.envs.task import Task
from rlsvi.offline.log import discounted_sums

# ---- Value iteration by regression, with one draw of the noise kept through all sweeps until convergence ----
#
#     V(s) = max_a Q(s, a), clipped to the bounds; 0 at the end
#     b_i = r_i + gamma V(s_i')                                      at the last step of an episode; otherwise
#     b_i = r_i + gamma ((1 - trace) V(s_i') + trace max(b_i+1, V(s_i')))          a lambda-return
#     m = P^-1 A'b
#     Q = Phi (m + sigma L^-T z)          z, and the gamma variate of sigma, drawn once
#
# The bounds keep the iteration bounded: a regression on features is not a contraction, and can diverge without
# them. Only the value that a target builds on is clipped. If the whole target were, the reward would be lost where
# values lie at a bound.
#
# A lambda-return follows an episode, and sweeps begin somewhere. Plans of the first kind follow an episode only
# as far as it was worth more than V: the best policy is at least as good as the one that played (compare He,
# Liu, Schwing and Peng, 2017). Their sweeps go on from the values of the last such plan. They learn from few
# good episodes, but the maximum collects the errors of features, values become too high, and since there can be
# several fixed points with features, sweeps may stay at a bad one for tens of episodes. Plans of the second kind
# follow `mistakes` too (Peng's lambda-return, b_i+1 instead of the maximum), and their sweeps begin at the upper
# bound. They are slow while most episodes are bad, and accurate when they are good. Which kind plays better
# differs from task to task and from seed to seed: plans are made of both, and most of them of the kind that has
# earned more lately. With many numbers (waves and pictures) features fit less well: mistakes are always
# followed, and sweeps go on.


MARGIN = 0.1  # of the span of observed returns, by which bounds exceed them


class SweptValues(NamedTuple):
    """The result of the sweeps."""

    theta: Floats  # (A, d)
    Q: Floats  # (N, A) the values of theta
    sweeps: int
    change: float  # of Q in the last sweep, relative to the size of Q
    sigma: float
    at_bounds: float  # fraction of the values behind targets that were clipped to the bounds
    span: tuple[float, float]  # smallest and largest value of the mean
    recoveries: int = 0  # how many times values diverged and were planned anew with ten times the ridge
    mistakes: bool = False  # whether lambda-returns followed mistakes


def attainable(history: EpisodeHistory, gamma: float) -> tuple[float, float]:
    """Return the least and the greatest plausible value of a state, given the rewards seen.

    These are the discounted returns observed from any step to the end of its episode, and a tenth of their span
    more, but not beyond the least and the greatest reward for ever. One usual reward is always considered
    possible: without it, nothing would be worth trying while there were no rewards or only costs.
    """
    returns, rewards = returns_to_go(history, gamma), history.transitions.reward
    return with_margin(
        (float(returns.min()), float(returns.max())),
        (float(rewards.min()), float(rewards.max())),
        usual_reward(history),
        gamma,
    )


def with_margin(
    returns: tuple[float, float], rewards: tuple[float, float], usual: float, gamma: float
) -> tuple[float, float]:
    """Return bounds of values, given the least and greatest return and reward observed, and the usual reward."""
    least, most = returns
    margin = max(MARGIN * (most - least), usual)
    if gamma >= 1:
        return least - margin, most + margin
    worst, best = (reward / (1 - gamma) for reward in rewards)  # one of them in every step, for ever
    low, high = least - margin, most + margin
    return max(low, worst) if worst <= least else low, min(high, max(best, usual)) if best >= most else high


def usual_reward(history: EpisodeHistory) -> float:
    """Return the unit of reward without prior knowledge: the geometric mean of nonzero absolute rewards, or 1."""
    reward = history.transitions.reward
    some = np.abs(reward[reward != 0])
    return math.exp(float(np.log(some).mean())) if some.size else 1.0


def returns_to_go(history: EpisodeHistory, gamma: float) -> Floats:
    """Return the discounted sum of rewards from each step to the end of its episode, as far as it was observed."""
    reward = history.transitions.reward
    out = np.empty(len(reward))
    discounted_sums(reward, history.last, gamma, out)
    return out


def values_of(history: EpisodeHistory, Q: Floats, bounds: tuple[float, float]) -> tuple[Floats, float]:
    """Return V of every row and, last, of the end, clipped to the bounds; and the fraction that was clipped."""
    best = best_values(Q, history.legal, history.parts)
    V = np.zeros(len(Q) + 1)  # the last entry stands for the end
    np.clip(best, *bounds, out=V[:-1])
    return V, float((V[:-1] != best).mean())


def targets(
    history: EpisodeHistory, V: Floats, gamma: float, trace: float = 0.0, mistakes: bool = False
) -> Floats:
    """Return the target of every transition, given V of the rows and of the end."""
    steps = history.transitions
    out = np.empty(len(steps.reward))
    trace_back(steps.reward, V[steps.next], history.last, gamma, trace, mistakes, out)
    return out


@compiled
def trace_back(
    reward: Floats, V: Floats, last: Bools, gamma: float, trace: float, mistakes: bool, out: Floats
) -> None:
    """Compute lambda-returns, given the values V after each step; without mistakes, as far as they exceed V."""
    following = 0.0
    for i in range(reward.size - 1, -1, -1):
        if last[i] or i == reward.size - 1 or (following < V[i] and not mistakes):
            following = V[i]
        following = out[i] = reward[i] + gamma * ((1.0 - trace) * V[i] + trace * following)


class Planning(NamedTuple):
    """The prior of the weights, and what value iteration depends on."""

    ridge: float
    sigma: float  # if the noise is known
    shape: float  # if the noise is unknown; 0 if it is known
    scale: float
    in_usual_rewards: bool  # whether `scale` is in units of the squared usual reward
    gamma: float
    bounds: Any  # of the values behind targets: "attainable", two numbers, or None
    memory: int | None  # most steps to keep
    repeat: int | None  # how long actions are held; None: by rule


def sweep(
    history: EpisodeHistory,
    regression: FeatureRegression,
    model: Planning,
    Q: Floats,
    stream: Words | None,
    bounds: tuple[float, float],
    most: int,
    tolerance: float,
    trace: float = 0.0,
    mistakes: bool = False,
) -> SweptValues:
    """Iterate from the values Q (N, A) to a sample of the posterior, or to its mean if there is no stream."""
    steps = history.transitions
    cell = steps.row[:, None] * Q.shape[1] + steps.action.reshape(len(steps.row), -1)  # one, or one of each part
    regression.factor(model.ridge)
    shift, variate = np.zeros((Q.shape[1], regression.dim)), 1.0
    if stream is not None:
        if model.shape > 0:
            variate = gamma_variate(stream, model.shape + 0.5 * len(steps.reward))
        z = np.empty(regression.drawn)
        fill_normal(z.reshape(-1), stream)
        shift = regression.shape(z)
    drift = regression.values(shift)
    sigma, change, done = model.sigma, math.inf, 0
    while done < most and change > tolerance:
        V, at_bounds = values_of(history, Q, bounds)
        b = targets(history, V, model.gamma, trace, mistakes)
        each = np.repeat(b, cell.shape[1])
        sums: Floats = np.bincount(cell.ravel(), each, minlength=Q.size).astype(np.float64).reshape(Q.shape)
        theta = regression.fit(sums)
        fitted = regression.values(theta)
        if stream is not None and model.shape > 0:
            away = b - fitted.ravel()[cell].sum(axis=1)
            misfit = (away**2).sum() + regression.penalty(theta)
            sigma = math.sqrt((model.scale + 0.5 * misfit) / variate)
        new = fitted if stream is None else fitted + sigma * drift
        change = float(np.abs(new - Q).max() / max(1e-300, np.abs(new).max()))
        Q, done = new, done + 1
        if not change <= 1e300:  # NaN or infinity: it cannot recover
            break
    if stream is not None:
        theta = theta + sigma * shift
    least, greatest = float(fitted.min()), float(fitted.max())
    return SweptValues(theta, Q, done, change, sigma, at_bounds, (least, greatest))


DIVERGED_TIMES = 10  # multiple of the largest plausible value beyond which values have diverged
ATTEMPTS = 6  # ridges to try, each ten times the one before, when values diverge
STEPS_PLANNED_ALWAYS = 5000  # steps up to which every episode has a plan of its own
PLAN_AGAIN_GROWTH = 0.05  # growth of the data after which to plan again then
PARTS_TRACE = 0.25  # lambda where many parts of actions are tried at once: their later effects are noise
RECENT = 4  # returns of either kind of lambda-return that are compared
PLAYED_SHARE = 0.9  # of the steps of an episode have the action that a plan would take, if it has played
OTHER = 4  # the kind that has earned less plays every fourth episode
SLACK = 0.25  # of the memory, by which it may be exceeded before the oldest steps are dropped
RESCALINGS, RECOVERIES, PLANNED, SCALED = 2, 3, 4, 5  # indices in BoundedLearner.counters
UNBOUNDED = -np.inf, np.inf
log = logging.getLogger("rlsvi")


def nothing_earned() -> Floats:
    """Return the recent returns of plans of either kind of lambda-return, the newest last: none yet."""
    return np.full((2, RECENT), np.nan)


class BoundedLearner:
    """One regression over the complete history. Learning returns a new learner and leaves this one unchanged."""

    SWEEPS = 200  # at most, of the posterior mean, and of samples from the upper bound, which may be far away
    FEW_SWEEPS = 20  # at most, of a sample that goes on from the last plan
    TOLERANCE = 1e-4  # change of Q, as a fraction of its size, below which sweeps end

    def __init__(self, task: Task, lookup: Lookup, width: int, planning: Planning) -> None:
        if task.parts:
            planning = planning._replace(repeat=1)
        self.task, self.lookup, self.planning = task, lookup, planning
        self.history = EpisodeHistory(width, lookup.actions, task.parts)
        self.regression: FeatureRegression | None = None
        self.theta: Floats | None = None  # (A, d); None: 0
        self.warm: Floats | None = None  # weights where sweeps go on: theta, unless it began at the upper bound
        self.start: Floats | None = None  # (N, A) values where sweeps start, if weights are for other features
        self.planned: SweptValues | None = None  # the last plan
        self.mistakes = False  # whether the lambda-returns of theta followed mistakes
        self.unsettled = 0  # the number of last plans, in a row, that ended far from convergence
        self.earned = nothing_earned()
        self.total = 0.0  # what this episode has earned so far
        # Episodes, steps, rescalings, recoveries, steps at the last plan and scaling, how long actions are held.
        self.counters = np.array([0, 0, 0, 0, 0, 0, planning.repeat or 1], np.int64)

    @property
    def trace(self) -> float:
        """Lambda of the returns; docs/practice-evidence.md has the measurements that it was chosen by."""
        if self.task.parts:
            return PARTS_TRACE
        return self.lookup.traits.trace if self.counters[REPEAT] == 1 else MeasuredBasis.trace

    def look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """Convert an observation to a row of the history, after checking it."""
        legal, x = self.task.legal(mask), self.lookup.row(observation)
        if len(x) != self.history.x.shape[1]:
            raise ValueError(
                f"the basis gives {len(x)} features of an observation, the agent has learned with "
                f"{self.history.x.shape[1]}: keep to the basis it has learned with"
            )
        return Place(h, observation, legal, x=x)

    def plan(self, sampled: bool, stream: Words, learning: bool = False) -> SweptValues | None:
        """Return a sample of the posterior, or its mean, which is computed once and kept."""
        if self.regression is None:
            return None
        if learning and sampled and self.theta is not None and not self._is_due():
            Q = self.regression.values(self.theta)
            kept = SweptValues(self.theta, Q, 0, 0.0, 0.0, 0.0, (0.0, 0.0), mistakes=self.mistakes)
            return self.planned or kept
        with one_thread():
            return self._plan(stream if sampled else None)

    def _follows_mistakes(self, sampled: bool) -> bool:
        """Return which kind of lambda-return to plan with: mostly the one that has earned more lately."""
        if self.lookup.centred:
            return True
        first, second = (not np.isnan(got).all() for got in self.earned)
        if not (first and second):  # without experience of both, the first
            return sampled and first
        better = float(np.nanmean(self.earned[1]) - np.nanmean(self.earned[0]))
        if better == 0:  # nothing is found yet, or all: the first explores more, the second is more accurate
            return not sampled
        error = math.sqrt(sum(float(np.nanvar(got)) / np.count_nonzero(~np.isnan(got)) for got in self.earned))
        return (better > error) != (sampled and int(self.counters[EPISODES]) % OTHER == OTHER - 1)

    def values(self, plan: SweptValues | None, place: Place) -> Floats:
        """Return Q of every action."""
        if plan is None:
            return np.zeros(self.lookup.actions)
        Q: Floats = plan.theta @ self.lookup.features(place.x[None])[0]
        return Q

    def remember(self, steps: list[Step], plan: SweptValues | None, ended: bool) -> "BoundedLearner":
        """Return a learner that includes these transitions; this one stays unchanged, even if an error occurs."""
        later = copy(self)
        later.lookup, later.history = copy(self.lookup), self.history.copy()
        later.regression = self.regression.copy() if self.regression is not None else None
        later.counters = self.counters + np.array([ended, len(steps), 0, 0, 0, 0, 0])
        later.total = self.total + sum(step.reward for step in steps)
        if plan is not None and ended and self._has_played(plan, steps):
            later.earned = self.earned.copy()
            later.earned[int(plan.mistakes)] = [*self.earned[int(plan.mistakes), 1:], later.total]
        if ended:
            later.total = 0.0
        if plan is not None and plan.theta is not self.theta:
            later.planned, later.theta, later.mistakes = plan, plan.theta, plan.mistakes
            later.unsettled = self.unsettled + 1 if plan.change > UNSETTLED_CHANGE else 0
            if self.warm is None or self.start is not None or not self._is_from_above(plan.mistakes):
                later.warm, later.start = plan.theta, None
            later.counters[RECOVERIES] += plan.recoveries
            later.counters[PLANNED] = self.counters[STEPS]
        with one_thread():
            later._learn(steps, ended)
        return later

    def _has_played(self, plan: SweptValues, steps: list[Step]) -> bool:
        """Return whether steps were played with a plan, and do not come from a log of somebody else."""
        if self.lookup.centred:
            return False  # there is one kind only
        Q = self.lookup.values(plan.theta, np.stack([step.place.x for step in steps]))
        legal = np.stack([step.place.legal for step in steps])
        taken = np.array([step.action for step in steps]).reshape(len(steps), -1)
        best = best_values(Q, legal, self.task.parts)
        its = np.take_along_axis(Q, taken, axis=1).sum(axis=1)
        return bool((its >= best - 1e-9 * np.abs(best)).mean() >= PLAYED_SHARE)

    def _is_due(self) -> bool:
        """Return whether to plan again: the data have grown by a share, or the features have changed."""
        _, steps, _, _, planned, scaled, _ = self.counters
        return bool(
            scaled > planned or steps < STEPS_PLANNED_ALWAYS or steps - planned > PLAN_AGAIN_GROWTH * planned
        )

    def _learn(self, steps: list[Step], ended: bool) -> None:
        """Add transitions. The regression is then as if the features had always been the present ones."""
        history, before, places = self.history, len(self.history.x), []
        for place, action, reward, following in steps:
            row = history.row(place.x, place.legal)
            then = END if following is None else history.row(following.x, following.legal)
            places.append(history.add(row, action, reward, then))
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
        changed = self.lookup.follow(history.x[before:])
        judges_numbers = old.suited is not None and self.counters[STEPS] >= 2 * old.judged
        if not (changed or doubled or judges_numbers):
            return
        Q = self._prior(len(history.x)) if self.warm is None else old.values(self.warm, history.x)
        if doubled or judges_numbers:
            relevant = self.lookup.relevant
            V, _ = values_of(history, Q, self._bounds())
            b = targets(history, V, self.planning.gamma, self.trace, old.centred)
            sample, seen = sample_of(history, b), old.seen(history.x)
            self.lookup = self.lookup.tune(seen, sample, len(b), self.planning.ridge)
            self.lookup.judged = int(self.counters[STEPS])
            changed = changed or doubled or not np.array_equal(relevant, self.lookup.relevant)
        if not changed:
            return
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
        self.counters[REPEAT] = repeat_of(x[steps.row[goes_on]], x[steps.next[goes_on]])
        if self.counters[REPEAT] > 1:
            log.info("observations change slowly: every action is held for %d steps", self.counters[REPEAT])

    def _values(self) -> Floats:
        """Return the values of all rows where sweeps go on: those of an earlier plan, as far as it knows them."""
        if self.warm is None or self.regression is None:
            return self._prior(len(self.history.x))
        Q = self.regression.values(self.warm) if self.start is None else self.start
        return np.concatenate([Q, self._prior(len(self.history.x) - len(Q))])

    def _prior(self, rows: int) -> Floats:
        return np.zeros((rows, self.lookup.actions))

    def build(self) -> None:
        """Build the regression from the history alone."""
        actions, steps = self.lookup.actions, self.history.transitions
        dim = self.lookup.features(self.history.x[:1]).shape[1]
        if self.task.parts:
            check_size(self.task, dim)  # there may be more categories now
        self.regression = regression_of(actions, dim, self.task.parts)
        self.regression.extend(self.history.x, self.lookup.features, self.lookup.threads)
        self.regression.add(steps.row, steps.action, np.ones(len(steps.row)))

    def _plan(self, stream: Words | None) -> SweptValues:
        """Return a sample of the posterior, or its mean if there is no stream."""
        assert self.regression is not None
        within, Q = self._bounds(), self._values()
        sampled, mistakes = stream is not None, self._follows_mistakes(stream is not None)
        from_above = self._is_from_above(mistakes) and bool(np.isfinite(within[1]))
        if from_above:
            Q = np.full_like(Q, within[1])
        most = self.FEW_SWEEPS if sampled and not from_above else self.SWEEPS
        settings = within, most, self.TOLERANCE, self.trace, mistakes

        def swept(model: Planning, first: bool) -> SweptValues:
            assert self.regression is not None
            return sweep(
                self.history, self.regression, model, Q if first else self._prior(len(Q)), stream, *settings
            )

        outcome = sweep_safely(swept, self._model(usual_reward(self.history)), self._largest(within))
        return outcome._replace(mistakes=mistakes)

    def _is_from_above(self, mistakes: bool) -> bool:
        """Return whether sweeps of such a plan begin at the upper bound, if there is one."""
        return mistakes and not self.lookup.centred

    def _bounds(self) -> tuple[float, float]:
        bounds = self.planning.bounds
        return attainable(self.history, self.planning.gamma) if bounds == "attainable" else bounds or UNBOUNDED

    def above(self, plan: SweptValues) -> float:
        """Return the fraction of the values of a plan, made of all data, that lie above the upper bound."""
        return values_of(self.history, plan.Q, (-math.inf, self._bounds()[1]))[1]

    def may_be_wider(self) -> bool:
        """Return whether more than the upper bound can be earned: it is less than the largest reward for ever."""
        most, gamma = float(self.history.transitions.reward.max()), self.planning.gamma
        return most <= 0 or gamma >= 1 or self._bounds()[1] < (1 - 1e-6) * most / (1 - gamma)

    def _largest(self, bounds: tuple[float, float]) -> float:
        """Return the largest plausible value: the largest reward in every step, or the bounds given."""
        reward = self.history.transitions.reward
        return largest_value(float(np.abs(reward).max()), len(reward), self.planning.gamma, *bounds)

    def _model(self, unit: float) -> Planning:
        """Return prior and noise, given the usual reward."""
        given = self.planning
        return given._replace(scale=given.scale * unit**2) if given.in_usual_rewards else given

    def exported(self, plan: SweptValues) -> tuple[Layout, dict[str, Any]]:
        """Return the layout of observations and the arrays of a policy that needs only NumPy."""
        basis, held = self.lookup.basis, {"held": self.counters[REPEAT]}
        arrays = self.lookup.arrays()
        if arrays is None:
            shown = basis.basis if isinstance(basis, Observed) else basis
            raise ValueError(
                f"the basis {shown!r} cannot be exported, only {exportable()}: save the agent "
                "instead, and load it by rlsvi.load"
            )
        layout = basis.layout._replace(counts=self.lookup.layout.counts)
        return layout, arrays | {"weights": plan.theta, "first_action": self.task.first_action} | held

    def state(self) -> dict[str, Any]:
        """Return the history, the values where sweeps continue, and sums; features are recomputed on loading."""
        history, regression = self.history, self.regression
        assert regression is not None
        arrays = flat(history=history.transitions)
        arrays |= {"history.x": history.x, "history.legal": history.legal, "sums": regression.sums}
        arrays |= {"counters": self.counters, "history.last": history.last, **self.lookup.state()}
        kept: dict[str, Any] = {"theta": self.theta, "start": self.start}
        if not np.isnan(self.earned).all():
            kept |= {"earned": self.earned, "mistakes": np.array([self.mistakes])}
        if self.warm is not self.theta:
            kept["warm"] = self.warm
        if self.unsettled:
            kept["unsettled"] = np.array([self.unsettled])
        return arrays | {name: array for name, array in kept.items() if array is not None}

    @classmethod
    def read(cls, task: Task, lookup: Lookup, planning: Planning, file: Archive) -> "BoundedLearner":
        """Return what was learned, given a file with all experience, and the features to begin with."""
        A, parts = task.actions, task.parts
        history = EpisodeHistory.read(file, A, parts)
        N, width = history.x.shape
        dim = file.shape("sums", 4 if parts else 3)[-1]
        held = file.take("sums", (blocks_of(parts), dim) * 2 if parts else (A, dim, dim))
        if isinstance(lookup.basis, Observed) and width != lookup.basis.layout.size:
            raise ArchiveError("is damaged: its history is not one of such observations")
        learner = cls(task, lookup, width, planning)
        learner.history = history
        learner._read_features(file, dim, history.x[:1])
        learner.build()
        assert learner.regression is not None
        sums = learner.regression.sums
        if not np.allclose(held, sums):
            raise ArchiveError("is damaged: its sums do not fit its observations")
        sums[:] = held  # equal up to rounding before, and now bit for bit
        if "start" in file:
            if learner.counters[SCALED] <= learner.counters[PLANNED]:
                raise ArchiveError("is damaged: its plan does not fit its features")
            rows, _ = file.shape("start", 2)  # episodes that came after the features changed have none yet
            learner.start = file.take("start", (min(rows, N), A))
        if "theta" in file:
            _, d = file.shape("theta", 2)
            if d > learner.regression.dim:
                raise ArchiveError("is damaged: its weights do not fit its observations")
            if learner.start is None and d != learner.regression.dim:
                raise ArchiveError("is damaged: its weights do not fit its features")
            learner.theta = learner.warm = file.take("theta", (A, d))
            if "warm" in file:
                learner.warm = file.take("warm", (A, d))
        if "earned" in file:
            learner.earned = file.take("earned", (2, RECENT), finite=False)
            if np.isinf(learner.earned).any():
                raise ArchiveError("is damaged: returns that were earned are not finite")
            learner.mistakes = bool(file.take("mistakes", (1,), np.bool_)[0])
        if "unsettled" in file:
            learner.unsettled = int(file.take_within("unsettled", (1,), np.int64, 1, 2**62)[0])
        return learner

    def _read_features(self, file: Archive, dim: int, example: Floats) -> None:
        """Read the counters, and how `dim` features are made of a row, such as the example."""
        self.lookup.read(file, dim)
        self.counters[:] = file.take_within("counters", (7,), np.int64, 0, 2**62)
        whole("repeat", int(self.counters[REPEAT]), 1, 2**16)
        if self.lookup.features(example).shape[1] != dim:
            raise ArchiveError("is damaged: its sums do not fit its features")


def exportable() -> str:
    """Return the bases of this package that can be exported."""
    kinds = [kind for kind in MeasuredBasis.__subclasses__() if kind.arrays is not MeasuredBasis.arrays]
    *most, last = sorted(f"{kind.__name__}()" for kind in kinds if kind.__module__.startswith("rlsvi."))
    return f"bases.{', '.join(most)} or {last}"


def largest_value(reward: float, steps: float, gamma: float, *known: float) -> float:
    """Return the largest plausible value: the largest reward in every step, or what is known of it."""
    longest = min(1 / max(1 - gamma, 1e-300), steps)
    return max(abs(v) for v in ((reward or 1.0) * longest, *known) if np.isfinite(v))


def sweep_safely(sweeps: Callable[[Planning, bool], SweptValues], model: Planning, largest: float) -> SweptValues:
    """Return the result of sweeps; if values diverge, that of others with ten times the ridge.

    Parameters
    ----------
    sweeps
        A function of the model, and of whether this is the first attempt.
    """
    for attempt in range(ATTEMPTS):
        with np.errstate(over="ignore", invalid="ignore"):
            outcome = sweeps(model, attempt == 0)
        if not has_diverged(outcome, largest):
            return outcome._replace(recoveries=attempt)
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


def has_diverged(outcome: SweptValues, largest: float) -> bool:
    """Return whether values are not finite, or far larger than any plausible value."""
    if not np.isfinite(outcome.theta).all() or not np.isfinite(outcome.Q).all():
        return True
    return max(abs(v) for v in outcome.span) > DIVERGED_TIMES * largest
