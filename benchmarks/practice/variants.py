"""Small tasks of our own that Gymnasium lacks: many actions, rewards of another size, a sparse swing-up."""

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


class SwingUp(gym.Env[Any, Any]):
    """A cart with a pole that hangs down; 1 for every step with the pole up, slow, and the cart near the middle.

    Pushing costs .1, so that a learner that has never had the pole up learns to do nothing. Barto, Sutton and
    Anderson's cart and pole (1983), with the sparse rewards of the behaviour suite (Osband and others, 2020).
    """

    GRAVITY, CART, POLE, HALF, PUSH, DT = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
    STEPS, EDGE, COST = 500, 3.0, 0.1

    def __init__(self) -> None:
        self.action_space = Discrete(3)  # left, nothing, right
        high = np.array([self.EDGE + 1, np.inf, 1, 1, np.inf])
        self.observation_space = Box(-high, high, dtype=np.float64)

    def _observe(self) -> Any:
        x, v, angle, spin = self.state
        return np.array([x, v, np.cos(angle), np.sin(angle), spin])

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Let the pole hang, almost at rest."""
        super().reset(seed=seed)
        self.t, self.state = 0, np.array([0, 0, np.pi, 0]) + self.np_random.uniform(-0.05, 0.05, 4)
        return self._observe(), {}

    def step(self, action: Any) -> Stepped:
        """Push for a fiftieth of a second."""
        push, (x, v, angle, spin) = int(action) - 1, self.state
        mass, sin, cos = self.CART + self.POLE, np.sin(angle), np.cos(angle)
        pulled = (push * self.PUSH + self.POLE * self.HALF * spin**2 * sin) / mass
        turn = (self.GRAVITY * sin - cos * pulled) / (self.HALF * (4 / 3 - self.POLE * cos**2 / mass))
        speed = pulled - self.POLE * self.HALF * turn * cos / mass
        v, spin = v + self.DT * speed, spin + self.DT * turn
        self.t, self.state = self.t + 1, np.array([x + self.DT * v, v, angle + self.DT * spin, spin])
        off = abs(self.state[0]) > self.EDGE
        up = np.cos(self.state[2]) > 0.95 and abs(self.state[3]) < 1 and abs(self.state[0]) < 1
        reward = float(up) - self.COST * abs(push)
        return self._observe(), reward, bool(off), self.t >= self.STEPS, {}
