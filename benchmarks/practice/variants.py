"""Small tasks of our own that Gymnasium lacks: many actions, and rewards of another size."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete

Stepped = tuple[Any, float, bool, bool, dict[str, Any]]


def scaled_rewards(env: Any, factor: float) -> Any:
    """The same environment, rewarded in another currency."""
    return gym.wrappers.TransformReward(env, lambda reward: factor * reward)


class FiftyActions(gym.Env[Any, Any]):
    """Fifty places on a square; choose the one nearest to a point that is shown. Episodes are cut off.

    Place k is (k % 10 + .5, k // 10 * 2 + 1) / 10. The reward is 1 - distance / REACH, at least 0, and the next
    point is drawn anew, so that the best policy is known exactly.
    """

    STEPS, REACH = 10, 0.3

    def __init__(self) -> None:
        k = np.arange(50)
        self.places = np.stack([(k % 10 + 0.5) / 10, (k // 10 * 2 + 1) / 10], axis=1)
        self.action_space = Discrete(50)
        self.observation_space = Box(0.0, 1.0, (2,), np.float64)

    def rewards(self, points: Any) -> Any:
        """Rewards of all actions at points, (N, 50)."""
        far = np.linalg.norm(np.asarray(points)[:, None] - self.places, axis=2)
        return np.maximum(0.0, 1.0 - far / self.REACH)

    def optimum(self, side: int = 200) -> float:
        """The expected return of the best policy, by the mean over a fine grid of points."""
        middles = (np.arange(side) + 0.5) / side
        grid = np.stack(np.meshgrid(middles, middles), axis=-1).reshape(-1, 2)
        return float(self.STEPS * self.rewards(grid).max(axis=1).mean())

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Show the first point."""
        super().reset(seed=seed)
        self.t, self.point = 0, self.np_random.random(2)
        return self.point.copy(), {}

    def step(self, action: Any) -> Stepped:
        """Pay for the choice and show the next point."""
        reward = float(self.rewards(self.point[None])[0, int(action)])
        self.t, self.point = self.t + 1, self.np_random.random(2)
        return self.point.copy(), reward, False, self.t >= self.STEPS, {}
