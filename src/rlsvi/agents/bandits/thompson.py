"""Bernoulli Thompson sampling: Algorithm "Bernoulli bandit" of appendix E, for any number of actions.

for l = 0, 1, ..
    sample p_a ~ Beta(alpha_a, beta_a) for every action a
    in every period take the legal action of the highest p_a     (for recommendations: the products in order of p)
    for every action taken: alpha_a += r, beta_a += 1 - r

It knows nothing of states, and learns which actions are good wherever they are taken.
"""

from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.bandits.agent import OneStepAgent, Step
from rlsvi.agents.task import Task, endless_task_of
from rlsvi.core.checks import finite, shaped
from rlsvi.core.compile import Floats, Longs, Words, compiled
from rlsvi.core.random import Seed, beta


class Counts(NamedTuple):
    """What is known of every action."""

    counts: Floats  # (2, A) alpha and beta
    p: Floats  # (A,) the sample to act on


@compiled
def sample_counts(mind: Counts, sampled: bool, stream: Words) -> None:
    """p_a ~ Beta(alpha_a, beta_a), or its mean."""
    for a in range(mind.p.size):
        good, bad = mind.counts[0, a], mind.counts[1, a]
        mind.p[a] = beta(stream, good, bad) if sampled else good / (good + bad)


@compiled
def count_rewards(counts: Floats, actions: Longs, rewards: Floats, steps: int) -> bool:
    """Learn from an episode; False, and nothing is learned, if a reward does not lie in [0, 1]."""
    for t in range(steps):
        if not 0.0 <= rewards[t] <= 1.0:
            return False
    for t in range(steps):
        counts[0, actions[t]] += rewards[t]
        counts[1, actions[t]] += 1.0 - rewards[t]
    return True


class ThompsonSampling(OneStepAgent):
    """Bernoulli Thompson sampling over the actions, whatever the state.

    Parameters
    ----------
    prior : alpha and beta of every action before anything is seen, each at least 0.1; (1, 1) is uniform.
    reward_offset : added to every reward before it is learned from, which must then lie in [0, 1]: 1 for rewards
        {-1, 0}. A reward between 0 and 1 counts as that share of a success.
    seed : decides all randomness, the environment's included.
    """

    def __init__(
        self, *, prior: tuple[float, float] = (1.0, 1.0), reward_offset: float = 0.0, seed: Seed = None
    ) -> None:
        self.prior, self.reward_offset, self.seed = prior, reward_offset, seed
        self._start()
        if (shaped("prior", finite("prior", prior), (2,)) < 0.1).any():
            raise ValueError(f"prior must be two numbers of at least 0.1, got {prior!r}")

    def adopt(self, task: Task) -> Counts:
        """Take on a task; of which only the actions matter."""
        self._check(task._replace(horizon=0, states=None, first_state=0))
        if self._mind is None:
            self._bind(task, None)
        counts: Counts = self.episode_plan()
        return counts

    def _task_of(self, env: Any) -> Task:
        return endless_task_of(env)._replace(states=None, first_state=0)  # it looks at no observation

    def _bind(self, task: Task, example: Any) -> None:
        self._mind = new_counts(self.prior, task.actions)

    def _new_plan(self) -> Counts:
        return Counts(self._mind.counts, np.empty_like(self._mind.p))

    def _plan(self, plan: Counts, sampled: bool, stream: Words) -> None:
        sample_counts(plan, sampled, stream)

    def _values(self, plan: Counts, step: Step) -> Floats:
        return plan.p

    def _learn(self, steps: list[Step], actions: Longs, rewards: Floats) -> None:
        if not count_rewards(self._mind.counts, actions, rewards, len(actions)):
            raise outside()


def new_counts(prior: tuple[float, float], actions: int) -> Counts:
    """What is known before anything is seen."""
    return Counts(np.repeat(np.asarray(prior, np.float64)[:, None], actions, axis=1), np.zeros(actions))


def outside() -> ValueError:
    """What to raise for a reward that is no share of a success."""
    return ValueError(
        "Thompson sampling needs rewards in [0, 1] after reward_offset is added: pass reward_offset=1 for rewards "
        "{-1, 0}, or wrap the environment (gymnasium.wrappers.TransformReward)"
    )
