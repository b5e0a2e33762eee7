"""Radial basis functions over [0, 1]^n."""

from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from rlsvi.bases.basis import MeasuredBasis
from rlsvi.core.archive import storable
from rlsvi.core.checks import LARGEST_NUMBER, check_rows, positive, shown, whole
from rlsvi.core.compile import Floats, compiled
from rlsvi.core.elementary import exp


@storable
@dataclass(frozen=True)
class Radial(MeasuredBasis):
    """exp(-|x - c|^2 / (2 width^2)) for centres c on a grid, or at random if a grid is too large; and a 1.

    Parameters
    ----------
    features
        The maximum number of features, including the 1.
    width
        Width of a function. If None, the distance between neighbouring centres.
    seed
        Seed for random centres, used if a grid with three per side exceeds the budget.

    Examples
    --------
    >>> import numpy as np, rlsvi
    >>> rlsvi.bases.Radial(features=4).rows(np.array([[0.5]])).round(2).tolist()
    [[1.0, 0.61, 1.0, 0.61]]
    """

    features: int = 256
    width: float | None = None
    seed: int = 0

    def rows(self, x: Floats) -> Floats:
        """Return the features (N, d) of x (N, n)."""
        check_rows(x)
        features, seed = whole("features", self.features, 2, 2**14), whole("seed", self.seed, 0)
        centres, apart = centres_of(x.shape[-1], features, seed)
        width = apart if self.width is None else positive("width", self.width)
        if not 1 / LARGEST_NUMBER <= width <= LARGEST_NUMBER:  # its square would not be within float64
            raise ValueError(
                f"width must lie between {1 / LARGEST_NUMBER:g} and {LARGEST_NUMBER:g}, got {shown(width)}"
            )
        phi = np.ones((len(x), 1 + len(centres)))
        numbers = np.ascontiguousarray(x, dtype=np.float64)
        fill_bumps(numbers, np.ascontiguousarray(centres.T), width * width, phi)
        return phi

    def size(self, n: int, most: int) -> int:
        """Return the number of features of n numbers; random centres, whose distances take long, are not drawn."""
        return self.features if 3**n >= self.features else super().size(n, most)

    def arrays(self, n: int) -> dict[str, Any]:
        """Return the centres and the width."""
        centres, apart = centres_of(n, self.features, self.seed)
        return {"centres": centres, "width": self.width or apart}


@compiled
def fill_bumps(x: Floats, centres: Floats, square: float, phi: Floats) -> None:
    """Set the columns of phi from the second on to exp(-|x - c|^2 / (2 square)); centres are columns."""
    for row in range(x.shape[0]):
        bumps = phi[row, 1:]
        for j in range(bumps.size):
            bumps[j] = 0.0
        for i in range(x.shape[1]):
            number = x[row, i]
            for j in range(bumps.size):
                away = number - centres[i, j]
                bumps[j] += away * away
        for j in range(bumps.size):
            bumps[j] = exp(-0.5 * bumps[j] / square)


@cache
def centres_of(n: int, features: int, seed: int) -> tuple[Floats, float]:
    """Return the centres (d - 1, n), and the distance between neighbours."""
    room = features - 1
    side = next(k for k in range(room + 1, 0, -1) if k**n <= room)
    if side >= 3:
        return np.array(list(product(np.linspace(0, 1, side), repeat=n))), 1 / (side - 1)
    centres = np.random.default_rng(seed).random((room, n))
    between = np.sqrt(((centres[:, None] - centres) ** 2).sum(axis=-1))
    np.fill_diagonal(between, np.inf)
    return centres, float(np.median(between.min(axis=1))) if room > 1 else 1.0
