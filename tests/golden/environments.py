"""Environments to learn in."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete


class Walk(gymnasium.Env):
    """A noisy walk over 0..6 in whole steps, with an action mask; it ends at 6 or is cut off after seven steps."""

    def __init__(self, numbered):
        self.numbered = numbered
        self.action_space = Discrete(3)
        self.observation_space = Discrete(7) if numbered else Box(0.0, 9.0, (2,), np.float64)

    def _seen(self):
        mask = np.array([True, self.x % 2 == 0, self.x > 0], dtype=np.int8)
        return self.x if self.numbered else np.array([self.x, self.t], np.float64), {"action_mask": mask}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = int(self.np_random.integers(5)), 0
        return self._seen()

    def step(self, action):
        reward = float((self.x, action) == (3, 0)) + 0.25 * (action == 2)
        moved = self.x + (0, 1, -1)[action] + int(self.np_random.integers(-1, 3))
        self.x, self.t = min(max(moved, 0), 6), self.t + 1
        observation, info = self._seen()
        return observation, reward, self.x == 6, self.t == 7, info


class Traced(gymnasium.Wrapper):
    """An environment that keeps all that is seen, done and paid."""

    def __init__(self, env):
        super().__init__(env)
        self.rows = []

    def _keep(self, observation, numbers):
        parts = observation.values() if isinstance(observation, dict) else [observation]
        seen = [np.ravel(np.asarray(part, np.float64)) for part in parts]
        self.rows.append(np.concatenate([*seen, numbers]))

    def reset(self, **options):
        observation, info = self.env.reset(**options)
        self._keep(observation, [-1.0] * 4)
        return observation, info

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._keep(observation, [float(action), float(reward), float(terminated), float(truncated)])
        return observation, reward, terminated, truncated, info
