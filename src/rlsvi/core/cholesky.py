"""The Cholesky factor of a precision matrix, updated one observation at a time.

P = L L' is stored by the columns of L: `U[j, i] = L[i, j]` for i >= j, with `inv[j] = 1 / L[j, j]`, so that
solving needs no division. The covariance is never formed: at the paper's scale P has a condition number of 1e12
and more, and exploration depends on the directions that inverting it would destroy.
"""

import math

from rlsvi.core.compile import ONE, TWO, Floats, compiled, kernel, unsigned

HUGE = 2.0**511  # the square of a diagonal of this size is finite
TINY = 2.0**-400  # the unit of the roots in rank_one: p may be 1e250, and its square must not overflow


@compiled
def _rotation(p: float, root: float, shrink: float, total: float) -> tuple[float, float, float, float, float]:
    """Return the cosine, the sine for the scaled row, and sqrt(t_j), its reciprocal and t_j from those of j - 1.

    If t_j = t_{j-1}, as for a row of zeros, the cosine is exactly 1.
    """
    small = p * TINY
    t = total + small * small
    r = math.sqrt(t)
    s = r * (1.0 / t)  # the division does not depend on the root
    cos = root * s if t != total else 1.0
    return cos, (small * s) * shrink, r, s * TINY, t


@kernel
def rank_one(U: Floats, inv: Floats, x: Floats) -> bool:
    """P <- P + x x', two columns at a time; `x` is overwritten. Returns False if the factor becomes invalid.

    These are Givens rotations, with the row scaled so that square roots and divisions follow from p = L^-1 x
    and depend only on the sum t_j = 1 + p_0^2 + .. + p_j^2. Rotation j has cosine sqrt(t_{j-1} / t_j) and
    sine p_j / sqrt(t_j); the row itself only takes the steps of the triangular solve.
    """
    d = unsigned(x.size)
    odd = d % TWO
    root, shrink, total = TINY, 1.0, TINY * TINY
    if odd == ONE:
        p0, first = x[0] * inv[0], x[0]
        cos0, sin0, root, shrink, total = _rotation(p0, root, shrink, total)
        diagonal0 = cos0 * U[0, 0] + sin0 * first
        if not 0.0 < diagonal0 < HUGE:
            return False
        U[0, 0], inv[0] = diagonal0, 1.0 / diagonal0
        for i in range(ONE, d):
            u0, before = U[0, i], x[i]
            U[0, i] = cos0 * u0 + sin0 * before
            x[i] = before - p0 * u0
    for j in range(odd, d, TWO):
        first, second, corner = x[j], x[j + ONE], U[j, j + ONE]
        p0 = first * inv[j]
        between = second - p0 * corner
        p1 = between * inv[j + ONE]
        cos0, sin0, root, shrink, total = _rotation(p0, root, shrink, total)
        cos1, sin1, root, shrink, total = _rotation(p1, root, shrink, total)
        diagonal0 = cos0 * U[j, j] + sin0 * first
        diagonal1 = cos1 * U[j + ONE, j + ONE] + sin1 * between
        if not (0.0 < diagonal0 < HUGE and 0.0 < diagonal1 < HUGE):
            return False
        U[j, j], U[j, j + ONE], U[j + ONE, j + ONE] = diagonal0, cos0 * corner + sin0 * second, diagonal1
        inv[j], inv[j + ONE] = 1.0 / diagonal0, 1.0 / diagonal1
        for i in range(j + TWO, d):
            u0, u1, before = U[j, i], U[j + ONE, i], x[i]
            between = before - p0 * u0
            U[j, i] = cos0 * u0 + sin0 * before
            U[j + ONE, i] = cos1 * u1 + sin1 * between
            x[i] = between - p1 * u1
    return True


@kernel
def solve_lower(U: Floats, inv: Floats, b: Floats) -> None:
    """b <- L^-1 b, two columns at a time."""
    d = unsigned(b.size)
    odd = d % TWO
    if odd == ONE:
        b[0] *= inv[0]
        first = b[0]
        for i in range(ONE, d):
            b[i] -= U[0, i] * first
    for j in range(odd, d, TWO):
        first = b[j] * inv[j]
        second = (b[j + ONE] - U[j, j + ONE] * first) * inv[j + ONE]
        b[j], b[j + ONE] = first, second
        for i in range(j + TWO, d):
            b[i] = (b[i] - U[j, i] * first) - U[j + ONE, i] * second


@kernel
def solve_upper(U: Floats, inv: Floats, b: Floats) -> None:
    """b <- L^-T b, two rows at a time; sums run backwards, so that the latest results are needed last."""
    d = unsigned(b.size)
    j = d
    while j >= TWO:
        j -= TWO
        first, second = b[j + ONE], b[j]
        i = d
        while i > j + TWO:
            i -= ONE
            first -= U[j + ONE, i] * b[i]
            second -= U[j, i] * b[i]
        b[j + ONE] = first * inv[j + ONE]
        b[j] = (second - U[j, j + ONE] * b[j + ONE]) * inv[j]
    if j == ONE:
        first, i = b[0], d
        while i > ONE:
            i -= ONE
            first -= U[0, i] * b[i]
        b[0] = first * inv[0]


@compiled
def shrink(U: Floats, inv: Floats, by: float) -> None:
    """P <- by P."""
    root = math.sqrt(by)
    for j in range(inv.size):
        inv[j] /= root
        for i in range(j, inv.size):
            U[j, i] *= root


@compiled
def add_diagonal(U: Floats, inv: Floats, amount: float, x: Floats) -> bool:
    """P <- P + amount I, by rotations with rows of one number; `x` (d,) is overwritten. Returns as rank_one."""
    d = unsigned(inv.size)
    for k in range(d):
        for i in range(k, d):
            x[i] = 0.0
        x[k] = math.sqrt(amount)
        for j in range(k, d):
            diagonal = math.sqrt(U[j, j] * U[j, j] + x[j] * x[j])
            if not 0.0 < diagonal < HUGE:
                return False
            once = 1.0 / diagonal
            cos, sin = U[j, j] * once, x[j] * once
            U[j, j], inv[j] = diagonal, once
            for i in range(j + ONE, d):
                u = U[j, i]
                U[j, i] = cos * u + sin * x[i]
                x[i] = cos * x[i] - sin * u
    return True
