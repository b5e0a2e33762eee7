"""Small environments that behave, of numbered states and of vectors, with rewards in [0, 1] and masks."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

from rlsvi.envs import FiniteMDPEnv
from rlsvi.mdp import FiniteMDP

HORIZON, ACTIONS, STATES = 3, 3, 4
LEGAL = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1], [1, 1, 1]], dtype=bool)


def _successors(state, action):
    if action == 0:
        return [(1.0, max(state - 1, 0), 0.25)]
    if action == 1:
        return [(0.5, min(state + 1, 2), 0.5 * (state == 2)), (0.5, state, 0.0)]
    return [(0.75, (state + 1) % 3, 1.0), (0.25, 3, 0.0)]


MDP = FiniteMDP.from_function(
    _successors,
    horizon=HORIZON,
    states=STATES,
    actions=ACTIONS,
    start=np.array([0.5, 0.5, 0.0, 0.0]),
    legal=LEGAL,
    absorbing=np.array([False, False, False, True]),
    name="a walk with an end",
)


def numbered():
    """Episodes of three periods over four states, of which the last ends them."""
    return FiniteMDPEnv(MDP)


def _round(state, action):
    return _successors(state, action) if action < 2 else [(1.0, (state + 1) % 3, 1.0)]


ROUND = FiniteMDP.from_function(
    _round, horizon=HORIZON, states=3, actions=ACTIONS, start=np.array([0.5, 0.5, 0.0]), legal=LEGAL[:3]
)


def endless():
    """The same without an end."""
    return FiniteMDPEnv(ROUND, endless=True)


class Drift(gymnasium.Env):
    """Two numbers drift; an episode ends when the first leaves [-1, 1], and is cut off after `horizon` steps.

    `ends` False: it goes on for ever, and the numbers stay bounded.
    """

    def __init__(self, horizon=HORIZON, ends=True, actions=ACTIONS, size=2):
        self.limit, self.ends = horizon, ends
        if ends:
            self.horizon = horizon
        self.action_space = Discrete(actions)
        self.observation_space = Box(-4.0, 4.0, (size,), np.float64)

    def _observe(self):
        x = np.zeros(self.observation_space.shape)
        x[0], x[-1] = self.x, self.t % 4 / 4
        return x

    def _info(self):
        mask = np.ones(self.action_space.n, dtype=np.int8)
        mask[-1] = self.x < 0.5
        return {"action_mask": mask}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = float(self.np_random.uniform(-0.5, 0.5)), 0
        return self._observe(), self._info()

    def step(self, action):
        assert self._info()["action_mask"][action], "an illegal action was taken"
        self.t += 1
        self.x += 0.4 * (int(action) - 1) + 0.5 * float(self.np_random.uniform(-1, 1))
        out = abs(self.x) > 1
        self.x = float(np.clip(self.x, -2, 2))
        reward = max(0.0, 1.0 - abs(self.x))
        return self._observe(), reward, out and self.ends, self.ends and self.t == self.limit, self._info()


def drifting():
    """Episodes of at most three periods, of vectors."""
    return Drift()


def drifting_for_ever():
    """Vectors without an end."""
    return Drift(ends=False)
