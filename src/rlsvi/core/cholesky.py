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
    """b <- L^-1 b, two columns at a time."""
    d = b.size
    for j in range(0, d - 1, 2):
        first = b[j] * inv[j]
        second = (b[j + 1] - U[j, j + 1] * first) * inv[j + 1]
        b[j], b[j + 1] = first, second
        for i in range(j + 2, d):
            b[i] = (b[i] - U[j, i] * first) - U[j + 1, i] * second
    if d % 2 == 1:
        b[d - 1] *= inv[d - 1]


@compiled
def solve_upper(U: Floats, inv: Floats, b: Floats) -> None:
    """b <- L^-T b, two rows at a time."""
    d = b.size
    for j in range(d - 1, 0, -2):
        first, second = b[j], b[j - 1]
        for i in range(j + 1, d):
            first -= U[j, i] * b[i]
            second -= U[j - 1, i] * b[i]
        b[j] = first * inv[j]
        b[j - 1] = (second - U[j - 1, j] * b[j]) * inv[j - 1]
    if d % 2 == 1:
        first = b[0]
        for i in range(1, d):
            first -= U[0, i] * b[i]
        b[0] = first * inv[0]
