"""Action repeat: an action is held for several steps, and a rule says for how many.

If a step moves the observation by little, one action hardly changes any value, and noise decides between actions.
The rule looks at the steps of the first episode, which are played without repetition. For every measured number
that changes in most steps, it takes the typical change in a step, in standard deviations of the number. If that
of the second slowest number (the slowest may be a clock) is below `SLOW`, actions are held for `HELD` steps.
"""

from typing import Any

import numpy as np
from gymnasium import Wrapper

from rlsvi.agents.agent import Agent
from rlsvi.agents.task import Task, begun, checked_reward, taken
from rlsvi.core.checks import whole
from rlsvi.core.compile import Floats
from rlsvi.logs.replay import Replay

SLOW = 0.085  # standard deviations; in single random episodes LunarLander has .04 to .065, MountainCar .11 to .29
HELD = 4  # steps
FEWEST = 30  # steps that are needed to tell


class Repeated(Wrapper[Any, Any, Any, Any]):
    """An environment in which actions are held for `times` steps, or until illegal, or until the episode ends."""

    def __init__(self, env: Any, times: int, task: Task) -> None:
        super().__init__(env)
        self.times, self.task = times, task

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        """Begin an episode."""
        return begun(self.env, seed)

    def step(self, action: int) -> Any:
        """Take an action and return the last observation, with the sum of the rewards."""
        total, a = 0.0, action - self.task.first_action
        for _ in range(self.times):
            observation, reward, terminated, truncated, info = taken(self.env, action)
            total += checked_reward(reward)
            if terminated or truncated or not self.task.legal(info.get("action_mask"))[a]:
                break
        return observation, total, terminated, truncated, info


class Holding(Agent):
    """An agent that holds each action for `held` steps, in learning and in prediction."""

    @property
    def held(self) -> int:
        """For how many steps each action is held."""
        return 1

    def _hold_once(self) -> None:
        """Take a new action in every step from now on, as a log does."""

    def _relive(self, replay: Replay, progress: bool | None) -> None:
        """Learn from all episodes of a log, if actions are held in it as this agent holds them."""
        if not replay.hold(self.held):
            raise ValueError(
                f"this agent holds each action for {self.held} steps, but the log changes actions sooner: use an "
                "agent with repeat=1, or one that has learned nothing yet"
            )
        super()._relive(replay, progress)

    def _episode(self, env: Any) -> float:
        """Play and learn one episode, in which actions are held; in a log they are held if all of it is so."""
        if isinstance(env, Replay):
            if not env.hold(self.held):
                self._hold_once()
            return super()._episode(env)
        assert self._task is not None
        played: Any = env if self.held == 1 else Repeated(env, self.held, self._task)
        return super()._episode(played)

    def _predict(
        self, key: int, observation: Any, state: Any, start: Any, deterministic: bool, mask: Any
    ) -> tuple[int, int]:
        """Return the action of one environment, and its next state.

        The state combines the period, for how many more steps the action is held, and the action. An action that
        becomes illegal is replaced at once by another, which is held as long as any, as in learning.
        """
        if self.held == 1 or self._task is None:
            return super()._predict(key, observation, state, start, deterministic, mask)
        given = 0 if state is None or start else whole("state", np.asarray(state).item(), 0)
        before, action = divmod(given, self._task.actions)
        h, left = divmod(before, self.held)
        if left == 0 or not self._task.legal(mask)[action]:
            decided, _ = super()._predict(key, observation, h, start, deterministic, mask)
            action, left = decided - self._task.first_action, self.held
        return self._task.first_action + action, ((h + 1) * self.held + left - 1) * self._task.actions + action


def proposed_repeat(x: Floats, following: Floats) -> int:
    """Return for how many steps to hold an action, given measured observations (T, m) and those that followed."""
    if len(x) < FEWEST:
        return 1
    change = following - x
    moving = ((change != 0).mean(axis=0) > 0.5) & (x.std(axis=0) > 0)
    if not moving.any():
        return 1
    speed = np.sort(np.sqrt((change[:, moving] ** 2).mean(axis=0)) / x[:, moving].std(axis=0))
    return HELD if speed[min(1, len(speed) - 1)] < SLOW else 1
