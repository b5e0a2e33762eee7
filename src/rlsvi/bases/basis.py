"""What a basis is: for a state and an action, which block of weights, and a feature vector inside it.

Q_h(s, a) = phi(s, a) . theta[h, block(s, a)]. A dense basis has one block, state features have a block an
action, a table has a block of one number for each state and action.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rlsvi.core.checks import finite
from rlsvi.core.compile import Floats, Ints

At = Callable[[int, Any], tuple[Ints, Floats]]


class FeatureTable(NamedTuple):
    """Features of finitely many states, as compiled code takes them."""

    phi: Floats  # (H, or 1 if the periods are alike; S, A, d)
    block: Ints  # (S, A)


def same_table(first: FeatureTable | None, second: FeatureTable | None) -> bool:
    """Whether both are there and hold the same features."""
    if first is None or second is None:
        return False
    return np.array_equal(first.phi, second.phi) and np.array_equal(first.block, second.block)


class Features(NamedTuple):
    """A basis bound to a problem.

    `at(h, observation)` gives the blocks (A,) and the features (A, d) of every action; `table` holds all
    of them when the observations are 0..S-1. Where known, `rewards(observation)` gives what every action pays
    for certain, (A,). Where there is one block and phi is small whole numbers times `units`, (d,),
    `numbers(observation)` gives those, (A, d): they need few bytes, and sums of them are exact. `setting` names
    what else they depend on, such as the size of a board: a stationary agent that was saved goes on only with
    the same.
    """

    blocks: int
    dim: int
    at: At
    table: FeatureTable | None
    rewards: Callable[[Any], NDArray[Any]] | None = None
    units: Floats | None = None
    numbers: Callable[[Any], NDArray[Any]] | None = None
    setting: Mapping[str, Any] | None = None


class Basis(Protocol):
    """Anything that can be bound to a problem. The constructor only stores its arguments."""

    def bind(self, states: int | None, actions: int, horizon: int, example: Any) -> Features:
        """Features of the states 0..states-1, or of observations like `example` when `states` is None."""
        ...


def from_table(phi: Floats, block: Ints, blocks: int, name: str) -> Features:
    """Features of finitely many states, after checking them."""
    finite(f"the features of {name}", phi)
    if phi.shape[3] < 1:
        raise ValueError(f"{name} must give at least one feature")
    table = FeatureTable(np.require(phi, np.float64, ["C", "W"]), np.require(block, np.int32, ["C", "W"]))

    def at(h: int, state: Any) -> tuple[Ints, Floats]:
        return table.block[state], table.phi[h % len(table.phi), state]

    return Features(blocks, phi.shape[3], at, table)


def vector(name: str, features: Any) -> Floats:
    """`features` as a finite vector."""
    x = finite(f"what {name} returns", features)
    if x.ndim != 1 or len(x) < 1:
        raise ValueError(f"{name} must return a vector of features, got an array of shape {x.shape}")
    return x
