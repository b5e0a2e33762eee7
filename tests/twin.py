"""Shared by several tests.

Algorithm 1 as the paper writes it, in plain NumPy; what an agent did in an environment; its whole state.
"""

import gymnasium
import numpy as np


class Recorder(gymnasium.Wrapper):
    """Writes down states, actions and rewards of every episode."""

    def __init__(self, env):
        super().__init__(env)
        self.episodes = []

    def reset(self, **options):
        self.seen, info = self.env.reset(**options)
        self.episodes.append([])
        return self.seen, info

    def step(self, action):
        outcome = self.env.step(action)
        self.episodes[-1].append((self.seen, action, outcome[1]))
        self.seen = outcome[0]
        return outcome


class Transitions(gymnasium.Wrapper):
    """Writes down what happens step by step.

    rows : (observation, action counted from 0, reward, next observation or None at an end) of every step.
    legal, ends : the mask of what comes next, and whether an episode ends there, for any reason.
    """

    def __init__(self, env):
        super().__init__(env)
        self.rows, self.legal, self.ends = [], [], []

    def reset(self, **options):
        self.seen, info = self.env.reset(**options)
        return self.seen, info

    def step(self, action):
        following, reward, terminated, truncated, info = self.env.step(action)
        a = int(action - self.action_space.start)
        self.rows.append((self.seen, a, reward, None if terminated else following))
        self.legal.append(np.asarray(info.get("action_mask", np.ones(self.action_space.n)), dtype=bool))
        self.ends.append(terminated or truncated)
        self.seen = following
        return following, reward, terminated, truncated, info


class Rows:
    """A basis written out: phi(h, s, a) as one row of all weights, zero outside the block it touches."""

    def __init__(self, features):
        self.features, self.weights = features, features.blocks * features.dim

    def __call__(self, h, observation):
        """The rows of all actions, (A, weights)."""
        block, phi = self.features.at(h, observation)
        rows = np.zeros((len(block), self.features.blocks, self.features.dim))
        rows[np.arange(len(block)), block] = phi
        return rows.reshape(len(block), -1)


def regression(episodes, h, rows, theta_next, offset=0.0):
    """A and b of period h. An episode is a list of (state, action, reward, next state or None, its mask)."""
    A, b = [], []
    for episode in episodes:
        if len(episode) > h:
            state, action, reward, following, legal = episode[h]
            A.append(rows(h, state)[action])
            best = 0.0 if following is None else (rows(h + 1, following) @ theta_next)[legal].max()
            b.append(reward + offset + best)
    return np.array(A).reshape(-1, rows.weights), np.array(b)


def ridge_regression(A, b, ridge, mean):
    """argmin |A theta - b|^2 + ridge |theta - mean|^2, as one least-squares problem."""
    K = A.shape[1]
    mean = np.broadcast_to(mean, (K,))
    stacked = np.vstack([A, np.sqrt(ridge) * np.eye(K)])
    return np.linalg.lstsq(stacked, np.concatenate([b, np.sqrt(ridge) * mean]), rcond=None)[0]


def lsvi(episodes, rows, H, ridge, mean=0.0, offset=0.0):
    """Least-squares value iteration from all raw episodes: theta (H, weights) and every period's A."""
    means = np.broadcast_to(mean, (H, rows.weights))
    theta, data = np.zeros((H, rows.weights)), [None] * H
    for h in reversed(range(H)):
        data[h], b = regression(episodes, h, rows, theta[h + 1] if h + 1 < H else None, offset)
        theta[h] = ridge_regression(data[h], b, ridge, means[h])
    return theta, data


def deviation(A, ridge, x):
    """Posterior standard deviation of x . theta, for noise of standard deviation 1."""
    return np.sqrt(x @ np.linalg.solve(A.T @ A + ridge * np.eye(A.shape[1]), x))


def raw_episodes(trace, mdp):
    """The episodes of a fused trace, as `regression` takes them."""
    legal = mdp.table.legal
    episodes = []
    for states, actions, rewards in zip(*trace, strict=True):
        T = int((states >= 0).sum())
        steps = []
        for h in range(T):
            following = int(states[h + 1]) if h + 1 < T else None
            mask = None if following is None else legal[(h + 1) % len(legal), following]
            steps.append((int(states[h]), int(actions[h]), float(rewards[h]), following, mask))
        episodes.append(steps)
    return episodes


def state_of(agent):
    """All that an agent's future depends on, by name; room that is not used yet does not count."""
    found = {"streams": agent._streams, "overshoot": np.array([agent._overshoot])}
    if agent.steps > 0:
        found |= agent._state()
    return {name: array.copy() for name, array in found.items()}


def assert_same(first, second):
    """Two states, bit for bit."""
    assert first.keys() == second.keys()
    for name in first:
        assert first[name].dtype == second[name].dtype, name
        assert first[name].shape == second[name].shape, name
        assert first[name].tobytes() == second[name].tobytes(), name
