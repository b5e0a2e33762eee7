"""What a user may bring: an agent of another kind, one of stable-baselines3, problems and environments."""

import threading
from collections import defaultdict

import gymnasium as gym
import numpy as np

import rlsvi


class QLearning:
    """Q-learning with a table, which knows nothing of this library; numbers are rounded."""

    def __init__(self, env, seed, epsilon=0.1, rate=0.2, gamma=0.99):
        self.epsilon, self.rate, self.gamma = epsilon, rate, gamma
        self.random = np.random.default_rng(seed)
        self.Q = defaultdict(lambda: np.zeros(env.action_space.n))

    def key(self, observation):
        return tuple(np.atleast_1d(np.round(np.asarray(observation, float), 1)))

    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        Q = self.Q[self.key(observation)]
        if not deterministic and self.random.random() < self.epsilon:
            return int(self.random.integers(len(Q))), state
        return int(self.random.choice(np.flatnonzero(Q == Q.max()))), state

    def learn(self, env, episodes):
        for _ in range(episodes):
            (observation, _), over = env.reset(), False
            while not over:
                action, _ = self.predict(observation, deterministic=False)
                following, reward, terminated, truncated, _ = env.step(action)
                value = 0.0 if terminated else self.Q[self.key(following)].max()
                error = reward + self.gamma * value - self.Q[self.key(observation)][action]
                self.Q[self.key(observation)][action] += self.rate * error
                observation, over = following, terminated or truncated
        return self


def ppo(env, seed):
    from stable_baselines3 import PPO

    return PPO("MlpPolicy", env, seed=seed, n_steps=64, batch_size=32, n_epochs=2, device="cpu")


def two_rooms(doors=1):
    """A problem of this library: stay, or go to the other room, where there is more."""
    rooms = [[[(1.0, 0, 0.1)], [(1.0, 1, 0.0)]], [[(1.0, 1, float(doors))], [(1.0, 0, 0.0)]]]
    mdp = rlsvi.FiniteMDP.from_function(
        lambda s, a: rooms[s][a], horizon=4, states=2, actions=2, start=np.array([1.0, 0.0]), name="two rooms"
    )
    return rlsvi.Problem(mdp)


class Corridor(gym.Env):
    """An environment: walk right; the observation is where one stands."""

    def __init__(self, length=3):
        self.length = length
        self.observation_space, self.action_space = gym.spaces.Discrete(length), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = int(self.np_random.integers(self.length - 1))
        return self.at, {}

    def step(self, action):
        self.at = max(self.at + (1 if action else -1), 0)
        return self.at, float(self.at == self.length - 1), self.at == self.length - 1, False, {}


def corridor(length=3):
    return gym.wrappers.TimeLimit(Corridor(length), 10)


class Counting(gym.Env):
    """Five steps that pay their action; counts what was opened and closed, and cannot be sent or copied."""

    observation_space, action_space = gym.spaces.Discrete(5), gym.spaces.Discrete(2)
    opened = closed = 0

    def __init__(self):
        Counting.opened += 1
        self.lock = threading.Lock()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return 0, {}

    def step(self, action):
        self.t += 1
        return self.t % 5, float(action), self.t == 5, False, {}

    def close(self):
        Counting.closed += 1


def counting():
    return Counting()
