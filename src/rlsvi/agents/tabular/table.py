"""The common part of tabular agents: counts of each period, state and action, from which an algorithm plans.

An algorithm is a file of its own: an agent that returns a rule, which is a named tuple of the algorithm's
parameters, and a function that computes a value, given the rule, the counts and the values of the next period.

    class Agent(TabularAgent):  _rule(H, S, A) -> Rule
    class Rule(NamedTuple):  ..
    @value_of.register(Rule)
    def algorithm(rule, mind, h, s, a, sampled, stream) -> float:  ..

Counts have a number for every pair, while the sums of finite/memory.py are of states seen: an optimistic or
sampled model has a value for what was never seen. If periods are known to be alike, counts are pooled in two rows
instead of H: row 0 for periods 0 .. H-2, and row 1 for the last period, in which no next state is observed.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from rlsvi.agents.agent import Agent
from rlsvi.agents.contract import (
    Episode,
    MindLearner,
    Place,
    Step,
    Workspace,
    broken,
    count,
    flat,
    learn,
    new_counters,
    plan,
    values,
)
from rlsvi.agents.diagnosis import is_checked, is_explored
from rlsvi.bases.basis import FeatureTable
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import finite, fits, shaped, shown
from rlsvi.core.compile import Bools, Floats, Longs, Words, compiled, generic
from rlsvi.core.elementary import all_between
from rlsvi.core.random import Seed, copy
from rlsvi.envs.task import Task
from rlsvi.mdp.finite import FiniteMDP, Table, mask_of

ROWS = 2  # of the counts, if periods are alike
UNBOUNDED = ("plan.Q", "plan.V")  # may be infinite: before the first plan, and for illegal actions
ONCE_SAVED = (
    "plan.visits",
    "plan.due",
    "linear.U",
    "linear.inv",
)  # by all tabular agents, also without use for them


@dataclass(kw_only=True, repr=False, eq=False)
class TabularAgent(Agent):
    """An agent that learns a finite problem from counts. PSRL, UCRL2 and the others define how to plan."""

    horizon: int | None = None
    seed: Seed = None

    _fused = True
    _takes_basis = False
    needs_states = True
    _samples_first = True
    homogeneous = False  # whether it knows that periods are alike
    reward_range = (-math.inf, math.inf)
    _remedy = "try another agent, such as rlsvi.RLSVI"

    def _check(self) -> None:
        self._rule(1, np.size(getattr(self, "alpha_P", 1.0)), 1)

    def _rule(self, H: int, S: int, A: int) -> Any:
        """Return the parameters of the algorithm, checked, and its work arrays: a named tuple of its own class."""
        raise NotImplementedError

    def _blank_plan(self, H: int, S: int, A: int) -> Any:
        """Return a plan without values: nothing is known to be impossible."""
        return Plan(np.full((H, S, A), np.inf), np.zeros((H + 1, S + 1)))

    def _reward_bounds(self) -> tuple[float, float]:
        """Return the lowest and the highest reward that can be learned from."""
        return float(self.reward_range[0]), float(self.reward_range[1])

    def _notice(self) -> None:
        """Warn if there was never a reward and hardly anything new is found any more."""
        counts = self._learner.mind.counts
        if is_checked(self.episodes) and not counts.reward.any() and is_explored(counts.into, self.episodes):
            self._miss_reward()

    def _failure(self, rewards: Floats) -> Exception:
        low, high = self._reward_bounds()
        beyond = rewards[(rewards < low) | (rewards > high)]
        if not len(beyond):
            return self._broken()
        return ValueError(
            f"reward {beyond[0]:g} lies outside of reward_range={tuple(self.reward_range)}: widen it"
        )

    def _task_of(self, env: Any) -> Task:
        """Return the task that an environment poses; if it is a finite MDP, its periods are checked."""
        mdp = getattr(getattr(env, "unwrapped", None), "mdp", None)
        if isinstance(mdp, FiniteMDP):
            self._check_alike(mdp)
        return super()._task_of(env)

    def _task_in(self, mdp: FiniteMDP) -> Task:
        self._check_alike(mdp)
        return super()._task_in(mdp)

    def _check_alike(self, mdp: FiniteMDP) -> None:
        """Raise an error if periods should be alike and are not: one P, one R and one mask, and no r_H."""
        table = mdp.table
        differ = "transitions and rewards" if table.per_period else "legal actions" if len(table.legal) > 1 else ""
        if not differ and table.terminal[~table.absorbing].any():
            differ = "rewards (the last includes r_H)"
        if self.homogeneous and differ:
            remedy = "leave homogeneous out" if "homogeneous" in self.get_params() else "use RLSVI"
            raise ValueError(
                f"{type(self).__name__} needs periods that are alike, but {differ} depend on them here: {remedy}"
            )

    def new_learner(self, task: Task, example: Any) -> "TabularLearner":
        """Return a learner without experience."""
        assert task.states is not None
        H, S, A, alike = task.horizon, task.states, task.actions, bool(self.homogeneous)
        numbers = (ROWS if alike else H) * S * A * (S + 3)
        fits(
            f"the counts of {S} states, {A} actions",
            numbers,
            "use rlsvi.DiscountedPSRL, which keeps what it meets",
        )
        counts, plan = no_counts(ROWS if alike else H, S, A), self._blank_plan(H, S, A)
        mind = TabularMind(counts, plan, self._rule(H, S, A), *self._reward_bounds(), alike)
        return TabularLearner(task, mind, failure=self._failure)

    def restored_learner(self, task: Task, file: Archive) -> "TabularLearner":
        """Return the learner stored in a file, after checking all its arrays."""
        H, S, A, rows = task.horizon, task.states or 0, task.actions, ROWS if self.homogeneous else task.horizon
        counted = file.shape("counts.into", 4) == (rows, S, A, S + 1) and file.shape("plan.Q", 3) == (H, S, A)
        if not S or not counted:
            raise ArchiveError(f"is damaged: its counts are not those of {task}")
        self._check_features(task, file)
        learner = self.new_learner(task, 0)
        learner.restore(file)
        return learner

    def _check_features(self, task: Task, file: Archive) -> None:
        """Raise an error if an agent with features has others than those in a file."""


def range_of(reward_range: Any, *, with_zero: bool = False) -> tuple[float, float]:
    """Return the checked lowest and highest reward; `with_zero` extends them to 0, the reward after an episode."""
    low, high = (float(value) for value in shaped("reward_range", finite("reward_range", reward_range), (2,)))
    if not low < high:
        raise ValueError(f"reward_range must be (low, high) with low < high, got {shown(reward_range)}")
    return (min(low, 0.0), max(high, 0.0)) if with_zero else (low, high)


def probability(name: str, value: Any) -> float:
    """Return `value` if it lies strictly between 0 and 1."""
    number = shaped(name, finite(name, value), ())
    if not 0 < number < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {shown(value)}")
    return float(number)


# ---- What a tabular agent knows ----------------------------------------------------------------------------


class Counts(NamedTuple):
    """Sums over all episodes, in P = H rows, or P = 2. Column S of `into` counts the episodes that ended there."""

    counters: Longs  # (2,) episodes and steps
    visits: Floats  # (P, S, A)
    reward: Floats  # (P, S, A) sum of rewards
    into: Floats  # (P, S, A, S + 1)
    ends: Longs  # (P,) episodes that ended in this period
    seen: Bools  # (P, S)
    legal: Bools  # (P, S, A); all actions until a state is seen


def no_counts(P: int, S: int, A: int) -> Counts:
    """Return counts of zero, in P rows."""
    return Counts(
        counters=new_counters(),
        visits=np.zeros((P, S, A)),
        reward=np.zeros((P, S, A)),
        into=np.zeros((P, S, A, S + 1)),
        ends=np.zeros(P, np.int64),
        seen=np.zeros((P, S), np.bool_),
        legal=np.ones((P, S, A), np.bool_),
    )


class Plan(NamedTuple):
    """The values acted on. V[h, S] = V[H, s] = 0: the episode is over."""

    Q: Floats  # (H, S, A), -inf if illegal
    V: Floats  # (H + 1, S + 1)


class TabularMind(NamedTuple):
    """The counts, the plan to act on, and the rule of the algorithm."""

    counts: Counts
    plan: Any  # a Plan, or one of the algorithm's own that begins with the same fields
    rule: Any
    lowest: float  # reward that can be learned from
    highest: float
    homogeneous: bool  # whether periods are alike

    @property
    def features(self) -> FeatureTable:
        """The features of a rule that has them."""
        features: FeatureTable = self.rule.features
        return features


# ---- How it plans and learns; an algorithm defines the first function, and the others if it needs to ------------


@generic
def value_of(rule: Any, mind: TabularMind, h: int, s: int, a: int, sampled: bool, stream: Words) -> float:
    """Return Q_h(s, a), given V_{h+1}: a sample, or the mean if not `sampled`. Any value will do if illegal."""
    raise NotImplementedError


@generic
def begin_period(rule: Any, mind: TabularMind, h: int) -> None:
    """Prepare the work arrays of a rule for the values of period h, given V_{h+1}."""
    raise NotImplementedError


@begin_period.register(tuple)
def nothing_to_prepare(rule: Any, mind: TabularMind, h: int) -> None:
    """Most algorithms compute every value by itself."""


@generic
def plan_values(rule: Any, mind: TabularMind, sampled: bool, stream: Words) -> bool:
    """Compute the plan from the counts: a sample, or the mean if not `sampled`. False if a value is not finite."""
    raise NotImplementedError


@plan_values.register(tuple)
def plan_backwards(rule: Any, mind: TabularMind, sampled: bool, stream: Words) -> bool:
    """Value iteration: Q_h(s, a) by `value_of`, and V_h = max_a Q_h over legal actions, for h = H-1, .., 0."""
    H, S, A = mind.plan.Q.shape
    for h in range(H - 1, -1, -1):
        begin_period(rule, mind, h)
        for s in range(S):
            for a in range(A):
                mind.plan.Q[h, s, a] = value_of(rule, mind, h, s, a, sampled, stream)
        if not best_values(mind, h):
            return False
    return True


@generic
def learn_step(rule: Any, mind: TabularMind, h: int, s: int, a: int) -> bool:
    """Learn more from a step than its counts, which contain it already. Returns False if a factor failed."""
    raise NotImplementedError


@learn_step.register(tuple)
def nothing_more(rule: Any, mind: TabularMind, h: int, s: int, a: int) -> bool:
    """Most algorithms need nothing but the counts."""
    return True


@generic
def copy_plan(plan: Any, to: Any) -> None:
    """Copy all arrays of a plan."""
    raise NotImplementedError


@copy_plan.register(tuple)
def copy_values(plan: Any, to: Any) -> None:
    """Copy the values."""
    copy_table(plan.Q, to.Q)
    copy(plan.V, to.V)


@compiled
def copy_table(table: Floats, to: Floats) -> None:
    """Copy an array of three dimensions."""
    for h in range(table.shape[0]):
        for s in range(table.shape[1]):
            for a in range(table.shape[2]):
                to[h, s, a] = table[h, s, a]


@plan.register(TabularMind)
def tabular_plan(mind: TabularMind, sampled: bool, stream: Words) -> bool:
    """Plan by the rule of the algorithm."""
    return plan_values(mind.rule, mind, sampled, stream)


@values.register(TabularMind)
def tabular_values(mind: TabularMind, h: int, s: int, Q: Floats, scratch: Words) -> None:
    """Look up the values of the plan."""
    for a in range(Q.size):
        Q[a] = mind.plan.Q[h, s, a]


@learn.register(TabularMind)
def tabular_learn(mind: TabularMind, table: Table, T: int, work: Workspace) -> bool:
    """Count the episode."""
    if not all_between(work.rewards[:T], mind.lowest, mind.highest):
        return False
    for h in range(T):
        s, legal = work.states[h], table.legal[mask_of(table, h)]
        see(mind, h, s, legal[s])
    return count_transitions(mind, work.states, work.actions, work.rewards, T, table.states)


@compiled
def remember_on(mind: TabularMind, plan: Any, episode: Episode) -> bool:
    """Learn from an episode that was played with another plan, which becomes that of the mind."""
    T = episode.actions.size
    if not all_between(episode.rewards, mind.lowest, mind.highest):
        return False
    copy_plan(plan, mind.plan)
    for h in range(episode.states.size):
        see(mind, h, episode.states[h], episode.legal[h])
    last = episode.states[T] if episode.goes_on else plan.Q.shape[1]
    return count_transitions(mind, episode.states, episode.actions, episode.rewards, T, last)


@compiled
def count_row(homogeneous: bool, periods: int, h: int) -> int:
    """Return the row of period h in the counts."""
    return h if not homogeneous else 0 if h + 1 < periods else 1


@compiled
def see(mind: TabularMind, h: int, s: int, legal: Bools) -> None:
    """Record a state in period h, with its legal actions; in all rows if periods are alike."""
    counts = mind.counts
    first, last = (0, ROWS) if mind.homogeneous else (h, h + 1)
    for p in range(first, last):
        counts.seen[p, s] = True
        for a in range(legal.size):
            counts.legal[p, s, a] = legal[a]


@compiled
def count_transitions(
    mind: TabularMind, states: Longs, actions: Longs, rewards: Floats, steps: int, last: int
) -> bool:
    """Learn from an episode of `steps` steps that led to the state `last`, or to its end if `last` = S.

    Returns False if a factor failed.
    """
    counts = mind.counts
    for h in range(steps):
        p, s, a = count_row(mind.homogeneous, mind.plan.Q.shape[0], h), states[h], actions[h]
        following = states[h + 1] if h + 1 < steps else last
        counts.visits[p, s, a] += 1.0
        counts.reward[p, s, a] += rewards[h]
        counts.into[p, s, a, following] += 1.0
        if following == counts.visits.shape[1]:
            counts.ends[p] += 1
        if not learn_step(mind.rule, mind, h, s, a):
            return False
    return count(counts.counters, steps)


@compiled
def best_values(mind: TabularMind, h: int) -> bool:
    """V_h(s) = max_a Q_h(s, a) over legal actions. Returns False if it is not finite."""
    Q, V = mind.plan.Q, mind.plan.V
    legal = mind.counts.legal[count_row(mind.homogeneous, Q.shape[0], h)]
    for s in range(Q.shape[1]):
        best = -np.inf
        for a in range(Q.shape[2]):
            if not legal[s, a]:
                Q[h, s, a] = -np.inf
            elif Q[h, s, a] != Q[h, s, a]:
                return False
            best = max(best, Q[h, s, a])
        if not abs(best) < np.inf:
            return False
        V[h, s] = best
    return True


class TabularLearner(MindLearner):
    """Counts in the mind; the plan of an episode is stored when the episode is learned from."""

    mind: TabularMind

    @property
    def counters(self) -> Longs:
        """The episodes and steps learned from, (2,)."""
        return self.mind.counts.counters

    def look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """Return a state and its legal actions, which only a prediction may restrict further."""
        place, counts = super().look(h, observation, mask), self.mind.counts
        p = count_row(self.mind.homogeneous, self.task.horizon, h)
        if not counts.seen[p, place.observation]:
            return place
        return place.narrowed(counts.legal[p, place.observation], learning)

    def plan(self, sampled: bool, stream: Words, learning: bool = False) -> TabularMind:
        """Return the mind with a new plan, computed from the last one."""
        last = self.mind.plan
        mind = self.mind._replace(plan=type(last)(*(part.copy() for part in last)))
        if not plan(mind, sampled, stream):
            raise broken()
        return mind

    def remember(self, steps: list[Step], plan: TabularMind, ended: bool) -> Self:
        """Count an episode and store the plan it was played with, in one compiled call."""
        episode = self.stacked(steps)
        if not remember_on(self.mind, plan.plan, episode):
            raise self.failure(episode.rewards)
        return self

    def state(self) -> dict[str, Any]:
        """Return the counts, the plan, and the factors of a rule that has them."""
        mind, factor = self.mind, getattr(self.mind.rule, "factor", None)
        return flat(counts=mind.counts, plan=mind.plan, **({} if factor is None else {"linear": factor}))

    def restore(self, file: Archive) -> None:
        """Restore the learner from a file, after checking all its arrays."""
        arrays = self.state()
        for name, array in arrays.items():
            found = file.take(name, array.shape, array.dtype, finite=name not in UNBOUNDED)
            if np.isnan(found).any():
                raise ArchiveError(f"is damaged: {name} holds numbers that are not finite")
            array[...] = found
        for name in ONCE_SAVED:
            if name in file and name not in arrays:
                file.take_any(name)
        counts = self.mind.counts
        sound = np.array_equal(counts.into.sum(axis=3), counts.visits) and (counts.into >= 0).all()
        if not sound or counts.visits.sum() != counts.counters[1] or not counts.legal.any(axis=2).all():
            raise ArchiveError("is damaged: its counts do not add up")
