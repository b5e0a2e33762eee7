"""What an episode costs, counted and not timed: a job must bring the same numbers again."""

from typing import Any

import numpy as np

from rlsvi.agents import LSVIUCB, GradientRLSVI, IncrementalRLSVI
from rlsvi.agents.finite.learner import FiniteLearner


def multiplications(agent: Any, skips: bool = True) -> float:
    """How many the next episode of an agent takes, to leading order, by the sizes of what it has in memory.

    skips : blocks of weights that no state has touched yet are left out, as they are. False: as if they were not.
    """
    if isinstance(agent, LSVIUCB):
        assert agent._learner is not None
        return float((agent._learner.mind.counts.into > 0).sum())  # probabilities times values
    if isinstance(agent, GradientRLSVI):
        return _of_steps(agent)
    memory = agent._learner.mind.memory
    blocks = float(memory.lives.sum() if skips else memory.alive.size)
    return _of_plan(agent._learner, blocks) + _of_episode(agent, blocks)


def _of_plan(learner: FiniteLearner, blocks: float) -> float:
    """Two triangles a block, the sums over next states, and the values of known states (value_iteration)."""
    memory, d = learner.mind.memory, learner.features.dim
    states, sums = float(memory.states.sum()), float(memory.sums.sum())
    return blocks * d**2 + (sums + states * learner.task.actions) * d


def _of_episode(agent: Any, blocks: float) -> float:
    """A rank-one update a step; if incremental the values of its states, and all factors if it forgets."""
    learner: Any = agent._learner
    d, H = learner.features.dim, learner.task.horizon
    work = float(2 * H * d**2)
    if isinstance(agent, IncrementalRLSVI):
        work += H * learner.task.actions * d
        if agent.step_sizes(agent.episodes, 1)[0] > 0:
            work += blocks * (d**3 / 3 if agent.keep_prior else d**2 / 2)
    return work


def _of_steps(agent: GradientRLSVI) -> float:
    """Eight per feature of the transition replayed, one per feature of what follows; a mean over transitions."""
    learner: Any = agent._learner
    kept = [learner.transitions(h) for h in range(learner.task.horizon)]
    touched = [[8 * len(seen.phi.value) + len(seen.following.value) for seen in past] for past in kept]
    return agent.updates * float(sum(np.mean(period) for period in touched if period))
