"""Observations of several environments at once, as stable-baselines3 passes them to `predict`."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from rlsvi.bases import Observed

Predict = TypeVar("Predict", bound=Callable[..., tuple[int, int]])


def batched(predict: Predict) -> Predict:
    """Let `predict` take arrays, of one row an environment, and give arrays.

    They are told by their shape where the agent knows that of an observation, or by `state` or `episode_start`
    being arrays. Each environment then plays its episode on a sample of its own.
    """

    @wraps(predict)
    def either(
        self: Any,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_mask: Any = None,
    ) -> tuple[Any, Any]:
        if np.ndim(state) == 0 and np.ndim(episode_start) == 0 and not _is_batch(self, observation):
            return predict(self, observation, state, episode_start, deterministic, action_mask)
        count = _rows(observation)
        for name, given in (("state", state), ("episode_start", episode_start), ("action_mask", action_mask)):
            if np.ndim(given) > 0 and len(given) != count:
                raise ValueError(f"{name} has {len(given)} rows, there are {count} observations: one each")
        states = np.zeros(count, np.int64) if state is None else np.broadcast_to(state, count)
        starts = np.broadcast_to(state is None if episode_start is None else episode_start, count)
        masks = action_mask if np.ndim(action_mask) == 2 else [action_mask] * count
        found = np.zeros((2, count), np.int64)
        samples, own = _samples(self), getattr(self, "_drawn", None)
        try:
            for i in range(count):
                self._drawn = samples.get(i, {} if isinstance(own, dict) else None)
                one = _row(observation, i)
                found[:, i] = predict(self, one, int(states[i]), bool(starts[i]), deterministic, masks[i])
                samples[i] = self._drawn
        finally:
            self._drawn = own
        return found[0], found[1]

    return cast(Predict, either)


def _samples(agent: Any) -> dict[int, Any]:
    """The sample of each environment; none after more was learned."""
    steps, samples = getattr(agent, "_batch_samples", (None, {}))
    if steps != agent.steps:
        samples = {}
    agent._batch_samples = agent.steps, samples
    return cast(dict[int, Any], samples)


def _is_batch(agent: Any, observation: Any) -> bool:
    """Whether an observation has one dimension more than those learned from."""
    if agent._task is None:
        return False
    if agent._task.states is not None:
        return isinstance(observation, np.ndarray | list) and np.ndim(observation) == 1
    layouts = [b.layout for b in (agent._problem_basis, getattr(agent, "basis", None)) if isinstance(b, Observed)]
    if not layouts:
        return False
    tree = layouts[0].tree
    while tree[0] in ("dict", "tuple"):
        key, tree = tree[1][0] if tree[0] == "dict" else (0, tree[1][0])
        try:
            observation = observation[key]
        except (TypeError, KeyError, IndexError):
            return False  # predict says what is wrong
    return np.ndim(observation) == len(tree[-1]) + 1


def _leaf(observations: Any) -> Any:
    while isinstance(observations, dict | tuple):
        parts = list(observations.values()) if isinstance(observations, dict) else observations
        observations = parts[0]
    return observations


def _rows(observations: Any) -> int:
    if np.ndim(_leaf(observations)) == 0:
        raise ValueError("state and episode_start are arrays, of many environments, but there is one observation")
    return len(_leaf(observations))


def _row(observations: Any, i: int) -> Any:
    if isinstance(observations, dict):
        return {key: _row(part, i) for key, part in observations.items()}
    if isinstance(observations, tuple):
        return tuple(_row(part, i) for part in observations)
    return observations[i]
