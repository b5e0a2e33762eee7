"""Playing without learning: fresh episodes of an environment, with anything that has a method `predict`."""

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
from gymnasium import Env

from rlsvi.agents.task import begun, taken
from rlsvi.core.checks import shown
from rlsvi.core.compile import Floats

LIMIT = 10_000  # steps after which an episode is cut off


def played(
    agent: Any,
    env: Env[Any, Any],
    episodes: int,
    seed: int,
    deterministic: bool = True,
    limit: int = LIMIT,
    advance: Callable[[int], None] = lambda n: None,
) -> tuple[Floats, int, int]:
    """Return the returns of fresh episodes, the number of their steps, and how many were cut off."""
    returns, steps, cut = np.zeros(episodes), 0, 0
    for i, start in enumerate(np.random.SeedSequence(seed).generate_state(episodes)):
        returns[i], length, over = play(agent, env, int(start), deterministic, limit)
        steps, cut = steps + length, cut + (not over)
        advance(1)
    return returns, steps, cut


def play(
    agent: Any,
    env: Env[Any, Any],
    seed: int,
    deterministic: bool = True,
    limit: int = LIMIT,
    show: Callable[[], object] = lambda: None,
) -> tuple[float, int, bool]:
    """Play one episode: return its return, its steps and whether it ended. `show` is called at every position."""
    (observation, info), state = begun(env, seed), None
    total, steps, over = 0.0, 0, False
    show()
    while not over and steps < limit:
        options = {"action_mask": info["action_mask"]} if "action_mask" in info else {}
        action, state = agent.predict(observation, state, deterministic=deterministic, **options)
        observation, reward, terminated, truncated, info = taken(env, action)
        if np.size(reward) != 1:
            raise TypeError(f"env.step must return one reward, got {shown(reward)}: env is of several at once")
        total, steps, over = total + float(np.asarray(reward).item()), steps + 1, terminated or truncated
        show()
    return total, steps, over


def check_function(policy: Any) -> None:
    """Raise an error if a function cannot be called with one observation."""
    try:
        signature(policy).bind(None)
    except TypeError as error:
        raise TypeError(f"policy must be a function of one observation, got {policy!r:.80}: {error}") from None
    except ValueError:
        return  # it does not tell what it takes


def check_player(agent: Any) -> None:
    """Raise an error if the agent cannot play."""
    if isinstance(agent, type) or not callable(getattr(agent, "predict", None)):
        raise TypeError(f"agent must have a method predict, as agents that have learned do, got {shown(agent)}")
