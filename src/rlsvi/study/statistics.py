"""Statistics of runs with different seeds: every estimate has a 95% interval.

Nothing here assumes a normal distribution: learning times have heavy tails, and some are infinite. This module
re-exports `bootstrap` and `fits`, and adds proportions and power laws.
"""

from typing import Any, Literal

import numpy as np
from scipy import stats

from rlsvi.core.checks import whole
from rlsvi.core.compile import Floats
from rlsvi.study.bootstrap import (
    Interval,
    band,
    bootstrap,
    bootstrap_means,
    bootstrap_medians,
    check_bootstrap,
    drawn_medians,
    iqm,
    is_one,
    measured,
    median,
    percentiles,
)
from rlsvi.study.fits import line, local_polynomial, r_squared


def proportion(
    successes: int, trials: int, *, level: float = 0.95, method: Literal["wilson", "exact"] = "wilson"
) -> Interval:
    """Return a proportion with Wilson's interval, or with the exact, wider one of Clopper and Pearson."""
    whole("trials", trials, 1)
    if whole("successes", successes, 0) > trials:
        raise ValueError(f"successes must be at most trials, got {successes} of {trials}")
    ends = stats.binomtest(successes, trials).proportion_ci(level, method=method)
    return Interval(successes / trials, float(ends.low), float(ends.high))


def difference(
    successes: int, trials: int, other_successes: int, other_trials: int, *, level: float = 0.95
) -> Interval:
    """Return the difference of two proportions with Newcombe's interval, which combines the two of Wilson."""
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
    """
    if is_one(x) != is_one(y) or (not is_one(x) and len(x) != len(y)):
        raise ValueError("x and y must both be the runs of one setting, or lists of as many settings")
    ours, theirs = ([x], [y]) if is_one(x) else (list(x), list(y))

    def wins(cells: list[Floats]) -> float:
        half = len(cells) // 2
        return float(np.mean([_wins(a, b) for a, b in zip(cells[:half], cells[half:], strict=True)]))

    found = bootstrap(wins, [*ours, *theirs], resamples=resamples, level=level, seed=seed)
    if found.low == found.high:
        pairs = len(ours) * min(len(cell) for cell in (*ours, *theirs))
        value, other = found.value, proportion(0, pairs, level=level).high
        return Interval(value, value - other * value, value + other * (1 - value))
    return found


def _wins(x: Floats, y: Floats) -> float:
    ordered = np.sort(y)
    not_less = len(y) - np.searchsorted(ordered, x, "left")
    greater = len(y) - np.searchsorted(ordered, x, "right")
    return float((not_less + greater).mean() / 2 / len(y))


def power_law(x: Any, cells: Any, *, resamples: int = 2000, level: float = 0.95, seed: int = 0) -> Interval:
    """Fit the exponent b of T ~ x^b to the medians of the cells; see `power_laws`."""
    at = measured("x", x)[:, None]
    return power_laws(at, cells, resamples=resamples, level=level, seed=seed)[0]


def power_laws(X: Any, cells: Any, *, resamples: int = 2000, level: float = 0.95, seed: int = 0) -> list[Interval]:
    """Fit the exponents b_j of T ~ prod_j x_j^b_j by least squares on the logarithms of the cells' median times.

    Parameters
    ----------
    X : the settings, (cells, regressors), positive.
    cells : a list of arrays, the times of the runs of each setting, positive or infinite.

    The intervals come from a stratified bootstrap. If a cell's median is infinite, there is no exponent and the
    result is Interval(inf, -inf, inf), undecided. A resample with such a cell counts as beyond both ends.
    """
    check_bootstrap(resamples, level)
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
    draws = drawn_medians(runs, resamples, seed).T
    known = np.isfinite(draws).all(axis=0)
    found = inverse @ np.log(np.where(known, draws, 1.0))
    least, most = np.where(known, found, -np.inf), np.where(known, found, np.inf)
    return [percentiles(float(v), a, b, level) for v, a, b in zip(values, least, most, strict=True)]


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
