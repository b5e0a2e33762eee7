"""Gymnasium environments: the task that one poses, its steps with checks, and playing it without learning."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple, Self

import numpy as np
from gymnasium import Env, Space
from gymnasium.spaces import Discrete
from gymnasium.vector import VectorEnv

from rlsvi.core.checks import LARGEST_NUMBER, finite, read_only, shaped, shown, whole
from rlsvi.core.compile import Bools, Floats
from rlsvi.envs.actions import Choices, Parts, choices_of, numbering_of_parts, starts_of

MOST_STEPS = 10_000  # steps after which an episode is cut off


class Task(NamedTuple):
    """Periods, actions, and the number of states if observations are 0..S-1."""

    horizon: int  # 0: episodes of any length
    actions: int
    states: int | None
    first_action: int = 0
    first_state: int = 0
    choices: Choices | Parts | None = None  # the actions, unless they are Discrete

    def __str__(self) -> str:
        states = "observations of any kind" if self.states is None else f"{self.states} states"
        periods = f"{self.horizon} periods, " if self.horizon else ""
        of = f" (out of those of {self.choices})" if self.choices else ""
        what = f"values of {len(self.parts)} parts of actions" if self.parts else "actions"
        return f"a task of {periods}{self.actions} {what}{of} and {states}"

    @property
    def parts(self) -> tuple[int, ...]:
        """How many values each part of an action has, if agents choose these instead of combinations."""
        return self.choices.counts if isinstance(self.choices, Parts) else ()

    def action(self, number: Any) -> Any:
        """Return the action of the environment with a number, counted from 0, or with those of its values."""
        return self.first_action + number if self.choices is None else self.choices.action(number)

    def number(self, action: Any) -> Any:
        """Return the number of an action of the environment, or of the choice nearest to it, or of its values."""
        if self.choices is not None:
            return self.choices.number(action)
        return int(np.asarray(action).item()) - self.first_action

    def legal(self, mask: Any) -> Bools:
        """Return `mask` as checked booleans; None means that everything is legal."""
        if mask is None:
            return all_legal(self.actions).copy()
        legal = np.asarray(mask)
        if legal.shape != (self.actions,):
            raise ValueError(f"action_mask must have shape ({self.actions},), got {legal.shape}")
        if not legal.any():
            raise ValueError("action_mask allows no action: an observation needs at least one legal action")
        if self.parts and not np.logical_or.reduceat(legal, starts_of(self.parts)).all():
            raise ValueError("action_mask allows no value of a part: every part needs at least one legal value")
        return legal.astype(np.bool_)

    def checked(self, observation: Any) -> Any:
        """Return a valid observation: a state, counted from 0, or anything that the basis accepts, without NaN."""
        if self.states is None:
            floats = isinstance(observation, np.ndarray) and observation.dtype.kind == "f"
            if floats and not np.isfinite(observation).all():
                raise ValueError(
                    f"observation holds NaN or infinity: {observation}. Correct the environment, or replace such "
                    "numbers by gymnasium.wrappers.TransformObservation"
                )
            return observation
        zero_d = isinstance(observation, np.ndarray) and observation.shape == () and observation.dtype.kind in "iu"
        if not (isinstance(observation, int | np.integer) or zero_d):
            raise ValueError(f"observation must be a state number, got {shown(observation)}")
        state = int(observation) - self.first_state
        if not 0 <= state < self.states:
            last = self.first_state + self.states - 1
            raise ValueError(
                f"observation must lie in {self.first_state}..{last}, got {shown(observation)}: correct the "
                "observation_space of the environment"
            )
        return state

    @property
    def plain(self) -> tuple[Any, ...]:
        """The task as a file contains it."""
        return tuple(self) if self.choices else tuple(self)[:-1]

    @classmethod
    def read(cls, plain: Any) -> Self:
        """Return a task stored in a file, checked."""
        horizon, actions, states, *first = plain[:5]
        whole("horizon", horizon, 0)
        whole("actions", actions, 1)
        if states is not None:
            whole("states", states, 1)
        if max(horizon, actions, states or 0) >= 2**31 or len(first) != 2:
            raise ValueError(f"a task cannot be {shown(plain)}")
        choices: Choices | Parts | None = None
        many = actions
        if len(plain) == 6 and len(plain[5]) == len(Parts._fields):
            choices = Parts.read(plain[5])
            many = sum(choices.counts)
        elif len(plain) == 6:
            choices = Choices.read(plain[5])
            many = len(choices.actions)
        if len(plain) > 6 or many != actions or (choices is not None and first[0] != 0):
            raise ValueError(f"a task cannot be {shown(plain)}")
        first_action, first_state = (whole("the first number", n, -(2**62)) for n in first)
        return cls(horizon, actions, states, first_action, first_state, choices)


@cache
def all_legal(actions: int) -> Bools:
    """Return that all actions are legal."""
    legal: Bools = read_only(np.ones(actions, dtype=np.bool_))
    return legal


def check_env(env: Any) -> None:
    """Check that this is a single Gymnasium environment whose actions are, or offer, a finite choice."""
    if isinstance(env, VectorEnv):
        raise TypeError("env is a vector environment: pass one environment; rlsvi.compare runs many seeds at once")
    if not isinstance(env, Env):
        raise TypeError(f"env must be a Gymnasium environment, got {type(env).__name__}")
    check_spaces(env)
    choices_of(env.action_space)


def check_spaces(env: Any) -> None:
    """Check that what an environment calls its spaces are spaces."""
    for name in ("observation_space", "action_space"):
        if not isinstance(space := getattr(env, name, None), Space):
            raise TypeError(f"{name} of env must be a space of Gymnasium, such as Discrete(2), got {shown(space)}")


def endless_task_of(env: Any) -> Task:
    """Return the task of an environment whose episodes may have any length."""
    check_env(env)
    return _task(env, 0)


def setting_of(env: Env[Any, Any]) -> dict[str, Any]:
    """Return the rules by which an environment is played, if it has `rules.setting`; an agent stores them."""
    setting = getattr(getattr(env.unwrapped, "rules", None), "setting", None)
    if isinstance(setting, dict) and all(isinstance(it, str | int | float) for it in setting.values()):
        return dict(setting)
    return {}


def check_setting(learned: Mapping[str, Any], offered: Mapping[str, Any]) -> None:
    """Check that the settings offered equal those learned with, as far as both are known."""
    other = [name for name in learned if name in offered and learned[name] != offered[name]]
    if other:
        was, now = (", ".join(f"{name} {setting[name]!r}" for name in other) for setting in (learned, offered))
        raise ValueError(
            f"this agent has learned with {was}, it cannot go on with {now}: keep to what it has learned, or "
            "use agent.clone() to learn anew"
        )


def task_of(env: Any, horizon: int | None) -> Task:
    """Return the task of an environment, or raise an error that says what is missing and what to do."""
    check_env(env)
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
        raise ValueError(f"horizon is {shown(horizon)}, but env stops after {min(known)} steps: leave horizon out")
    return _task(env, int(horizon) if horizon is not None else min(known))


def _task(env: Any, horizon: int) -> Task:
    observations: Any = env.observation_space
    numbered = isinstance(observations, Discrete)
    first_action, actions, choices = numbering_of_parts(env.action_space)
    return Task(
        horizon,
        actions,
        int(observations.n) if numbered else None,
        first_action,
        int(observations.start) if numbered else 0,
        choices,
    )


def reset_env(env: Env[Any, Any], seed: int) -> tuple[Any, Mapping[str, Any]]:
    """Return the result of `env.reset(seed=seed)`, checked against Gymnasium: an observation and a dictionary."""
    returned = env.reset(seed=seed)
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise TypeError(f"env.reset must return (observation, info), got {shown(returned)}")
    return returned[0], _info("reset", returned[1])


def step_env(env: Env[Any, Any], action: Any) -> tuple[Any, Any, bool, bool, Mapping[str, Any]]:
    """Return the result of `env.step(action)`, checked against Gymnasium: five values, two of them flags."""
    if not isinstance(action, int | np.integer) and not _is_finite(action):
        raise ValueError(f"action holds NaN or infinity: {action}. Correct the policy that it comes from")
    returned: Any = env.step(action)
    if not isinstance(returned, tuple) or len(returned) != 5:
        raise TypeError(
            "env.step must return (observation, reward, terminated, truncated, info), got "
            f"{f'{len(returned)} values' if isinstance(returned, tuple) else repr(returned)[:100]}: "
            "wrap an environment of the old API"
        )
    observation, reward, terminated, truncated, info = returned
    return observation, reward, _flag("terminated", terminated), _flag("truncated", truncated), _info("step", info)


def _is_finite(action: Any) -> bool:
    """Return whether all numbers of an action are finite, also those in its parts."""
    if isinstance(action, Mapping):
        return all(map(_is_finite, action.values()))
    if isinstance(action, tuple | list):
        return all(map(_is_finite, action))
    numbers = np.asarray(action)
    return numbers.dtype.kind != "f" or bool(np.isfinite(numbers).all())


def _info(verb: str, info: Any) -> Mapping[str, Any]:
    if type(info) is not dict and not isinstance(info, Mapping):
        raise TypeError(f"env.{verb} must return a dictionary as its info, got {shown(info)}")
    return info


def _flag(name: str, value: Any) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype == np.bool_:
        return bool(value.item())
    raise TypeError(f"env.step must return True or False as {name}, got {shown(value)}")


def checked_reward(reward: Any) -> float:
    """Return a reward that can be learned from."""
    if type(reward) is float and -LARGEST_NUMBER <= reward <= LARGEST_NUMBER:
        return reward
    return float(shaped("reward", finite("reward", reward), ()))


def play_episodes(
    agent: Any,
    env: Env[Any, Any],
    episodes: int,
    seed: int,
    deterministic: bool = True,
    limit: int = MOST_STEPS,
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
    limit: int = MOST_STEPS,
    show: Callable[[], object] = lambda: None,
) -> tuple[float, int, bool]:
    """Play one episode: return its return, its steps and whether it ended. `show` is called at every position.

    An agent that has learned values of fewer periods than an episode has steps knows no more: it is cut off there.
    """
    limit = min(limit, horizon_of(agent) or limit)
    (observation, info), state = reset_env(env, seed), None
    total, steps, over = 0.0, 0, False
    show()
    while not over and steps < limit:
        options = {"action_mask": info["action_mask"]} if "action_mask" in info else {}
        action, state = agent.predict(observation, state, deterministic=deterministic, **options)
        observation, reward, terminated, truncated, info = step_env(env, action)
        reward = checked_reward(reward.item() if isinstance(reward, np.ndarray) and reward.size == 1 else reward)
        total, steps, over = total + reward, steps + 1, terminated or truncated
        show()
    return total, steps, over


def horizon_of(agent: Any) -> int:
    """Return the number of periods that an agent has learned values of; 0 if it can play for any time."""
    return int(getattr(getattr(agent, "_task", None), "horizon", 0))


def one_observation(observations: Any, i: int) -> Any:
    """Return the observation of one environment out of those of several."""
    if isinstance(observations, dict):
        return {key: one_observation(part, i) for key, part in observations.items()}
    if isinstance(observations, tuple):
        return tuple(one_observation(part, i) for part in observations)
    return observations[i]
