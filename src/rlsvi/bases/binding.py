"""The single entry point for features: compiled code does not check bounds, so all checks are made here.

`bound` binds a basis to a problem. A table is checked once, as a whole. Features computed for one observation at a
time are checked on every call, which takes about five microseconds.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from rlsvi.bases.basis import (
    At,
    Features,
    check_finite,
    checked_table,
    is_from_table,
    misnumbered,
    misshaped,
    table_at,
    within,
)
from rlsvi.core.checks import LARGEST, fits, flag, shown, whole
from rlsvi.core.compile import Floats, Ints


def bound(
    basis: Any, states: int | None, actions: int, horizon: int, example: Any, *, factors: bool = True
) -> Features:
    """Bind a basis to a problem, and check its output now and whenever `at` is called.

    `at` then returns contiguous arrays of int32 and float64 that belong to the caller (or to the table, if there
    is one, since `at` then reads it).

    Parameters
    ----------
    states, actions, horizon, example : as in `Basis.bind`.
    factors : whether the agent keeps a matrix (d, d) for each block and period, which must fit in memory.

    Raises
    ------
    TypeError, ValueError : `basis` is not a basis, or breaks the rules of `Basis` and `Features`.
    """
    if isinstance(basis, type) or not callable(getattr(basis, "bind", None)):
        remedy = f"{basis.__name__}(..)" if isinstance(basis, type) else "one of rlsvi.bases, such as Tabular()"
        raise TypeError(f"basis must be an object with a method bind: pass {remedy}, not {shown(basis)}")
    flag("factors", factors)
    for what, size in (("states", states), ("actions", actions), ("horizon", horizon)):
        if what != "states" or size is not None:
            whole(what, size, 1, 2**31 - 1)
    cells = (states or 1) * actions * horizon
    fits("tables of states, actions and horizon", cells, "make states, actions or horizon smaller")
    name = type(basis).__name__
    features = basis.bind(states, actions, horizon, example)
    if not isinstance(features, Features):
        raise TypeError(f"{name}.bind must return rlsvi.bases.Features, got {type(features).__name__}")
    blocks, dim = _size(name, features, horizon, factors)
    features = features._replace(blocks=blocks, dim=dim)
    if features.table is not None:
        return _with_table(name, features, states, actions, horizon)
    if not callable(features.at):
        raise TypeError(f"{name}.bind must give a function at(h, observation), got {shown(features.at)}")
    return _with_numbers(name, features._replace(at=checked_at(name, features.at, actions, blocks, dim)), actions)


def checked_at(name: str, at: At, actions: int, blocks: int, dim: int) -> At:
    """Wrap `at` with a check of everything it returns."""
    shape, short = (actions, dim), actions <= 64

    def checked(h: int, observation: Any) -> tuple[Ints, Floats]:
        given = at(h, observation)
        try:
            block, phi = given
            block, rows = np.asarray(block), np.asarray(phi)
            if rows.dtype.kind not in "fiub":
                raise TypeError(f"got features of {rows.dtype}")
            phi = np.array(rows, dtype=np.float64, order="C")
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name}.at must return blocks {(actions,)} and features {shape}: {error}") from None
        if phi.shape != shape:
            raise misshaped(name, phi.shape, shape)
        if not np.vdot(phi, phi) <= LARGEST * LARGEST:
            check_finite(name, phi)
        numbers = block.tolist() if short else block
        if block.shape != (actions,) or block.dtype.kind not in "iu" or min(numbers) < 0 or max(numbers) >= blocks:
            raise misnumbered(name, block, (actions,), blocks)
        return block.astype(np.int32), phi

    return checked


def _with_table(name: str, features: Features, states: int | None, actions: int, horizon: int) -> Features:
    """Return features of numbered states that are all read from the table, so that they are consistent."""
    if states is None:
        raise ValueError(f"{name} gives a table, but the observations are not numbered: let table be None")
    table, shape = features.table, (states, actions)
    sound = is_from_table(features) and within(table.block, features.blocks)  # type: ignore[union-attr]
    if table is None or not sound or table.phi.shape[1:] != (*shape, features.dim):
        table = checked_table(name, table, features.blocks, features.dim, shape)
        features = features._replace(at=table_at(table), table=table)
    if len(table.phi) not in (1, horizon):
        raise ValueError(
            f"phi of the table of {name} must have shape (1 or H, S, A, d) with H = {horizon}, got "
            f"{table.phi.shape}"
        )
    return features


def _with_numbers(name: str, features: Features, actions: int) -> Features:
    """Wrap the functions for integer features and for rewards with checks."""
    numbers, rewards, units = features.numbers, features.rewards, features.units
    if numbers is not None:
        found = np.array(units, dtype=np.float64, order="C")
        if found.shape != (features.dim,) or not np.isfinite(found).all() or not found.all():
            raise ValueError(
                f"units of {name} must be {features.dim} finite numbers other than 0, got {shown(units)}"
            )
        units, numbers = found, _of_shape(f"{name}.numbers", numbers, (actions, features.dim), whole_only=True)
    if rewards is not None:
        rewards = _of_shape(f"{name}.rewards", rewards, (actions,), whole_only=False)
    return features._replace(numbers=numbers, rewards=rewards, units=units)


def _of_shape(
    name: str, function: Callable[[Any], Any], shape: tuple[int, ...], whole_only: bool
) -> Callable[[Any], Any]:
    """Wrap `function`: its arrays must be finite and of one shape and type; floats may hold large integers."""
    first: list[Any] = []

    def checked(observation: Any) -> Any:
        found = np.ascontiguousarray(function(observation))
        first[:] = first or [found.dtype]
        if found.shape != shape or found.dtype.kind not in "iuf" or found.dtype != first[0]:
            raise ValueError(f"{name} must return {first[0]}{shape}, got {found.dtype}{found.shape}")
        if found.dtype.kind == "f":
            check_finite(name, found)
            if whole_only and (found != np.floor(found)).any():
                raise ValueError(f"{name} must return whole numbers, got {shown(found)}")
        return found

    return checked


def _size(name: str, features: Features, horizon: int, factors: bool) -> tuple[int, int]:
    """Return the numbers of blocks and of features, after checking that the weights fit in memory."""
    blocks = whole(f"the number of blocks of the basis {name}", features.blocks, 1, 2**31 - 1)  # they are int32
    dim = whole(f"the number of features (dim) of the basis {name}", features.dim, 1)
    what = f"the weights of {name}, {blocks} blocks of {dim} features in {horizon} periods,"
    fits(what, horizon * blocks * dim * (dim + 1 if factors else 1), "use fewer features, or smaller blocks")
    return blocks, dim
