"""Acting on what was learned: `predict`, for one environment or for several at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from rlsvi.agents.contract import EPISODES, PREDICT, STEPS, Broken, Learner, NothingLearned, broken, checked_values
from rlsvi.agents.explore import Explore, Greedy, choose, exploration
from rlsvi.agents.task import Task
from rlsvi.bases import Observed
from rlsvi.bases.layout import Layout
from rlsvi.core.checks import check_even, flag, shown, whole
from rlsvi.core.compile import Words

ONE = -1  # the key of the sample for a single environment


class Predicting:
    """The part of an agent that acts without learning."""

    explore: Explore = Greedy()
    basis: Any = None
    samples: bool = True  # whether it acts on a sample of the posterior, not on its mean
    samples_first: bool = False  # from the first episode on, not only once there are data
    broken: Broken = staticmethod(broken)
    _task: Task | None
    _problem_basis: Any
    _learner: Any
    _streams: Words

    @property
    def episodes(self) -> int:
        """The number of episodes learned from."""
        return int(self._learner.counters[EPISODES]) if self._learner is not None else 0

    @property
    def steps(self) -> int:
        """The number of steps learned from."""
        return int(self._learner.counters[STEPS]) if self._learner is not None else 0

    def sampled(self, learner: Learner) -> bool:
        """Return whether to act on a sample of the learner's posterior rather than on the mean."""
        return self.samples and (self.samples_first or bool(learner.counters[STEPS] > 0))

    def settle(self) -> None:
        """Called before each episode, before saving and before predicting, to update what was learned."""

    @contextmanager
    def streams_kept(self) -> Iterator[None]:
        """Context manager after which the random streams are as before, whatever was predicted."""
        kept = self._streams.copy()
        try:
            yield
        finally:
            self._streams[:] = kept

    def _forget_plans(self) -> None:
        self._version: tuple[int, ...] = ()
        self._mean: Any = None
        self._drawn: dict[int, Any] = {}

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_mask: Any = None,
    ) -> tuple[Any, Any]:
        """Return an action, and the state to pass to the next call, which is the period reached.

        Values may differ between periods, and each new episode uses a new sample of the value function, so pass
        the state on. Without it, every call acts as in period 0.

        deterministic : act greedily on the posterior mean. Otherwise act as in learning: on a value function
            sampled at the start of the episode, or with the exploration given.
        action_mask : which actions are legal. By default all, or those that were legal in learning.

        Observations of several environments, one in each row, return arrays, as in stable-baselines3. Each
        environment then plays its episode with its own sample, and `episode_start` says for each whether a new
        episode begins. With a single observation, `state` and `episode_start` may be arrays of size one.
        """
        flag("deterministic", deterministic)
        if self._task is None or not self._can_predict():
            raise NothingLearned("this agent has learned nothing yet: call learn first")
        basis = self._problem_basis if isinstance(self._problem_basis, Observed) else self.basis
        layout = basis.layout if isinstance(basis, Observed) else None
        given: Any
        for name, given in (("state", state), ("episode_start", episode_start), ("action_mask", action_mask)):
            check_even(name, given)
        if isinstance(observation, list):
            check_even("observation", observation)
        arrays = [np.size(given) for given in (state, episode_start) if np.ndim(given) > 0]
        batch = is_batch(self._task, layout, observation, max(arrays, default=0))
        count = rows_in(observation) if batch else 1
        states, starts = one_each("state", state, count), one_each("episode_start", episode_start, count)
        masks = action_mask if np.ndim(action_mask) == 2 else [action_mask] * count
        if len(masks) != count:
            raise ValueError(f"action_mask has {len(masks)} rows, there are {count} observations: one each")
        if not batch:
            return self._predict(ONE, observation, states[0], starts[0], deterministic, masks[0])
        found = np.zeros((2, count), np.int64)
        for i in range(count):
            found[:, i] = self._predict(i, row_of(observation, i), states[i], starts[i], deterministic, masks[i])
        return found[0], found[1]

    def _can_predict(self) -> bool:
        return self.steps > 0

    def _predict(
        self, key: int, observation: Any, state: Any, start: Any, deterministic: bool, mask: Any
    ) -> tuple[int, int]:
        """Return the action of one environment, and its next state."""
        assert self._task is not None
        h = 0 if state is None or start else whole("state", np.asarray(state).item(), 0)
        if self._task.horizon and h >= self._task.horizon:
            raise ValueError(f"state is period {shown(h)} of {self._task.horizon}: start a new episode")
        self.settle()
        place = self._learner.look(h, observation, mask, learning=False)
        Q = checked_values(self._learner.values(self.plan(deterministic, key, h == 0), place), place)
        if deterministic:
            a = int(np.argmax(np.where(place.legal, Q, -np.inf)))
        else:
            rule, parameter = exploration(self.explore, self.episodes, 1)
            a = choose(rule, parameter[0], Q, place.legal, np.empty_like(Q), self._streams[PREDICT])
        if a < 0 or not np.isfinite(Q[a]):
            raise self.broken()
        return self._task.first_action + a, h + 1

    def plan(self, mean: bool, key: int = ONE, first: bool = False) -> Any:
        """Return the posterior mean, kept until more is learned, or a sample, drawn at the start of an episode."""
        version = tuple(self._learner.counters)
        if version != self._version:
            self._version, self._mean, self._drawn = version, None, {}
        noise = self._streams[PREDICT]
        if mean or not self.samples:
            if self._mean is None:
                self._mean = self._learner.plan(False, noise)
            return self._mean
        if first or key not in self._drawn:
            self._drawn[key] = self._learner.plan(self.sampled(self._learner), noise)
        return self._drawn[key]


def is_batch(task: Task, layout: Layout | None, observation: Any, values: int) -> bool:
    """Return whether an observation has one dimension more than those learned from.

    If it is not known how many these have, the number of values tells that arrays give for `state` or
    `episode_start`. One value is a batch of one row, or, if there is no such row, as good as a number.
    """
    if task.states is not None:
        return isinstance(observation, np.ndarray | list) and np.ndim(observation) == 1
    if layout is None:
        leaf = leaf_of(observation)
        one_number = np.ndim(leaf) == 1 and np.asarray(leaf).dtype.kind in "biuf"
        return values > 1 or (values == 1 and np.ndim(leaf) > 0 and len(leaf) == 1 and not one_number)
    tree = layout.tree
    while tree[0] in ("dict", "tuple"):
        key, tree = tree[1][0] if tree[0] == "dict" else (0, tree[1][0])
        try:
            observation = observation[key]
        except (TypeError, KeyError, IndexError):
            return False  # the later check will report what is wrong
    return np.ndim(observation) == len(tree[-1]) + 1


def one_each(name: str, given: Any, count: int) -> Any:
    """Return the values of an argument, one for each of `count` environments."""
    if np.ndim(given) == 0:
        return [given] * count
    if np.size(given) != count:
        are = "is one observation" if count == 1 else f"are {count} observations"
        raise ValueError(f"{name} has {np.size(given)} values, there {are}: give one for each")
    return np.ravel(given)


def leaf_of(observations: Any) -> Any:
    """Return the first part of an observation that has no parts."""
    while isinstance(observations, dict | tuple) and observations:
        observations = next(iter(observations.values() if isinstance(observations, dict) else observations))
    return observations


def rows_in(observations: Any) -> int:
    """Return the number of environments."""
    leaf = leaf_of(observations)
    if np.ndim(leaf) == 0:
        raise ValueError("state and episode_start are arrays, of many environments, but there is one observation")
    return len(leaf)


def row_of(observations: Any, i: int) -> Any:
    """Return the observation of one environment."""
    if isinstance(observations, dict):
        return {key: row_of(part, i) for key, part in observations.items()}
    if isinstance(observations, tuple):
        return tuple(row_of(part, i) for part in observations)
    return observations[i]
