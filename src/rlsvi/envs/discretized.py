"""A finite set of choices of your own among the actions of an environment."""

from itertools import product
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs

from rlsvi.core.checks import shown, whole
from rlsvi.envs.actions import MOST_COMBINATIONS, parts_of


class Discretized(gymnasium.ActionWrapper[Any, Any, Any], RecordConstructorArgs):
    """Discrete actions for an environment whose actions are a Box, MultiDiscrete or MultiBinary.

    Action k of the wrapper is `actions[k]` of the environment. Agents take these spaces as they are, and choose
    themselves; the wrapper is for other choices, and for a Box of more than four numbers or without bounds.

    Parameters
    ----------
    env
        The environment.
    choices
        For a Box, the number of evenly spaced values of each component of an action, including its bounds; or a
        list of actions. For the other spaces, which have their own values, None.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> env = rlsvi.envs.Discretized(gymnasium.make("Pendulum-v1"), 5)
    >>> [float(action[0]) for action in env.actions]
    [-2.0, -1.0, 0.0, 1.0, 2.0]
    """

    def __init__(self, env: gymnasium.Env[Any, Any], choices: int | Any | None = None) -> None:
        if not isinstance(env, gymnasium.Env):
            raise TypeError(f"env must be a Gymnasium environment, got {shown(env)}")
        self.actions = _actions(env.action_space, choices)
        RecordConstructorArgs.__init__(self, choices=choices)
        super().__init__(env)
        self.action_space = spaces.Discrete(len(self.actions))

    def action(self, action: Any) -> Any:
        """Return the environment's action with this number."""
        if not self.action_space.contains(action):
            raise ValueError(f"action {shown(action)} is not one of 0..{len(self.actions) - 1}")
        return self.actions[int(action)]


def _actions(space: Any, choices: Any) -> list[Any]:
    """Return the actions to choose from."""
    if choices is not None and not isinstance(choices, int | np.integer):
        try:
            listed = [np.asarray(action, dtype=space.dtype) for action in choices]
            strange = [action for action in listed if not space.contains(action)]
        except (TypeError, ValueError, OverflowError):
            listed, strange = [], []
        if strange or not listed:
            raise ValueError(
                f"choices must be actions of {space}, got {shown(strange[0] if strange else choices)}"
            )
        return listed
    if isinstance(space, spaces.Box):
        if choices is None:
            raise ValueError(f"say by choices= how many values each number of the actions {space} may take")
        if not space.is_bounded():
            raise ValueError(f"the actions {space} have no bounds: give the actions themselves as choices=[..]")
        count, ends = (
            whole("choices", choices, 2, MOST_COMBINATIONS),
            zip(space.low.ravel(), space.high.ravel(), strict=True),
        )
        values: list[Any] = [np.linspace(low, high, count) for low, high in ends]
    elif isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary) and choices is None:
        values = parts_of(space)
    else:
        raise ValueError(
            f"the actions {space} cannot be offered as a finite choice, with choices={shown(choices)}"
        )
    many = float(np.prod([float(len(v)) for v in values]))
    if many > MOST_COMBINATIONS:
        raise ValueError(
            f"{many:.0f} actions are more than {MOST_COMBINATIONS}: give fewer as choices, or list the actions"
        )
    return [np.array(action, dtype=space.dtype).reshape(space.shape) for action in product(*values)]
