"""The mind of tabular agents: counts of each period, state and action, their outcomes, and the plan.

If periods are known to be alike, their counts are pooled in two rows instead of H: row 0 for periods 0 .. H-2, and
row 1 for the last period, whose next states are not observed, as the episode ends there.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from rlsvi.agents.agent import Agent
from rlsvi.agents.contract import (
    Episode,
    MindLearner,
    Place,
    Step,
    Workspace,
    broken,
    checked_basis,
    count,
    learn,
    new_counters,
    plan,
    restored_features,
    values,
)
from rlsvi.agents.no_progress import is_checked, is_explored
from rlsvi.agents.task import Task
from rlsvi.bases.basis import FeatureTable
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import finite, flag, shaped, shown
from rlsvi.core.compile import Bools, Floats, Ints, Longs, Words, compiled
from rlsvi.core.random import Seed
from rlsvi.core.regression import prior_factor, rank_one
from rlsvi.mdp.examples import weights_of
from rlsvi.mdp.finite import FiniteMDP, Table, mask_of

ROWS = 2  # of the counts, if periods are alike


class Counts(NamedTuple):
    """Sums over all episodes, in P = H rows, or P = 2. Column S of `into` counts the episodes that ended there."""

    counters: Longs  # (2,) episodes and steps
    visits: Floats  # (P, S, A)
    reward: Floats  # (P, S, A) sum of rewards
    into: Floats  # (P, S, A, S + 1)
    ends: Longs  # (P,) episodes that ended in this period
    seen: Bools  # (P, S)
    legal: Bools  # (P, S, A); all actions until a state is seen


class Plan(NamedTuple):
    """The values acted on. V[h, S] = V[H, s] = 0: the episode is over."""

    Q: Floats  # (H, S, A), -inf if illegal
    V: Floats  # (H + 1, S + 1)
    visits: Floats  # (P, S, A) when the plan was made
    due: Bools  # (1,) whether a pair has been tried as often since then as before
    p: Floats  # (S + 1,) work array
    order: Longs  # (S + 1,)
    R: Floats  # (S, A) rewards and probabilities of one MDP for all periods; empty unless periods are alike
    P: Floats  # (S, A, S + 1)


class LinearFeatures(NamedTuple):
    """Features and the factors of every period's precision matrix; empty for agents without features."""

    phi: Floats  # (H, or 1 if all periods share them; S, A, d)
    block: Ints  # (S, A)
    U: Floats  # (H, B, d, d)
    inv: Floats  # (H, B, d)
    theta: Floats  # (B, d)
    x: Floats  # (d,) work array


class TabularMind(NamedTuple):
    """The counts, the plan to act on, and the parameters of the algorithm.

    Every algorithm derives its own class, for which it registers `plan` (agents/contract.py).
    """

    counts: Counts
    plan: Plan
    linear: LinearFeatures
    numbers: Floats  # in the order defined in the algorithm's file
    alpha: Floats  # (S + 1,) prior weights of the next state; 0 for the end
    rewards: Floats  # (2,) the lowest and the highest reward that can be learned from
    homogeneous: bool  # whether periods are alike

    @property
    def features(self) -> FeatureTable:
        """The features used for learning."""
        return FeatureTable(self.linear.phi, self.linear.block)


def no_counts(P: int, S: int, A: int) -> Counts:
    """Return counts of zero, in P rows."""
    shape = P, S, A
    return Counts(
        counters=new_counters(),
        visits=np.zeros(shape),
        reward=np.zeros(shape),
        into=np.zeros((*shape, S + 1)),
        ends=np.zeros(P, np.int64),
        seen=np.zeros((P, S), np.bool_),
        legal=np.ones(shape, np.bool_),
    )


def no_plan(H: int, S: int, A: int, homogeneous: bool) -> Plan:
    """Return a plan without values: nothing is known to be impossible."""
    kept = S if homogeneous else 0
    return Plan(
        Q=np.full((H, S, A), np.inf),
        V=np.zeros((H + 1, S + 1)),
        visits=np.zeros((ROWS if homogeneous else H, S, A)),
        due=np.ones(1, np.bool_),
        p=np.zeros(S + 1),
        order=np.zeros(S + 1, np.int64),
        R=np.zeros((kept, A)),
        P=np.zeros((kept, A, S + 1)),
    )


def linear_of(H: int, phi: Floats, block: Ints, blocks: int, ridge: float) -> LinearFeatures:
    """Return features without data."""
    d = phi.shape[3]
    factor = prior_factor((H, blocks), d, ridge)
    return LinearFeatures(phi, block, factor.U, factor.inv, np.zeros((blocks, d)), np.zeros(d))


def no_linear() -> LinearFeatures:
    """No features."""
    return linear_of(1, np.zeros((1, 0, 0, 0)), np.zeros((0, 0), np.int32), 0, 1.0)


@values.register(TabularMind)
def tabular_values(mind: TabularMind, h: int, s: int, Q: Floats, scratch: Words) -> None:
    """Look up the values of the plan."""
    for a in range(Q.size):
        Q[a] = mind.plan.Q[h, s, a]


@learn.register(TabularMind)
def tabular_learn(mind: TabularMind, table: Table, T: int, work: Workspace) -> bool:
    """Count the episode."""
    if not in_range(mind, work.rewards, T):
        return False
    for h in range(T):
        s, legal = work.states[h], table.legal[mask_of(table, h)]
        see(mind, h, s, legal[s])
    return count_transitions(mind, work.states, work.actions, work.rewards, T, table.states)


@compiled
def remember_on(mind: TabularMind, plan: Plan, episode: Episode) -> bool:
    """Learn from an episode that was played with another plan, which becomes that of the mind."""
    T = episode.actions.size
    if not in_range(mind, episode.rewards, T):
        return False
    mine, Q, V = mind.plan, plan.Q, plan.V
    for h in range(Q.shape[0]):
        for s in range(Q.shape[1]):
            for a in range(Q.shape[2]):
                mine.Q[h, s, a] = Q[h, s, a]
    for p in range(plan.visits.shape[0]):
        for s in range(Q.shape[1]):
            for a in range(Q.shape[2]):
                mine.visits[p, s, a] = plan.visits[p, s, a]
    for h in range(V.shape[0]):
        for s in range(V.shape[1]):
            mine.V[h, s] = V[h, s]
    mine.due[0] = plan.due[0]
    for h in range(episode.states.size):
        see(mind, h, episode.states[h], episode.legal[h])
    last = episode.states[T] if episode.goes_on else Q.shape[1]
    return count_transitions(mind, episode.states, episode.actions, episode.rewards, T, last)


@compiled
def in_range(mind: TabularMind, rewards: Floats, steps: int) -> bool:
    """Return whether the agent can learn from all rewards of an episode."""
    inside = True
    for t in range(steps):
        inside = inside and mind.rewards[0] <= rewards[t] <= mind.rewards[1]
    return inside


@compiled
def count_row(mind: TabularMind, h: int) -> int:
    """Return the row of period h in the counts."""
    if not mind.homogeneous:
        return h
    return 0 if h + 1 < mind.plan.Q.shape[0] else 1


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
    counts, plan, linear = mind.counts, mind.plan, mind.linear
    for h in range(steps):
        p, s, a = count_row(mind, h), states[h], actions[h]
        following = states[h + 1] if h + 1 < steps else last
        counts.visits[p, s, a] += 1.0
        counts.reward[p, s, a] += rewards[h]
        counts.into[p, s, a, following] += 1.0
        if following == counts.visits.shape[1]:
            counts.ends[p] += 1
        n, before = counts.visits[p, s, a], plan.visits[p, s, a]
        if mind.homogeneous:
            n, before = n + counts.visits[1 - p, s, a], before + plan.visits[1 - p, s, a]
        if n - before >= max(1.0, before):
            plan.due[0] = True
        if linear.x.size > 0:
            b = linear.block[s, a]
            for k in range(linear.x.size):
                linear.x[k] = linear.phi[h if linear.phi.shape[0] > 1 else 0, s, a, k]
            if not rank_one(linear.U[h, b], linear.inv[h, b], linear.x):
                return False
    return count(counts.counters, steps)


@compiled
def best_values(mind: TabularMind, h: int) -> bool:
    """V_h(s) = max_a Q_h(s, a) over legal actions. Returns False if it is not finite."""
    Q, V, legal = mind.plan.Q, mind.plan.V, mind.counts.legal[count_row(mind, h)]
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


# ---- The common part of tabular agents: counts of a finite problem, from which each algorithm computes its plan


SAVED = {"counts": None, "plan": ("Q", "V", "visits", "due"), "linear": ("U", "inv")}
UNBOUNDED = ("plan.Q", "plan.V")  # may be infinite: before the first plan, and for illegal actions


class TabularLearner(MindLearner):
    """Counts in the mind; the plan of an episode is stored when the episode is learned from."""

    mind: TabularMind

    @property
    def counters(self) -> Longs:
        """The episodes and steps learned from, (2,)."""
        return self.mind.counts.counters

    def look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """Return a state and its legal actions, which only a prediction may restrict further."""
        place, counts, p = super().look(h, observation, mask), self.mind.counts, count_row(self.mind, h)
        if not counts.seen[p, place.observation]:
            return place
        return place.narrowed(counts.legal[p, place.observation], learning)

    def plan(self, sampled: bool, stream: Words, learning: bool = False) -> TabularMind:
        """Return the mind with a new plan, computed from the last one."""
        last: Any = self.mind.plan
        mind = self.mind._replace(plan=Plan(*(part.copy() for part in last)))
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
        """Return the counts, the plan and the factors."""
        arrays: dict[str, Any] = {}
        for part, names in SAVED.items():
            fields = getattr(self.mind, part)._asdict()
            arrays |= {f"{part}.{name}": fields[name] for name in names or fields}
        return arrays

    def restore(self, file: Archive) -> None:
        """Restore the learner from a file, after checking all its arrays."""
        for name, array in self.state().items():
            found = file.take(name, array.shape, array.dtype, finite=name not in UNBOUNDED)
            if np.isnan(found).any():
                raise ArchiveError(f"is damaged: {name} holds numbers that are not finite")
            array[...] = found
        counts = self.mind.counts
        sound = np.array_equal(counts.into.sum(axis=3), counts.visits) and (counts.into >= 0).all()
        if not sound or counts.visits.sum() != counts.counters[1] or not counts.legal.any(axis=2).all():
            raise ArchiveError("is damaged: its counts do not add up")


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
    mind_class: ClassVar[Any] = None  # the class for which the algorithm registers `plan`

    def _check(self) -> None:
        """Validate the arguments; an error names the argument and the remedy."""
        checked_basis(self.basis)
        flag("homogeneous", self.homogeneous)
        self.numbers(1, 1, 1, 1)
        self.prior_weights(np.size(getattr(self, "alpha_P", 1.0)))

    def _notice(self) -> None:
        """Warn if there was never a reward and hardly anything new is found any more."""
        counts = self._learner.mind.counts
        if is_checked(self.episodes) and not counts.reward.any() and is_explored(counts.into, self.episodes):
            self._miss_reward(self._remedy or "try another agent, such as rlsvi.RLSVI")

    def numbers(self, horizon: int, states: int, actions: int, weights: int) -> Floats:
        """Return the parameters of the planner, after checking them."""
        raise NotImplementedError

    def prior_weights(self, states: int) -> Floats:
        """Return the prior weights of the next state."""
        alpha = getattr(self, "alpha_P", ...)
        return np.zeros(states) if alpha is ... else weights_of("alpha_P", alpha, states)

    def linear(self, task: Task) -> LinearFeatures:
        """Return features and their factors, for agents that learn with features."""
        return no_linear()

    def rewards(self) -> tuple[float, float]:
        """Return the lowest and the highest reward that can be learned from."""
        return float(self.reward_range[0]), float(self.reward_range[1])

    def _failure(self, rewards: Floats) -> Exception:
        """Return the error to raise if an episode with these rewards could not be learned from."""
        low, high = self.rewards()
        beyond = rewards[(rewards < low) | (rewards > high)]
        if not len(beyond):
            return self._broken()
        given = tuple(self.reward_range)
        return ValueError(f"reward {beyond[0]:g} lies outside of reward_range={given}: widen it")

    def _task_of(self, env: Any) -> Task:
        """Return the task that an environment poses; if it is a finite MDP, its periods are checked."""
        mdp = getattr(getattr(env, "unwrapped", None), "mdp", None)
        if self.homogeneous and isinstance(mdp, FiniteMDP):
            self.check_alike(mdp)
        return super()._task_of(env)

    def _task_in(self, mdp: FiniteMDP) -> Task:
        """Return the task that an MDP poses, after checking its periods."""
        if self.homogeneous:
            self.check_alike(mdp)
        return super()._task_in(mdp)

    def check_alike(self, mdp: FiniteMDP) -> None:
        """Raise an error unless all periods of an MDP are alike: one P, one R and one mask, and no r_H."""
        table = mdp.table
        differ = "transitions and rewards" if table.per_period else "legal actions" if len(table.legal) > 1 else ""
        if not differ and table.terminal[~table.absorbing].any():
            differ = "rewards (the last includes r_H)"
        if differ:
            remedy = "leave homogeneous out" if "homogeneous" in self._arguments() else "use RLSVI"
            raise ValueError(
                f"{type(self).__name__} needs periods that are alike, but {differ} depend on them here: {remedy}"
            )

    def new_learner(self, task: Task, example: Any) -> TabularLearner:
        """Return a learner without experience."""
        assert task.states is not None
        H, S, A, linear = task.horizon, task.states, task.actions, self.linear(task)
        alike = bool(self.homogeneous)
        alpha, rewards = np.append(self.prior_weights(S), 0.0), np.array(self.rewards())
        numbers = self.numbers(H, S, A, linear.theta.size)
        counts, plan = no_counts(ROWS if alike else H, S, A), no_plan(H, S, A, alike)
        mind: TabularMind = self.mind_class(counts, plan, linear, numbers, alpha, rewards, alike)
        return TabularLearner(task, mind, failure=self._failure)

    def restored_learner(self, task: Task, file: Archive) -> TabularLearner:
        """Return the learner stored in a file, after checking all its arrays."""
        rows = ROWS if self.homogeneous else task.horizon
        H, S, A = task.horizon, task.states or 0, task.actions
        shapes = {"counts.into": (rows, S, A, S + 1), "plan.Q": (H, S, A)}
        if self._takes_basis:
            _, B, d, _ = file.shape("linear.U", 4)
            shapes["linear.U"] = (H, B, d, d)
        if not S or any(file.shape(name, len(shape)) != shape for name, shape in shapes.items()):
            raise ArchiveError(f"is damaged: its counts are not those of {task}")
        if self._takes_basis:
            restored_features(self, task, B, d)
        learner = self.new_learner(task, 0)
        learner.restore(file)
        return learner


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
