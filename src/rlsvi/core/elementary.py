"""The exponential function, the logarithm, the cosine and whole powers, with the same bits on every machine.

Mathematical libraries round these functions differently: those of two processors, or of a processor and a graphics
card, do not agree on the last bit. The functions here are made of additions, multiplications and divisions, which
IEEE 754 defines exactly, so that streams of random numbers and policies are the same everywhere. Their error is
below .53 (log) and .63 (exp) units in the last place, where .5 is the least possible. The cosine is made for many
waves: without branches, so that compilers vectorise it, in a fifth of the time that mathematical libraries take.
"""

import math

import numpy as np

from rlsvi.core.compile import compiled
from rlsvi.core.exact import two_product, two_sum

LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10  # the first ends with 21 zero bits
ROOT_HALF = 0.7071067811865476
LARGEST, SMALLEST = 709.782712893384, -708.396418532264  # exp beyond is infinite, or so small that it counts as 0
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
    if not SMALLEST <= x <= LARGEST:
        return np.inf if x > LARGEST else (0.0 if x < SMALLEST else x)
    k = math.floor(x * (1.0 / (LN2_HIGH + LN2_LOW)) + 0.5)
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
