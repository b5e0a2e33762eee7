"""The strength of the prior and the noise, by evidence.

For rows with targets y, relative to the baseline, and their precision P under a ridge, the residual of the
posterior mean is R = y'y - b' P^-1 b, with b = sum u y. The logarithm of the marginal likelihood of y is, up to a
constant,

    - n log(sigma) - R / (2 sigma^2) - (log det P - log det of the ridge alone) / 2

and the best sigma^2 is R / n.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rlsvi.core.compile import Floats
from rlsvi.shop.regression import Ridges, factor_products, factor_shared, lower_solved, new_posterior
from rlsvi.shop.sizes import Sizes

STEP = 10**0.5  # ridges are compared in steps of this factor
LEAST, MOST = 1e-3, 1e5


class Evidence(NamedTuple):
    """Log marginal likelihood at the best sigma, or at a given one, and that sigma."""

    log: float
    sigma: float


def evidence(
    sizes: Sizes,
    gram: Floats,
    z: Floats,
    right: Floats,
    squares: float,
    rows: int,
    ridges: Ridges,
    sigma: float | None,
) -> Evidence:
    """Return the evidence for ridges; `right` (N, e) and `squares` are the sums of u y and of y^2."""
    seen = gram[:, 0, 0] > 0.0
    gram, z, right = gram[seen], z[seen], right[seen]
    d, g, N = sizes.own, sizes.crossed, len(z)
    posterior = new_posterior(sizes, 1)
    blocks = np.zeros((N, g, g))
    explained, determinant = 0.0, -N * d * np.log(ridges.own)
    rest = np.zeros((N, g))
    every = np.ones(1, np.bool_)
    for a in range(N):
        factor_products(posterior, gram[a : a + 1], ridges.own, every)
        y = lower_solved(posterior.L[0], right[a, :d])
        explained += float(y @ y)
        determinant += 2.0 * float(np.log(np.diagonal(posterior.L[0])).sum())
        blocks[a], rest[a] = posterior.B[0], right[a, posterior.crossing] - y @ posterior.W[0]
    if g:
        L = factor_shared(posterior._replace(B=blocks), z, ridges.shared)
        y = lower_solved(L, (z.T @ rest).ravel())
        explained += float(y @ y)
        determinant += 2.0 * float(np.log(np.diagonal(L)).sum()) - len(L) * np.log(ridges.shared)
    residual = max(squares - explained, 1e-12 * squares, 1e-300)
    noise = residual / rows if sigma is None else sigma**2
    return Evidence(float(-0.5 * (rows * np.log(noise) + residual / noise + determinant)), float(np.sqrt(noise)))


def best_ridges(of: Callable[[Ridges], Evidence], start: Ridges, shared: bool) -> tuple[Ridges, float]:
    """Climb from `start` to ridges whose neighbours have less evidence; return them and sigma."""
    best, found = start, of(start)
    improved = True
    while improved:
        improved = False
        for own, both in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            while own or shared:
                near = Ridges(best.own * STEP**own, best.shared * STEP**both)
                if not all(LEAST <= ridge <= MOST for ridge in near):
                    break
                other = of(near)
                if not other.log > found.log + 1e-6:
                    break
                best, found, improved = near, other, True
        improved = improved and shared
    return best, found.sigma
