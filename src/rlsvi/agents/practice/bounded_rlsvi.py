"""Stationary RLSVI for practical use: bounded values, one noise draw per converged plan, nothing to tune.

for l = 0, 1, ..
    draw the noise z of the regression, once                                            (`sweep`)
    Q = the last Q, or the upper bound
    until Q changes little
        b_i = the lambda-return from step i, with values max_a Q(s, a) clipped to the bounds
        Q = Phi (posterior mean for b + sigma L^-T z)
    until the end of the episode
        sample a_t from argmax_a Q(s_t, a), observe r_t and s_t+1
"""

import logging
import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from gymnasium import Env

from rlsvi.agents.contract import (
    EPISODES,
    STEPS,
    Place,
    Step,
    check_basis,
    diverged,
    flat,
)
from rlsvi.agents.diagnosis import (
    FIRST_EPISODES,
    STEPS_PER_ACTION,
    UNSETTLED,
    UNSETTLED_CHANGE,
    avoids_costs,
    fallen,
    is_checked,
    is_no_wider,
    lack_of_progress,
    recent,
    rise,
)
from rlsvi.agents.practice.chunks import LogLearner
from rlsvi.agents.practice.features import Lookup, Sample, check_size, sample_of
from rlsvi.agents.practice.held_actions import REPEAT, PracticeAgent, repeat_of
from rlsvi.agents.practice.parts import FEWEST_WAVES, PartsRegression, blocks_of, usual_features
from rlsvi.agents.practice.regression import (
    END,
    EpisodeHistory,
    FeatureRegression,
    Planning,
    SweptValues,
    attainable,
    best_values,
    returns_to_go,
    targets,
    usual_reward,
    values_of,
)
from rlsvi.bases import Basis, Observed, RowBasis, Tabular, Waves, of
from rlsvi.bases.basis import MeasuredBasis
from rlsvi.bases.layout import Layout
from rlsvi.bases.observed import is_table, picture_in, usual
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import Constraints, finite, in_unit_interval, optional, shaped, shown, whole
from rlsvi.core.compile import Bools, Floats, Words
from rlsvi.core.machine import one_thread
from rlsvi.core.random import Seed, fill_normal
from rlsvi.core.random import gamma as gamma_variate
from rlsvi.core.regression import FactorError, InverseGamma, Noise, noise_of
from rlsvi.envs.actions import Parts
from rlsvi.envs.task import Task
from rlsvi.html import short
from rlsvi.offline.stream import CHUNK, Stream, all_chunks

Bounds = Literal["attainable", "optimistic"] | tuple[float, float]
UNKNOWN = InverseGamma(1.0, 1.0)  # in units of the squared usual reward
RIDGE = 0.1
REMEDY = (
    "try repeat=1 or 4, a larger gamma=, or another basis=, such as bases.Waves(features=1000) or features of "
    "your own"
)
PARTS_REMEDY = (
    "try another gamma=, or another basis=, such as bases.Waves(features=50); effects of parts that depend "
    "on each other need combinations, as rlsvi.envs.Discretized(env, choices=[..]) lists them"
)
TABLE = (
    "BoundedRLSVI learns with features, and observations that are counted are learned by a table: use "
    "rlsvi.DiscountedPSRL() or rlsvi.agent_for(env), or give a basis, such as bases.StateFeatures(function)"
)
CUT_OFF = 0.5  # part of values above their upper bound that `diagnose` speaks of
LONG_HOLD = 8  # steps to hold an action for, if the agent does nothing
MOST_SHOWN = 8  # measured numbers whose ranges `diagnose` shows
MOST_FOURIER = 4  # measured numbers up to which all Fourier products of order 3 fit; waves are better for more
STEPS_PLANNED_ALWAYS = 5000  # steps up to which every episode has a plan of its own
PLAN_AGAIN_GROWTH = 0.05  # growth of the data after which to plan again then
PARTS_TRACE = 0.25  # lambda where many parts of actions are tried at once: their later effects are noise
RECENT = 4  # returns of either kind of lambda-return that are compared
PLAYED_SHARE = 0.9  # of the steps of an episode have the action that a plan would take, if it has played
OTHER = 4  # the kind that has earned less plays every fourth episode
FEW, QUIETER = 8, 0.5  # actions up to which plans of the second kind have all noise, and the part with more
SLACK = 0.25  # of the memory, by which it may be exceeded before the oldest steps are dropped
RESCALINGS, PLANNED, SCALED = 2, 4, 5  # indices in BoundedLearner.counters
log = logging.getLogger("rlsvi")


def _checked_bounds(name: str, given: Any) -> Any:
    if given is None or isinstance(given, str):
        if given not in ("attainable", "optimistic"):
            raise ValueError(f'{name} must be "attainable", "optimistic" or two numbers, got {shown(given)}')
        return given
    low, high = shaped(name, finite(name, given), (2,))
    if not low < high:
        raise ValueError(f"{name} must be two numbers, the lower one first, got {shown(given)}")
    return float(low), float(high)


@dataclass(kw_only=True, repr=False, eq=False)
class BoundedRLSVI(PracticeAgent):
    """Randomized least-squares value iteration on features, with defaults that work.

    The agent learns from all its experience, whose steps are kept in their order. Measured observations are scaled
    by their observed range, or with waves and pictures by their mean and spread whenever the data have doubled.
    All features are then recomputed from the observations, so that the posterior is exact (`rescalings` counts
    this, and the logger "rlsvi" reports it). Up to 5,000 steps every episode has a new plan; later one is made
    when the data have grown by a twentieth (unless `bounds` are optimistic), so that the time of learning is about
    proportional to the steps. Large matrix products use all cores, or as many as the environment variable
    OMP_NUM_THREADS says; the bits do not depend on their number. If recent episodes earn no more than the first
    ones, a NoProgressWarning says so.
    docs/practice-evidence.md has the evidence.

    Where MultiDiscrete or MultiBinary actions have more than 1,000 combinations, the value of an action is a sum
    of values of its parts, learned jointly (parts.py). An effect that depends on
    several parts together is then learned only on average.

    Parameters
    ----------
    lam
        The ridge if sigma is unknown; otherwise the precision of the prior N(0, I / lam) of the weights. If
        None, 0.1.
    sigma
        Standard deviation of the noise of a target, or InverseGamma(shape, scale), a prior over its square. If
        None, InverseGamma(1, u^2), where u is the usual size of a reward.
    gamma
        Discount per decision, in [0, 1].
    basis
        bases.Fourier(), PixelPairs(..), Polynomial(), Radial(), Tiles() or Waves() for the measured part;
        bases.of(env, ..) to specify bounds as well; or any basis with one block per action. If None, Radial() for
        one or two numbers, Fourier() for three or four, PixelPairs() for pictures (a Box of two or three
        dimensions whose numbers all have the same finite bounds), and Waves() for all others, whose length scale
        and number follow the data. Numbers that do not help to predict, and those that are copies, sums or
        differences of others, are then left out and do not count; `relevant` tells which are not. A basis that is
        given is used as it is, for all numbers. With parts, all numbers count, and waves are as few as plans need
        to be quick.
    bounds
        The interval that the values behind targets are clipped to. "attainable": the returns observed from any
        step on, a tenth of their span more, and at least one usual reward more. "optimistic": in addition, what
        was never tried is worth twice the best return so far (one more in size, or one reward more, if it is not
        positive), and less the more data there are near it; every episode then has a new plan. This finds
        large prizes behind small ones and costs more episodes elsewhere. Or two numbers.
        Without bounds, values of features can diverge; StationaryRLSVI has none, as in the paper.
    memory
        The number of most recent steps to keep; up to a quarter more before older ones are dropped. If None, all.
    repeat
        For how many steps an action is held; their rewards are summed. The agent learns, plans and counts its
        steps by decisions. If None, 1 in the first episode; then 4 if observations change slowly,
        otherwise 1 (held_actions.py). `held` tells. With parts it is always 1.
    seed
        Determines all randomness, including the environment's.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> agent = rlsvi.BoundedRLSVI(basis=rlsvi.bases.Fourier(order=3), seed=0)
    >>> agent.learn(gymnasium.make("CartPole-v1"), 5).episodes
    5
    """

    lam: float | None = None
    sigma: Noise | None = None
    gamma: float = 0.99
    basis: Basis | RowBasis | None = None
    bounds: Bounds = "attainable"
    memory: int | None = None
    repeat: int | None = None
    seed: Seed = None

    update_every = 1000
    _broken = staticmethod(diverged)
    needs_horizon = False
    _takes_parts = True
    _remedy = REMEDY

    _constraints: ClassVar[Constraints] = {
        "gamma": partial(in_unit_interval, closed=True),
        "basis": optional(partial(check_basis, methods=("rows", "bind"))),
        "bounds": _checked_bounds,
        "memory": optional(partial(whole, least=1, most=2**62)),
        "repeat": optional(partial(whole, least=1, most=2**16)),
    }
    _former: ClassVar[dict[str, Any]] = {
        **dict.fromkeys(("regressions", "trace", "prior_mean")),
        **{"alike": 0.5, "tolerance": 1e-4, "update_every": 1000},
    }

    def _check(self) -> None:
        self._planning = Planning(
            *noise_of(RIDGE if self.lam is None else self.lam, UNKNOWN if self.sigma is None else self.sigma),
            in_usual_rewards=self.sigma is None,
            gamma=float(self.gamma),
            bounds=_checked_bounds("bounds", self.bounds),
            memory=self.memory,
            repeat=self.repeat,
        )

    @property
    def rescalings(self) -> int:
        """How many times the observed range grew and all features were recomputed."""
        return int(self._learner.counters[RESCALINGS]) if self._learner else 0

    @property
    def held(self) -> int:
        """For how many steps each action is held: `repeat`, or as decided after the first episode."""
        return int(self._learner.counters[REPEAT]) if self._learner else self.repeat or 1

    @property
    def relevant(self) -> tuple[bool, ...]:
        """Which of the measured numbers have features; the others did not help, or are copies (features.py)."""
        return tuple(self._learner.lookup.relevant.tolist()) if self._learner else ()

    @property
    def planned(self) -> SweptValues | None:
        """The sweeps of the last episode: their number, whether they converged, and sigma."""
        return self._learner.planned if self._learner else None

    def diagnostics(self) -> dict[str, float]:
        """Return the sweeps of the last plan, its sigma, and the fraction of values that was clipped to bounds.

        Where some measured numbers are left out, "relevant" is how many are not.
        """
        if self.planned is None:
            return {}
        some = {} if all(self.relevant) else {"relevant": sum(self.relevant)}
        plan = self.planned
        return {"sweeps": plan.sweeps, "noise": plan.sigma, "bounds_hit": plan.at_bounds, **some}

    def _check_task(self, task: Task) -> None:
        super()._check_task(task)
        if task.parts and self.bounds == "optimistic":
            raise ValueError(
                f'bounds="optimistic" is not for {len(task.parts)} parts of actions: give two numbers'
            )
        if task.parts and self.repeat not in (None, 1):
            raise ValueError(
                f"where the value of an action is a sum over {len(task.parts)} parts, actions are not held: leave "
                "out repeat="
            )

    def _choose(self, Q: Floats, legal: Bools, rule: int = 0, parameter: float = 0.0, stream: Any = None) -> Any:
        """Return the number of an action, or those of the values of its parts, each chosen for itself."""
        choose, parts = super()._choose, self._task and self._task.choices
        if not isinstance(parts, Parts):
            return choose(Q, legal, rule, parameter, stream)
        each = [(its, choose(Q[its], legal[its], rule, parameter, stream)) for its in parts.slices]
        return np.array([its.start + value for its, value in each], np.int64)

    def _take_on(self, task: Task, env: Any = None) -> None:
        if isinstance(self._learner, LogLearner):
            self._learner.refuse_more()
        from_env = env is not None and (self.basis is None or hasattr(self.basis, "rows"))
        self._take_layout(of(env) if from_env else None)
        super()._take_on(task, env)

    def fit(
        self,
        log: Any,
        env: Env[Any, Any] | None = None,
        *,
        columns: Mapping[str, Any] | None = None,
        progress: bool | None = None,
        chunk: int | None = None,
        executor: str | None = None,
    ) -> Self:
        """Learn from a log of transitions: as if the agent had lived through it, or in chunks, if it is large.

        Parameters
        ----------
        log, env, columns, progress
            As for all agents; see `Agent.fit`.
        chunk
            The number of rows to read at a time, such as 65_536. If None, and there is no executor,
            all of the log is held in memory. In chunks, only sums are kept: memory does not grow with
            the log. Its rows must then be in the order of episodes and steps, files of a folder in
            any order. One plan is made from all of the log, the posterior mean, by at most 200
            sweeps, each of which reads the log once. Lambda-returns end where a chunk
            ends. Afterwards the agent can act and be saved, but not learn more.
        executor
            None for this process; "ray" for a Ray cluster on this machine, which is started and
            ended; or the address of a Ray cluster, "HOST:PORT", "ray://HOST:PORT" or "auto", whose
            nodes can read the log. The weights do not depend on it: they have the same bits for the
            same chunk size.
        """
        if chunk is None and executor is None:
            return super().fit(log, env, columns=columns, progress=progress)
        if self.steps:
            raise ValueError("chunk= is for an agent that has learned nothing yet: use agent.clone()")
        if self.repeat not in (None, 1) or self.memory is not None:
            raise ValueError(
                "in chunks, every row is a decision that is learned from: leave out repeat= and memory="
            )
        stream = Stream(log, env, columns, CHUNK if chunk is None else chunk)
        with self._unchanged_by_errors(), all_chunks(stream, executor) as each:
            self._take_on(self._task_of(env), env)
            assert self._task is not None
            if self._task.parts:
                raise ValueError("in chunks, no values of parts of actions are learned: leave out chunk=")
            begun = self.new_learner(self._task, self._task.checked(stream.first_observation()))
            learner = LogLearner(begun)
            learner.fit(stream, each, progress)
            self._learner = learner
        return self

    def _notice(self) -> None:
        """Warn if the agent earns no more than it did at random, or has never found a reward."""
        history, episodes, unsettled = self._learner.history, self.episodes, self._learner.unsettled
        if unsettled >= UNSETTLED:
            self._miss_progress(f"the last {unsettled} plans ended before their values had converged")
        if not is_checked(episodes):
            return
        steps, explored, wrong = history.transitions, self._search_has_ended, ""
        if len(returns := history.returns()) == episodes:
            first, last = returns[:FIRST_EPISODES], returns[-(episodes // 4) :]
            wrong = lack_of_progress(first, last, episodes, explored) or fallen(returns)
            if avoids_costs(returns) and steps.reward.max() <= 0:
                wrong = (
                    f"after {episodes} episodes, the recent ones earn 0, and there were only costs before: it has "
                    "learned to avoid them, perhaps by doing nothing; if there is a prize, it was not found"
                )
        if explored and not steps.reward.any():
            self._miss_reward()
        if len(steps.reward) >= STEPS_PER_ACTION * self._learner.lookup.actions:
            self._miss_progress(wrong)

    @property
    def _search_has_ended(self) -> bool:
        """Whether exploration finds nothing new any more; not known once episodes were dropped."""
        history, episodes = self._learner.history, self.episodes
        if len(history.returns()) < episodes:
            return False
        later = np.flatnonzero(history.last)[episodes // 2 - 1] + 1  # the first step of the later half
        return is_no_wider(history.x, int(history.transitions.row[later]))

    def _what_to_try(self) -> str:
        if self._learner is not None and self._learner.unsettled >= UNSETTLED:
            return "try a smaller gamma=, or rlsvi.BoundedRLSVI with a larger lam= or another basis="
        if self._task is not None and self._task.parts:
            return PARTS_REMEDY
        if avoids_costs(self._returns()):
            longer = f"rlsvi.BoundedRLSVI(repeat={max(LONG_HOLD, 2 * self.held)})"
            return (
                f"try to hold each action for longer, {longer}, or to expect a prize, by "
                'rlsvi.BoundedRLSVI(bounds="optimistic")'
            )
        return self._remedy

    def _how_to_find_more(self) -> str:
        return (
            'make a new agent that looks where nothing was tried, rlsvi.BoundedRLSVI(bounds="optimistic"), or '
            "reward steps on the way to it"
        )

    def _returns(self) -> Floats:
        if self._learner is None or isinstance(self._learner, LogLearner):
            return super()._returns()
        returns: Floats = self._learner.history.returns()
        return returns

    def explain(self) -> str:
        """Return which features it learns with, and for how long actions are held.

        Returns
        -------
        str
            One or two sentences.
        """
        if self._learner is None:
            return "Learning with features, which are decided by the observation space."
        held = f"each action is held for {self.held} steps" if self.held > 1 else "each step has a new action"
        lookup = self._learner.lookup
        kept, functions = lookup.relevant, lookup.basis if lookup.functions is None else lookup.functions
        some = "" if kept.all() else f" of {kept.sum()} of {len(kept)} numbers"
        return f"Learning with features{some}, {short(functions)}; {held}."

    def _facts(self) -> dict[str, str]:
        """Return how a plan goes, and what the features are.

        The plan is that of the posterior mean, which the data alone determine: it is the same after loading.
        """
        told = {"actions": f"held for {self.held} step{'s' * (self.held > 1)}"}
        if isinstance(self._learner, LogLearner):
            return told
        lookup, regression = self._learner.lookup, self._learner.regression
        plan, learner = self._plan(mean=True), self._learner
        still = f"still changing by {plan.change:.1g} of their size"
        ended = "converged" if plan.change <= learner.TOLERANCE else still
        told["plan"] = f"{plan.sweeps} sweeps of at most {learner.SWEEPS}, values {ended}"
        if (unsettled := self._learner.unsettled) > 1:
            told["plan"] += f"; in learning, the last {unsettled} plans ended far from it"
        told["bounds"] = f"{100 * self._learner.above(plan):.0f}% of values lie above their upper bound"
        functions = lookup.functions if lookup.functions is not None else lookup.basis
        parts = f"values of {len(lookup.task.parts)} parts of actions" if lookup.task.parts else "actions"
        features = f"{regression.dim} for each of {lookup.actions} {parts}, from {self.steps} steps"
        told |= {"features": features, "basis": short(functions)}
        if not lookup.relevant.all():
            left = [str(i) for i in np.flatnonzero(~lookup.relevant)]
            which = (
                f"number{'s' * (len(left) > 1)} {', '.join(left[:MOST_SHOWN])}{', ..' * (len(left) > MOST_SHOWN)}"
            )
            told["relevant"] = f"{lookup.relevant.sum()} of {len(lookup.relevant)} ({which} left out)"
        ranges = lookup.ranges.of(lookup.relevant)
        widths = [f"{width:.3g}" for width in (ranges.high - ranges.low)[:MOST_SHOWN]]
        more = ", .." * (len(ranges.low) > MOST_SHOWN)
        return told | ({"scales": f"{', '.join(widths)}{more} (the range of each number)"} if widths else {})

    def _advise(self) -> str:
        returns = self._returns()
        no_more = (
            len(returns) >= 2 * FIRST_EPISODES
            and np.any(returns)
            and not rise(returns[:FIRST_EPISODES], recent(returns))
        )
        above = self._learner.above(self._plan(mean=True)) if no_more else 0.0
        if above > CUT_OFF and self._learner.may_be_wider():
            return (
                f"{100 * above:.0f}% of values lie above their upper bound, about the best return so far: if much "
                "more can be earned, give wider bounds=(lowest return, highest return)."
            )
        return super()._advise()

    def new_learner(self, task: Task, example: Any) -> "BoundedLearner":
        """Return a learner without experience; too many features are refused before the first step."""
        lookup = self._lookup(task)
        row = lookup.row(example + task.first_state if task.states is not None else example)
        lookup.check(row)
        return BoundedLearner(task, lookup, len(row), self._planning)

    def restored_learner(self, task: Task, file: Archive) -> "BoundedLearner | LogLearner":
        """Return the learner stored in a file, after checking all its arrays."""
        needed = self.basis is None or hasattr(self.basis, "rows")
        known: Any = self._problem_basis
        if not isinstance(known, Observed) and (needed or known is not None):
            raise ArchiveError("is damaged: it does not say what observations are")
        lookup = self._lookup(task)
        if "log.sums" not in file or task.parts:
            return BoundedLearner.read(task, lookup, self._planning, file)
        if not isinstance(lookup.basis, Observed):
            raise ArchiveError("is damaged: a log in chunks is learned with features")
        return LogLearner.read(BoundedLearner(task, lookup, lookup.basis.layout.size, self._planning), file)

    def _features_of(self, task: Task, sample: Sample, steps: int, ridge: float) -> Floats:
        """Return features of a sample of so many steps, tuned to predict their targets."""
        lookup = self._lookup(task)
        lookup.follow(sample.x)
        return lookup.tune(lookup.seen(sample.x), sample, steps, ridge).features(sample.x)

    def _lookup(self, task: Task) -> Lookup:
        """Return the mapping from observations of the task to features."""
        given, layout = self.basis, self._problem_basis
        if isinstance(given, Tabular) or (given is None and is_table(layout.layout) and not task.parts):
            raise ValueError(TABLE)
        if layout is None:
            return Lookup(given, task, given=True)
        if given is not None:
            return Lookup(replace(layout, basis=given), task, given=False)
        if not (measured := layout.layout.measured):
            return Lookup(layout, task, given=False)
        if task.parts:
            return Lookup(replace(layout, basis=suited_to_parts(measured, task.parts)), task, given=False)
        picture = picture_in(layout.layout) if measured > MOST_FOURIER else None
        layout = replace(layout, basis=picture or suited(measured))
        return Lookup(layout, task, given=False, suited=None if picture else suited)


def suited(n: int) -> RowBasis:
    """Return the basis of n relevant numbers."""
    return usual(n) if n <= MOST_FOURIER else Waves()


def suited_to_parts(n: int, parts: tuple[int, ...]) -> RowBasis:
    """Return the basis of n numbers for actions of parts, of no more features than plans are quick with."""
    most = usual_features(parts)
    if n <= MOST_FOURIER and len(usual(n).rows(np.zeros((1, n)))[0]) <= most:
        return usual(n)
    return Waves(features=min(max(most - 1 - n, FEWEST_WAVES), Waves.features))


# ---- What was learned --------------------------------------------------------------------------------------


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
        self.earned = np.full((2, RECENT), np.nan)  # recent returns of plans of either kind, the newest last
        self.total = 0.0  # what this episode has earned so far
        # Episodes, steps, rescalings, (unused), steps at the last plan and scaling, how long actions are held.
        self.counters = np.array([0, 0, 0, 0, 0, 0, planning.repeat or 1], np.int64)

    @property
    def trace(self) -> float:
        """Lambda of the returns; docs/practice-evidence.md has the measurements that it was chosen by."""
        if self.task.parts:
            return PARTS_TRACE
        return self.lookup.traits.trace if self.counters[REPEAT] == 1 else MeasuredBasis.trace

    def count_log(self, episodes: int, steps: int) -> None:
        """Count a log that was read in chunks, from all of which one plan was made."""
        self.counters[[EPISODES, STEPS, PLANNED, SCALED]] = episodes, steps, steps, steps

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
            Q = np.zeros((0, len(self.theta)))  # after loading, only the weights of the last plan are known
            return self.planned or SweptValues(self.theta, Q, 0, 0.0, 0.0, 0.0, self.mistakes)
        with one_thread(), np.errstate(over="ignore", invalid="ignore"):
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
        phi = self.lookup.features(place.x[None])
        Q: Floats = plan.theta @ phi[0]
        if plan.top is not None and self.regression is not None:
            Q = Q + self.regression.unknown(phi)[0] * (plan.top - Q)
        return Q

    def remember(self, steps: list[Step], plan: SweptValues | None, ended: bool) -> "BoundedLearner":
        """Return a learner that includes these transitions; this one stays unchanged, even if an error occurs."""
        later = copy(self)
        later.lookup, later.history = copy(self.lookup), copy(self.history)
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
            later.counters[PLANNED] = self.counters[STEPS]
        with one_thread():
            later._learn(steps, ended)
        return later

    def _has_played(self, plan: SweptValues, steps: list[Step]) -> bool:
        """Return whether steps were played with a plan, without optimism, and do not come from somebody's log."""
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
            self.planning.bounds == "optimistic"
            or scaled > planned
            or steps < STEPS_PLANNED_ALWAYS
            or steps - planned > PLAN_AGAIN_GROWTH * planned
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
        self.regression = (
            PartsRegression(self.task.parts, dim) if self.task.parts else FeatureRegression(actions, dim)
        )
        self.regression.extend(self.history.x, self.lookup.features, self.lookup.threads)
        self.regression.add(steps.row, steps.action, np.ones(len(steps.row)))

    def _plan(self, stream: Words | None) -> SweptValues:
        """Return a sample of the posterior, or its mean if there is no stream."""
        assert self.regression is not None
        within, Q = self._bounds(), self._values()
        sampled, mistakes = stream is not None, self._follows_mistakes(stream is not None)
        from_above = self._is_from_above(mistakes)
        if from_above:
            Q = np.full_like(Q, within[1])
        most = self.FEW_SWEEPS if sampled and not from_above else self.SWEEPS
        size = QUIETER if from_above and self.lookup.actions > FEW else 1.0
        settings = within, most, self.TOLERANCE, self.trace, mistakes, self._top(sampled), size
        return sweep(self.history, self.regression, self.model(usual_reward(self.history)), Q, stream, *settings)

    def model(self, usual: float) -> Planning:
        """Return the prior and the noise, given the usual reward."""
        planning = self.planning
        return planning._replace(scale=planning.scale * usual**2) if planning.in_usual_rewards else planning

    def _is_from_above(self, mistakes: bool) -> bool:
        """Return whether sweeps of such a plan begin at the upper bound, if there is one."""
        return mistakes and not self.lookup.centred

    def _bounds(self) -> tuple[float, float]:
        bounds = self.planning.bounds
        return attainable(self.history, self.planning.gamma) if isinstance(bounds, str) else bounds

    def _top(self, sampled: bool) -> float | None:
        """Return what is possible where nothing was tried, if that counts: twice the best return, or a reward."""
        if not sampled or self.planning.bounds != "optimistic":
            return None
        best = float(returns_to_go(self.history, self.planning.gamma).max())
        return best + max(abs(best), usual_reward(self.history))

    def above(self, plan: SweptValues) -> float:
        """Return the fraction of the values of a plan, made of all data, that lie above the upper bound."""
        return values_of(self.history, plan.Q, (-math.inf, self._bounds()[1]))[1]

    def may_be_wider(self) -> bool:
        """Return whether more than the upper bound can be earned: it is less than the largest reward for ever."""
        most, gamma = float(self.history.transitions.reward.max()), self.planning.gamma
        return most <= 0 or gamma >= 1 or self._bounds()[1] < (1 - 1e-6) * most / (1 - gamma)

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
        learner.read_features(file, dim, history.x[:1])
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

    def read_features(self, file: Archive, dim: int, example: Floats) -> None:
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


# ---- Value iteration by regression, with one draw of the noise kept through all sweeps until convergence ----
#
#     V(s) = max_a Q(s, a), clipped to the bounds; 0 at the end
#     b_i = r_i + gamma V(s_i')                                      at the last step of an episode; otherwise
#     b_i = r_i + gamma ((1 - trace) V(s_i') + trace max(b_i+1, V(s_i')))          a lambda-return
#     m = P^-1 A'b
#     Q = Phi (m + sigma L^-T z)          z, and the gamma variate of sigma, drawn once; of a plan of the second
#                                         kind, see below, z is half of it with more than FEW actions
#
# The bounds keep the iteration bounded: a regression on features is not a contraction, and can diverge without
# them. Only the value that a target builds on is clipped. If the whole target were, the reward would be lost where
# values lie at a bound.
#
# A lambda-return follows an episode, and sweeps begin somewhere. Plans of the first kind follow an episode only as
# far as it was worth more than V: the best policy is at least as good as the one that played (compare He, Liu,
# Schwing and Peng, 2017). Their sweeps go on from the values of the last such plan. They learn from few good
# episodes, but the maximum collects the errors of features, values become too high, and since there can be several
# fixed points with features, sweeps may stay at a bad one for tens of episodes. Plans of the second kind follow
# `mistakes` too (Peng's lambda-return, b_i+1 instead of the maximum), and their sweeps begin at the upper bound;
# with more than FEW actions they have less noise, because most of what a sample tries there is worse than what is
# known. They are slow while most episodes are bad, and accurate when they are good. Which kind plays better
# differs from task to task and from seed to seed: plans are made of both, and most of them of the kind that has
# earned more lately. With many numbers (waves and pictures) features fit less well: mistakes are always followed,
# and sweeps go on.


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
    top: float | None = None,
    size: float = 1.0,  # of the noise z
) -> SweptValues:
    """Iterate from the values Q (N, A) to a sample of the posterior, or to its mean if there is no stream."""
    steps, far = history.transitions, np.zeros(())
    within: tuple[float, float | Floats] = bounds
    cell = steps.row[:, None] * Q.shape[1] + steps.action.reshape(len(steps.row), -1)  # one, or one of each part
    regression.factor(model.ridge)
    if top is not None:
        far = np.where(history.legal, regression.all_unknown(), 0.0)
        within = bounds[0], bounds[1] + far.max(axis=1) * max(0.0, top - bounds[1])
    shift, variate = np.zeros((Q.shape[1], regression.dim)), 1.0
    if stream is not None:
        if model.shape > 0:
            variate = gamma_variate(stream, model.shape + 0.5 * len(steps.reward))
        z = np.empty(regression.drawn)
        fill_normal(z.reshape(-1), stream)
        shift = size * regression.shape(z)
    drift = regression.values(shift)
    sigma, change, done = model.sigma, math.inf, 0
    while done < most and change > tolerance:
        V, at_bounds = values_of(history, Q if top is None else Q + far * (top - Q), within)
        b = targets(history, V, model.gamma, trace, mistakes)
        sums: Any = np.bincount(cell.ravel(), np.repeat(b, cell.shape[1]), minlength=Q.size)
        theta = regression.fit(sums.reshape(Q.shape))
        fitted = regression.values(theta)
        if stream is not None and model.shape > 0:
            away = b - fitted.ravel()[cell].sum(axis=1)
            misfit = (away**2).sum() + regression.penalty(theta)
            sigma = math.sqrt((model.scale + 0.5 * misfit) / variate)
        new = fitted if stream is None else fitted + sigma * drift
        change = float(np.abs(new - Q).max() / max(1e-300, np.abs(new).max()))
        Q, done = new, done + 1
    if stream is not None:
        theta = theta + sigma * shift
    if not np.isfinite(theta).all() or not np.isfinite(Q).all():
        raise FactorError("values of features are not finite: scale the features down, or give narrower bounds=")
    return SweptValues(theta, Q, done, change, sigma, at_bounds, mistakes, top)
