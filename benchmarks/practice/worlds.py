"""Small worlds of our own: rooms, a room with headings, catch, DeepSea as a picture, fifty actions, and valves."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete

MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))


class Rooms(gym.Env[Any, Any]):
    """Four rooms with doors, `size` x `size` cells; reward 1 in the far corner, which ends the episode."""

    def __init__(self, size: int = 20, limit: int | None = None) -> None:
        self.size, self.limit = size, limit or size * size
        self.walls = np.zeros((size, size), dtype=bool)
        middle, quarter = size // 2, size // 4
        self.walls[middle], self.walls[:, middle] = True, True
        for door in ((middle, quarter), (middle, middle + quarter), (quarter, middle), (middle + quarter, middle)):
            self.walls[door] = False
        self.action_space = Discrete(4)
        self.observation_space: Any = Discrete(size * size)

    def _observe(self) -> Any:
        return self.at[0] * self.size + self.at[1]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        self.at, self.t = (0, 0), 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act."""
        i, j = self.at[0] + MOVES[action][0], self.at[1] + MOVES[action][1]
        if 0 <= i < self.size and 0 <= j < self.size and not self.walls[i, j]:
            self.at = i, j
        self.t += 1
        found = self.at == (self.size - 1, self.size - 1)
        return self._observe(), float(found), found, self.t >= self.limit, {}


class Headings(gym.Env[Any, Any]):
    """A room seen as (row, column, heading): turn left, turn right, go ahead, and four actions that do nothing.

    The reward at the goal in the far corner is 1 - .9 t / limit, as in Minigrid.
    """

    def __init__(self, size: int = 8, limit: int | None = None) -> None:
        self.size, self.limit = size, limit or 4 * size * size
        self.action_space = Discrete(7)
        self.observation_space = MultiDiscrete([size, size, 4])

    def _observe(self) -> Any:
        return np.array([*self.at, self.heading])

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        self.at, self.heading, self.t = (0, 0), 1, 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act."""
        self.t += 1
        if action < 2:
            self.heading = (self.heading + (1 if action else -1)) % 4
        elif action == 2:
            ahead = (place + move for place, move in zip(self.at, MOVES[self.heading], strict=True))
            i, j = (min(max(place, 0), self.size - 1) for place in ahead)
            self.at = i, j
        found = self.at == (self.size - 1, self.size - 1)
        return self._observe(), found * (1 - 0.9 * self.t / self.limit), found, self.t >= self.limit, {}


class Catch(gym.Env[Any, Any]):
    """A ball falls down a board seen as a picture; the paddle in the last row moves by -1, 0 or 1."""

    def __init__(self, rows: int = 10, columns: int = 5) -> None:
        self.rows, self.columns = rows, columns
        self.action_space = Discrete(3)
        self.observation_space = Box(0.0, 1.0, (rows, columns), np.float32)

    def _observe(self) -> Any:
        board = np.zeros((self.rows, self.columns), np.float32)
        board[self.ball] = 1
        board[-1, self.paddle] = 1
        return board

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        self.ball, self.paddle = (0, int(self.np_random.integers(self.columns))), self.columns // 2
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act."""
        self.paddle = min(max(self.paddle + int(action) - 1, 0), self.columns - 1)
        self.ball = self.ball[0] + 1, self.ball[1]
        over = self.ball[0] == self.rows - 1
        reward = (1.0 if self.ball[1] == self.paddle else -1.0) if over else 0.0
        return self._observe(), reward, over, False, {}


class DeepSeaPicture(gym.Env[Any, Any]):
    """DeepSea as bsuite shows it: a diver on an n x n picture sinks one row a step; only going right n times pays.

    Right costs .01 / n; the treasure is 1. What the actions do is drawn for every cell by `mapping`.
    """

    def __init__(self, size: int = 20, mapping: int = 0) -> None:
        self.size = size
        self.right = np.random.default_rng(mapping).integers(2, size=(size, size))
        self.action_space = Discrete(2)
        self.observation_space = Box(0.0, 1.0, (size, size), np.float32)

    def _observe(self) -> Any:
        picture = np.zeros((self.size, self.size), np.float32)
        if self.at[0] < self.size:
            picture[self.at] = 1
        return picture

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        self.at = 0, 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act."""
        (i, j), right = self.at, int(action) == self.right[self.at]
        treasure = right and i == j == self.size - 1
        reward = float(treasure) - (0.01 / self.size if right else 0.0)
        self.at = i + 1, min(j + 1, self.size - 1) if right else max(j - 1, 0)
        return self._observe(), reward, i + 1 == self.size, False, {}


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

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Pay for the choice and show the next point."""
        reward = float(self.rewards(self.point[None])[0, int(action)])
        self.t, self.point = self.t + 1, self.np_random.random(2)
        return self.point.copy(), reward, False, self.t >= self.STEPS, {}


class Valves(gym.Env[Any, Any]):
    """Three tanks with a valve each, closed, half open or open: keep them at levels of 0.3, 0.5 and 0.7.

    A level rises by 0.15 a step with an open valve and falls by as much with a closed one, by 0.1 times the demand
    more, which is seen and drifts; both are disturbed. The reward is 1 - 2 times the mean distance of the levels.
    """

    LEVELS = np.array([0.3, 0.5, 0.7])

    def __init__(self) -> None:
        self.action_space = MultiDiscrete([3, 3, 3])
        self.observation_space = Box(0.0, 1.0, (4,), np.float64)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Start with any levels and any demand."""
        super().reset(seed=seed)
        self.t, self.state = 0, self.np_random.random(4)
        return self.state.copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Set the valves."""
        flow = 0.15 * (np.asarray(action) - 1.0) - 0.1 * (self.state[3] - 0.5)
        change = np.append(flow, 0.0) + self.np_random.normal(0.0, [0.02, 0.02, 0.02, 0.1])
        self.t, self.state = self.t + 1, np.clip(self.state + change, 0.0, 1.0)
        reward = 1.0 - 2.0 * float(np.abs(self.state[:3] - self.LEVELS).mean())
        return self.state.copy(), reward, False, self.t >= 30, {}
