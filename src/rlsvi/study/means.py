"""Means of runs, and ratios of their means or medians, with 95% intervals.

`mean` and `ratio` are for few runs that are themselves means of many games or customers, and so nearly normal: the
percentile bootstrap of a mean of five runs, meant to hold in 95 of 100 cases, does so in about 83, and Student's
interval keeps its promise.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy import optimize, stats

from rlsvi.core.compile import Floats
from rlsvi.study.bootstrap import Interval, bootstrap, measured, median

FAR = 30.0  # in the logarithm of a multiple


def mean(values: Floats, *, level: float = 0.95) -> Interval:
    """The mean of runs, with Student's interval; of a single run the interval is open."""
    x = measured("values", values)
    if len(x) < 2:
        return Interval(float(x.mean()), -np.inf, np.inf)
    half = float(stats.t.ppf((1 + level) / 2, len(x) - 1) * _error(x))
    return Interval(float(x.mean()), float(x.mean()) - half, float(x.mean()) + half)


def ratio(values: Floats, others: Floats, *, level: float = 0.95) -> Interval:
    """The mean of runs as a multiple of the mean of other runs, none of them negative; with Fieller's interval.

    It holds the multiples f for which the first mean and f times the second may be equal, by Student's test with
    Welch's degrees of freedom, and is open above if the second mean may be 0. 0 / 0 is 1, a multiple of nothing is
    infinite.
    """
    x, y = measured("values", values), measured("others", others)
    value = multiple(float(x.mean()), float(y.mean()))
    if min(len(x), len(y)) < 2:
        return Interval(value, -np.inf, np.inf)
    if x.mean() == 0 or y.mean() == 0 or _error(x) == _error(y) == 0:
        return Interval(value, value, value)

    def beyond(log_f: float) -> float:
        """How far the difference is from 0, in units of what the test allows: 1 and -1 are the ends."""
        f = math.exp(log_f)
        a, b = _error(x) ** 2, (f * _error(y)) ** 2
        freedom = (a + b) ** 2 / (a**2 / (len(x) - 1) + b**2 / (len(y) - 1))
        return float((x.mean() - f * y.mean()) / (math.sqrt(a + b) * stats.t.ppf((1 + level) / 2, freedom)))

    at = math.log(value)
    low, high = (_where(beyond, at, side) for side in (1.0, -1.0))
    return Interval(value, low, high)


def _where(beyond: Callable[[float], float], at: float, side: float) -> float:
    """The multiple at which `beyond` is `side`: looked for downwards from exp(at) for 1, upwards for -1."""
    near, step = at, -0.01 * side
    while abs(near - at) < FAR:
        far = near + step
        if side * (beyond(far) - side) >= 0:
            return math.exp(float(optimize.brentq(lambda z: beyond(z) - side, near, far)))
        near, step = far, 1.3 * step
    return 0.0 if side > 0 else math.inf


def paired_ratio(values: Floats, others: Floats) -> Interval:
    """The mean over problem instances as a multiple of another mean over the same instances, by the bootstrap.

    It is infinite where the other mean is not positive.
    """

    def ratio(drawn: Floats) -> float:
        i = drawn.astype(np.int64)
        return float(values[i].mean() / others[i].mean()) if others[i].mean() > 0 else np.inf

    return bootstrap(ratio, np.arange(float(len(values))))


def ratio_of_medians(values: Floats, others: Floats) -> Interval:
    """The median of runs as a multiple of the median of other runs, by the bootstrap; runs may be infinite."""
    return bootstrap(lambda drawn: multiple(median(drawn[0]), median(drawn[1])), [values, others])


def multiple(x: float, y: float) -> float:
    """x / y for what may be nothing at all, or never: 0 / 0 and infinity / infinity are 1."""
    if x == y:
        return 1.0
    return float(x / y) if y > 0 else math.inf


def _error(x: Floats) -> float:
    return float(x.std(ddof=1) / len(x) ** 0.5)
