"""Features of the observations of any Gymnasium space, with a block of weights for every action."""

from dataclasses import dataclass, field
from itertools import accumulate
from math import prod
from typing import Any, Protocol

import numpy as np
from gymnasium import Space

from rlsvi.bases.basis import Features
from rlsvi.bases.fourier import Fourier
from rlsvi.bases.functions import StateFeatures
from rlsvi.bases.layout import Layout, TableOnlyError, layout_of, vector_of
from rlsvi.bases.radial import Radial
from rlsvi.bases.scaling import Ranges, ranges_of, scaled
from rlsvi.core.archive import storable
from rlsvi.core.checks import finite, shown
from rlsvi.core.compile import Floats

CROSSED = 1024  # up to this many features, measured features have separate weights for all discrete values
MOST = 4096  # the largest number of zeros and ones
NUMBERS = 2048  # the largest number of measured numbers that have features by default
GRID = 2  # up to this many measured numbers, a grid of radial functions is fine enough
SIDE = 15  # functions per side


class RowBasis(Protocol):
    """Features of numbers in [0, 1]: Fourier, Polynomial, Radial, Tiles, or your own."""

    def rows(self, x: Floats) -> Floats:
        """Return the features (N, d) of x (N, n)."""
        ...


@storable
@dataclass(frozen=True, eq=False)
class Observed:
    """The basis returned by `bases.of(space, basis)`. It is plain data that can be stored in a file.

    Measured numbers are scaled to [0, 1] by `low` and `high` and passed to `basis`. Discrete ones become zeros and
    ones, which are crossed with the measured features if that gives at most 1024, and appended otherwise.
    """

    tree: Any
    low: list[float | None]
    high: list[float | None]
    counts: list[int]
    basis: Any = field(default_factory=Fourier)

    def __post_init__(self) -> None:
        self.layout.check()
        if isinstance(self.basis, type) or not hasattr(self.basis, "rows"):
            raise TypeError(
                f"basis must be bases.Fourier(), Polynomial(), Radial() or Tiles(), got {shown(self.basis)}"
            )

    @property
    def layout(self) -> Layout:
        """Where the numbers of an observation are."""
        return Layout(self.tree, self.low, self.high, self.counts)

    def bind(self, states: int | None, actions: int, horizon: int, example: Any) -> Features:
        """Return features with one block per action. All bounds must be known: features are not recomputed."""
        ranges = ranges_of(self.low, self.high)
        if np.isnan(ranges.low).any():
            raise ValueError(
                f"the observations are not bounded in the places {np.flatnonzero(np.isnan(ranges.low)).tolist()}: "
                "give low= and high= to bases.of, or learn with rlsvi.agent_for(env), which scales by what it "
                "has observed"
            )
        layout = self.layout

        def function(observation: Any) -> Floats:
            rows = rows_of(layout, self.basis, ranges, vector_of(layout, observation)[None])
            return np.asarray(rows[0], dtype=np.float64)

        return StateFeatures(function).bind(states, actions, horizon, example)


def of(space: Any, basis: RowBasis | None = None, *, low: Any = None, high: Any = None) -> Observed:
    """Return features of the observations of a space or of an environment.

    Parameters
    ----------
    space : a Gymnasium space: Box, Discrete, MultiDiscrete, MultiBinary, or Dict or Tuple of them; or an
        environment.
    basis : features of the measured numbers in [0, 1]. If None, Radial() for up to two, Fourier() for more.
    low, high : bounds of the measured numbers, (m,). If None, those of the space.
    """
    space = getattr(space, "observation_space", space)
    if not isinstance(space, Space):
        raise TypeError(f"space must be a Gymnasium space or an environment, got {shown(space)}")
    layout = layout_of(space)
    basis = usual(layout.measured) if basis is None else basis
    low, high = (_bounds(name, v, layout) for name, v in (("low", low), ("high", high)))
    for least, most in zip(low, high, strict=True):
        if least is not None and most is not None and not least < most:
            raise ValueError(f"low must lie below high, got {least} and {most}")
    return Observed(layout.tree, low, high, layout.counts, basis)


def usual(n: int) -> RowBasis:
    """Return local functions, which follow abrupt changes, if a grid is fine enough; otherwise cosines.

    There is at least one wave for each of up to NUMBERS numbers; Fourier refuses more of them.
    """
    most = max(Fourier.features, min(n, NUMBERS) + 1)
    return Radial(features=SIDE**n + 1) if n <= GRID else Fourier(features=most)


def _bounds(name: str, given: Any, layout: Layout) -> list[float | None]:
    if given is None:
        return list(getattr(layout, name))
    bounds = finite(name, given)
    if bounds.shape != (layout.measured,):
        raise ValueError(
            f"{name} must be {layout.measured} finite numbers, one a measured number; got {shown(given)}"
        )
    return [float(v) for v in bounds]


def rows_of(layout: Layout, basis: RowBasis, ranges: Ranges, x: Floats) -> Floats:
    """Return the features (N, d) of observations given as vectors (N, n)."""
    m, counts = layout.measured, layout.counts
    if not counts:
        return _made_by(basis, scaled(ranges, x))
    joint = prod(counts)
    if joint > CROSSED and sum(counts) > MOST:
        raise TableOnlyError(
            f"the counted numbers of an observation take {sum(counts)} values, features are at most {MOST}: turn "
            "them into a Box by gymnasium.wrappers.TransformObservation, or give a basis, such as "
            "bases.StateFeatures(function)"
        )
    if not m:
        return joint_one_hot(x, counts) if joint <= CROSSED else one_hot(x, counts)
    phi = _made_by(basis, scaled(ranges, x[:, :m]))
    if joint * phi.shape[1] <= CROSSED:
        which = joint_one_hot(x[:, m:], counts)
        return (which[:, :, None] * phi[:, None, :]).reshape(len(x), which.shape[1] * phi.shape[1])
    return np.concatenate([phi, one_hot(x[:, m:], counts)], axis=1)


def _made_by(basis: RowBasis, x: Floats) -> Floats:
    """Return the features (N, d) that a basis computes from x (N, n), after checking them."""
    phi = finite(f"what {type(basis).__name__}.rows returns", basis.rows(x))
    if phi.ndim != 2 or len(phi) != len(x) or phi.shape[1] < 1:
        raise ValueError(
            f"{type(basis).__name__}.rows must return one row of features for each of {len(x)}, got an array of "
            f"shape {phi.shape}"
        )
    return phi


def one_hot(whole: Floats, counts: list[int]) -> Floats:
    """Return an array (N, sum of counts) with a 1 for the value of each number."""
    first = np.array([0, *accumulate(counts)][:-1])
    out = np.zeros((len(whole), sum(counts)))
    np.put_along_axis(out, whole.astype(np.int64) + first, 1.0, axis=1)
    return out


def joint_one_hot(whole: Floats, counts: list[int]) -> Floats:
    """Return an array (N, product of counts) with a 1 for the combined values of all numbers."""
    out = np.zeros((len(whole), int(np.prod(counts))))
    index = np.ravel_multi_index(tuple(whole.astype(np.int64).T), tuple(counts))
    out[np.arange(len(whole)), index] = 1.0
    return out
