"""Means of runs, and ratios of their means or medians, with 95% intervals.

`mean` and `ratio` are for small numbers of runs that are themselves means of many games or customers, and
therefore nearly normal. The nominal 95% percentile bootstrap interval of a mean of five runs covers it in about
83% of cases; Student's interval has the nominal coverage.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy import optimize, stats

from rlsvi.core.compile import Floats
from rlsvi.study.bootstrap import Interval, bootstrap, measured, median

FAR = 30.0  # in the logarithm of a ratio


def mean(values: Floats, *, level: float = 0.95) -> Interval:
    """Return the mean of runs with Student's interval, which is unbounded for a single run."""
    x = measured("values", values)
    if len(x) < 2:
        return Interval(float(x.mean()), -np.inf, np.inf)
    half = float(stats.t.ppf((1 + level) / 2, len(x) - 1) * _error(x))
    return Interval(float(x.mean()), float(x.mean()) - half, float(x.mean()) + half)


def ratio(values: Floats, others: Floats, *, level: float = 0.95) -> Interval:
    """Return the mean of runs divided by the mean of other runs, none negative, with Fieller's interval.

    It contains the ratios f for which the first mean may equal f times the second, by Student's test with Welch's
    degrees of freedom, and is unbounded above if the second mean may be 0. 0 / 0 is 1; any other ratio to 0 is
    infinite.
    """
    x, y = measured("values", values), measured("others", others)
    value = multiple(float(x.mean()), float(y.mean()))
    if min(len(x), len(y)) < 2:
        return Interval(value, -np.inf, np.inf)
    if x.mean() == 0 or y.mean() == 0 or _error(x) == _error(y) == 0:
        return Interval(value, value, value)

    def beyond(log_f: float) -> float:
        """Return the difference in units of what the test allows: 1 and -1 are the ends."""
        f = math.exp(log_f)
        a, b = _error(x) ** 2, (f * _error(y)) ** 2
        freedom = (a + b) ** 2 / (a**2 / (len(x) - 1) + b**2 / (len(y) - 1))
        return float((x.mean() - f * y.mean()) / (math.sqrt(a + b) * stats.t.ppf((1 + level) / 2, freedom)))

    at = math.log(value)
    low, high = (_where(beyond, at, side) for side in (1.0, -1.0))
    return Interval(value, low, high)


def _where(beyond: Callable[[float], float], at: float, side: float) -> float:
    """Return the ratio at which `beyond` is `side`: searched downwards from exp(at) for 1, upwards for -1."""
    near, step = at, -0.01 * side
    while abs(near - at) < FAR:
        far = near + step
        if side * (beyond(far) - side) >= 0:
            return math.exp(float(optimize.brentq(lambda z: beyond(z) - side, near, far)))
        near, step = far, 1.3 * step
    return 0.0 if side > 0 else math.inf


def paired_ratio(values: Floats, others: Floats) -> Interval:
    """Return the ratio of two means over the same problem instances, with a bootstrap interval.

    It is infinite if the second mean is not positive.
    """

    def ratio(drawn: Floats) -> float:
        i = drawn.astype(np.int64)
        return float(values[i].mean() / others[i].mean()) if others[i].mean() > 0 else np.inf

    return bootstrap(ratio, np.arange(float(len(values))))


def ratio_of_medians(values: Floats, others: Floats) -> Interval:
    """Return the ratio of the medians of two sets of runs, by the bootstrap; runs may be infinite."""
    return bootstrap(lambda drawn: multiple(median(drawn[0]), median(drawn[1])), [values, others])


def multiple(x: float, y: float) -> float:
    """Return x / y for numbers that may be 0 or infinite: 0 / 0 and infinity / infinity are 1."""
    if x == y:
        return 1.0
    return float(x / y) if y > 0 else math.inf


def _error(x: Floats) -> float:
    return float(x.std(ddof=1) / len(x) ** 0.5)
