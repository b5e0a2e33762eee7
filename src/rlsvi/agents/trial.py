"""Whether an agent can learn in an environment, found out before anything is played."""

from copy import deepcopy
from math import prod
from typing import Any, TypeVar

import numpy as np
from gymnasium import spaces

from rlsvi.agents.agent import Agent
from rlsvi.agents.task import Task
from rlsvi.bases.layout import TableOnlyError
from rlsvi.bases.observed import NUMBERS

ACTIONS = 1000  # the largest number of actions that have a block of features each
Kind = TypeVar("Kind", bound=Agent)


def tried(agent: Kind, env: Any) -> Kind:
    """Return the agent, or raise the error that its `learn(env)` would begin with.

    A clone takes on the task and looks at one observation of the space, with all the checks of `learn`. A basis
    given by the user is not tried, because its functions may only be meant for observations that occur.
    """
    task = agent.task_of(env)
    if agent.basis is None:
        _check_actions(task)
        if agent.takes_basis:
            _check_numbers(env.observation_space)
        trial, example = agent.clone(), example_of(env.observation_space)
        trial.take_on(task, env)
        trial.new_learner(task, task.checked(example)).look(0, example, None)
    return agent


def _check_actions(task: Task) -> None:
    """Raise an error if there are too many actions to learn, should it be with features."""
    if task.actions > ACTIONS and task.states is None:
        raise ValueError(
            f"env has {task.actions} actions, features can be learned for at most {ACTIONS}: list fewer as "
            "actions and offer them by gymnasium.wrappers.TransformAction(env, lambda k: actions[k], "
            "gymnasium.spaces.Discrete(len(actions)))"
        )


def _check_numbers(space: Any) -> None:
    """Raise an error if there are too many numbers to learn from with features."""
    numbers = measured(space)
    if numbers > NUMBERS:
        raise TableOnlyError(
            f"an observation holds {numbers} numbers, features can be learned of at most {NUMBERS}: make a "
            "picture smaller by gymnasium.wrappers.ResizeObservation and GrayscaleObservation, keep what matters "
            "by TransformObservation, or give a basis, such as bases.StateFeatures(function)"
        )


def measured(space: Any) -> int:
    """Return how many real numbers an observation holds."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
        return sum(measured(part) for part in parts)
    return prod(space.shape) if isinstance(space, spaces.Box) else 0


def example_of(space: Any) -> Any:
    """Return an observation of a space: numbers as near to 0 as its bounds allow, where there are bounds."""
    if isinstance(space, spaces.Box):
        return np.asarray(np.clip(np.zeros(space.shape, space.dtype), space.low, space.high), space.dtype)
    if isinstance(space, spaces.Discrete):
        return space.start
    if isinstance(space, spaces.MultiDiscrete):
        return space.start.copy()
    if isinstance(space, spaces.MultiBinary):
        return np.zeros(space.shape, space.dtype)
    if isinstance(space, spaces.Dict):
        return {key: example_of(part) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(example_of(part) for part in space.spaces)
    drawn = deepcopy(space)  # drawing changes a space
    drawn.seed(0)
    return drawn.sample(num_nodes=1) if isinstance(space, spaces.Graph) else drawn.sample()  # without edges: None
