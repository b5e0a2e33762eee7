"""The exponential function, the logarithm, the cosine and whole powers, with the same bits on every machine.

Mathematical libraries round these functions differently: those of two processors, or of a processor and a graphics
card, do not agree on the last bit. The functions here are made of additions, multiplications and divisions, which
IEEE 754 defines exactly, so that streams of random numbers and policies are the same everywhere. Their error is
below .53 (log) and .63 (exp) units in the last place, where .5 is the least possible. The cosine is made for many
waves: without branches, so that compilers vectorise it, in a fifth of the time that mathematical libraries take.
"""

import math

import numpy as np

from rlsvi.core.compile import Floats, compiled


@compiled
def all_between(x: Floats, least: float, most: float) -> bool:
    """Return whether all numbers lie between two bounds, without an early exit, so that the loop is vectorised."""
    beyond = 0
    for i in range(x.size):
        beyond += 0 if least <= x[i] <= most else 1  # NaN is beyond
    return beyond == 0


# ---- Sums of products that are robust to rounding: a number is the unevaluated sum of two float64 (Dekker 1971)
#
# A Gram matrix to which rows are added and from which they are removed must equal the sum over its rows, however
# often that happens. Small integers are summed in int64; other features here, with about 106 bits, relative to the
# largest value the sum has had. The Cholesky factor is also computed with 106 bits, and rounded once: at condition
# 1e20 it is as good as one from rotations, or at 1e10 one of a matrix that was rounded first.


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
    """U + low, the upper triangle of P, becomes the factor used by core/regression.py. `low` is overwritten.

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


LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10  # the first ends with 21 zero bits
ROOT_HALF = 0.7071067811865476
LARGEST_EXPONENT = 709.782712893384  # exp of more is infinite
SMALLEST_EXPONENT = -708.396418532264  # exp of less is so small that it counts as 0
POWERS = np.ldexp(1.0, np.arange(-512, 513))  # of 2

ROUNDING = 6755399441055744.0  # 1.5 2^52: a number that is added to it loses what comes after the point


@compiled
def log(x: float) -> float:
    """Return the natural logarithm of x >= 0, as log(2^e m) = e log 2 + 2 atanh((m - 1) / (m + 1))."""
    if not 0.0 < x < np.inf:
        return -np.inf if x == 0.0 else (x if x > 0.0 else np.nan)
    m, e = math.frexp(x)
    if m < ROOT_HALF:
        m, e = 2.0 * m, e - 1
    total, missing = two_sum(m, 1.0)
    s = (m - 1.0) / total
    product, error = two_product(s, total)
    rest = (((m - 1.0) - product) - error - s * missing) / total  # of the quotient
    z = s * s
    series = 2.0 / 19.0 + z * (2.0 / 21.0 + z * (2.0 / 23.0 + z * (2.0 / 25.0)))
    series = 2.0 / 11.0 + z * (2.0 / 13.0 + z * (2.0 / 15.0 + z * (2.0 / 17.0 + z * series)))
    series = z * s * (2.0 / 3.0 + z * (2.0 / 5.0 + z * (2.0 / 7.0 + z * (2.0 / 9.0 + z * series))))
    high, low = two_sum(e * LN2_HIGH, 2.0 * s)
    return high + (low + (series + (2.0 * rest + e * LN2_LOW)))


@compiled
def exp(x: float) -> float:
    """Return e^x, as 2^k e^r with |r| at most log(2) / 2; 0 if it is below 2^-1022."""
    if not SMALLEST_EXPONENT <= x <= LARGEST_EXPONENT:
        return np.inf if x > LARGEST_EXPONENT else (0.0 if x < SMALLEST_EXPONENT else x)
    k = int(math.floor(x * (1.0 / (LN2_HIGH + LN2_LOW)) + 0.5))  # noqa: RUF046 (a float on a card)
    r, below = two_sum(x - k * LN2_HIGH, -(k * LN2_LOW))
    series = 1.0 / 40320.0 + r * (1.0 / 362880.0 + r * (1.0 / 3628800.0 + r * (1.0 / 39916800.0)))
    series = series + r * r * r * r * (1.0 / 479001600.0 + r * (1.0 / 6227020800.0 + r * (1.0 / 87178291200.0)))
    series = 1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0 + r * (1.0 / 5040.0 + r * series)))
    series = r * r * (0.5 + r * (1.0 / 6.0 + r * series))
    high, low = two_sum(1.0, r)
    half = k // 2  # 2^k itself may be too large
    scaled: float = (high + (low + (below + series))) * POWERS[half + 512] * POWERS[k - half + 512]
    return scaled


@compiled
def cosine(turns: float) -> float:
    """Return cos(2 pi turns), with an error below 3e-16; 0 beyond 2^51 turns, which leave no fraction.

    It is sin(2 pi u), where u is a quarter less the distance from the nearest whole number: u times a polynomial
    in u^2, which was fitted at Chebyshev points and is off by less than 2e-18.
    """
    distance = abs(turns - ((turns + ROUNDING) - ROUNDING))
    u = 0.25 - distance if distance <= 0.5 else 0.0
    v = u * u
    series = -15.0946416761179 + v * (3.8199280942271643 + v * (-0.7177337921413454 + v * 0.10089695501646812))
    series = 81.60524927607362 + v * (-76.70585975282492 + v * (42.058693925428685 + v * series))
    return u * (6.283185307179586 + v * (-41.341702240399755 + v * series))


@compiled
def power(x: float, n: int) -> float:
    """Return x to the power n, a whole number >= 0, by repeated squaring; its relative error is below n / 2^52."""
    result, square = 1.0, x
    while n > 0:
        if n % 2 == 1:
            result *= square
        square *= square
        n //= 2
    return result
