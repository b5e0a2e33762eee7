"""Calls of agents: `learn` with arguments of other packages, and `predict` for several environments at once."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from rlsvi.bases.layout import Layout
from rlsvi.core.checks import check_even, instead, whole
from rlsvi.envs.task import Task

P = ParamSpec("P")
R = TypeVar("R")
SB3 = {  # arguments of stable-baselines3, and what to write instead
    "total_timesteps": "write steps=, as in learn(env, steps=10_000)",
    "callback": "write on_episode=, a function of the agent and the return that is called after every episode; "
    "learning ends if it returns False",
}


def explain_calls(learn: Callable[P, R]) -> Callable[P, R]:
    """Decorate `learn` so that a call with other arguments is refused with what to write instead."""
    takes = inspect.signature(learn)

    @wraps(learn)
    def called(*given: P.args, **named: P.kwargs) -> R:
        try:
            takes.bind(*given, **named)
        except TypeError as error:
            for name in named:
                if name not in takes.parameters:
                    remedy = SB3.get(name) or instead(name, list(takes.parameters)[1:])
                    raise TypeError(f"learn has no argument {name}: {remedy}") from None
            counts = "episodes" in takes.parameters
            remedy = "write learn(env, 20)" if counts else "write learn(env, steps=1000)"
            if len(given) > sum(each.kind is each.POSITIONAL_OR_KEYWORD for each in takes.parameters.values()):
                first = "learn(env, 20)" if counts else "learn(env)"
                remedy = f"in {first}, all further arguments have names, such as steps=1000"
            raise TypeError(f"{error}: {remedy}") from None
        return learn(*given, **named)

    return called


def period_of(state: Any) -> int:
    """Return the period that the state of a prediction stands for."""
    return whole("state", state if type(state) is int else np.asarray(state).item(), 0, 2**62)


def divided(
    task: Task, layout: Layout | None, observation: Any, state: Any, start: Any, mask: Any
) -> tuple[bool, int, Any, Any, Any]:
    """Return whether there are several environments, their number, and the arguments of each."""
    usual = (state is None or type(state) is int) and (start is None or type(start) is bool)
    usual = usual and (mask is None or (isinstance(mask, np.ndarray) and mask.ndim == 1))
    if usual and not isinstance(observation, list) and not is_batch(task, layout, observation, 0):
        return False, 1, [state], [start], [mask]  # a quick answer to the usual question
    given: Any
    for name, given in (("state", state), ("episode_start", start), ("action_mask", mask)):
        check_even(name, given)
    if isinstance(observation, list):
        check_even("observation", observation)
    arrays = [np.size(given) for given in (state, start) if np.ndim(given) > 0]
    batch = is_batch(task, layout, observation, max(arrays, default=0))
    leaf = leaf_of(observation)
    if batch and np.ndim(leaf) == 0:
        raise ValueError("state and episode_start are arrays, of many environments, but there is one observation")
    count = len(leaf) if batch else 1
    states, starts = one_each("state", state, count), one_each("episode_start", start, count)
    masks = mask if np.ndim(mask) == 2 else [mask] * count
    if len(masks) != count:
        raise ValueError(f"action_mask has {len(masks)} rows, there are {count} observations: one each")
    return batch, count, states, starts, masks


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
