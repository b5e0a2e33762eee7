"""Sums of products that are robust to rounding: a number is the unevaluated sum of two float64 (Dekker 1971).

A Gram matrix to which rows are added and from which they are removed must equal the sum over its rows, however
often that happens. Small integers are summed in int64; other features here, with about 106 bits, relative to the
largest value the sum has had. The Cholesky factor is also computed with 106 bits, and rounded once: at condition
1e20 it is as good as one from rotations, or at 1e10 one of a matrix that was rounded first.
"""

import math

from rlsvi.core.compile import Floats, compiled

SPLIT = 134217729.0  # 2^27 + 1 cuts 53 bits in two halves


@compiled
def two_sum(a: float, b: float) -> tuple[float, float]:
    """Return a + b, and its rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@compiled
def two_product(a: float, b: float) -> tuple[float, float]:
    """Return a b, and its rounding error."""
    product = a * b
    t = SPLIT * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = SPLIT * b
    b_high = t - (t - b)
    b_low = b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@compiled
def pair_sum(high: float, low: float, more: float, less: float) -> tuple[float, float]:
    """(high + low) + (more + less)."""
    total, error = two_sum(high, more)
    error += low + less
    rounded = total + error
    return rounded, error - (rounded - total)


@compiled
def pair_product(high: float, low: float, more: float, less: float) -> tuple[float, float]:
    """(high + low) (more + less)."""
    product, error = two_product(high, more)
    error += high * less + low * more
    rounded = product + error
    return rounded, error - (rounded - product)


@compiled
def add_outer(gram: Floats, low: Floats, x: Floats, sign: int) -> None:
    """gram + low <- gram + low + sign x x', upper triangle. Without `low`, gram and x are int64, and exact."""
    d = x.size
    if low.size == 0:
        for i in range(d):
            scaled = sign * x[i]
            for j in range(i, d):
                gram[i, j] += scaled * x[j]
    else:
        for i in range(d):
            scaled = sign * x[i]
            for j in range(i, d):
                product, error = two_product(scaled, x[j])
                gram[i, j], low[i, j] = pair_sum(gram[i, j], low[i, j], product, error)


@compiled
def factorise(U: Floats, inv: Floats, low: Floats) -> bool:
    """U + low, the upper triangle of P, becomes the factor used by core/cholesky.py. `low` is overwritten.

    Returns False if P is not positive definite, even in 106 bits.
    """
    d = inv.size
    for j in range(d):
        pivot, rest = U[j, j], low[j, j]
        if not 0.0 < pivot < math.inf:
            return False
        root = math.sqrt(pivot)
        square, error = two_product(root, root)
        tail = ((pivot - square) - error + rest) / (2.0 * root)
        U[j, j], low[j, j] = two_sum(root, tail)
        once = 1.0 / U[j, j]
        square, error = pair_product(U[j, j], low[j, j], once, 0.0)
        twice = ((1.0 - square) - error) * once
        inv[j] = once
        for i in range(j + 1, d):
            U[j, i], low[j, i] = pair_product(U[j, i], low[j, i], once, twice)
        for m in range(j + 1, d):
            high_m, low_m = -U[j, m], -low[j, m]
            for i in range(m, d):
                product, error = pair_product(high_m, low_m, U[j, i], low[j, i])
                U[m, i], low[m, i] = pair_sum(U[m, i], low[m, i], product, error)
    return True
