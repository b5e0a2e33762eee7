"""Summaries of runs and their uncertainty, by the bootstrap over runs.

A learning time of infinity is censored: the run did not learn within its episodes. Such a time is never dropped,
and never averaged as if the run had ended there.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import stats

from rlsvi.core.checks import whole
from rlsvi.core.compile import Floats

BLOCK = 4_000_000  # numbers resampled at once: 32 MB


def measured(name: str, values: Any) -> Floats:
    """Return `values` as an array (runs,), if there is at least one and each is a number or plus infinity."""
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
    """Return `values` as an array, if all are finite; an average of others is not defined."""
    array = measured(name, values)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds infinite values, which cannot enter an average: {remedy}")
    return array


def median(times: Any) -> float:
    """Return the middle time, or the midpoint of the middle two; infinite if half the runs never finished."""
    values = np.sort(measured("times", times))
    low, high = float(values[(len(values) - 1) // 2]), float(values[len(values) // 2])
    return low if low == high else low + 0.5 * (high - low)  # infinity minus infinity is not a number


def iqm(x: Any) -> float:
    """Return the interquartile mean: the mean of the runs without the lowest and the highest quarter."""
    return float(stats.trim_mean(finished("x", x), 0.25))


class Interval(NamedTuple):
    """An estimate and its interval. If both ends are infinite, the data do not bound it."""

    value: float
    low: float
    high: float

    def inside(self, low: float, high: float) -> bool:
        """Return whether the whole interval lies within [low, high]."""
        return low <= self.low and self.high <= high

    def overlaps(self, low: float, high: float) -> bool:
        """Return whether the interval has a point in common with [low, high]."""
        return self.low <= high and low <= self.high

    @property
    def bounded(self) -> bool:
        """Whether both ends are finite."""
        return bool(np.isfinite(self.low) and np.isfinite(self.high))

    def __str__(self) -> str:
        if self.low == -np.inf and self.high == np.inf:
            return "undecided" if np.isinf(self.value) else f"{self._short(self.value)} (interval unknown)"
        if self.low == np.inf:
            return self._short(np.inf)
        return f"{self._short(self.value)} ({self._short(self.low)} to {self._short(self.high)})"

    def _short(self, number: float) -> str:
        """Format a number with two digits of the interval's width."""
        if np.isinf(number):
            return "infinity" if number > 0 else "-infinity"
        if abs(number) >= 1e6:
            return f"{number:.3g}"
        width = self.high - self.low if self.bounded and self.high > self.low else abs(number) / 10
        return f"{number:.{min(max(1 - int(np.floor(np.log10(width))), 0), 9) if width else 0}f}"


def bootstrap(
    statistic: Callable[[Any], float], strata: Any, *, resamples: int = 2000, level: float = 0.95, seed: int = 0
) -> Interval:
    """Return the percentile interval of a statistic under a stratified bootstrap over runs.

    Parameters
    ----------
    statistic : a function that maps an argument like `strata` to a number, which may be infinite.
    strata : the runs, an array; or a list of arrays, each with the runs of one setting. Runs are resampled with
        replacement within each setting.

    A single run says nothing about the spread: if a setting has only one run, the ends are infinite. With few
    runs, intervals are too short, because no resample leaves the range of the runs: the nominal 95% interval of a
    median of one setting covers it in 50% of cases with two runs, 75% with three, 87% with four, and 92 to 94%
    with five to twenty. If all runs are equal, the interval has no width.
    """
    check_bootstrap(resamples, level)
    single = is_one(strata)
    cells = [measured("strata", strata)] if single else [measured("strata", cell) for cell in strata]

    def of(drawn: list[Floats]) -> float:
        return _number(statistic(drawn[0] if single else drawn))

    value = of(cells)
    if min(len(cell) for cell in cells) < 2:
        return Interval(value, -np.inf, np.inf)
    rng = np.random.default_rng(seed)
    found = np.array(
        [of([cell[rng.integers(len(cell), size=len(cell))] for cell in cells]) for _ in range(resamples)]
    )
    return percentiles(value, found, found, level)


def bootstrap_medians(
    statistic: Callable[[Floats], float], cells: Any, *, resamples: int = 2000, level: float = 0.95, seed: int = 0
) -> Interval:
    """Like `bootstrap`, but faster, for a statistic of the medians of cells, each with the runs of one setting.

    If a median is infinite, the statistic is unknown and the result is Interval(inf, -inf, inf), undecided. A
    resample with an infinite median could have any value, and counts as beyond both ends.
    """
    return _bootstrap_summaries(np.median, statistic, cells, resamples, level, seed)


def bootstrap_means(
    statistic: Callable[[Floats], float], cells: Any, *, resamples: int = 2000, level: float = 0.95, seed: int = 0
) -> Interval:
    """Like `bootstrap_medians`, for a statistic of the means of cells."""
    return _bootstrap_summaries(np.mean, statistic, cells, resamples, level, seed)


def _bootstrap_summaries(
    summary: Callable[..., Any],
    statistic: Callable[[Floats], float],
    cells: Any,
    resamples: int,
    level: float,
    seed: int,
) -> Interval:
    check_bootstrap(resamples, level)
    runs = [measured("cells", cell) for cell in cells]
    middle = np.array([summary(cell) for cell in runs])
    if np.isinf(middle).any():
        return Interval(np.inf, -np.inf, np.inf)
    value = _number(statistic(middle))
    if min(len(cell) for cell in runs) < 2:
        return Interval(value, -np.inf, np.inf)
    draws = _drawn_summaries(summary, runs, resamples, seed)
    known = np.isfinite(draws).all(axis=1)
    found = np.array([_number(statistic(drawn)) for drawn in draws[known]])
    unknown = np.full(len(draws) - len(found), np.inf)
    return percentiles(value, np.append(found, -unknown), np.append(found, unknown), level)


def drawn_medians(cells: Sequence[Floats], resamples: int, seed: int) -> Floats:
    """Return the medians of cells whose runs are resampled, (resamples, cells)."""
    return _drawn_summaries(np.median, cells, resamples, seed)


def _drawn_summaries(summary: Callable[..., Any], cells: Sequence[Floats], resamples: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    drawn = [cell[rng.integers(len(cell), size=(resamples, len(cell)))] for cell in cells]
    return np.column_stack([summary(runs, axis=1) for runs in drawn])


def _number(found: float) -> float:
    if np.isnan(found):
        raise ValueError("statistic gave NaN: it must give a number, or infinity, for any draw of the runs")
    return float(found)


def band(
    curves: Any, *, resamples: int = 1000, level: float = 0.95, seed: int = 0
) -> tuple[Floats, Floats, Floats]:
    """Return the median of curves (runs, points) and its bootstrap interval at each point: middle, low, high.

    Whole runs are resampled. The band holds for each point separately, not for all points at once. With a single
    run the ends are infinite.
    """
    check_bootstrap(resamples, level)
    array = np.asarray(curves, dtype=np.float64)
    if array.ndim != 2 or not array.size:
        raise ValueError(f"curves must have shape (runs, points), at least one of each, got {array.shape}")
    measured("curves", array.ravel())
    runs, points = array.shape
    middle: Floats = np.median(array, axis=0)
    if runs < 2:
        return middle, np.full(points, -np.inf), np.full(points, np.inf)
    drawn = np.random.default_rng(seed).integers(runs, size=(resamples, runs))
    ends = np.empty((2, points))
    step = max(BLOCK // drawn.size, 1)
    for start in range(0, points, step):
        found = np.median(array[:, start : start + step][drawn], axis=1)
        ends[:, start : start + step] = _tails(found, level, "lower")[0], _tails(found, level, "higher")[1]
    return middle, ends[0], ends[1]


def is_one(strata: Any) -> bool:
    """Return whether these are the runs of one setting rather than a list of settings."""
    if isinstance(strata, np.ndarray) and strata.ndim != 1:
        raise ValueError(f"strata must be one array of runs or a list of them, got the shape {strata.shape}")
    if not hasattr(strata, "__len__") or not len(strata):
        raise ValueError(f"strata must be at least one run, in an array or a list of arrays, got {strata!r}")
    return np.ndim(strata[0]) == 0


def check_bootstrap(resamples: int, level: float) -> None:
    """Check the level, and that there are enough resamples for it."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, such as 0.95, got {level!r}")
    whole("resamples", resamples, int(np.ceil(round(2 / (1 - level), 9))))  # at least one beyond either end


def _tails(found: Floats, level: float, method: Literal["lower", "higher"]) -> Any:
    return np.quantile(found, [(1 - level) / 2, (1 + level) / 2], axis=0, method=method)


def percentiles(value: float, least: Floats, most: Floats, level: float) -> Interval:
    """Return the ends, rounded outward to resamples, since interpolation fails if one of them is infinite."""
    return Interval(value, float(_tails(least, level, "lower")[0]), float(_tails(most, level, "higher")[1]))
