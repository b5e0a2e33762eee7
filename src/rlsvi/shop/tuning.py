"""The strength of the prior and the noise, by evidence.

For n rows with targets y, relative to the baseline, whose precision under a ridge is P, the residual of the
posterior mean is R = y'y - b' P^-1 b, with b = sum u y. The logarithm of the marginal likelihood is, but for a
constant,

    - n log(sigma) - R / (2 sigma^2) - (log det P - log det of the ridge alone) / 2

and is largest for sigma^2 = R / n.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rlsvi.core.compile import Floats
from rlsvi.shop.products import ProductArrays
from rlsvi.shop.regression import Ridges, cholesky, crossing, factor_shared, lower_solved
from rlsvi.shop.sizes import Sizes

STEP = 10**0.5  # ridges are compared in steps of this factor
LEAST, MOST = 1e-3, 1e5


class PriorEvidence(NamedTuple):
    """Log marginal likelihood at the best sigma, or at a given one, and that sigma."""

    log: float
    sigma: float


class Rows(NamedTuple):
    """What is known of the rows and their targets y."""

    answers: int
    right: Floats  # (N, e) sum of u y
    squares: float  # sum of y^2


def evidence(
    products: ProductArrays, sizes: Sizes, rows: Rows, ridges: Ridges, sigma: float | None
) -> PriorEvidence:
    """Return the evidence for ridges, at the best sigma or a given one."""
    d, g, at = sizes.own, sizes.crossed, crossing(sizes)
    seen = np.flatnonzero(products.answers)
    B, rest = np.zeros((len(seen), g, g)), np.zeros((len(seen), g))
    explained = determinant = 0.0
    for i, a in enumerate(seen):
        gram, right = products.gram[a], rows.right[a]
        L = cholesky(gram[:d, :d] + ridges.own * np.eye(d), f"product {a}")
        y = lower_solved(L, right[:d])
        explained += float(y @ y)
        determinant += _log_determinant(L, ridges.own)
        if g:
            W = lower_solved(L, gram[:d, at])
            B[i], rest[i] = gram[np.ix_(at, at)] - W.T @ W, right[at] - y @ W
    if g:
        z = products.z[seen]
        L = factor_shared(z, B, ridges.shared)
        y = lower_solved(L, (z.T @ rest).ravel())
        explained += float(y @ y)
        determinant += _log_determinant(L, ridges.shared)
    residual = max(rows.squares - explained, 1e-12 * rows.squares, 1e-300)
    noise = residual / rows.answers if sigma is None else sigma**2
    log = -0.5 * (rows.answers * np.log(noise) + residual / noise + determinant)
    return PriorEvidence(float(log), float(np.sqrt(noise)))


def _log_determinant(L: Floats, ridge: float) -> float:
    """Return log det (P / ridge)."""
    return float((2.0 * np.log(np.diagonal(L)) - np.log(ridge)).sum())


def best_ridges(
    of: Callable[[Ridges], PriorEvidence], start: Ridges, shared: bool
) -> tuple[Ridges, PriorEvidence]:
    """Climb from `start` to ridges whose neighbours have less evidence."""
    best, found, improved = start, of(start), True
    directions = [(1, 0), (-1, 0), (0, 1), (0, -1)] if shared else [(1, 0), (-1, 0)]
    while improved:
        improved = False
        for own, both in directions:
            while True:
                near = Ridges(best.own * STEP**own, best.shared * STEP**both)
                other = of(near) if LEAST <= min(near) <= max(near) <= MOST else None
                if other is None or not other.log > found.log:
                    break
                best, found, improved = near, other, shared
    return best, found
