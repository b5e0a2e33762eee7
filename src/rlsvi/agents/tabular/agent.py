"""The common part of tabular agents: counts of a finite problem, from which each algorithm computes its plan."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from rlsvi.agents.agent import Agent
from rlsvi.agents.contract import MindLearner, Place, Step, broken, checked_basis, plan, restored_features
from rlsvi.agents.progress import is_checked, is_explored
from rlsvi.agents.tabular.mind import (
    ROWS,
    LinearFeatures,
    Plan,
    TabularMind,
    count_row,
    no_counts,
    no_linear,
    no_plan,
    remember_on,
)
from rlsvi.agents.task import Task
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import finite, flag, shaped, shown
from rlsvi.core.compile import Floats, Longs, Words
from rlsvi.core.random import Seed
from rlsvi.mdp.dirichlet import weights_of
from rlsvi.mdp.finite import FiniteMDP

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

    fused = True
    takes_basis = False
    needs_states = True
    samples_first = True
    homogeneous = False  # whether it knows that periods are alike
    reward_range = (-math.inf, math.inf)
    mind_class: ClassVar[Any] = None  # the class for which the algorithm registers `plan`

    def check(self) -> None:
        """Validate the arguments; an error names the argument and the remedy."""
        checked_basis(self.basis)
        flag("homogeneous", self.homogeneous)
        self.numbers(1, 1, 1, 1)
        self.prior_weights(np.size(getattr(self, "alpha_P", 1.0)))

    def notice(self) -> None:
        """Warn if there was never a reward and hardly anything new is found any more."""
        counts = self._learner.mind.counts
        if is_checked(self.episodes) and not counts.reward.any() and is_explored(counts.into, self.episodes):
            self._miss_reward(self.remedy or "try another agent, such as rlsvi.RLSVI")

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

    def failure(self, rewards: Floats) -> Exception:
        """Return the error to raise if an episode with these rewards could not be learned from."""
        low, high = self.rewards()
        beyond = rewards[(rewards < low) | (rewards > high)]
        if not len(beyond):
            return self.broken()
        given = tuple(self.reward_range)
        return ValueError(f"reward {beyond[0]:g} lies outside of reward_range={given}: widen it")

    def task_of(self, env: Any) -> Task:
        """Return the task that an environment poses; if it is a finite MDP, its periods are checked."""
        mdp = getattr(getattr(env, "unwrapped", None), "mdp", None)
        if self.homogeneous and isinstance(mdp, FiniteMDP):
            self.check_alike(mdp)
        return super().task_of(env)

    def task_in(self, mdp: FiniteMDP) -> Task:
        """Return the task that an MDP poses, after checking its periods."""
        if self.homogeneous:
            self.check_alike(mdp)
        return super().task_in(mdp)

    def check_alike(self, mdp: FiniteMDP) -> None:
        """Raise an error unless all periods of an MDP are alike: one P, one R and one mask, and no r_H."""
        table = mdp.table
        differ = "transitions and rewards" if table.per_period else "legal actions" if len(table.legal) > 1 else ""
        if not differ and table.terminal[~table.absorbing].any():
            differ = "rewards (the last includes r_H)"
        if differ:
            remedy = "leave homogeneous out" if "homogeneous" in self.arguments() else "use RLSVI"
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
        return TabularLearner(task, mind, failure=self.failure)

    def restored_learner(self, task: Task, file: Archive) -> TabularLearner:
        """Return the learner stored in a file, after checking all its arrays."""
        rows = ROWS if self.homogeneous else task.horizon
        H, S, A = task.horizon, task.states or 0, task.actions
        shapes = {"counts.into": (rows, S, A, S + 1), "plan.Q": (H, S, A)}
        if self.takes_basis:
            _, B, d, _ = file.shape("linear.U", 4)
            shapes["linear.U"] = (H, B, d, d)
        if not S or any(file.shape(name, len(shape)) != shape for name, shape in shapes.items()):
            raise ArchiveError(f"is damaged: its counts are not those of {task}")
        if self.takes_basis:
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
