"""The agent for an environment, where nobody has said which."""

from typing import Any

from gymnasium import Env
from gymnasium.spaces import Discrete

from rlsvi.agents.finite.rlsvi import RLSVI
from rlsvi.agents.practice.bounded_rlsvi import BoundedRLSVI
from rlsvi.agents.task import checked_env
from rlsvi.bases.layout import layout_of


def agent_for(env: Env[Any, Any], **arguments: Any) -> RLSVI | BoundedRLSVI:
    """An agent that suits an environment, and has learned nothing yet.

    Where observations are numbered and the environment itself says how many periods an episode has
    (`env.unwrapped.horizon`), values differ from period to period and the agent is RLSVI, with a table. A time
    limit around an environment is no such thing: everything else gets BoundedRLSVI, discounted, with a table
    where observations are counted and few, else with radial functions of up to two numbers, or Fourier features.

    `arguments`, such as `seed`, go to the agent.
    """
    checked_env(env)
    if isinstance(env.observation_space, Discrete) and getattr(env.unwrapped, "horizon", None) is not None:
        return RLSVI(**arguments)
    if arguments.get("basis") is None:
        layout_of(env.observation_space)  # raises where nothing can be done without a basis
    return BoundedRLSVI(**arguments)
