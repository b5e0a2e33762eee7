"""The features of a loaded agent, which must be those it has learned with."""

from typing import Any

from rlsvi.agents.task import Task
from rlsvi.bases import Features, Tabular
from rlsvi.core.archive import ArchiveError

MOST = 2**20  # states of a file whose arrays do not show how many there are


def restored_features(agent: Any, task: Task, blocks: int, dim: int, *, counted: bool = True) -> Features:
    """Return the agent's features and check their size; unless states are numbered, on the first observation.

    counted : whether the arrays of the file show that there are so many states.
    """
    if task.states is not None:
        if not counted and task.states > MOST:
            raise ArchiveError(f"is damaged: it declares {task.states} states, at most {MOST} are read")
        table = isinstance(agent.basis or agent._problem_basis or Tabular(), Tabular)
        if table and (task.states * task.actions, 1) != (blocks, dim):  # before it is made
            raise ArchiveError(f"is damaged: {blocks} blocks of {dim} weights are not the table of {task}")
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
