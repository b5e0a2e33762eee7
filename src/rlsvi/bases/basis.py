"""What a basis is: for a state and an action, a block of weights and a feature vector within it.

Q_h(s, a) = phi(s, a) . theta[h, block(s, a)]. A dense basis has one block, state features have one block per
action, and a table has a block of one number for each state and action.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from rlsvi.bases.layout import Ranges, Seen
from rlsvi.core.archive import Archive
from rlsvi.core.checks import LARGEST_NUMBER, finite, fits, flag, read_only, shown, whole
from rlsvi.core.compile import Floats, Ints

At = Callable[[int, Any], tuple[Ints, Floats]]


class FeatureTable(NamedTuple):
    """Features of finitely many states, in the form that compiled code uses.

    Attributes
    ----------
    phi
        The features, (H, S, A, d), or (1, S, A, d) if all periods share them.
    block
        The blocks, (S, A).

    Examples
    --------
    >>> import rlsvi
    >>> features = rlsvi.bases.Tabular().bind(states=10, actions=2, horizon=5, example=0)
    >>> features.table.block.shape
    (10, 2)
    """

    phi: Floats  # (H, or 1 if all periods share them; S, A, d)
    block: Ints  # (S, A)


def same_table(first: FeatureTable | None, second: FeatureTable | None) -> bool:
    """Return whether both tables exist and contain the same features."""
    if first is None or second is None:
        return False
    return np.array_equal(first.phi, second.phi) and np.array_equal(first.block, second.block)


class Features(NamedTuple):
    """A basis bound to a problem.

    Attributes
    ----------
    blocks
        The number of blocks of weights.
    dim
        The number of weights in each.
    at
        `at(h, observation)` returns the blocks, (A,), and the features, (A, d), of every action.
    table
        All of them, if the observations are 0..S-1.
    rewards
        If known, `rewards(observation)` returns the deterministic reward of every action, (A,).
    units
        If there is one block and the features are small integers times constants, these constants, (d,).
    numbers
        `numbers(observation)` returns these integers, (A, d): they need few bytes, and their sums are exact.
    setting
        Anything else the features depend on, such as the size of a board; a saved stationary agent continues only
        with the same setting.

    Examples
    --------
    >>> import rlsvi
    >>> features = rlsvi.bases.Tabular().bind(states=10, actions=2, horizon=5, example=0)
    >>> blocks, x = features.at(0, 3)
    >>> blocks.tolist(), x.tolist()
    ([6, 7], [[1.0], [1.0]])
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
    """Anything that can be bound to a problem. The constructor only stores its arguments.

    Examples
    --------
    >>> import rlsvi
    >>> class Table:
    ...     def bind(self, states, actions, horizon, example):
    ...         return rlsvi.bases.Tabular().bind(states, actions, horizon, example)
    >>> agent = rlsvi.RLSVI(basis=Table())
    """

    def bind(self, states: int | None, actions: int, horizon: int, example: Any) -> Features:
        """Return features of the states 0..states-1, or of observations like `example` if `states` is None.

        Parameters
        ----------
        states
            The number of states, or None if observations are not numbered.
        actions
            The number of actions.
        horizon
            The number of periods, or 0 if there are none.
        example
            One of the observations.
        """
        ...


class RowBasis(Protocol):
    """Features of numbers in [0, 1]: those of this package, such as Fourier, or your own.

    Examples
    --------
    >>> import numpy as np, rlsvi
    >>> class Cubes:
    ...     def rows(self, x):
    ...         return np.hstack([np.ones((len(x), 1)), x, x**3])
    >>> agent = rlsvi.BoundedRLSVI(basis=Cubes())
    """

    def rows(self, x: Floats) -> Floats:
        """Return the features (N, d) of x (N, n)."""
        ...


class MeasuredBasis:
    """The base class of the bases of measured numbers. A new one defines `rows`, and what else differs from here.

    Agents do not know its subclasses. They ask for what is below, and use these defaults for any other object that
    has a method `rows`. The rows of a subclass may be computed by several threads at once.

    Attributes
    ----------
    centred
        Whether numbers are scaled by the mean and spread of all data, by `spread`.
    trace
        The lambda of BoundedRLSVI that suits these features, if actions are not held.

    Examples
    --------
    >>> import numpy as np, rlsvi
    >>> class Cubes(rlsvi.bases.MeasuredBasis):
    ...     def rows(self, x):
    ...         return np.hstack([np.ones((len(x), 1)), x, x**3])
    >>> Cubes().size(n=2, most=100)
    5
    """

    centred: ClassVar[bool] = False  # whether numbers are scaled by the mean and spread of all data, by `spread`
    trace: ClassVar[float] = 0.5  # the lambda of BoundedRLSVI that suits these features, if actions are not held

    def rows(self, x: Floats) -> Floats:
        """Return the features (N, d) of x (N, n) in [0, 1]. No row depends on the others.

        Parameters
        ----------
        x
            The numbers, (N, n), each between 0 and 1.

        Returns
        -------
        Floats
            The features, (N, d).
        """
        raise NotImplementedError

    def size(self, n: int, most: int) -> int:
        """Return the number of features of n numbers; where it is above `most`, any number above will do.

        A damaged file may ask for billions of features: not many more than `most` are made to count them.

        Parameters
        ----------
        n
            The number of numbers.
        most
            How far to count.
        """
        basis: Any = self
        if getattr(self, "features", 0) > most:  # as many as it makes within a smaller budget, or more
            basis = replace(basis, features=most)
        return int(basis.rows(np.zeros((1, n))).shape[1])

    def arrays(self, n: int) -> dict[str, Any] | None:
        """Return the arrays that define features of n numbers in an exported policy; None: it cannot be exported.

        They have one of the forms that docs/interoperability.md reads.

        Parameters
        ----------
        n
            The number of numbers.
        """
        return None

    def spread(self, ranges: Ranges, seen: Seen) -> Ranges:
        """Return the ranges that are scaled to [0, 1], given what all data have in common, if `centred`.

        Parameters
        ----------
        ranges
            The ranges observed.
        seen
            What all data have in common.
        """
        return ranges

    def tune(self, n: int, steps: int, error: Callable[[Self], float] | None) -> Self:
        """Return the basis for n numbers and so many steps, such as with the length scale of the least error.

        Called if `centred`, whenever the data have doubled.

        Parameters
        ----------
        n
            The number of numbers.
        steps
            The number of steps kept.
        error
            A function that returns the error of predictions with a basis; None if there are none yet.
        """
        return self

    def state(self) -> dict[str, Any]:
        """Return the arrays by which a file remembers what `tune` has changed."""
        return {}

    def read(self, file: Archive) -> Self:
        """Return the basis as it was tuned, given the arrays of `state` in a file.

        Parameters
        ----------
        file
            The file.
        """
        return self


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
    if phi.size and not -LARGEST_NUMBER <= phi.min() <= phi.max() <= LARGEST_NUMBER:
        raise ValueError(
            f"the features of {name} must be finite, got NaN, infinity or more than {LARGEST_NUMBER:g}: clean or "
            "scale the observations"
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


# ---- The single entry point for features: compiled code does not check bounds, so all checks are made here ----
#
# `bound` binds a basis to a problem. A table is checked once, as a whole. Features computed for one observation at
# a time are checked on every call, which takes about five microseconds.


def bound(
    basis: Any, states: int | None, actions: int, horizon: int, example: Any, *, factors: bool = True
) -> Features:
    """Bind a basis to a problem, and check its output now and whenever `at` is called.

    `at` then returns contiguous arrays of int32 and float64 that belong to the caller (or to the table, if there
    is one, since `at` then reads it).

    Parameters
    ----------
    basis
        The basis.
    states, actions, horizon, example
        As in `Basis.bind`.
    factors
        Whether the agent keeps a matrix (d, d) for each block and period, which must fit in memory.

    Returns
    -------
    Features
        The features, checked.

    Raises
    ------
    TypeError
        `basis` is not a basis.
    ValueError
        It breaks the rules of `Basis` and `Features`.

    Examples
    --------
    >>> import rlsvi
    >>> rlsvi.bases.bound(rlsvi.bases.Tabular(), states=10, actions=2, horizon=5, example=0).blocks
    20
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
        if not np.vdot(phi, phi) <= LARGEST_NUMBER * LARGEST_NUMBER:
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
