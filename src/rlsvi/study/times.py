"""Summaries of runs, some of which may never have finished.

A learning time of infinity is censored: the run was not done within the episodes given. Such a time is never
dropped and never averaged as if it had ended there.
"""

from typing import Any

import numpy as np
from scipy import stats

from rlsvi.core.compile import Bools, Floats


def measured(name: str, values: Any) -> Floats:
    """`values` as an array (runs,), if there is at least one and each is a number or plus infinity."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, one a run, got {values!r}") from None
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
    return quantile(times, 0.5)


def quantile(times: Any, q: float) -> float:
    """The time by which a share q of the runs had finished, linear between two runs; infinite if either is."""
    values = np.sort(measured("times", times))
    if not 0 <= q <= 1:
        raise ValueError(f"q must lie in [0, 1], got {q!r}")
    at = (len(values) - 1) * float(q)
    if abs(at - round(at)) < 1e-9:  # .29 of 100 is 28.999999999999996 in floats
        at = round(at)
    low, high = float(values[int(np.floor(at))]), float(values[int(np.ceil(at))])
    if low == high:  # infinity less infinity is no number
        return low
    return float(low + (at - np.floor(at)) * (high - low))


def restricted_mean(times: Any, limit: float) -> float:
    """The mean of min(T, limit): of the episodes up to `limit`, how many passed before the run was done.

    Every run must have been watched for `limit` episodes. If any was not done by then, the mean time is larger
    than this, by an unknown amount.
    """
    if not 0 < limit < np.inf:
        raise ValueError(
            f"limit must be positive and finite, the episodes each run was watched for, got {limit!r}"
        )
    return float(np.minimum(measured("times", times), limit).mean())


def survival(times: Any, limits: Any) -> tuple[Floats, Floats]:
    """Kaplan and Meier's estimate: some times t, and the share of runs that take longer than each of them.

    Parameters
    ----------
    times : when each run was done, infinite if it was not.
    limits : for how many episodes each run was watched, or one number for all.
    """
    ended, censored = _watched(times, limits)
    found = stats.ecdf(stats.CensoredData.right_censored(ended, censored)).sf
    return found.quantiles, found.probabilities


def kaplan_meier_median(times: Any, limits: Any) -> float:
    """The median time of runs that were watched for different numbers of episodes; infinite if unknown.

    The same as `median` if all were watched equally long.
    """
    at, share = survival(times, limits)
    drops = np.diff(share, prepend=1.0) < 0
    at, share = np.append(at[drops], np.inf), np.append(share[drops], 0.0)
    first = int(np.argmax(share <= 0.5 + 1e-12))
    half = abs(share[first] - 0.5) < 1e-12  # any time up to the next is a median: take the midpoint
    return float((at[first] + at[first + 1]) / 2 if half else at[first])


def _watched(times: Any, limits: Any) -> tuple[Floats, Bools]:
    """The last episode of each run, and whether it was then cut off."""
    values = measured("times", times)
    ends = measured("limits", np.full(len(values), limits) if np.ndim(limits) == 0 else limits)
    if len(ends) != len(values):
        raise ValueError(f"limits must be one number, or one for each of the {len(values)} times, got {len(ends)}")
    if not np.isfinite(ends).all():
        raise ValueError("limits must be finite: for how many episodes was each run watched?")
    censored = np.isinf(values)
    if (values[~censored] > ends[~censored]).any():
        raise ValueError("limits must not be less than times: a run cannot be done after it was last watched")
    return np.where(censored, ends, values), censored


def iqm(x: Any) -> float:
    """The interquartile mean: that of the runs left when a quarter is cut off at either end."""
    return float(stats.trim_mean(finished("x", x), 0.25))
