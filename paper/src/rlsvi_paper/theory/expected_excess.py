"""E[(X - t)+], the integral that stochastic optimism compares, for normal, Beta and Dirichlet variables.

X is stochastically optimistic for Y if and only if E[(X - t)+] >= E[(Y - t)+] for every t (appendix G).

For Y = P'V with P ~ Dirichlet(alpha), write P as independent Gammas over their sum. Sum and P are independent, so
E[(Y - t)+] = E[W+] / alpha'1 with W = sum_i Gamma(alpha_i) c_i, c = V - t, and for 0 < rho < 1 / max c
    E[W+] = 1/(2 pi i) int_{rho - i inf}^{rho + i inf} M(z) / z^2 dz,      M(z) = prod_i (1 - c_i z)^-alpha_i.
Below the mean, E[(t - Y)+] is computed in this way, and E[Y] - t added. rho is the saddle point, where M(z) / z^2
is smallest on the real axis, so that the integrand only decreases along the line. With z = rho + i width sinh(x)
it decreases exponentially and is analytic in a strip, so that the trapezoidal rule converges exponentially in the
number of nodes.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rlsvi.core.compile import Floats

NODES = 96
STRIPS = (0.4, 1.1)  # half-widths of strips in which the integrand is bounded
EDGE_NODES = 24
CUT_OFF = 1e-18  # where the integrand is cut off, relative to its peak


class Excess(NamedTuple):
    """E[(Y - t)+] and an error bound for every t, up to the edge sums below and SciPy's rounding.

    The error is the sum of three parts: what the integral omits beyond the last node, at most |integrand| times
    distance; the bound of the trapezoidal rule for a function analytic in a strip, N / (exp(2 pi a / step) - 1),
    where N integrates its absolute value along both edges of the strip |Im x| <= a (the best of a few a); and
    rounding. N is itself a sum over nodes, doubled to allow for its error: a margin, not a proof.
    """

    value: Floats
    error: Floats


def normal_excess(mean: float, std: float, t: ArrayLike) -> Floats:
    """Return E[(X - t)+] for X ~ N(mean, std^2)."""
    from scipy.special import ndtr

    z = (mean - np.asarray(t, np.float64)) / std
    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    excess: Floats = std * (density + z * ndtr(z))
    return excess


def beta_excess(alpha: float, beta: float, t: ArrayLike) -> Floats:
    """Return E[(B - t)+] for B ~ Beta(alpha, beta)."""
    from scipy.special import betainc

    a, b, points = alpha, beta, np.asarray(t, np.float64)
    x = np.clip(points, 0.0, 1.0)
    # E[B; B > x] - x P(B > x), with P(B > x) = I_{1-x}(b, a)
    inside = a / (a + b) * betainc(b, a + 1, 1 - x) - x * betainc(b, a, 1 - x)
    return np.where(points < 0, a / (a + b) - points, np.maximum(inside, 0.0))


def dirichlet_excess(alpha: ArrayLike, V: ArrayLike, t: ArrayLike, *, nodes: int = NODES) -> Excess:
    """Return `E[(P'V - t)+]` for P ~ Dirichlet(alpha), with an error bound."""
    weights, values = weighted(alpha, V)
    points = np.atleast_1d(np.asarray(t, np.float64))
    low, high = float(values.min()), float(values.max())
    mean = float(weights @ values / weights.sum())
    value = np.where(points <= low, mean - points, 0.0)
    error = np.where(points <= low, 1e-15 * (np.abs(values).max() + np.abs(points)), 0.0)
    inside = (low < points) & (points < high)
    if inside.any():
        below = np.where(points[inside] < mean, -1.0, 1.0)
        part, error[inside] = _positive_part(weights, below[:, None] * (values - points[inside, None]), nodes)
        value[inside] = part + np.maximum(mean - points[inside], 0.0)
        error[inside] += 4e-16 * np.abs(values).max()
    return Excess(value, error)


def weighted(alpha: ArrayLike, V: ArrayLike) -> tuple[Floats, Floats]:
    """Return the weights and values of a Dirichlet variable, without those of zero weight."""
    weights, values = np.asarray(alpha, np.float64), np.asarray(V, np.float64)
    return weights[weights > 0], values[weights > 0]


def _positive_part(alpha: Floats, c: Floats, nodes: int) -> tuple[Floats, Floats]:
    """Return E[W+] / alpha'1 and its error for every row of c, (n, d), each with values below and above 0."""
    scale = c.max(axis=1, keepdims=True)
    c = c / scale  # the largest is 1, and rho lies in (0, 1)
    # The saddle point: sum alpha c / (1 - rho c) = 2 / rho.

    def rising(r: Floats) -> Any:  # above the saddle point, where sum alpha c / (1 - r c) = 2 / r
        return (alpha * c / (1 - r * c)).sum(axis=1, keepdims=True) * r > 2

    rho: Any = 0.5 * np.add(*_bisect(1.0, scale.shape, 26, rising))
    slope = c / (1 - rho * c)
    width = np.sqrt(1 / ((alpha * slope**2).sum(axis=1, keepdims=True) + 2 / rho**2))
    width = np.minimum(width, 0.7 * np.minimum(rho, 1 - rho))

    def cut_off(x: Floats) -> Any:  # whether the integrand times y is below CUT_OFF
        y = width * np.sinh(x)
        size = -0.5 * (alpha * np.log1p((slope * y) ** 2)).sum(axis=1, keepdims=True) - np.log1p((y / rho) ** 2)
        return size + np.log(y / width) <= math.log(CUT_OFF)

    _, reach = _bisect(100.0, scale.shape, 11, cut_off)
    step = reach / nodes
    x = step * np.arange(nodes + 1)
    y, dy = width * np.sinh(x), width * np.cosh(x)
    size, phase = _integrand(alpha, slope, rho, y)
    f = size * np.cos(phase) * dy / np.pi
    weights = np.where(np.arange(nodes + 1) == 0, 0.5, 1.0)
    integral = step[:, 0] * (f @ weights)
    discrete = np.min([_strip_bound(alpha, slope, rho, width, step, nodes, a) for a in STRIPS], axis=0)
    tail = size[:, -1] * np.hypot(rho[:, 0], y[:, -1])
    rounding = 1e-14 * step[:, 0] * (size * dy).sum(axis=1) * (1 + alpha.sum())
    peak = np.exp(-(alpha * np.log1p(-rho * c)).sum(axis=1)) / rho[:, 0] ** 2
    unit = peak * scale[:, 0] / alpha.sum()
    return unit * integral, unit * (discrete + tail + rounding)


def _bisect(high: float, shape: Any, steps: int, beyond: Callable[[Floats], Any]) -> tuple[Floats, Floats]:
    """Halve intervals from 0 to `high` so often; the points sought are above those that are not `beyond` them."""
    low, top = np.zeros(shape), np.full(shape, high)
    for _ in range(steps):
        middle = 0.5 * (low + top)
        over = beyond(middle)
        low, top = np.where(over, low, middle), np.where(over, middle, top)
    return low, top


def _strip_bound(
    alpha: Floats, slope: Floats, rho: Floats, width: Floats, step: Floats, nodes: int, a: float
) -> Any:
    """Return the trapezoidal rule's error bound from the edges of a strip, doubled as their integrals are sums."""
    wide = step * nodes / EDGE_NODES
    x = wide * np.arange(EDGE_NODES + 1)
    total = np.zeros(len(rho))
    for side in (-1, 1):
        # z - rho = i width sinh(x + i a side)
        real, imaginary = -side * width * np.cosh(x) * math.sin(a), width * np.sinh(x) * math.cos(a)
        size = np.log(np.hypot(np.sinh(x), math.cos(a))) - np.log((1 + real / rho) ** 2 + (imaginary / rho) ** 2)
        for k in range(len(alpha)):
            s = slope[:, k : k + 1]
            size -= 0.5 * alpha[k] * np.log((1 - s * real) ** 2 + (s * imaginary) ** 2)
        total += (np.exp(np.minimum(size, 600.0)) * width * wide / np.pi).sum(axis=1)
    return 2 * total / np.expm1(np.minimum(2 * math.pi * a / step[:, 0], 700.0))


def _integrand(alpha: Floats, slope: Floats, rho: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return absolute value and phase of M(z) / z^2 at z = rho + i y, (n, nodes), relative to its value at rho."""
    logarithm, phase = -np.log1p((y / rho) ** 2), -2 * np.arctan(y / rho)
    for k in range(len(alpha)):
        turn = y * slope[:, k : k + 1]
        logarithm -= 0.5 * alpha[k] * np.log1p(turn * turn)
        phase += alpha[k] * np.arctan(turn)
    return np.exp(logarithm), phase
