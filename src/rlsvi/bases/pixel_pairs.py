"""Pairs of pixels by their displacement: features of pictures in which relative positions matter.

    z = (2 x - 1) |2 x - 1|                                        squared brightness; 0 is a pixel's usual one
    for every pair of pixels i < j of channels p <= q, at places (y, x)_i and (y, x)_j
        k = (p, q, bin(y_j - y_i), bin(x_j - x_i))
        phi_k += 10 z_i z_j / sqrt(number of pairs in k)

where bin(d) is 0, +-1, +-2, +-(3 to 4), +-(5 to 8), .. A pair counts alike wherever it is in the picture. What is
learned about a ball above a paddle is therefore learned for the whole board. Single pixels tell the place itself.
The square makes faint noise fainter: the sum of the noise of all pixels would otherwise hide a few bright ones.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from rlsvi.bases.basis import MeasuredBasis
from rlsvi.bases.layout import Ranges, Seen
from rlsvi.core.archive import storable
from rlsvi.core.checks import check_rows, flag, whole
from rlsvi.core.compile import Floats, Longs, compiled

SINGLE, PAIRED = 2.0, 10.0  # sizes of the features of single pixels, and of pairs
MOST_PIXELS = 2048  # the largest number of pixels in all channels: two million pairs


@storable
@dataclass(frozen=True)
class PixelPairs(MeasuredBasis):
    """1, all pixels squared, and for every displacement the sum of the products of all pairs so far apart.

    A square has the sign of the pixel's difference from 0.5. BoundedRLSVI scales pixels so that 0.5 is the mean of
    a pixel, and 0 and 1 are the largest deviations from it in its channel. Other agents need bounds with the
    background in the middle: `bases.of(env, PixelPairs(10, 5), low=[-1] * 50, high=[1] * 50)` where it is 0.

    Parameters
    ----------
    height, width, channels
        The shape of a picture; pairs are also made between channels.
    channels_first
        Whether the shape is (channels, height, width) rather than (height, width, channels).
    features
        The maximum number of sums of products. If there would be more, the largest displacements are not told
        apart.

    Examples
    --------
    >>> import numpy as np, rlsvi
    >>> rlsvi.bases.PixelPairs(10, 5).rows(np.full((1, 50), 0.5)).shape
    (1, 89)
    """

    height: int
    width: int
    channels: int = 1
    channels_first: bool = False
    features: int = 400

    centred = True

    def rows(self, x: Floats) -> Floats:
        """Return the features (N, 1 + n + pairs) of x (N, n), where n is the number of pixels in all channels."""
        self.planes_in(x)
        pairs = pairs_of(self)
        z = np.ascontiguousarray((2 * x - 1) * np.abs(2 * x - 1), dtype=np.float64)  # compiled code needs this
        sums = np.zeros((len(x), len(pairs.scale)))
        add_products(z, pairs.first, pairs.second, pairs.bin, sums)
        return np.concatenate([np.ones((len(x), 1)), SINGLE * z, sums * pairs.scale], axis=1)

    def planes(self) -> Longs:
        """Return which number of an observation each pixel is, (channels, height, width), after all checks."""
        height, width, channels = (
            whole(name, getattr(self, name), 1, MOST_PIXELS) for name in ("height", "width", "channels")
        )
        whole("features", self.features, 1, 2**14)
        if (n := height * width * channels) > MOST_PIXELS:
            raise ValueError(
                f"a picture of {height} x {width} in {channels} channels has {n} pixels, pairs are made of up to "
                f"{MOST_PIXELS}: make it smaller by gymnasium.wrappers.ResizeObservation and GrayscaleObservation"
            )
        least = channels * (channels - 1) // 2 + channels * (height * width > 1)  # the coarsest bins
        if least > self.features:
            raise ValueError(
                f"a picture of {height} x {width} in {channels} channels has {least} pairs of channels, more than "
                f"features={self.features}: allow features={least} or more, or use fewer channels, such as by "
                "gymnasium.wrappers.GrayscaleObservation"
            )
        if flag("channels_first", self.channels_first):
            return np.arange(n).reshape(channels, height, width)
        return np.ascontiguousarray(np.moveaxis(np.arange(n).reshape(height, width, channels), -1, 0))

    def planes_in(self, x: Floats) -> Longs:
        """Return the planes, after checking that x (N, n) holds such pictures."""
        planes = self.planes()
        check_rows(x)
        if x.shape[1] != planes.size:
            raise ValueError(
                f"x must hold pictures of {planes.size} numbers, got an array of shape {x.shape}, for {self}: "
                "give the height, width and channels of the observations"
            )
        return planes

    def spread(self, ranges: Ranges, seen: Seen) -> Ranges:
        """Return ranges with the mean of each pixel in the middle, where none are given.

        All ranges of a channel have the same width. Brightness can therefore be compared, and the noise of a pixel
        where nothing ever is stays small.
        """
        mean, half = seen.mean, np.ones(len(seen.mean))
        for plane in self.planes_in(mean[None]):
            reach = float(np.fmax(seen.most - mean, mean - seen.least)[plane].max())
            half[plane] = reach if reach > 1e-9 * np.abs(mean[plane]).max() else 1.0
        return ranges.around(mean, half)

    def arrays(self, n: int) -> dict[str, Any]:
        """Return the pairs, and the factor of single pixels."""
        return {**pairs_of(self)._asdict(), "single": SINGLE}


class Pairs(NamedTuple):
    """All pairs of pixels."""

    first: Longs  # (P,) which number of an observation
    second: Longs
    bin: Longs  # which sum of products it belongs to
    scale: Floats  # (d,) of each sum


@lru_cache(maxsize=4)
def pairs_of(basis: PixelPairs) -> Pairs:
    """Return all pairs of pixels of a checked basis, with the finest bins that it allows."""
    planes = basis.planes()
    channels, height, width = planes.shape
    finest = int(level(max(height, width) - 1))
    fits = (k for k in range(finest, 0, -1) if sums_of(channels, height, width, k) <= basis.features)
    most = next(fits, 0)  # 0: displacements are not told apart at all
    i, j = np.triu_indices(planes.size, 1)
    (p, yi, xi), (q, yj, xj) = (np.unravel_index(k, planes.shape) for k in (i, j))
    down, right = (np.sign(d) * np.minimum(level(np.abs(d)), most) for d in (yj - yi, xj - xi))
    side = 2 * most + 1
    key = ((p * channels + q) * side + down + most) * side + right + most
    _, bins, counts = np.unique(key, return_inverse=True, return_counts=True)
    return Pairs(planes.ravel()[i], planes.ravel()[j], bins.reshape(-1), PAIRED / np.sqrt(counts))


def level(distance: Any) -> Longs:
    """Return 0, 1, 2, 3, 4, .. for distances of 0, 1, 2, up to 4, up to 8, .."""
    levels: Longs = np.searchsorted([0, *(2**k for k in range(12))], distance)
    return levels


def sums_of(channels: int, height: int, width: int, most: int) -> int:
    """Return the number of bins with levels up to `most`; two pixels of the same channel are paired once."""
    down, right = (2 * min(most, int(level(side - 1))) + 1 for side in (height, width))
    return channels * (down * right // 2) + channels * (channels - 1) // 2 * down * right


@compiled
def add_products(z: Floats, first: Longs, second: Longs, bins: Longs, out: Floats) -> None:
    """Add the product of every pair of numbers to the sum it belongs to, row by row."""
    for row in range(z.shape[0]):
        for p in range(first.size):
            out[row, bins[p]] += z[row, first[p]] * z[row, second[p]]
