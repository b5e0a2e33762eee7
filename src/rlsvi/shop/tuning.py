"""The strength of the prior and the noise, by evidence.

For n rows with targets y, relative to the baseline, whose precision under a ridge is P, the residual of the
posterior mean is R = y'y - b' P^-1 b, with b = sum u y. The logarithm of the marginal likelihood is, but for a
constant,

    - n log(sigma) - R / (2 sigma^2) - (log det P - log det of the ridge alone) / 2

and is largest for sigma^2 = R / n.

Targets are not data but maxima over the model's own estimates, which makes weak priors look better than they are.
The ridge of the weights that products have of their own is therefore at least `LEAST.own`: without this limit, a
shop with 50 products earned less in its first thousand visits.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from rlsvi.core.compile import Floats
from rlsvi.shop.products import ProductArrays
from rlsvi.shop.regression import Ridges, cholesky, crossing, factor_shared, lower_solved
from rlsvi.shop.sizes import Sizes

STEP = 10**0.5  # ridges are compared in steps of this factor
START = Ridges(10.0, 1.0)
LEAST, MOST = Ridges(10.0, 1e-3), Ridges(1e5, 1e5)


class PriorEvidence(NamedTuple):
    """Log marginal likelihood at the best sigma, or at a given one, and that sigma."""

    log: float
    sigma: float


class Rows(NamedTuple):
    """What is known of the rows and their targets y."""

    answers: int
    right: Floats  # (N, e) sum of u y
    squares: float  # sum of y^2


class Eliminated(NamedTuple):
    """What the rows of the products seen say once their own weights are eliminated."""

    explained: float  # b' P^-1 b of the own weights
    determinant: float  # log det P of these, less that of the ridge
    z: Floats  # (n, m) features
    B: Floats  # (n, g, g) and what remains of the Gram matrices
    rest: Floats  # (n, g) and of the right-hand sides, for the shared weights


def eliminated(products: ProductArrays, sizes: Sizes, rows: Rows, ridge: float) -> Eliminated:
    """Eliminate the weights that products have of their own, under a ridge."""
    d, g, at = sizes.own, sizes.crossed, crossing(sizes)
    seen = np.flatnonzero(products.answers)
    B, rest = np.zeros((len(seen), g, g)), np.zeros((len(seen), g))
    explained = determinant = 0.0
    for i, a in enumerate(seen):
        gram, right = products.gram[a], rows.right[a]
        L = cholesky(gram[:d, :d] + ridge * np.eye(d), f"product {a}")
        y = lower_solved(L, right[:d])
        explained += float(y @ y)
        determinant += _log_determinant(L, ridge)
        if g:
            W = lower_solved(L, gram[:d, at])
            B[i], rest[i] = gram[np.ix_(at, at)] - W.T @ W, right[at] - y @ W
    return Eliminated(explained, determinant, products.z[seen], B, rest)


def evidence(own: Eliminated, rows: Rows, shared_ridge: float, sigma: float | None) -> PriorEvidence:
    """Return the evidence at the best sigma, or at a given one."""
    explained, determinant = own.explained, own.determinant
    if own.z.shape[1]:
        L = factor_shared(own.z, own.B, shared_ridge)
        y = lower_solved(L, (own.z.T @ own.rest).ravel())
        explained += float(y @ y)
        determinant += _log_determinant(L, shared_ridge)
    residual = max(rows.squares - explained, 1e-12 * rows.squares, 1e-300)
    noise = residual / rows.answers if sigma is None else sigma**2
    log = -0.5 * (rows.answers * np.log(noise) + residual / noise + determinant)
    return PriorEvidence(float(log), float(np.sqrt(noise)))


def evidence_for(
    products: ProductArrays, sizes: Sizes, rows: Rows, sigma: float | None
) -> Callable[[Ridges], PriorEvidence]:
    """Return the evidence as a function of ridges, which computes nothing twice."""
    of_own = cache(lambda ridge: eliminated(products, sizes, rows, ridge))
    return cache(lambda ridges: evidence(of_own(ridges.own), rows, ridges.shared, sigma))


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
                inside = all(least <= ridge <= most for least, ridge, most in zip(LEAST, near, MOST, strict=True))
                other = of(near) if inside else found
                if not other.log > found.log:
                    break
                best, found, improved = near, other, shared
    return best, found
