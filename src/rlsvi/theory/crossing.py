"""Single crossing of Gaussian and Beta (appendix G): how often CDFs and densities cross."""

import math
from typing import NamedTuple

import numpy as np

from rlsvi.core.checks import positive, shown, whole
from rlsvi.core.compile import Floats

FAR = 700.0  # log(x / (1 - x)) of the smallest x
LEAST = 1e-3  # the smallest sum of weights considered


class Crossings(NamedTuple):
    """Where F_normal - F_beta changes sign on [0, 1], and whether it does so once, as the lemma says."""

    places: tuple[float, ...]
    single: bool


def crossings(alpha: float, beta: float, *, points: int = 4001) -> Crossings:
    """Return the crossings of the CDFs of Beta(alpha, beta) and N(alpha / (alpha + beta), 1 / (alpha + beta)).

    These are sign changes on a grid, refined by bisection. The grid is wide in log(x / (1 - x)), because a
    Beta of small weights has its mass next to 0 and 1, and dense around x = 1/2. Crossings closer to 0 or 1 than
    float64 resolves are returned as 0 or 1. Pairs between grid points, and differences below 1e-13, are missed.
    """
    a, b = positive("alpha", alpha), positive("beta", beta)
    changes = _changes(a, b, whole("points", points, 3, 10**6))
    at = [_between(a, b, *change) for change in changes]
    places = tuple(1 / (1 + math.exp(-u)) if u > -0.99 * FAR else 0.0 for u in at)
    return Crossings(places, len(places) == 1)


def density_crossings(alpha: float, beta: float, *, points: int = 4001) -> int:
    """Return the number of crossings of the densities of the same two distributions on (0, 1).

    These are sign changes on a grid in log(x / (1 - x)); a pair between two neighbouring points would be missed.
    """
    from scipy.special import betaln, log_expit

    a, b = positive("alpha", alpha), positive("beta", beta)
    u = np.linspace(-40.0, 40.0, whole("points", points, 3, 10**6))
    left, right = log_expit(u), log_expit(-u)
    beta_density = (a - 1) * left + (b - 1) * right - betaln(a, b)
    normal = -0.5 * (a + b) * (np.exp(left) - a / (a + b)) ** 2 + 0.5 * np.log((a + b) / (2 * np.pi))
    return int(np.count_nonzero(np.diff(np.sign(beta_density - normal))))


def failing_sums(mean: float = 0.5, *, tolerance: float = 1e-6) -> tuple[float, float] | None:
    """Return the range of alpha + beta in which the CDFs cross more than once, for a given `mean`; or None.

    Here mean = alpha / (alpha + beta). The lemma, stated for any alpha, beta > 0, fails there. Sums from LEAST to
    4 are tried in steps of 3% and refined at the ends; if it fails from LEAST on, the lower end is returned as 0.
    """
    if not 0 < positive("mean", mean) < 1:
        raise ValueError(f"mean must lie strictly between 0 and 1, got {shown(mean)}")
    if positive("tolerance", tolerance) < 1e-12:
        raise ValueError(f"tolerance must be at least 1e-12, the rounding, got {tolerance!r}")

    def fails(total: float) -> bool:
        return len(_changes(mean * total, (1 - mean) * total, 2001)) > 1

    def end(failing: float, fine: float) -> float:
        while abs(failing - fine) > tolerance:
            middle = 0.5 * (failing + fine)
            failing, fine = (middle, fine) if fails(middle) else (failing, middle)
        return failing

    sums = LEAST * 1.03 ** np.arange(math.ceil(math.log(4.0 / LEAST) / math.log(1.03)) + 1)
    failing = [i for i, total in enumerate(sums) if fails(float(total))]
    if not failing:
        return None
    first, last = failing[0], failing[-1]
    low = end(float(sums[first]), float(sums[first - 1])) if first > 0 else 0.0
    high = end(float(sums[last]), float(sums[last + 1])) if last + 1 < len(sums) else float(sums[last])
    return low, high


def _difference(a: float, b: float, u: Floats) -> Floats:
    """Return F_normal - F_beta at x = 1 / (1 + exp(-u)), computed from the nearer end for accuracy."""
    from scipy.special import betainc, expit, ndtr

    x, rest = expit(u), expit(-u)
    root, mean = math.sqrt(a + b), a / (a + b)
    left = ndtr(root * (x - mean)) - betainc(a, b, x)
    right = betainc(b, a, rest) - ndtr(root * (rest - b / (a + b)))
    return np.asarray(np.where(u < 0, left, right))


def _changes(a: float, b: float, points: int) -> list[tuple[float, float, float]]:
    """Return neighbours u with different signs, and the sign of the first."""
    reach = min(FAR, 40.0 / min(a, b, 1.0))
    u = np.sinh(np.linspace(-1.0, 1.0, points) * math.asinh(reach))
    difference = _difference(a, b, u)
    sign = np.where(np.abs(difference) < 1e-13, 0.0, np.sign(difference))
    # The normal has mass beyond both ends: its CDF is the higher one at 0, the lower one at 1.
    u, sign = np.concatenate([[-FAR], u[sign != 0], [FAR]]), np.concatenate([[1.0], sign[sign != 0], [-1.0]])
    return [(float(u[i]), float(u[i + 1]), float(sign[i])) for i in np.flatnonzero(np.diff(sign))]


def _between(a: float, b: float, low: float, high: float, sign: float) -> float:
    """Find a sign change between two points by bisection."""
    for _ in range(60):
        middle = 0.5 * (low + high)
        if _difference(a, b, np.array([middle]))[0] * sign > 0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
