"""The Cholesky factor of a precision matrix, kept up to date one observation at a time.

P = L L' is stored by the columns of L: `U[j, i] = L[i, j]` for i >= j, with `inv[j] = 1 / L[j, j]`
beside it so that solving needs no division. The covariance is never formed: at the paper's scale P has
condition 1e12 and more, and exploration lives in the directions that inverting it destroys.
"""

import math

import numpy as np

from rlsvi.core.compile import Floats, compiled


@compiled
def rank_one(U: Floats, inv: Floats, x: Floats) -> bool:
    """P <- P + x x' by Givens rotations; `x` is used up. False if the factor is no longer a factor."""
    d = x.size
    for j in range(d):
        if x[j] == 0.0:
            continue
        diagonal = math.sqrt(U[j, j] * U[j, j] + x[j] * x[j])
        if not 0.0 < diagonal < np.inf:
            return False
        reciprocal = 1.0 / diagonal
        cos = U[j, j] * reciprocal
        sin = x[j] * reciprocal
        U[j, j] = diagonal
        inv[j] = reciprocal
        for i in range(j + 1, d):
            u = U[j, i]
            U[j, i] = cos * u + sin * x[i]
            x[i] = cos * x[i] - sin * u
    return True


@compiled
def solve_lower(U: Floats, inv: Floats, b: Floats) -> None:
    """b <- L^-1 b."""
    d = b.size
    for j in range(d):
        b[j] *= inv[j]
        for i in range(j + 1, d):
            b[i] -= U[j, i] * b[j]


@compiled
def solve_upper(U: Floats, inv: Floats, b: Floats) -> None:
    """b <- L^-T b, the sums split over four partial ones so that they can run side by side."""
    d = b.size
    for j in range(d - 1, -1, -1):
        s0 = s1 = s2 = s3 = 0.0
        i = j + 1
        while i + 3 < d:
            s0 += U[j, i] * b[i]
            s1 += U[j, i + 1] * b[i + 1]
            s2 += U[j, i + 2] * b[i + 2]
            s3 += U[j, i + 3] * b[i + 3]
            i += 4
        while i < d:
            s0 += U[j, i] * b[i]
            i += 1
        b[j] = (b[j] - ((s0 + s1) + (s2 + s3))) * inv[j]
