"""Statistics of runs with different seeds: every estimate has a 95% interval.

Learning times have heavy tails, and some are infinite. Therefore medians and bootstrap intervals come first, and
only `mean` and `ratio` assume a normal distribution.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from scipy import optimize, stats

from rlsvi.core.checks import shaped, whole
from rlsvi.core.compile import Floats
from rlsvi.core.interval import Interval, check_level

# ---- Summaries of runs and their uncertainty, by the bootstrap over runs -----------------------------------
#
# A learning time of infinity is censored: the run did not learn within its episodes. Such a time is never dropped,
# and never averaged as if the run had ended there.


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
    """Return the middle time, or the midpoint of the middle two; infinite if half the runs never finished.

    Parameters
    ----------
    times
        The time of each run, infinite for one that never finished.

    Examples
    --------
    >>> from rlsvi.study.statistics import median
    >>> median([3, 1, float("inf")])
    3.0
    """
    values = np.sort(measured("times", times))
    low, high = float(values[(len(values) - 1) // 2]), float(values[len(values) // 2])
    return low if low == high else low + 0.5 * (high - low)  # infinity minus infinity is not a number


def iqm(x: Any) -> float:
    """Return the interquartile mean: the mean of the runs without the lowest and the highest quarter.

    Parameters
    ----------
    x
        A number for each run.

    Examples
    --------
    >>> from rlsvi.study.statistics import iqm
    >>> iqm([0, 1, 3, 100])
    2.0
    """
    return float(stats.trim_mean(finished("x", x), 0.25))


def bootstrap(
    statistic: Callable[[Any], float], strata: Any, *, resamples: int = 2000, level: float = 0.95, seed: int = 0
) -> Interval:
    """Return the percentile interval of a statistic under a stratified bootstrap over runs.

    A single run says nothing about the spread: if a setting has only one run, the ends are infinite. With few
    runs, intervals are too short, because no resample leaves the range of the runs: the nominal 95% interval of a
    median of one setting covers it in 50% of cases with two runs, 75% with three, 87% with four, and 92 to 94%
    with five to twenty. If all runs are equal, the interval has no width.

    Parameters
    ----------
    statistic
        A function that maps an argument like `strata` to a number, which may be infinite.
    strata
        The runs, an array; or a list of arrays, each with the runs of one setting. Runs are resampled with
        replacement within each setting.
    resamples
        The number of resamples.
    level
        The probability of the interval.
    seed
        Determines the resamples.

    Examples
    --------
    >>> import numpy as np
    >>> from rlsvi.study.statistics import bootstrap
    >>> interval = bootstrap(np.mean, np.arange(20.0))
    >>> interval.value, interval.low < 9.5 < interval.high
    (9.5, True)
    """
    check_level(level, "resamples", resamples)
    single = is_one(strata)
    cells = [measured("strata", strata)] if single else [measured("strata", cell) for cell in strata]

    def of(drawn: list[Floats]) -> float:
        return _number(statistic(drawn[0] if single else drawn))

    value = of(cells)
    if min(len(cell) for cell in cells) < 2:
        return Interval(value, -np.inf, np.inf)
    if single and statistic is median:
        return _resampled(_medians, value, cells, resamples, level, seed)

    def each(*drawn: Floats) -> Floats:
        return np.array([of(list(runs)) for runs in zip(*drawn, strict=True)])

    return _resampled(each, value, cells, resamples, level, seed)


def _resampled(
    statistic: Callable[..., Floats],
    value: float,
    cells: Sequence[Floats],
    resamples: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Return the percentile interval around `value` of a statistic of many resamples at once.

    The statistic is a function from the resamples of each cell, (resamples, runs), to a number for each. Runs are
    drawn with replacement, cell by cell, one resample after another.
    """
    rng, found, runs = np.random.default_rng(seed), [], [*{len(cell) for cell in cells}]
    places: Sequence[Any]
    step = max(BLOCK // sum(map(len, cells)), 1)
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        if len(runs) == 1:
            places = [*rng.integers(runs[0], size=(count, len(cells), runs[0])).swapaxes(0, 1)]
        else:
            drawn = [[rng.integers(len(cell), size=len(cell)) for cell in cells] for _ in range(count)]
            places = [np.stack(at) for at in zip(*drawn, strict=True)]
        found.append(statistic(*(cell[at] for cell, at in zip(cells, places, strict=True))))
    ends = np.concatenate(found)
    return percentiles(value, ends, ends, level)


def _medians(runs: Floats) -> Floats:
    """Return the `median` of each row."""
    values = np.sort(runs, axis=1)
    low, high = values[:, (runs.shape[1] - 1) // 2], values[:, runs.shape[1] // 2]
    return low + 0.5 * np.subtract(high, low, out=np.zeros_like(low), where=high > low)


def bootstrap_summaries(
    statistic: Callable[[Floats], float],
    cells: Any,
    *,
    summary: Callable[..., Any] = np.median,
    resamples: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Like `bootstrap`, but faster, for a statistic of one number of each cell, such as the median of its runs.

    If the number of a cell is infinite, the statistic is unknown and the result is Interval(inf, -inf, inf),
    undecided. A resample with such a cell could have any value, and counts as beyond both ends.

    Parameters
    ----------
    statistic
        A function of the summaries of all cells.
    cells
        The runs of each setting, a list of arrays.
    summary
        The number of a cell: numpy.median, or numpy.mean. It takes an argument `axis`.
    resamples, level, seed
        As for `bootstrap`.

    Examples
    --------
    >>> from rlsvi.study.statistics import bootstrap_summaries
    >>> bootstrap_summaries(lambda medians: medians[1] / medians[0], [[1, 2, 3], [3, 4, 5]]).value
    2.0
    """
    check_level(level, "resamples", resamples)
    runs = [measured("cells", cell) for cell in cells]
    middle = np.array([summary(cell) for cell in runs])
    if np.isinf(middle).any():
        return Interval(np.inf, -np.inf, np.inf)
    value = _number(statistic(middle))
    if min(len(cell) for cell in runs) < 2:
        return Interval(value, -np.inf, np.inf)
    draws = _drawn_summaries(summary, runs, resamples, seed)
    found = np.array([_number(statistic(drawn)) if np.isfinite(drawn).all() else np.nan for drawn in draws])
    return _around(value, found, level)


def _drawn_summaries(summary: Callable[..., Any], cells: Sequence[Floats], resamples: int, seed: int) -> Floats:
    """Return the summaries of cells whose runs are resampled, (resamples, cells)."""
    rng = np.random.default_rng(seed)
    drawn = [cell[rng.integers(len(cell), size=(resamples, len(cell)))] for cell in cells]
    return np.column_stack([summary(runs, axis=1) for runs in drawn])


def _around(value: float, found: Floats, level: float) -> Interval:
    """Return the interval of a statistic of resamples, where those that are not known (NaN) may have any value."""
    known = ~np.isnan(found)
    return percentiles(value, np.where(known, found, -np.inf), np.where(known, found, np.inf), level)


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

    Parameters
    ----------
    curves
        The curves, (runs, points).
    resamples, level, seed
        As for `bootstrap`.

    Examples
    --------
    >>> from rlsvi.study.statistics import band
    >>> middle, low, high = band([[0, 1, 2], [0, 2, 4], [0, 3, 6]])
    >>> middle.tolist()
    [0.0, 2.0, 4.0]
    """
    check_level(level, "resamples", resamples)
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


def _tails(found: Floats, level: float, method: Literal["lower", "higher"]) -> Any:
    return np.quantile(found, [(1 - level) / 2, (1 + level) / 2], axis=0, method=method)


def percentiles(value: float, least: Floats, most: Floats, level: float) -> Interval:
    """Return the ends, rounded outward to resamples, since interpolation fails if one of them is infinite."""
    return Interval(value, float(_tails(least, level, "lower")[0]), float(_tails(most, level, "higher")[1]))


# ---- Means of runs, and ratios of their means or medians, with 95% intervals -------------------------------
#
# `mean` and `ratio` are for small numbers of runs that are themselves means of many games or customers, and
# therefore nearly normal. The nominal 95% percentile bootstrap interval of a mean of five runs covers it in about
# 83% of cases; Student's interval has the nominal coverage.


LARGEST_LOG_RATIO = 30.0  # in the logarithm of a ratio


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
    while abs(near - at) < LARGEST_LOG_RATIO:
        far = near + step
        if side * (beyond(far) - side) >= 0:
            return math.exp(float(optimize.brentq(lambda z: beyond(z) - side, near, far)))
        near, step = far, 1.3 * step
    return 0.0 if side > 0 else math.inf


def paired_ratio(values: Floats, others: Floats) -> Interval:
    """Return the ratio of two means over the same problem instances, with a bootstrap interval.

    It is infinite if the second mean is not positive.
    """
    x, y = np.asarray(values, dtype=np.float64), np.asarray(others, dtype=np.float64)
    value = _number(_over(x.mean(keepdims=True), y.mean(keepdims=True))[0])
    if len(x) < 2:
        return Interval(value, -np.inf, np.inf)

    def ratios(drawn: Floats) -> Floats:
        at = drawn.astype(np.int64)
        return _over(x[at].mean(axis=1), y[at].mean(axis=1))

    return _resampled(ratios, value, [np.arange(float(len(x)))])


def _over(x: Floats, y: Floats) -> Floats:
    """Return x / y, infinite where y is not positive."""
    return np.divide(x, y, out=np.full_like(x, np.inf), where=y > 0)


def ratio_of_medians(values: Floats, others: Floats) -> Interval:
    """Return the ratio of the medians of two sets of runs, by the bootstrap; runs may be infinite."""
    cells = [measured("values", values), measured("others", others)]
    value = multiple(median(cells[0]), median(cells[1]))
    if min(map(len, cells)) < 2:
        return Interval(value, -np.inf, np.inf)

    def ratios(*drawn: Floats) -> Floats:
        return np.array([multiple(x, y) for x, y in zip(*map(_medians, drawn), strict=True)])

    return _resampled(ratios, value, cells)


def multiple(x: float, y: float) -> float:
    """Return x / y for numbers that may be 0 or infinite: 0 / 0 and infinity / infinity are 1."""
    if x == y:
        return 1.0
    return float(x / y) if y > 0 else math.inf


def _error(x: Floats) -> float:
    return float(x.std(ddof=1) / len(x) ** 0.5)


# ---- Least squares: a line, and local polynomials as in the paper's figures --------------------------------


MEDIANS = "give the medians of cells in which most runs finished"


def line(x: Any, y: Any) -> tuple[float, float]:
    """Return the slope and intercept of the least-squares line.

    Parameters
    ----------
    x, y
        The points.

    Examples
    --------
    >>> from rlsvi.study.statistics import line
    >>> [round(number, 6) for number in line([0, 1, 2], [1, 3, 5])]
    [2.0, 1.0]
    """
    at, values = _pairs(x, y)
    if len(np.unique(at)) < 2:
        raise ValueError("x must hold at least two different numbers: a line needs two points")
    away = at - at.mean()
    slope = away @ values / (away @ away)
    return float(slope), float(values.mean() - slope * at.mean())


def local_polynomial(x: Any, y: Any, at: Any, *, span: float = 0.75, degree: int = 2) -> Floats:
    """Fit a local polynomial regression (Cleveland's loess) and evaluate it at every point of `at`.

    At each point a polynomial is fitted to the nearest fraction `span` of the data, by least squares with tricube
    weights (1 - (d / h)^3)^3, where d is the distance and h the largest of these. There are no robust iterations.

    Parameters
    ----------
    x, y
        The points.
    at
        Where to evaluate the fit.
    span
        The fraction of the data of each polynomial.
    degree
        The degree of each polynomial.

    Examples
    --------
    >>> import numpy as np
    >>> from rlsvi.study.statistics import local_polynomial
    >>> x = np.arange(10.0)
    >>> local_polynomial(x, x**2, [4.5]).round(6).tolist()
    [20.25]
    """
    where, values = _pairs(x, y)
    points = finished("at", np.atleast_1d(at))
    whole("degree", degree, 0)
    if not 0 < span <= 1:
        raise ValueError(f"span must lie in (0, 1], the share of the data used around each point, got {span!r}")
    if (points < where.min()).any() or (points > where.max()).any():
        raise ValueError(f"at must lie within x, {where.min():g} to {where.max():g}: beyond there are no data")
    count = min(max(int(np.floor(span * len(where) + 1e-9)), 1), len(where))
    return np.array([_local(where, values, point, count, degree) for point in points])


def _local(x: Floats, y: Floats, point: float, count: int, degree: int) -> float:
    """Return the value at `point` of the polynomial fitted to the `count` nearest data."""
    distance = np.abs(x - point)
    width = np.partition(distance, count - 1)[count - 1]
    near = distance < width
    if len(np.unique(x[near])) <= degree:
        raise ValueError(
            f"too few points: a polynomial of degree {degree} needs more than {degree} different x nearer to "
            f"{point:g} than the farthest in its span; add data, widen span or lower degree"
        )
    scaled = (x[near] - point) / width
    root = (1 - np.abs(scaled) ** 3) ** 1.5  # the square root of the weight
    design = scaled[:, None] ** np.arange(degree + 1)
    weights = np.linalg.lstsq(root[:, None] * design, root * y[near], rcond=None)[0]
    return float(weights[0])


def _pairs(x: Any, y: Any) -> tuple[Floats, Floats]:
    """Return both as finite arrays of the same length."""
    at = finished("x", x, MEDIANS)
    return at, shaped("y", finished("y", y, MEDIANS), at.shape)


def proportion(
    successes: int, trials: int, *, level: float = 0.95, method: Literal["wilson", "exact"] = "wilson"
) -> Interval:
    """Return a proportion with Wilson's interval, or with the exact, wider one of Clopper and Pearson.

    Parameters
    ----------
    successes
        The number of successes.
    trials
        The number of trials.
    level
        The probability of the interval.
    method
        "wilson", or "exact".

    Examples
    --------
    >>> from rlsvi.study.statistics import proportion
    >>> [round(end, 3) for end in proportion(8, 10)]
    [0.8, 0.49, 0.943]
    """
    whole("trials", trials, 1)
    if whole("successes", successes, 0) > trials:
        raise ValueError(f"successes must be at most trials, got {successes} of {trials}")
    ends = stats.binomtest(successes, trials).proportion_ci(level, method=method)
    return Interval(successes / trials, float(ends.low), float(ends.high))


def difference(
    successes: int, trials: int, other_successes: int, other_trials: int, *, level: float = 0.95
) -> Interval:
    """Return the difference of two proportions with Newcombe's interval, which combines the two of Wilson.

    Parameters
    ----------
    successes, trials
        The first proportion.
    other_successes, other_trials
        The second, which is subtracted.
    level
        The probability of the interval.

    Examples
    --------
    >>> from rlsvi.study.statistics import difference
    >>> round(difference(8, 10, 5, 10).value, 3)
    0.3
    """
    first = proportion(successes, trials, level=level)
    second = proportion(other_successes, other_trials, level=level)
    value = first.value - second.value
    below = np.hypot(first.value - first.low, second.high - second.value)
    above = np.hypot(first.high - first.value, second.value - second.low)
    return Interval(value, float(value - below), float(value + above))


def probability_of_improvement(
    x: Any, y: Any, *, resamples: int = 2000, level: float = 0.95, seed: int = 0
) -> Interval:
    """Return the probability that a run of x is smaller than one of y, with ties: P(X < Y) + P(X = Y) / 2.

    For regrets and times, smaller is better. Lists of arrays contain one array per setting, and the result is the
    mean over settings. Two infinite times are a tie. If all pairs have the same outcome, as when one side always
    wins, the bootstrap has no spread; Wilson's bound on other outcomes, with one pair per run, is then used.

    Parameters
    ----------
    x, y
        A number for each run of one side and of the other, or a list of such arrays.
    resamples, level, seed
        As for `bootstrap`.

    Examples
    --------
    >>> from rlsvi.study.statistics import probability_of_improvement
    >>> probability_of_improvement([1, 2, 3, 4], [3, 4, 5, 6]).value
    0.875
    """
    if is_one(x) != is_one(y) or (not is_one(x) and len(x) != len(y)):
        raise ValueError("x and y must both be the runs of one setting, or lists of as many settings")
    ours, theirs = ([x], [y]) if is_one(x) else (list(x), list(y))

    def wins(cells: list[Floats]) -> float:
        half, shares = len(cells) // 2, []
        for a, b in zip(cells[:half], cells[half:], strict=True):
            not_less, greater = (len(b) - np.searchsorted(np.sort(b), a, side) for side in ("left", "right"))
            shares.append(float((not_less + greater).mean() / 2 / len(b)))
        return float(np.mean(shares))

    found = bootstrap(wins, [*ours, *theirs], resamples=resamples, level=level, seed=seed)
    if found.low == found.high:
        pairs = len(ours) * min(len(cell) for cell in (*ours, *theirs))
        value, other = found.value, proportion(0, pairs, level=level).high
        return Interval(value, value - other * value, value + other * (1 - value))
    return found


def power_law(x: Any, cells: Any, *, resamples: int = 2000, level: float = 0.95, seed: int = 0) -> Interval:
    """Fit the exponent b of T ~ x^b to the medians of the cells; see `power_laws`.

    Parameters
    ----------
    x
        The setting of each cell, (cells,), positive.
    cells
        The times of the runs of each setting, a list of arrays.
    resamples, level, seed
        As for `bootstrap`.

    Examples
    --------
    >>> from rlsvi.study.statistics import power_law
    >>> round(power_law([1, 2, 4], [[1, 1, 1], [4, 4, 4], [16, 16, 16]]).value, 6)
    2.0
    """
    at = measured("x", x)[:, None]
    return power_laws(at, cells, resamples=resamples, level=level, seed=seed)[0]


def power_laws(X: Any, cells: Any, *, resamples: int = 2000, level: float = 0.95, seed: int = 0) -> list[Interval]:
    """Fit the exponents b_j of T ~ prod_j x_j^b_j by least squares on the logarithms of the cells' median times.

    The intervals come from a stratified bootstrap. If a cell's median is infinite, there is no exponent and the
    result is Interval(inf, -inf, inf), undecided. A resample with such a cell counts as beyond both ends.

    Parameters
    ----------
    X
        The settings, (cells, regressors), positive.
    cells
        A list of arrays, the times of the runs of each setting, positive or infinite.
    resamples, level, seed
        As for `bootstrap`.

    Examples
    --------
    >>> from rlsvi.study.statistics import power_laws
    >>> fits = power_laws([[1, 1], [2, 1], [1, 2], [2, 2]], [[1, 1], [4, 4], [2, 2], [8, 8]])
    >>> [round(fit.value, 6) for fit in fits]
    [2.0, 1.0]
    """
    check_level(level, "resamples", resamples)
    runs = [measured(f"cells[{i}]", cell) for i, cell in enumerate(cells)]
    if min((cell.min() for cell in runs), default=1.0) <= 0:
        raise ValueError("cells must hold positive times: count episodes from one")
    inverse = np.linalg.pinv(_design(X, len(runs)))[1:]
    medians = np.array([np.median(cell) for cell in runs])
    if np.isinf(medians).any():
        return [Interval(np.inf, -np.inf, np.inf)] * len(inverse)
    values = inverse @ np.log(medians)
    if min(len(cell) for cell in runs) < 2:
        return [Interval(float(value), -np.inf, np.inf) for value in values]
    draws = _drawn_summaries(np.median, runs, resamples, seed).T
    known = np.isfinite(draws).all(axis=0)
    found = np.where(known, inverse @ np.log(np.where(known, draws, 1.0)), np.nan)
    return [_around(float(value), drawn, level) for value, drawn in zip(values, found, strict=True)]


def _design(X: Any, cells: int) -> Floats:
    """Return a column of ones and the logarithms of the settings."""
    settings = np.asarray(X, dtype=np.float64)
    if settings.ndim != 2 or len(settings) != cells:
        raise ValueError(f"X must have shape (cells, regressors) with {cells} cells, got {settings.shape}")
    if not ((settings > 0) & np.isfinite(settings)).all():
        raise ValueError("X must be positive and finite: a power law needs its logarithms")
    design = np.column_stack([np.ones(cells), np.log(settings)])
    if np.linalg.matrix_rank(design) < design.shape[1]:
        raise ValueError("X must tell its regressors apart: vary each of them, and not only together")
    return design
