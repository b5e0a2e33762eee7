"""Action repeat: an action is held for several steps, and a rule says for how many.

If a step moves the observation by little, one action hardly changes any value, and noise decides between actions.
The rule looks at the steps of the first episode, which are played without repetition. For every measured number
that changes in most steps, it takes the typical change in a step, in standard deviations of the number. If that
of the second slowest number (the slowest may be a clock) is below `SLOW`, actions are held for `HELD` steps.
"""

from typing import Any

import numpy as np

from rlsvi.agents.task import begun, checked_reward, taken
from rlsvi.core.compile import Floats

SLOW = 0.085  # standard deviations; in single random episodes LunarLander has .04 to .065, MountainCar .11 to .29
HELD = 4  # steps
FEWEST = 30  # steps that are needed to tell


class Repeated:
    """An environment in which actions are held for `times` steps, or until illegal, or until the episode ends."""

    def __init__(self, env: Any, times: int) -> None:
        self.env, self.times = env, times

    def reset(self, *, seed: int) -> Any:
        """Begin an episode."""
        return begun(self.env, seed)

    def step(self, action: int) -> Any:
        """Take an action and return the last observation, with the sum of the rewards."""
        total, first = 0.0, int(self.env.action_space.start)
        for _ in range(self.times):
            observation, reward, terminated, truncated, info = taken(self.env, action)
            total += checked_reward(reward)
            mask = info.get("action_mask")
            if terminated or truncated or (mask is not None and not np.asarray(mask)[action - first]):
                break
        return observation, total, terminated, truncated, info


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
