"""The default agent for an environment."""

from typing import Any

from gymnasium import Env
from gymnasium.spaces import Discrete

from rlsvi.agents.finite.rlsvi import RLSVI
from rlsvi.agents.practice.bounded_rlsvi import BoundedRLSVI
from rlsvi.agents.task import checked_env
from rlsvi.agents.trial import tried
from rlsvi.bases.layout import layout_of


def agent_for(env: Env[Any, Any], **arguments: Any) -> RLSVI | BoundedRLSVI:
    """Return an agent that suits an environment and has learned nothing yet.

    If observations are numbered and the environment itself defines the number of periods of an episode
    (`env.unwrapped.horizon`), values differ between periods and the agent is RLSVI with a table. A time limit on
    an environment does not define periods: all others get BoundedRLSVI, which is discounted, with a table for
    few discrete observations, radial functions for up to two numbers, and Fourier features for more.

    `arguments`, such as `seed`, are passed to the agent. What it could not learn is refused here, with a remedy.
    """
    checked_env(env)
    if isinstance(env.observation_space, Discrete) and getattr(env.unwrapped, "horizon", None) is not None:
        return tried(RLSVI(**arguments), env)
    if arguments.get("basis") is None:
        layout_of(env.observation_space)  # raises an error if the environment needs a basis
    return tried(BoundedRLSVI(**arguments), env)
