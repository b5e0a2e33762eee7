"""The part of a saved file that continual agents have of their own: theta, its noise, and where they stand."""

from typing import Any

import numpy as np

from rlsvi.agents.archive import ArchiveError
from rlsvi.agents.continual.agent import ContinualAgent
from rlsvi.agents.continual.learner import ContinualLearner
from rlsvi.agents.continual.step import Walk
from rlsvi.agents.finite.learner import Learner
from rlsvi.agents.finite.value_iteration import known_values


def position_of(agent: ContinualAgent, arrays: dict[str, Any]) -> dict[str, Any]:
    """The header of what goes on; its arrays are put to the others."""
    if agent._learner is None:
        return {}
    arrays |= {f"walk.{name}": array for name, array in agent._learner.walk._asdict().items()}
    arrays |= {"theta": agent._learner.values.theta, "world": agent._world}
    return {"row": agent._row, "diverged": agent.diverged, "excess": agent.excess}


def restore_position(
    agent: ContinualAgent, learner: Learner, header: dict[str, Any], arrays: dict[str, Any]
) -> None:
    """Give an agent what goes on, after checking that it fits."""
    assert isinstance(learner, ContinualLearner)
    for name, expected in learner.walk._asdict().items():
        array = arrays[f"walk.{name}"]
        if array.shape != expected.shape or array.dtype != expected.dtype or not np.isfinite(array).all():
            raise ArchiveError(f"is damaged: walk.{name} is not what it must be")
    theta, world, row = arrays["theta"], arrays["world"], int(header["row"])
    if theta.shape != learner.values.theta.shape or not np.isfinite(theta).all():
        raise ArchiveError("is damaged: theta does not fit the features")
    if world.shape != (4,) or world.dtype != np.uint64:
        raise ArchiveError("is damaged: its random stream is not one")
    if not -1 <= row < learner.memory.states[0] or not 0 <= arrays["walk.begun"][0] <= learner.memory.lives[0]:
        raise ArchiveError("is damaged: an index in it points outside its tables")
    learner.walk = Walk(**{name: np.array(arrays[f"walk.{name}"], order="C") for name in Walk._fields})
    learner.values.theta[:] = theta
    known_values(learner.memory, learner.values, 0)
    agent._learner, agent._row = learner, row
    agent._world[:] = world
    agent.diverged, agent.excess = bool(header["diverged"]), float(header["excess"])
