"""Tile coding by hashing (Albus 1975; Sutton and Barto 2018, section 9.5.4): grids over any number of numbers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlsvi.bases.basis import MeasuredBasis
from rlsvi.core.archive import storable
from rlsvi.core.checks import check_rows, whole
from rlsvi.core.compile import Floats

GOLDEN_STEP, FIRST_FACTOR, SECOND_FACTOR = (
    np.uint64(k) for k in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


@storable
@dataclass(frozen=True)
class HashedTiles(MeasuredBasis):
    """For each of `features` places, the number of grids whose tile at x has this place.

    The grids are those of `Tiles`, with (tiles + 1)^n tiles each for n numbers. Here every tile has a
    pseudo-random place, so that any number of numbers can be coded. Where few tiles are ever visited, few of these
    share a place.

    Parameters
    ----------
    grids
        The number of grids.
    tiles
        The number of tiles along each number.
    features
        The number of places.
    seed
        Seed for the places of tiles.

    Examples
    --------
    >>> import numpy as np, rlsvi
    >>> rows = rlsvi.bases.HashedTiles(grids=8, features=512).rows(np.full((1, 20), 0.5))
    >>> rows.shape, rows.sum().item()
    ((1, 512), 8.0)
    """

    grids: int = 8
    tiles: int = 4
    features: int = 512
    seed: int = 0

    def rows(self, x: Floats) -> Floats:
        """Return the features (N, features) of x (N, n)."""
        check_rows(x)
        grids, tiles = whole("grids", self.grids, 1, 2**10), whole("tiles", self.tiles, 1, 2**20)
        features, seed = whole("features", self.features, 2, 2**14), whole("seed", self.seed, 0, 2**63)
        out, every = np.zeros((len(x), features)), np.arange(len(x))
        for g in range(grids):
            shift = (2 * np.arange(x.shape[1]) + 1) * g / grids % 1.0
            place = mix(mix(np.full(len(x), seed, np.uint64)) ^ np.uint64(g))
            tile = np.clip(x * tiles + shift, 0, tiles)  # processors cast a negative number differently
            for column in tile.astype(np.uint64).T:
                place = mix(place ^ column)
            out[every, (place % np.uint64(features)).astype(np.int64)] += 1.0
        return out

    def size(self, n: int, most: int) -> int:
        """Return the number of features."""
        return self.features


def mix(word: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return words in which every bit depends on all bits before (splitmix64, Steele, Lea and Flood 2014)."""
    word = word + GOLDEN_STEP
    word = (word ^ (word >> np.uint64(30))) * FIRST_FACTOR
    word = (word ^ (word >> np.uint64(27))) * SECOND_FACTOR
    return word ^ (word >> np.uint64(31))
