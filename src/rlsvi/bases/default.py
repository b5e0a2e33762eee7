"""The default basis of an environment."""

from math import prod
from typing import Any

from rlsvi.bases.layout import Layout
from rlsvi.bases.observed import Observed, of
from rlsvi.bases.tabular import Tabular

CELLS = 10_000  # the largest number of states for a table


def default(env: Any) -> Tabular | Observed:
    """Return a table if observations are numbered, otherwise radial (up to two numbers) or Fourier features.

    There are at most 256 features.

    `env` is an environment or its observation space. If all numbers are discrete, the features are zeros and ones.
    """
    space = getattr(env, "observation_space", env)
    if len(getattr(space, "shape", None) or ()) == 0 and hasattr(space, "n") and int(space.n) <= CELLS:
        return Tabular()
    return of(space)


def is_table(layout: Layout) -> bool:
    """Return whether each observation can have its own weight: one discrete number, or several with few values.

    Only observed values take memory. Several numbers with many values are better kept as separate features.
    """
    few = prod(layout.counts) <= CELLS
    return not layout.measured and (few or len(layout.counts) == 1)
