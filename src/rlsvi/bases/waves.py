"""Random Fourier features (Rahimi and Recht, 2007): waves in random directions, with one length scale."""

import math
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from rlsvi.core.archive import storable
from rlsvi.core.checks import check_rows, positive, whole
from rlsvi.core.compile import Floats, compiled
from rlsvi.core.elementary import cosine
from rlsvi.core.random import normal, stream, uniform

WIDTH = 6.0  # [0, 1] covers this many standard deviations on each side of the mean
LINEAR = 0.3  # size of the linear features


@storable
@dataclass(frozen=True)
class Waves:
    """1, z, and cos(w . z / length + phase) for random w and phases, where z = 12 x - 6 for x in [0, 1]^n.

    Their covariance under the prior is that of a Gaussian kernel: values at a distance of `length` are closely
    related. BoundedRLSVI scales numbers so that z counts their standard deviations.

    Parameters
    ----------
    features : the number of waves.
    length : the length scale of the waves. If None, BoundedRLSVI chooses it by the evidence of its data; for all
        other agents it is n / 4.
    seed : seed for directions and phases.
    """

    features: int = 400
    length: float | None = None
    seed: int = 0

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


@compiled
def fill_waves(z: Floats, waves: Floats, phase: Floats, scale: float, turns: Floats, phi: Floats) -> None:
    """Set the last columns of phi to cosines. No matrix product: the bits of a row must not depend on others."""
    first = phi.shape[1] - phase.size
    for row in range(z.shape[0]):
        for j in range(phase.size):
            turns[j] = phase[j]
        for i in range(z.shape[1]):
            number = z[row, i]
            for j in range(phase.size):
                turns[j] += number * waves[i, j]
        for j in range(phase.size):
            phi[row, first + j] = scale * cosine(turns[j])


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
