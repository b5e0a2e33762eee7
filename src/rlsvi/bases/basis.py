"""What a basis is: for a state and an action, a block of weights and a feature vector within it.

Q_h(s, a) = phi(s, a) . theta[h, block(s, a)]. A dense basis has one block, state features have one block per
action, and a table has a block of one number for each state and action.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rlsvi.core.checks import LARGEST, finite, read_only
from rlsvi.core.compile import Floats, Ints

At = Callable[[int, Any], tuple[Ints, Floats]]


class FeatureTable(NamedTuple):
    """Features of finitely many states, in the form that compiled code uses."""

    phi: Floats  # (H, or 1 if all periods share them; S, A, d)
    block: Ints  # (S, A)


def same_table(first: FeatureTable | None, second: FeatureTable | None) -> bool:
    """Return whether both tables exist and contain the same features."""
    if first is None or second is None:
        return False
    return np.array_equal(first.phi, second.phi) and np.array_equal(first.block, second.block)


class Features(NamedTuple):
    """A basis bound to a problem.

    `at(h, observation)` returns the blocks (A,) and the features (A, d) of every action; `table` contains all
    of them if the observations are 0..S-1. If known, `rewards(observation)` returns the deterministic reward of
    every action, (A,). If there is one block and phi consists of small integers times `units`, (d,),
    `numbers(observation)` returns these integers, (A, d): they need few bytes, and their sums are exact. `setting`
    names anything else the features depend on, such as the size of a board; a saved stationary agent continues
    only with the same setting.
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
        """Return features of the states 0..states-1, or of observations like `example` if `states` is None."""
        ...


def from_table(phi: Floats, block: Ints, blocks: int, name: str) -> Features:
    """Return checked features of finitely many states: phi (1 or H, S, A, d), blocks (S, A) numbered from 0."""
    if np.ndim(phi) == 4 and np.shape(phi)[3] < 1:
        raise ValueError(f"{name} must give at least one feature")
    shape = np.shape(phi)[1:3]
    table = checked_table(name, (phi, block), blocks, np.shape(phi)[-1], (shape[0], shape[1]))
    return Features(blocks, table.phi.shape[3], table_at(table), table)


def table_at(table: FeatureTable) -> At:
    """Return the `at` function of a checked table."""

    def at(h: int, state: Any) -> tuple[Ints, Floats]:
        return table.block[state], table.phi[h % len(table.phi), state]

    at.table = table  # type: ignore[attr-defined]
    return at


def is_from_table(features: Features) -> bool:
    """Return whether `at` reads the table, which has then been checked."""
    return features.table is not None and getattr(features.at, "table", None) is features.table


def checked_table(name: str, table: Any, blocks: int, dim: int, shape: tuple[int, int]) -> FeatureTable:
    """Return a checked table of features of (S, A) states and actions, in the form that compiled code uses."""
    try:
        phi, block = table
        phi, block = np.asarray(phi), np.asarray(block)
        if phi.dtype.kind not in "fiub":
            raise TypeError(f"phi is of {phi.dtype}")
    except (TypeError, ValueError) as error:
        raise TypeError(f"the table of {name} must be a FeatureTable(phi, block) of numbers: {error}") from None
    if phi.ndim != 4:
        raise ValueError(f"phi of the table of {name} must have shape (1 or H, S, A, d), got {phi.shape}")
    if phi.shape[1:] != (*shape, dim):
        raise misshaped(f"the table of {name}", phi.shape[1:], (*shape, dim))
    if block.shape != shape or block.dtype.kind not in "iu" or (block.size and not within(block, blocks)):
        raise misnumbered(f"the table of {name}", block, shape, blocks)
    phi = np.array(phi, dtype=np.float64, order="C")  # copies, so that checked values cannot change
    check_finite(f"the table of {name}", phi)
    return FeatureTable(read_only(phi), read_only(np.array(block, dtype=np.int32, order="C")))


def vector(name: str, features: Any) -> Floats:
    """Return `features` as a finite vector."""
    x = finite(f"what {name} returns", features)
    if x.ndim != 1 or len(x) < 1:
        raise ValueError(f"{name} must return a vector of features, got an array of shape {x.shape}")
    return x


def within(block: Any, blocks: int) -> bool:
    """Return whether all blocks are numbered 0..blocks-1."""
    return bool(0 <= block.min() and block.max() < blocks)


def check_finite(name: str, phi: Floats) -> None:
    """Raise an error if features are not finite or too large."""
    if phi.size and not -LARGEST <= phi.min() <= phi.max() <= LARGEST:
        raise ValueError(
            f"the features of {name} must be finite, got NaN, infinity or more than {LARGEST:g}: clean or scale "
            "the observations"
        )


def misshaped(name: str, found: tuple[int, ...], shape: tuple[int, ...]) -> ValueError:
    """Return the error for features of the wrong shape."""
    if len(found) != len(shape):
        why = "one row for each action"
    elif found[-1] != shape[-1]:
        why = f"too {'wide' if found[-1] > shape[-1] else 'narrow'}: dim says {shape[-1]} features"
    else:
        why = f"there are {shape[-2]} actions" if found[-2] != shape[-2] else f"there are {shape[0]} states"
    return ValueError(f"the features of {name} must have shape {shape}, got {found}: {why}")


def misnumbered(name: str, block: Any, shape: tuple[int, ...], blocks: int) -> ValueError:
    """Return the error for invalid block numbers."""
    if block.shape != shape:
        return ValueError(f"the blocks of {name} must have shape {shape}, got {block.shape}")
    if block.dtype.kind not in "iu":
        return ValueError(f"the blocks of {name} must be whole numbers, got {block.dtype}")
    return ValueError(
        f"the blocks of {name} must be numbered 0..{blocks - 1}, got {block.min()}..{block.max()}: count them "
        "from 0, and give Features their number"
    )
