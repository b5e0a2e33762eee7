"""Random Fourier features (Rahimi and Recht, 2007): waves in random directions, with one length scale."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Self

import numpy as np

from rlsvi.bases.basis import MeasuredBasis
from rlsvi.bases.fourier import fill_waves
from rlsvi.bases.layout import Ranges, Seen
from rlsvi.core.archive import Archive, storable
from rlsvi.core.checks import check_rows, positive, whole
from rlsvi.core.compile import Floats
from rlsvi.core.random import normal, stream, uniform

WIDTH = 6.0  # [0, 1] covers this many standard deviations on each side of the mean
LINEAR = 0.3  # size of the linear features
FEWEST_WAVES = 64  # waves to begin with
STEPS_PER_WAVE = 4
JUDGED_WAVES = 200  # waves that judge a length
FIRST_LENGTH = 0.25  # length after a single episode, in units of the number of measured numbers
LENGTHS = 2.0 ** np.arange(-4, 0.5, 0.5)  # those that are judged, in the same units


@storable
@dataclass(frozen=True)
class Waves(MeasuredBasis):
    """1, z, and cos(w . z / length + phase) for random w and phases, where z = 12 x - 6 for x in [0, 1]^n.

    Their covariance under the prior is that of a Gaussian kernel: values at a distance of `length` are closely
    related. BoundedRLSVI scales numbers so that z counts their standard deviations.

    Parameters
    ----------
    features
        The number of waves.
    length
        The length scale of the waves. If None, BoundedRLSVI chooses it by the evidence of its data; for all other
        agents it is n / 4.
    seed
        Seed for directions and phases.

    Examples
    --------
    >>> import numpy as np, rlsvi
    >>> rlsvi.bases.Waves(features=100, length=1.0).rows(np.array([[0.5, 0.5]])).shape
    (1, 103)
    """

    features: int = 400
    length: float | None = None
    seed: int = 0

    centred = True
    trace = 0.8

    def rows(self, x: Floats) -> Floats:
        """Return the features (N, 1 + n + features) of x (N, n)."""
        check_rows(x)
        n = x.shape[-1]
        length = n / 4 if self.length is None else positive("length", self.length)
        count, seed = whole("features", self.features, 1, 2**14), whole("seed", self.seed, 0)
        waves, phase = waves_of(n, count, seed, length)
        z = np.ascontiguousarray(2 * WIDTH * x - WIDTH, dtype=np.float64)
        phi = np.empty((len(x), 1 + n + self.features))
        phi[:, 0], phi[:, 1 : n + 1] = 1.0, LINEAR * z
        fill_waves(z, waves, phase, math.sqrt(2 / self.features), np.empty(count), phi)
        return phi

    def size(self, n: int, most: int) -> int:
        """Return the number of features of n numbers."""
        return 1 + n + self.features

    def arrays(self, n: int) -> dict[str, Any]:
        """Return the directions and phases, and the factor of the cosines."""
        waves, phase = directions(n, self.features, self.seed)
        length = n / 4 if self.length is None else self.length
        return {"waves": waves / length, "phase": phase, "scale": np.sqrt(2 / self.features)}

    def spread(self, ranges: Ranges, seen: Seen) -> Ranges:
        """Return ranges of WIDTH standard deviations on each side of the mean, where none are given.

        A number that does not vary counts as one with standard deviation 1.
        """
        varies = seen.deviation > 1e-9 * np.abs(seen.mean)
        return ranges.around(seen.mean, WIDTH * np.where(varies, seen.deviation, 1.0))

    def tune(self, n: int, steps: int, error: Callable[[Self], float] | None) -> Self:
        """Return one wave for every four steps, of the length whose predictions are best, unless it was given."""
        count, length = min(self.features, max(FEWEST_WAVES, steps // STEPS_PER_WAVE)), self.length
        if length is None and error is not None:
            judged = [replace(self, features=min(count, JUDGED_WAVES), length=float(each)) for each in n * LENGTHS]
            length = min(judged, key=error).length
        return replace(self, features=count, length=n * FIRST_LENGTH if length is None else length)

    def state(self) -> dict[str, Any]:
        """Return the number of waves and their length."""
        return {"waves": np.array([self.features, self.length])}

    def read(self, file: Archive) -> Self:
        """Return as many waves of the length as a file says."""
        features, length = file.take("waves", (2,))
        count = whole("features", int(features), 1, self.features)
        return replace(self, features=count, length=positive("length", float(length)))


@lru_cache(maxsize=32)
def waves_of(n: int, features: int, seed: int, length: float) -> tuple[Floats, Floats]:
    """Return the waves of a length scale as columns (n, features) and their phases, both in turns."""
    waves, phase = directions(n, features, seed)
    return waves / (2 * np.pi * length), phase / (2 * np.pi)


@cache
def directions(n: int, features: int, seed: int) -> tuple[Floats, Floats]:
    """Return normal directions as columns (n, features) and phases (features,); more features keep the first."""
    source = stream(seed)
    drawn = np.array([[*(normal(source) for _ in range(n)), uniform(source)] for _ in range(features)])
    return np.ascontiguousarray(drawn[:, :n].T), 2 * np.pi * drawn[:, n]
