"""An environment of which only the spaces are known, for logs of what cannot be played."""

from typing import Any

from gymnasium import Env, Space

from rlsvi.envs.task import check_spaces


class Spaces(Env[Any, Any]):
    """The observations and actions that a log consists of. It cannot be played: `agent.fit(log, Spaces(..))`.

    Parameters
    ----------
    observation_space
        A space of Gymnasium, such as Box(-1, 1, (4,)).
    action_space
        A Discrete space, or any other that agents can choose from, such as Box(-2, 2, (1,)).

    Examples
    --------
    >>> import rlsvi
    >>> from gymnasium.spaces import Box, Discrete
    >>> spaces = rlsvi.envs.Spaces(Box(-1, 1, (4,)), Discrete(2))
    """

    def __init__(self, observation_space: Space[Any], action_space: Space[Any]) -> None:
        self.observation_space, self.action_space = observation_space, action_space
        check_spaces(self)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Raise an error, since there is nothing to play."""
        raise RuntimeError("these are the spaces of a log, which cannot be played: make the environment itself")

    def step(self, action: Any) -> Any:
        """Raise an error, since there is nothing to play."""
        return self.reset()
