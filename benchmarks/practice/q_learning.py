"""Tabular Q-learning (Watkins 1989), epsilon-greedy, with one setting for all tasks.

Counted observations are states as they are, measured ones fall into a grid of bins (results.py says which, chosen
as courses and textbooks do). Values begin at 0, which is optimistic where rewards are costs. The discount is
0.99; epsilon falls in a straight line from 1 to 0.05 within the first half of the budget, and stays; the
learning rate of the n-th visit is n^-0.6, at least 0.02, and on a grid, where a state is many, at least 0.1.
"""

import numpy as np
from gymnasium import spaces

GAMMA, LAST_EPSILON, DECAY, POWER = 0.99, 0.05, 0.5, 0.6
LEAST_RATE, LEAST_GRID_RATE = 0.02, 0.1
SETTING = "one setting"


def numbering(space, grid):
    """A function from a batch of observations to state numbers, and how many there are."""
    if isinstance(space, spaces.Discrete):
        return (lambda batch: np.asarray(batch)), int(space.n)
    if isinstance(space, spaces.Tuple):
        shape = tuple(int(part.n) for part in space)
        return (lambda batch: np.ravel_multi_index(tuple(np.asarray(b) for b in batch), shape)), int(
            np.prod(shape)
        )
    low, high, shape = (np.array(column) for column in zip(*grid, strict=True))
    strides = np.cumprod([1, *shape[:0:-1]])[::-1]

    def cells(batch):
        places = ((np.asarray(batch) - low) * (shape / (high - low))).astype(np.int64)
        return np.minimum(np.maximum(places, 0), shape - 1) @ strides

    return cells, int(np.prod(shape))


def learn(task, seed, record):
    """Learn for the task's budget of steps; stop when the record says that the threshold is met."""
    env, rng, budget = task.make(), np.random.default_rng(seed), task.steps["q-learning"]
    number, states = numbering(env.observation_space, task.grid)
    actions, least = int(env.action_space.n), LEAST_GRID_RATE if task.grid else LEAST_RATE
    Q, visits = np.zeros((states, actions)), np.zeros((states, actions), dtype=np.int64)

    def policy(observations, state, masks):
        return Q[number(observations)].argmax(axis=1), None

    points, done, seeding = points_of(budget), True, int(rng.integers(2**31))
    record.start()
    for step in range(1, budget + 1):
        if done:
            observation, _ = env.reset(seed=seeding)
            s, total, seeding = int(number(observation)), 0.0, None
        epsilon = max(LAST_EPSILON, 1 - (1 - LAST_EPSILON) * (step - 1) / (DECAY * budget))
        values = Q[s]
        if rng.random() < epsilon:
            a = int(rng.integers(actions))
        else:
            best = np.flatnonzero(values == values.max())
            a = int(best[0] if len(best) == 1 else rng.choice(best))
        observation, reward, terminated, truncated, _ = env.step(a)
        following = int(number(observation))
        target = float(reward) + (0.0 if terminated else GAMMA * Q[following].max())
        visits[s, a] += 1
        values[a] += max(least, visits[s, a] ** -POWER) * (target - values[a])
        s, total, done = following, total + float(reward), terminated or truncated
        if done:
            record.ended(total)
        if step == points[0]:
            points = points[1:]
            if record.at(policy, step):
                return


def points_of(budget, count=10):
    """Steps after which a rival is evaluated."""
    return [budget * (i + 1) // count for i in range(count)]
