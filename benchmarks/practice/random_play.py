"""What random play brings, and the optimum where it is known: the levels that chosen.py and reported.py state."""

import numpy as np

from benchmarks.practice.evaluation import FRESH
from benchmarks.practice.exact import Exact


def random_return(task, episodes=100):
    """The mean return of random actions, legal ones where the environment tells which."""
    env, rng, total = task.make(), np.random.default_rng(0), 0.0
    first = int(env.action_space.start)
    for episode in range(episodes):
        (_, info), done = env.reset(seed=FRESH + episode), False
        while not done:
            legal = info.get("action_mask")
            offered = np.arange(env.action_space.n) if legal is None else np.flatnonzero(legal)
            _, reward, terminated, truncated, info = env.step(first + int(rng.choice(offered)))
            total, done = total + float(reward), terminated or truncated
    return total / episodes


def levels(task):
    """A line on the levels of a task."""
    optimum = Exact(task.make()).optimum
    known = "" if optimum is None else f", optimum {optimum:.4g}"
    thresholds = ", ".join(f"{level:.4g}" for level in task.thresholds(optimum))
    return f"{task.name}: random play {random_return(task):.4g}{known}, thresholds {thresholds}"
