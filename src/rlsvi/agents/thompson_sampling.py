"""Bernoulli Thompson sampling: Algorithm "Bernoulli bandit" of appendix E, for any number of actions.

for l = 0, 1, ..
    sample p_a ~ Beta(alpha_a, beta_a) for every action a
    in every period take the legal action of the highest p_a     (for recommendations: the products in order of p)
    for every action taken: alpha_a += r, beta_a += 1 - r

It ignores states, and learns which actions are good regardless of where they are taken.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rlsvi.agents.agent import Agent
from rlsvi.agents.contract import (
    Episode,
    MindLearner,
    Place,
    Workspace,
    count,
    learn,
    new_counters,
    plan,
    remember,
    values,
)
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import Constraints, finite, shaped, shown
from rlsvi.core.compile import Floats, Longs, Words, compiled
from rlsvi.core.elementary import all_between
from rlsvi.core.random import Seed, beta
from rlsvi.envs.task import Task
from rlsvi.mdp.finite import FiniteMDP, Table


def check_prior(name: str, prior: Any) -> None:
    """Raise an error if these are not alpha and beta of a prior whose variates do not underflow."""
    if (shaped(name, finite(name, prior), (2,)) < 0.1).any():
        raise ValueError(f"{name} must be two numbers of at least 0.1, got {shown(prior)}")


@dataclass(kw_only=True, repr=False, eq=False)
class ThompsonSampling(Agent):
    """Bernoulli Thompson sampling over the actions, independent of the state.

    Parameters
    ----------
    prior
        Prior alpha and beta of every action, each at least 0.1; (1, 1) is uniform.
    reward_offset
        Added to every reward before learning. The result must lie in [0, 1]: use 1 for rewards {-1, 0}. A reward
        between 0 and 1 counts as that fraction of a success.
    seed
        Determines all randomness, including the environment's.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> agent = rlsvi.ThompsonSampling(prior=(1, 1), seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/Recommendation-v0", products=4, slots=2), 50).episodes
    50
    """

    prior: tuple[float, float] = (1.0, 1.0)
    reward_offset: float = 0.0
    seed: Seed = None

    _fused = True
    _takes_basis = False
    needs_horizon = False
    _samples_first = True
    _constraints: ClassVar[Constraints] = {"prior": check_prior}

    def _task_of(self, env: Any) -> Task:
        """Return the task that an environment poses; only its actions matter."""
        return super()._task_of(env)._replace(states=None, first_state=0)

    def _task_in(self, mdp: FiniteMDP) -> Task:
        """Return the task that an MDP poses; only its actions matter."""
        return Task(0, mdp.table.actions, None)

    def _failure(self, rewards: Floats) -> ValueError:
        """Return the error for a reward outside [0, 1]."""
        return ValueError(
            "Thompson sampling needs rewards in [0, 1] after reward_offset is added: pass reward_offset=1 for "
            "rewards {-1, 0}, or wrap the environment (gymnasium.wrappers.TransformReward)"
        )

    def new_learner(self, task: Task, example: Any) -> "ThompsonLearner":
        """Return a learner without experience."""
        counts = np.repeat(np.asarray(self.prior, np.float64)[:, None], task.actions, axis=1)
        return ThompsonLearner(
            task, ThompsonMind(counts, np.zeros(task.actions), new_counters()), failure=self._failure
        )

    def restored_learner(self, task: Task, file: Archive) -> "ThompsonLearner":
        """Return the learner stored in a file, after checking all its arrays."""
        counts = file.take("counts", (2, task.actions))
        if (counts < 0.1).any():
            raise ArchiveError("is damaged: a count in it is too small")
        counters = file.take_within("counters", (2,), np.int64, 0, 2**62)
        return ThompsonLearner(task, ThompsonMind(counts, np.zeros(task.actions), counters), failure=self._failure)


class ThompsonMind(NamedTuple):
    """The counts and the sample of every action."""

    counts: Floats  # (2, A) alpha and beta
    p: Floats  # (A,) the sample to act on
    counters: Longs  # (2,) episodes and steps learned from


@plan.register(ThompsonMind)
def thompson_plan(mind: ThompsonMind, sampled: bool, stream: Words) -> bool:
    """p_a ~ Beta(alpha_a, beta_a), or its mean."""
    for a in range(mind.p.size):
        good, bad = mind.counts[0, a], mind.counts[1, a]
        mind.p[a] = beta(stream, good, bad) if sampled else good / (good + bad)
    return True


@values.register(ThompsonMind)
def thompson_values(mind: ThompsonMind, h: int, s: int, Q: Floats, scratch: Words) -> None:
    """Set the values, which are the same in every state."""
    for a in range(Q.size):
        Q[a] = mind.p[a]


@learn.register(ThompsonMind)
def thompson_learn(mind: ThompsonMind, table: Table, T: int, work: Workspace) -> bool:
    """Count the successes of every action taken."""
    return count_rewards(mind, work.actions, work.rewards, T)


@remember.register(ThompsonMind)
def thompson_remember(mind: ThompsonMind, episode: Episode, work: Workspace) -> bool:
    """Count the successes in an episode that was not played in the compiled loop."""
    return count_rewards(mind, episode.actions, episode.rewards, episode.actions.size)


@compiled
def count_rewards(mind: ThompsonMind, actions: Longs, rewards: Floats, steps: int) -> bool:
    """Learn from an episode, or return False and learn nothing if a reward is not in [0, 1]."""
    if not all_between(rewards[:steps], 0.0, 1.0):
        return False
    for t in range(steps):
        mind.counts[0, actions[t]] += rewards[t]
        mind.counts[1, actions[t]] += 1.0 - rewards[t]
    return count(mind.counters, steps)


class ThompsonLearner(MindLearner):
    """Counts of successes and failures."""

    saved = "counts", "counters"
    mind: ThompsonMind

    def look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """Return a place that contains only the legal actions."""
        return Place(h, 0, self.task.legal(mask))

    def another_plan(self) -> ThompsonMind:
        """Return the mind with arrays for one more sample."""
        return self.mind._replace(p=np.empty_like(self.mind.p))
