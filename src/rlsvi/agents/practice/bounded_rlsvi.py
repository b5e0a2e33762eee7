"""Stationary RLSVI for practical use: bounded values, one noise draw per converged plan, nothing to tune.

for l = 0, 1, ..
    draw the noise z of the regression, once                                        (learner.py)
    Q = the last Q, or the upper bound
    until Q changes little
        b_i = the lambda-return from step i, with values max_a Q(s, a) clipped to the bounds
        Q = Phi (posterior mean for b + sigma L^-T z)
    until the end of the episode
        sample a_t from argmax_a Q(s_t, a), observe r_t and s_t+1                (regression.py)
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from gymnasium import Env

from rlsvi.agents.contract import check_basis, diverged
from rlsvi.agents.diagnosis import (
    FIRST_EPISODES,
    STEPS_PER_ACTION,
    UNSETTLED,
    avoids_costs,
    is_checked,
    is_no_wider,
    lack_of_progress,
    recent,
    rise,
)
from rlsvi.agents.practice.chunks import LogLearner
from rlsvi.agents.practice.features import Lookup
from rlsvi.agents.practice.held_actions import REPEAT, PracticeAgent
from rlsvi.agents.practice.learner import RECOVERIES, RESCALINGS, BoundedLearner, Planning, SweptValues
from rlsvi.agents.practice.parts import FEWEST_WAVES, usual_features
from rlsvi.bases import Basis, Observed, RowBasis, Tabular, Waves, of
from rlsvi.bases.observed import is_table, picture_in, usual
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import Constraints, finite, in_unit_interval, optional, shaped, shown, whole
from rlsvi.core.compile import Bools, Floats
from rlsvi.core.random import Seed
from rlsvi.core.regression import InverseGamma, Noise, noise_of
from rlsvi.envs.actions import Parts
from rlsvi.envs.task import Task
from rlsvi.html import short
from rlsvi.offline.stream import CHUNK, Stream, all_chunks

Bounds = Literal["attainable"] | tuple[float, float] | None
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


def _checked_bounds(name: str, given: Any) -> Any:
    if given is None or isinstance(given, str):
        if given not in (None, "attainable"):
            raise ValueError(f'{name} must be "attainable", two numbers or None, got {shown(given)}')
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
    when the data have grown by a twentieth, so that the time of learning is about proportional to the steps. Large
    matrix products use all cores, or as many as the environment variable OMP_NUM_THREADS says; the bits do not
    depend on their number. If recent episodes earn no more than the first ones, a NoProgressWarning says so.
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
        step on, a tenth of their span more, and at least one usual reward more. Or two numbers, or None. Without
        bounds, as in the paper, values of features can diverge. Values that do raise DivergenceWarning and are
        planned again with ten times the ridge (`recoveries` counts this).
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
    def recoveries(self) -> int:
        """How many times values diverged during learning and were planned again with ten times the ridge."""
        return int(self._learner.counters[RECOVERIES]) if self._learner else 0

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
            learner = LogLearner.of(begun)
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
            wrong = lack_of_progress(returns[:FIRST_EPISODES], returns[-(episodes // 4) :], episodes, explored)
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
                f"try to hold each action for longer, {longer}, or to expect a prize, by bounds=(lowest return, "
                "highest return), lam= and sigma="
            )
        return self._remedy

    def _how_to_find_more(self) -> str:
        return (
            "make a new agent that expects it, rlsvi.BoundedRLSVI(bounds=(lowest return, highest return)), or "
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
                f"{100 * above:.0f}% of values lie above their upper bound, which is the best return so far: if "
                "much more can be earned, give wider bounds=(lowest return, highest return)."
            )
        return super()._advise()

    def new_learner(self, task: Task, example: Any) -> BoundedLearner:
        """Return a learner without experience; too many features are refused before the first step."""
        lookup = self._lookup(task)
        row = lookup.row(example + task.first_state if task.states is not None else example)
        lookup.check(row)
        return BoundedLearner(task, lookup, len(row), self._planning)

    def restored_learner(self, task: Task, file: Archive) -> BoundedLearner:
        """Return the learner stored in a file, after checking all its arrays."""
        needed = self.basis is None or hasattr(self.basis, "rows")
        known: Any = self._problem_basis
        if not isinstance(known, Observed) and (needed or known is not None):
            raise ArchiveError("is damaged: it does not say what observations are")
        kind = LogLearner if "log.sums" in file and not task.parts else BoundedLearner
        return kind.read(task, self._lookup(task), self._planning, file)

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
