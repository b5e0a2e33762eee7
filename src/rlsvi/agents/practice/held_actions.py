"""Actions that are held for several steps, and a rule that says for how many.

If a step moves the observation by little, one action hardly changes any value, and noise decides between
actions. The rule looks at the steps of the first episode, which are played without repetition. For every
measured number that changes in most steps, it takes the typical change in a step, in standard deviations of the
number. If that of the second slowest number (the slowest may be a clock) is below `SLOW_CHANGE`, actions are
held for `STEPS_HELD` steps.
"""

from typing import Any

import numpy as np
from gymnasium import Wrapper

from rlsvi.agents.agent import Agent
from rlsvi.agents.calls import period_of
from rlsvi.bases.observed import Observed
from rlsvi.core.compile import Floats
from rlsvi.envs.task import Task, checked_reward, reset_env, step_env
from rlsvi.offline.replay import Replay

REPEAT = 6  # index in the counters of a learner: for how many steps actions are held
SLOW_CHANGE = (
    0.085  # standard deviations; in single random episodes LunarLander has .04 to .065, MountainCar .11 to .29
)
STEPS_HELD = 4  # steps
FEWEST_STEPS = 30  # steps that are needed to tell


class ActionRepeat(Wrapper[Any, Any, Any, Any]):
    """An environment in which actions are held for `times` steps, or until illegal, or until the episode ends."""

    def __init__(self, env: Any, times: int, task: Task) -> None:
        super().__init__(env)
        self.times, self.task = times, task

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        """Begin an episode."""
        return reset_env(self.env, seed)

    def step(self, action: Any) -> Any:
        """Take an action and return the last observation, with the sum of the rewards."""
        total = 0.0
        for _ in range(self.times):
            observation, reward, terminated, truncated, info = step_env(self.env, action)
            total += checked_reward(reward)
            mask = info.get("action_mask")
            if terminated or truncated or not (mask is None or self.task.legal(mask)[self.task.number(action)]):
                break
        return observation, total, terminated, truncated, info


class PracticeAgent(Agent):
    """An agent that knows the layout of observations, and holds each action for `held` steps."""

    @property
    def held(self) -> int:
        """For how many steps each action is held."""
        return 1

    def _take_layout(self, layout: Observed | None) -> None:
        """Begin with a layout of observations, or check that it is the one learned so far."""
        if self.steps == 0:
            self._problem_basis = layout
        elif layout and self._problem_basis and layout.layout != self._problem_basis.layout:
            raise ValueError(
                f"this agent has learned {self._task} with other observations, it cannot go on with these: "
                f"{self._advice}"
            )

    def _replay(self, replay: Replay, progress: bool | None) -> None:
        """Learn from all episodes of a log, if actions are held in it as this agent holds them."""
        if not replay.hold(self.held):
            raise ValueError(
                f"this agent holds each action for {self.held} steps, but the log changes actions sooner: use an "
                "agent with repeat=1, or one that has learned nothing yet"
            )
        super()._replay(replay, progress)

    def _episode(self, env: Any) -> float:
        """Play and learn one episode, in which actions are held; in a log they are held if all of it is so."""
        assert self._task is not None
        if not isinstance(env, Replay):
            played: Any = env if self.held == 1 else ActionRepeat(env, self.held, self._task)
            return super()._episode(played)
        if env.hold(self.held):
            return super()._episode(env)
        counters, held = self._learner.counters, self.held
        counters[REPEAT] = 1  # from now on, if this episode is learned from
        try:
            return super()._episode(env)
        except BaseException:
            counters[REPEAT] = held
            raise

    def _predict(
        self, key: int, observation: Any, state: Any, start: Any, deterministic: bool, mask: Any
    ) -> tuple[int, int]:
        """Return the number of the action of one environment, and its next state.

        The state combines the period, for how many more steps the action is held, and the action. An action that
        becomes illegal is replaced at once by another, which is held as long as any, as in learning.
        """
        if self.held == 1 or self._task is None:
            return super()._predict(key, observation, state, start, deterministic, mask)
        given = 0 if state is None or start else period_of(state)
        before, action = divmod(given, self._task.actions)
        h, left = divmod(before, self.held)
        if left == 0 or not self._task.legal(mask)[action]:
            decided, _ = super()._predict(key, observation, h, start, deterministic, mask)
            action, left = decided - self._task.first_action, self.held
        return self._task.first_action + action, ((h + 1) * self.held + left - 1) * self._task.actions + action


def repeat_of(x: Floats, following: Floats) -> int:
    """Return for how many steps to hold an action, given measured observations (T, m) and those that followed."""
    if len(x) < FEWEST_STEPS:
        return 1
    change = following - x
    moving = ((change != 0).mean(axis=0) > 0.5) & (x.std(axis=0) > 0)
    if not moving.any():
        return 1
    speed = np.sort(np.sqrt((change[:, moving] ** 2).mean(axis=0)) / x[:, moving].std(axis=0))
    return STEPS_HELD if speed[min(1, len(speed) - 1)] < SLOW_CHANGE else 1
