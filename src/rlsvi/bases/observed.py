"""Features of the observations of any Gymnasium space, with a block of weights for every action."""

from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
from gymnasium import Space

from rlsvi.bases.basis import Features, RowBasis
from rlsvi.bases.fourier import Fourier
from rlsvi.bases.functions import StateFeatures
from rlsvi.bases.layout import Layout, Ranges, TableOnlyError, layout_of, leaves_of, ranges_of, scaled, vector_of
from rlsvi.bases.pixel_pairs import MOST_PIXELS, PixelPairs
from rlsvi.bases.radial import Radial
from rlsvi.bases.tabular import Tabular
from rlsvi.core.archive import storable
from rlsvi.core.checks import finite, shown
from rlsvi.core.compile import Floats

MOST_CROSSED = 1024  # up to this many features, measured features have separate weights for all discrete values
MOST_INDICATORS = 4096  # the largest number of zeros and ones
MOST_NUMBERS = 2048  # the largest number of measured numbers that have features by default
GRID = 2  # up to this many measured numbers, a grid of radial functions is fine enough
FUNCTIONS = 15  # per side of a grid
CELLS = 10_000  # the largest number of states for a table
SIDE = 5  # the shortest side of a picture; an array with a shorter one is rather a stack of vectors


@storable
@dataclass(frozen=True, eq=False)
class Observed:
    """The basis returned by `bases.of(space, basis)`. It is plain data that can be stored in a file.

    Measured numbers are scaled to [0, 1] by `low` and `high` and passed to `basis`. Discrete ones become zeros and
    ones, which are crossed with the measured features if that gives at most 1024, and appended otherwise.

    Parameters
    ----------
    tree
        The structure of an observation, as plain data.
    low, high
        Bounds of the measured numbers, None where they are not known.
    counts
        The number of values of each discrete number.
    basis
        Features of the measured numbers in [0, 1].

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> basis = rlsvi.bases.of(gymnasium.spaces.Box(-2.0, 2.0, (1,)))
    >>> basis.low, basis.high
    ([-2.0], [2.0])
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

    @cached_property
    def layout(self) -> Layout:
        """Where the numbers of an observation are."""
        return Layout(self.tree, self.low, self.high, self.counts)

    def bind(self, states: int | None, actions: int, horizon: int, example: Any) -> Features:
        """Return features with one block per action. All bounds must be known: features are not recomputed."""
        if self.layout.texts:
            raise ValueError(
                "a text becomes a category only for agents that keep all observations: learn with "
                "rlsvi.agent_for(env), flatten all to numbers by gymnasium.wrappers.FlattenObservation(env), or "
                "give a basis, such as bases.StateFeatures(function)"
            )
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
    space
        A Gymnasium space: Box, Discrete, MultiDiscrete, MultiBinary, Text, or Dict or Tuple of them; or an
        environment.
    basis
        Features of the measured numbers in [0, 1]. If None, Radial() for up to two, Fourier() for more.
    low, high
        Bounds of the measured numbers, (m,). If None, those of the space.

    Returns
    -------
    Observed
        The basis, which any agent takes as `basis`.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> basis = rlsvi.bases.of(gymnasium.make("MountainCar-v0"), rlsvi.bases.Fourier(order=3))
    >>> agent = rlsvi.StationaryRLSVI(basis=basis)
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


def _bounds(name: str, given: Any, layout: Layout) -> list[float | None]:
    if given is None:
        return list(getattr(layout, name))
    bounds = finite(name, given)
    if bounds.shape != (layout.measured,):
        raise ValueError(
            f"{name} must be {layout.measured} finite numbers, one a measured number; got {shown(given)}"
        )
    return [float(v) for v in bounds]


def usual(n: int) -> RowBasis:
    """Return local functions, which follow abrupt changes, if a grid is fine enough; otherwise cosines.

    There is at least one wave for each of up to MOST_NUMBERS numbers; Fourier refuses more of them.
    """
    most = max(Fourier.features, min(n, MOST_NUMBERS) + 1)
    return Radial(features=FUNCTIONS**n + 1) if n <= GRID else Fourier(features=most)


def default(env: Any) -> Tabular | Observed:
    """Return a table if observations are numbered, otherwise radial (up to two numbers) or Fourier features.

    There are at most 256 features. If all numbers are discrete, the features are zeros and ones.

    Parameters
    ----------
    env
        An environment or its observation space.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> rlsvi.bases.default(gymnasium.make("CliffWalking-v1"))
    Tabular()
    """
    space = getattr(env, "observation_space", env)
    if not isinstance(space, Space):
        raise TypeError(f"env must be a Gymnasium environment or an observation space, got {shown(env)}")
    if len(getattr(space, "shape", None) or ()) == 0 and hasattr(space, "n") and int(space.n) <= CELLS:
        return Tabular()
    return of(space)


def is_table(layout: Layout) -> bool:
    """Return whether features are a table: of one discrete number, or of several that are crossed."""
    return not layout.measured and (prod(layout.counts) <= MOST_CROSSED or len(layout.counts) == 1)


def picture_in(layout: Layout) -> PixelPairs | None:
    """Return pairs of pixels if the measured numbers of an observation are one picture, otherwise None.

    A picture is a Box of two or three dimensions, with sides of at least five, in which all numbers have the same
    finite bounds. The shortest of three sides counts the channels.
    """
    shapes = [leaf[1] for leaf in leaves_of(layout.tree) if leaf[0] == "box"]
    if len(shapes) != 1 or len(set(layout.low)) != 1 or len(set(layout.high)) != 1 or None in layout.low:
        return None
    shape = [*shapes[0], 1] if len(shapes[0]) == 2 else shapes[0]
    if len(shape) != 3:
        return None
    first = shape[0] < shape[2]
    channels, height, width = shape if first else [shape[2], *shape[:2]]
    if min(height, width) < SIDE or layout.measured > MOST_PIXELS:
        return None
    return PixelPairs(height, width, channels, first)


def rows_of(layout: Layout, basis: RowBasis, ranges: Ranges, x: Floats, crossed: int = MOST_CROSSED) -> Floats:
    """Return the features (N, d) of observations given as vectors (N, n), at most `crossed` if products."""
    m, counts = layout.measured, layout.counts
    if prod(counts) > MOST_CROSSED and sum(counts) > MOST_INDICATORS:
        raise TableOnlyError(
            f"the counted numbers of an observation take {sum(counts)} values, features are at most "
            f"{MOST_INDICATORS}: turn them into a Box by gymnasium.wrappers.TransformObservation, or give a "
            "basis, such as bases.StateFeatures(function)"
        )
    phi = _made_by(basis, scaled(ranges, x[:, :m])) if m else np.ones((len(x), 1))
    if not counts:
        return phi
    if is_crossed(layout, phi.shape[1], crossed):
        joint = np.ravel_multi_index(tuple(x[:, m:].astype(np.int64).T), tuple(counts))
        which = one_hot(joint[:, None], [prod(counts)])
        return (which[:, :, None] * phi[:, None, :]).reshape(len(x), which.shape[1] * phi.shape[1])
    ones = one_hot(x[:, m:], counts)
    return np.concatenate([phi, ones], axis=1) if m else ones


def is_crossed(layout: Layout, features: int, crossed: int = MOST_CROSSED) -> bool:
    """Return whether measured features have separate weights for all values of the discrete numbers."""
    return not layout.counts or prod(layout.counts) * features <= crossed


def _made_by(basis: RowBasis, x: Floats) -> Floats:
    """Return the features (N, d) that a basis computes from x (N, n), after checking them."""
    phi = finite(f"what {type(basis).__name__}.rows returns", basis.rows(x))
    if phi.ndim != 2 or len(phi) != len(x) or phi.shape[1] < 1:
        raise ValueError(
            f"{type(basis).__name__}.rows must return one row of features for each of {len(x)}, got an array of "
            f"shape {phi.shape}"
        )
    return phi


def one_hot(whole: Any, counts: list[int]) -> Floats:
    """Return an array (N, sum of counts) with a 1 for the value of each number."""
    first = np.array([0, *accumulate(counts)][:-1])
    out = np.zeros((len(whole), sum(counts)))
    np.put_along_axis(out, whole.astype(np.int64) + first, 1.0, axis=1)
    return out
