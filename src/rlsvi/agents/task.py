"""What an agent needs to know of a Gymnasium environment, and the checks at that border."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from gymnasium import Env
from gymnasium.spaces import Discrete
from gymnasium.vector import VectorEnv

from rlsvi.core.checks import LARGEST, finite, shaped, whole
from rlsvi.core.compile import Bools
from rlsvi.tetris.game import Rules


class Task(NamedTuple):
    """Periods, actions, and the number of states where observations are 0..S-1."""

    horizon: int  # 0: episodes of any length
    actions: int
    states: int | None
    first_action: int = 0
    first_state: int = 0

    def __str__(self) -> str:
        states = "observations of any kind" if self.states is None else f"{self.states} states"
        periods = f"{self.horizon} periods, " if self.horizon else ""
        return f"a task of {periods}{self.actions} actions and {states}"

    def legal(self, mask: Any) -> Bools:
        """`mask` as booleans, checked; None: everything is legal."""
        if mask is None:
            return np.ones(self.actions, dtype=np.bool_)
        legal = np.asarray(mask)
        if legal.shape != (self.actions,):
            raise ValueError(f"action_mask must have shape ({self.actions},), got {legal.shape}")
        if not legal.any():
            raise ValueError("action_mask allows no action: an observation needs at least one legal action")
        return legal.astype(np.bool_)


def checked_env(env: Any) -> None:
    """See to it that this is one Gymnasium environment with actions that can be counted."""
    if isinstance(env, VectorEnv):
        raise TypeError("env is a vector environment: pass one environment; rlsvi.compare runs many seeds at once")
    if not isinstance(env, Env):
        raise TypeError(f"env must be a Gymnasium environment, got {type(env).__name__}")
    if not isinstance(env.action_space, Discrete):
        raise ValueError(
            f"env has the action space {env.action_space}, only Discrete actions can be learned: "
            "offer a finite choice by rlsvi.envs.Discretized(env, choices), which takes Box, MultiDiscrete and "
            "MultiBinary actions, or by a wrapper of your own"
        )


def endless_task_of(env: Any) -> Task:
    """The task an environment sets when episodes may be of any length."""
    checked_env(env)
    return _task(env, 0)


def setting_of(env: Env[Any, Any]) -> dict[str, Any]:
    """The rules of the game, if the environment says that it is Tetris; an agent remembers them."""
    rules = getattr(env.unwrapped, "rules", None)
    return rules.setting if isinstance(rules, Rules) else {}


def check_setting(learned: Mapping[str, Any], offered: Mapping[str, Any]) -> None:
    """See to it that what was learned by and what is offered agree, as far as both are known."""
    other = [name for name in learned if name in offered and learned[name] != offered[name]]
    if other:
        was, now = (", ".join(f"{name} {setting[name]!r}" for name in other) for setting in (learned, offered))
        raise ValueError(
            f"this agent has learned with {was}, it cannot go on with {now}: keep to what it has learned, or "
            "use agent.clone() to learn anew"
        )


def task_of(env: Any, horizon: int | None) -> Task:
    """The task an environment sets, or an error that says what is missing and what to do."""
    checked_env(env)
    limits = {
        "env.unwrapped.horizon": getattr(env.unwrapped, "horizon", None),
        "max_episode_steps": getattr(env.spec, "max_episode_steps", None),
    }
    known = [whole(name, limit, 1) for name, limit in limits.items() if limit is not None]
    if horizon is None and not known:
        raise ValueError(
            "the number of periods is not known: pass horizon= to the agent, or make the environment with "
            "max_episode_steps"
        )
    if horizon is not None and known and horizon > min(known):
        raise ValueError(f"horizon is {horizon}, but env stops after {min(known)} steps: leave horizon out")
    return _task(env, int(horizon) if horizon is not None else min(known))


def _task(env: Any, horizon: int) -> Task:
    observations: Any = env.observation_space
    numbered = isinstance(observations, Discrete)
    return Task(
        horizon,
        int(env.action_space.n),
        int(observations.n) if numbered else None,
        int(env.action_space.start),
        int(observations.start) if numbered else 0,
    )


def checked_observation(task: Task, observation: Any) -> Any:
    """An observation one can learn from: a state number, or whatever the basis takes, without NaN."""
    if task.states is not None:
        zero_d = isinstance(observation, np.ndarray) and observation.shape == () and observation.dtype.kind in "iu"
        if not (isinstance(observation, int | np.integer) or zero_d):
            raise ValueError(f"observation must be a state number, got {observation!r}")
        state = int(observation) - task.first_state
        if not 0 <= state < task.states:
            last = task.first_state + task.states - 1
            raise ValueError(f"observation must lie in {task.first_state}..{last}, got {observation}")
        return state
    floats = isinstance(observation, np.ndarray) and observation.dtype.kind == "f"
    if floats and not np.isfinite(observation).all():
        raise ValueError(f"observation holds NaN or infinity: {observation}")
    return observation


def checked_reward(reward: Any) -> float:
    """A reward one can learn from."""
    if type(reward) is float and -LARGEST <= reward <= LARGEST:
        return reward
    return float(shaped("reward", finite("reward", reward), ()))
