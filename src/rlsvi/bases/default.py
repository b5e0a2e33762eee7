"""The basis for an environment, where nobody has said which."""

from typing import Any

import numpy as np

from rlsvi.bases.layout import Layout
from rlsvi.bases.observed import Observed, of
from rlsvi.bases.tabular import Tabular

CELLS = 10_000  # states: up to so many a table


def default(env: Any) -> Tabular | Observed:
    """A table where observations are numbered, else radial (of up to two numbers) or Fourier features.

    There are 256 of them at most.

    `env` is an environment or its observation space. Of counted numbers alone come zeros and ones.
    """
    space = getattr(env, "observation_space", env)
    if len(getattr(space, "shape", None) or ()) == 0 and hasattr(space, "n") and int(space.n) <= CELLS:
        return Tabular()
    return of(space)


def is_table(layout: Layout) -> bool:
    """Whether each observation can have a weight of its own: one counted number, or several of few values.

    Only what has been observed takes memory; several numbers of many values had better be told apart.
    """
    few = float(np.prod([float(k) for k in layout.counts])) <= CELLS
    return not layout.measured and (few or len(layout.counts) == 1)
