"""Summaries of runs, some of which may never have finished.

A learning time of infinity is censored: the run was not done within the episodes given. Such a time is never
dropped and never averaged as if it had ended there.
"""

from typing import Any

import numpy as np
from scipy import stats

from rlsvi.core.compile import Floats


def measured(name: str, values: Any) -> Floats:
    """`values` as an array (runs,), if there is at least one and each is a number or plus infinity."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, one per run, got {values!r}") from None
    if array.ndim != 1 or not len(array):
        raise ValueError(f"{name} must be a list of at least one run, got an array of shape {array.shape}")
    if not (array > -np.inf).all():
        raise ValueError(f"{name} must not hold NaN or -inf: write inf for a run that was never done")
    return array


def finished(name: str, values: Any, remedy: str = "use the median") -> Floats:
    """`values` as an array, if every one is finite; those that are not cannot enter an average."""
    array = measured(name, values)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds infinite values, which cannot enter an average: {remedy}")
    return array


def median(times: Any) -> float:
    """The middle time, or the midpoint of the two; infinite if half of the runs or more never finished."""
    values = np.sort(measured("times", times))
    low, high = float(values[(len(values) - 1) // 2]), float(values[len(values) // 2])
    return low if low == high else low + 0.5 * (high - low)  # infinity less infinity is no number


def iqm(x: Any) -> float:
    """The interquartile mean: that of the runs left when a quarter of them is cut off at either end."""
    return float(stats.trim_mean(finished("x", x), 0.25))
