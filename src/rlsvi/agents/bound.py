"""The features of an agent that was loaded: they must be those it has learned through."""

from typing import Any

from rlsvi.agents.task import Task
from rlsvi.bases import Features
from rlsvi.core.archive import ArchiveError


def restored_features(agent: Any, task: Task, blocks: int, dim: int) -> Features:
    """The agent's features, of this size; where observations are of any kind, the first one brings them."""
    if task.states is not None:
        features: Features = agent.features(task, 0)
        if (features.blocks, features.dim) != (blocks, dim):
            raise ArchiveError(
                f"was learned with {blocks} blocks of {dim} features, not {features.blocks} of {features.dim}"
            )
        return features
    bound: list[Features] = []

    def at(h: int, observation: Any) -> Any:
        if not bound:
            features = agent.features(task, observation)
            if (features.blocks, features.dim) != (blocks, dim):
                raise ValueError(
                    f"basis must give {blocks} blocks of {dim} features, as the agent learned with; it gives "
                    f"{features.blocks} of {features.dim}"
                )
            bound.append(features)
        return bound[0].at(h, observation)

    return Features(blocks, dim, at, None)
