"""The default basis of an environment."""

from math import prod
from typing import Any

from gymnasium import Space

from rlsvi.bases.layout import Layout
from rlsvi.bases.observed import Observed, of
from rlsvi.bases.pixel_pairs import MOST, PixelPairs
from rlsvi.bases.tabular import Tabular
from rlsvi.core.checks import shown

CELLS = 10_000  # the largest number of states for a table
SIDE = 5  # the shortest side of a picture; an array with a shorter one is rather a stack of vectors


def default(env: Any) -> Tabular | Observed:
    """Return a table if observations are numbered, otherwise radial (up to two numbers) or Fourier features.

    There are at most 256 features.

    `env` is an environment or its observation space. If all numbers are discrete, the features are zeros and ones.
    """
    space = getattr(env, "observation_space", env)
    if not isinstance(space, Space):
        raise TypeError(f"env must be a Gymnasium environment or an observation space, got {shown(env)}")
    if len(getattr(space, "shape", None) or ()) == 0 and hasattr(space, "n") and int(space.n) <= CELLS:
        return Tabular()
    return of(space)


def is_table(layout: Layout) -> bool:
    """Return whether each observation can have its own weight: one discrete number, or several with few values.

    Only observed values take memory. Several numbers with many values are better kept as separate features.
    """
    few = prod(layout.counts) <= CELLS
    return not layout.measured and (few or len(layout.counts) == 1)


def picture_in(layout: Layout) -> PixelPairs | None:
    """Return pairs of pixels if the measured numbers of an observation are one picture, otherwise None.

    A picture is a Box of two or three dimensions, with sides of at least five, in which all numbers have the same
    finite bounds. The shortest of three sides counts the channels.
    """
    shapes = boxes_of(layout.tree)
    if len(shapes) != 1 or len(set(layout.low)) != 1 or len(set(layout.high)) != 1 or None in layout.low:
        return None
    shape = shapes[0]
    if len(shape) == 2:
        shape = [*shape, 1]
    if len(shape) != 3:
        return None
    first = shape[0] < shape[2]
    channels, height, width = shape if first else [shape[2], *shape[:2]]
    if min(height, width) < SIDE or layout.measured > MOST:
        return None
    return PixelPairs(height, width, channels, first)


def boxes_of(tree: Any) -> list[Any]:
    """Return the shapes of all boxes of an observation."""
    kind, *parts = tree
    if kind == "box":
        return [parts[0]]
    inner = [part for _, part in parts[0]] if kind == "dict" else parts[0] if kind == "tuple" else []
    return [shape for part in inner for shape in boxes_of(part)]
