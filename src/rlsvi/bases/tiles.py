"""Tile coding over [0, 1]^n: several grids, each shifted relative to the others."""

from dataclasses import dataclass

import numpy as np

from rlsvi.bases.basis import MeasuredBasis
from rlsvi.core.archive import storable
from rlsvi.core.checks import check_rows, shown, whole
from rlsvi.core.compile import Floats


@storable
@dataclass(frozen=True)
class Tiles(MeasuredBasis):
    """One feature per tile, which is 1 if x lies in it and 0 otherwise.

    Grid g is shifted by the fraction (2 i + 1) g / grids of a tile along number i (Miller and Glanz 1996), modulo
    one tile. The budget limits the total number of tiles.

    Parameters
    ----------
    grids
        The number of grids.
    tiles
        The number of tiles along each number. If None, the most up to 8 that fits the budget.
    features
        The maximum number of features.

    Examples
    --------
    >>> import numpy as np, rlsvi
    >>> rlsvi.bases.Tiles(grids=2, tiles=2).rows(np.array([[0.1], [0.9]])).tolist()
    [[1.0, 0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0, 1.0]]
    """

    grids: int = 4
    tiles: int | None = None
    features: int = 1024

    def rows(self, x: Floats) -> Floats:
        """Return the features (N, d) of x (N, n)."""
        check_rows(x)
        n, grids, tiles = x.shape[-1], whole("grids", self.grids, 1), self.along(x.shape[-1])
        out = np.zeros((len(x), grids * (tiles + 1) ** n))
        for g in range(grids):
            shift = (2 * np.arange(n) + 1) * g / grids % 1.0
            places = np.minimum((x * tiles + shift).astype(np.int64), tiles)
            index = np.ravel_multi_index(tuple(places.T), (tiles + 1,) * n)
            out[np.arange(len(x)), g * (tiles + 1) ** n + index] = 1.0
        return out

    def along(self, n: int) -> int:
        """Return the number of tiles along each number."""
        grids, budget = whole("grids", self.grids, 1), whole("features", self.features, 2)
        if grids > budget:
            raise ValueError(f"grids must be at most features={budget}, the budget, got {shown(grids)}")
        fits = [k for k in range(1, 9) if grids * (k + 1) ** n <= budget]
        tiles = max(fits, default=0) if self.tiles is None else whole("tiles", self.tiles, 1, budget)
        if not tiles or grids * (tiles + 1) ** n > budget:
            raise ValueError(
                f"{grids} grids of {max(tiles, 1) + 1} tiles along {n} numbers are "
                f"{grids * (max(tiles, 1) + 1) ** n} features, the budget is features={budget}: allow more, or "
                "use bases.Fourier, which combines fewer numbers"
            )
        return tiles
