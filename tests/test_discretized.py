"""Continuous actions as a finite choice, and what is said of spaces that cannot be served."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import rlsvi
from rlsvi.envs import Discretized


class Any(gym.Env):
    """Remembers the action it was given."""

    observation_space = spaces.Box(-1.0, 1.0, (1,))

    def __init__(self, space):
        self.action_space = space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, dtype=np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.taken = action
        return np.zeros(1, dtype=np.float32), float(np.sum(action)), True, False, {}


@pytest.mark.parametrize(
    ("space", "choices", "actions"),
    [
        (spaces.Box(-2.0, 2.0, (1,)), 3, [[-2], [0], [2]]),
        (spaces.Box(np.array([0, -1]), np.array([1, 1]), dtype=np.float64), 2, [[0, -1], [0, 1], [1, -1], [1, 1]]),
        (spaces.Box(-np.inf, np.inf, (1,)), [[-1.0], [5.0]], [[-1], [5]]),
        (spaces.MultiDiscrete([2, 3], start=[5, 0]), None, [[5, 0], [5, 1], [5, 2], [6, 0], [6, 1], [6, 2]]),
        (spaces.MultiBinary(2), None, [[0, 0], [0, 1], [1, 0], [1, 1]]),
    ],
)
def test_the_actions_to_choose_from(space, choices, actions):
    env = Discretized(Any(space), choices)
    assert env.action_space == spaces.Discrete(len(actions))
    env.reset(seed=0)
    for k, action in enumerate(actions):
        env.step(k)
        assert env.unwrapped.taken.tolist() == action
    with pytest.raises(ValueError, match=rf"not one of 0\.\.{len(actions) - 1}"):
        env.step(len(actions))
    agent = rlsvi.agent_for(env, seed=0, gamma=0.0).learn(env, episodes=30)
    best = agent.predict(np.zeros(1, dtype=np.float32), deterministic=True)[0]
    assert np.sum(actions[best]) == max(np.sum(a) for a in actions)


@pytest.mark.parametrize(
    ("space", "choices", "message"),
    [
        (spaces.Box(-1.0, 1.0, (2,)), None, r"say by choices="),
        (spaces.Box(-1.0, 1.0, (2,)), 1, "choices must be a whole number of at least 2"),
        (spaces.Box(-1.0, np.inf, (2,)), 3, r"have no bounds.*choices=\["),
        (spaces.Box(-1.0, 1.0, (9,)), 3, "19683 actions are more than 1000"),
        (spaces.Box(-1.0, 1.0, (1,)), [[2.0]], "choices must be actions of"),
        (spaces.MultiBinary(2), 3, "cannot be offered as a finite choice"),
        (spaces.Text(3), None, "cannot be offered as a finite choice"),
    ],
)
def test_choices_that_make_no_sense_are_refused(space, choices, message):
    with pytest.raises(ValueError, match=message):
        Discretized(Any(space), choices)
