"""Observations of several environments at once, one row per environment, as stable-baselines3 passes them."""

from typing import Any

import numpy as np

from rlsvi.agents.task import Task
from rlsvi.bases.layout import Layout


def is_batch(task: Task, layout: Layout | None, observation: Any) -> bool:
    """Whether an observation has one dimension more than those learned from."""
    if task.states is not None:
        return isinstance(observation, np.ndarray | list) and np.ndim(observation) == 1
    if layout is None:
        return False
    tree = layout.tree
    while tree[0] in ("dict", "tuple"):
        key, tree = tree[1][0] if tree[0] == "dict" else (0, tree[1][0])
        try:
            observation = observation[key]
        except (TypeError, KeyError, IndexError):
            return False  # looking at it will say what is wrong
    return np.ndim(observation) == len(tree[-1]) + 1


def rows_in(observations: Any) -> int:
    """The number of environments."""
    leaf = observations
    while isinstance(leaf, dict | tuple):
        leaf = next(iter(leaf.values())) if isinstance(leaf, dict) else leaf[0]
    if np.ndim(leaf) == 0:
        raise ValueError("state and episode_start are arrays, of many environments, but there is one observation")
    return len(leaf)


def row_of(observations: Any, i: int) -> Any:
    """The observation of one environment."""
    if isinstance(observations, dict):
        return {key: row_of(part, i) for key, part in observations.items()}
    if isinstance(observations, tuple):
        return tuple(row_of(part, i) for part in observations)
    return observations[i]
