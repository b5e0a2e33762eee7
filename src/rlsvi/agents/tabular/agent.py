"""What the tabular agents share: counts of a finite problem, from which each algorithm makes its plan."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rlsvi.agents.agent import Agent
from rlsvi.agents.arguments import checked_basis
from rlsvi.agents.tabular.learner import TabularLearner
from rlsvi.agents.tabular.mind import LinearFeatures, TabularMind, linear_of, no_counts, no_linear, no_plan
from rlsvi.agents.task import Task
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import finite, shaped
from rlsvi.core.compile import Floats
from rlsvi.core.random import Seed


@dataclass(kw_only=True, repr=False, eq=False)
class TabularAgent(Agent):
    """Learns a finite problem from nothing. PSRL, UCRL2 and the others say how to plan."""

    reward_range: tuple[float, float] = (0.0, 1.0)
    horizon: int | None = None
    seed: Seed = None

    fused = True
    takes_basis = False
    needs_states = True
    samples_first = True
    mind_class: ClassVar[Any] = None  # for which the algorithm registers `plan`

    def check(self) -> None:
        """Check the arguments; an error names the argument and the remedy."""
        checked_basis(self.basis)
        self.numbers(1, 1, 1, 1)
        self.prior_weights(np.size(getattr(self, "alpha_P", 1.0)))

    def numbers(self, horizon: int, states: int, actions: int, weights: int) -> Floats:
        """What the planner takes, after checking it."""
        raise NotImplementedError

    def prior_weights(self, states: int) -> Floats:
        """Prior weights of the next state."""
        return np.zeros(states)

    def linear(self, task: Task) -> LinearFeatures:
        """Features and their factors, for agents that learn through features."""
        return no_linear()

    def rewards(self) -> tuple[float, float]:
        """The lowest and the highest reward that can be learned from."""
        return float(self.reward_range[0]), float(self.reward_range[1])

    def reward(self, paid: float) -> float:
        """A reward within the range given."""
        low, high = self.rewards()
        if not low <= paid <= high:
            raise outside(paid, self.reward_range)
        return paid

    def failure(self, rewards: Floats) -> Exception:
        """What to raise when an episode of these rewards could not be learned from."""
        low, high = self.rewards()
        beyond = rewards[(rewards < low) | (rewards > high)]
        return outside(float(beyond[0]), self.reward_range) if len(beyond) else self.broken()

    def new_learner(self, task: Task, example: Any) -> TabularLearner:
        """A learner that has seen nothing."""
        assert task.states is not None
        H, S, A, linear = task.horizon, task.states, task.actions, self.linear(task)
        alpha, rewards = np.append(self.prior_weights(S), 0.0), np.array(self.rewards())
        numbers = self.numbers(H, S, A, linear.theta.size)
        mind: TabularMind = self.mind_class(no_counts(H, S, A), no_plan(H, S, A), linear, numbers, alpha, rewards)
        return TabularLearner(task, mind, self.failure)

    def restored_learner(self, task: Task, file: Archive) -> TabularLearner:
        """The learner that a file holds, after checking every array of it."""
        if task.states is None or file.shape("counts.visits", 3) != (task.horizon, task.states, task.actions):
            raise ArchiveError(f"is damaged: its counts are not those of {task}")
        learner = self.new_learner(task, 0)
        learner.restore(file)
        return learner


def linear_features(agent: Agent, task: Task, ridge: float) -> LinearFeatures:
    """The features of an agent and factors that have seen no data."""
    features = agent.features(task, 0)
    assert features.table is not None
    return linear_of(task.horizon, *features.table, features.blocks, ridge)


def outside(reward: float, reward_range: Any) -> ValueError:
    """What to raise for a reward outside of `reward_range`."""
    return ValueError(f"reward {reward:g} lies outside of reward_range={tuple(reward_range)}: widen it")


def range_of(reward_range: Any) -> tuple[float, float]:
    """The lowest and the highest reward, checked."""
    low, high = (float(value) for value in shaped("reward_range", finite("reward_range", reward_range), (2,)))
    if not low < high:
        raise ValueError(f"reward_range must be (low, high) with low < high, got {reward_range!r}")
    return low, high


def wide_range(rewards: tuple[float, float]) -> tuple[float, float]:
    """A range of rewards that holds 0, which an episode that is over pays."""
    return min(rewards[0], 0.0), max(rewards[1], 0.0)


def probability(name: str, value: Any) -> float:
    """`value`, if it lies strictly between 0 and 1."""
    number = shaped(name, finite(name, value), ())
    if not 0 < number < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}")
    return float(number)
