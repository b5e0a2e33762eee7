"""Features as stored in the ring: numbers of one type, times units."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.stationary.ring import KEPT, Numbers
from rlsvi.agents.task import Task
from rlsvi.bases import Basis
from rlsvi.bases.basis import bound
from rlsvi.core.checks import shown
from rlsvi.core.compile import Floats, Ints

WHOLE = KEPT[:2]  # stored as they are; all other features are stored as float64


class BoundFeatures(NamedTuple):
    """A basis bound to a task, for use with a ring."""

    blocks: int
    units: Floats  # (d,)
    dtype: Any
    known: bool  # whether the last column is the reward of each action
    at: Callable[[Any], tuple[Ints, Numbers]]  # the blocks (A,) and the numbers (A, P) of all actions
    setting: Mapping[str, Any]  # what else the features depend on


def bound_features(basis: Basis, task: Task, known: bool, example: Any) -> BoundFeatures:
    """Bind a basis; small integers are stored as such if it provides them. `known`: with rewards."""
    features = bound(basis, task.states, task.actions, 1, example)
    numbers, rewards = features.numbers if features.blocks == 1 else None, features.rewards
    units = np.ones(features.dim) if numbers is None or features.units is None else features.units
    if known and rewards is None:
        raise ValueError(
            'form="afterstate" needs a basis that knows the reward of every action, whose Features have rewards; '
            f'{shown(basis)} knows none: use form="literal"'
        )
    zeros = np.zeros(task.actions, np.int32)

    def given(observation: Any) -> tuple[Ints, Numbers]:
        block, x = (zeros, numbers(observation)) if numbers else features.at(0, observation)
        if known and rewards:
            paid = rewards(observation)
            fits = np.can_cast(paid.dtype, x.dtype)
            x = np.hstack([x, paid[:, None]], dtype=x.dtype if fits else np.float64)
        return block, x

    first = given(example)[1].dtype
    dtype = first if first in WHOLE else np.dtype(np.float64)

    def at(observation: Any) -> tuple[Ints, Numbers]:
        block, x = given(observation)
        if x.dtype != dtype and dtype in WHOLE:
            raise ValueError(f"the basis must always give {dtype} features, now they are {x.dtype}")
        return block, np.array(x, dtype=dtype, order="C")

    return BoundFeatures(features.blocks, np.array(units), dtype, known, at, features.setting or {})
