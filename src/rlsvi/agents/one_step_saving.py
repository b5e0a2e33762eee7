"""The part of a saved file that agents without value iteration have of their own: what they know."""

from typing import Any

import numpy as np

from rlsvi.agents.archive import ArchiveError
from rlsvi.agents.bandits.agent import OneStepAgent
from rlsvi.agents.bandits.contextual import Bandit, ContextualBandit
from rlsvi.agents.bandits.thompson import ThompsonSampling, new_counts
from rlsvi.agents.task import Task
from rlsvi.core.compile import Floats


def known_parts(agent: OneStepAgent) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays of what was learned; the MDP of an optimal policy goes with its arguments."""
    header: dict[str, Any] = {"episodes": agent.episodes}
    mind = agent._mind
    if isinstance(agent, ThompsonSampling) and mind is not None:
        return header, {"counts": mind.counts}
    if isinstance(agent, ContextualBandit) and mind is not None:
        header["features"] = list(mind.reward.shape[1:])
        return header, _arrays(mind)
    return header, {}


def _arrays(mind: Bandit) -> dict[str, Floats]:
    return {
        "factor.U": mind.factor.U,
        "factor.inv": mind.factor.inv,
        "bandit.reward": mind.reward,
        "bandit.error": mind.error,
    }


def restore_known(agent: OneStepAgent, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Give an agent what it had learned, after checking that it fits together."""
    agent.episodes = int(header["episodes"])
    if agent.episodes < 0 or (agent.episodes > 0 and agent._task is None):
        raise ArchiveError("is damaged: it has learned episodes, but of no task")
    if isinstance(agent, ThompsonSampling) and "counts" in arrays:
        mind = new_counts(agent.prior, _task(agent).actions)
        _fill(mind.counts, "counts", arrays)
        if (mind.counts < 0.1).any():
            raise ArchiveError("is damaged: a count in it is too small")
        agent._mind = mind
    elif isinstance(agent, ContextualBandit) and "features" in header:
        task, (blocks, dim) = _task(agent), header["features"]
        bandit = agent.new_mind(task, blocks, dim)
        for name, array in _arrays(bandit).items():
            _fill(array, name, arrays)
        if task.states is not None:
            features = agent.features(task, 0)
            if (features.blocks, features.dim) != (blocks, dim):
                raise ArchiveError(
                    f"was learned with {blocks} blocks of {dim} features, not {features.blocks} of {features.dim}"
                )
            agent._features = features
        agent._mind = bandit


def _task(agent: OneStepAgent) -> Task:
    if agent._task is None:
        raise ArchiveError("is damaged: it holds what was learned, but not of which task")
    return agent._task


def _fill(array: Floats, name: str, arrays: dict[str, Any]) -> None:
    found = arrays[name]
    if found.shape != array.shape or found.dtype != np.float64 or not np.isfinite(found).all():
        raise ArchiveError(f"is damaged: {name} is {found.dtype}{found.shape}, expected finite {array.shape}")
    array[...] = found
