"""The statistics verdicts rest on: against SciPy, plain twins, exact cases and known coverage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rlsvi.study import statistics as bootstrapping
from rlsvi.study.statistics import (
    Interval,
    band,
    bootstrap,
    bootstrap_summaries,
    difference,
    iqm,
    line,
    local_polynomial,
    median,
    power_law,
    power_laws,
    probability_of_improvement,
    proportion,
)

inf, nan = np.inf, np.nan
UNDECIDED = Interval(inf, -inf, inf)
times_in_episodes = st.lists(st.integers(1, 30).map(float) | st.just(inf), min_size=1, max_size=12)


def skewed(seed, size=20, scale=100.0):
    """Times as they are: heavy to the right."""
    return scale * np.random.default_rng(seed).lognormal(0.0, 0.8, size)


# ---- intervals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        ((272, 248.2, 313.4), "272 (248 to 313)"),
        ((0.5123, 0.49, 0.53), "0.512 (0.490 to 0.530)"),
        ((1.07, 0.94, 1.2), "1.07 (0.94 to 1.20)"),
        ((272, 248, inf), "272 (248 to infinity)"),
        ((inf, 248, inf), "infinity (248 to infinity)"),
        ((inf, inf, inf), "infinity"),
        ((3.14159, -inf, inf), "3.14 (interval unknown)"),
        ((inf, -inf, inf), "undecided"),
        ((5.0, 5.0, 5.0), "5.00 (5.00 to 5.00)"),
        ((0.0, 0.0, 0.0), "0 (0 to 0)"),
        ((1e15, 1e14, 2e15), "1e+15 (1e+14 to 2e+15)"),
    ],
    ids=str,
)
def test_an_interval_reads_well(interval, words):
    assert str(Interval(*interval)) == words


def test_an_interval_lies_inside_a_range_or_overlaps_it():
    found = Interval(2.0, 1.0, 3.0)
    assert found.inside(1, 3)
    assert found.inside(0, inf)
    assert not found.inside(1.5, 4)
    assert not found.inside(0, 2.5)
    assert found.overlaps(2.5, 9)
    assert found.overlaps(-1, 1)
    assert not found.overlaps(3.1, inf)
    assert not found.overlaps(-inf, 0.9)


def test_an_undecided_interval_overlaps_everything_and_lies_inside_nothing():
    assert UNDECIDED.overlaps(0, 1)
    assert not UNDECIDED.inside(0, inf)
    assert not UNDECIDED.bounded
    assert Interval(0.5, 0.1, 0.9).bounded


# ---- times, some of which never came ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([3], 3),
        ([3, 1, 2], 2),
        ([4, 1, 2, 3], 2.5),
        ([1, inf, 2], 2),
        ([1, inf, inf], inf),
        ([1, 2, inf, inf], inf),
        ([1, 2, 3, inf], 2.5),
        ([inf], inf),
        ([inf, inf], inf),
    ],
    ids=str,
)
def test_the_median_is_infinite_once_half_never_finished(times, expected):
    assert median(times) == expected


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20))
def test_the_median_of_finished_runs_is_numpys(times):
    assert median(times) == pytest.approx(np.median(times), abs=1e-9 * max(times))


def test_the_exact_interval_of_a_share_is_that_of_clopper_and_pearson():
    """No successes in n leave shares up to 1 - (.025)^(1/n); else the ends are quantiles of Betas."""
    found = proportion(0, 40, method="exact")
    assert (found.value, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 40))
    some = proportion(3, 40, method="exact")
    assert (some.low, some.high) == pytest.approx((stats.beta.ppf(0.025, 3, 38), stats.beta.ppf(0.975, 4, 37)))


def test_the_interquartile_mean_is_scipys():
    x = skewed(2)
    assert iqm(x) == stats.trim_mean(x, 0.25)
    assert iqm(x) == pytest.approx(np.sort(x)[5:15].mean())
    assert iqm([1.0, 2.0]) == 1.5


# ---- the bootstrap ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", [np.mean, np.median], ids=["mean", "median"])
def test_the_interval_is_scipys_within_monte_carlo_error(statistic):
    """The ends of two intervals from 10,000 draws each: quantiles of the same distribution."""
    x, draws = skewed(3, 41), 10_000
    ours = bootstrap(statistic, x, resamples=draws)
    theirs = stats.bootstrap(
        (x,), statistic, n_resamples=draws, method="percentile", rng=np.random.default_rng(1), vectorized=False
    )
    # a share of 2.5% is known within sd sqrt(.025 .975 / draws) from either; four of these, in ranks
    slack = 4 * np.sqrt(2 * 0.025 * 0.975 / draws)
    for end, q in ((ours.low, 0.025), (ours.high, 0.975)):
        low, high = np.quantile(theirs.bootstrap_distribution, [q - slack, q + slack])
        assert low <= end <= high
    assert ours.value == statistic(x)
    assert theirs.confidence_interval.low == pytest.approx(ours.low, rel=0.05)


@pytest.mark.slow
def test_coverage_of_the_mean_is_what_theory_says():
    """For normal runs the interval is the mean +- 1.96 sd of the plug-in, so t with n - 1 degrees is in it."""
    n, replications, rng = 10, 300, np.random.default_rng(0)
    expected = 1 - 2 * stats.t.sf(stats.norm.ppf(0.975) * np.sqrt((n - 1) / n), n - 1)
    assert 0.88 < expected < 0.91
    found = [bootstrap(np.mean, rng.normal(size=n), resamples=300, seed=i) for i in range(replications)]
    covered = np.mean([one.low <= 0 <= one.high for one in found])
    # rounding outward among 300 draws widens it by less than one draw of 300 at either end
    assert abs(covered - expected - 0.005) < 3.5 * np.sqrt(expected * (1 - expected) / replications)


def test_coverage_of_the_median_with_five_runs_is_that_of_their_range():
    """At least 2.5% of the draws have the least run as median: the interval is the range, whatever the runs."""
    assert stats.binom.sf(2, 5, 1 / 5) > 0.05
    x = skewed(5, 5)
    assert bootstrap(median, x) == (np.median(x), x.min(), x.max())


def test_draws_stay_within_their_stratum():
    cells = [np.array([0.0, 1.0]), np.array([10.0, 11.0, 12.0]), np.array([100.0, 101.0])]
    seen = []
    bootstrap(lambda drawn: seen.append(drawn) or 0.0, cells, resamples=200)
    assert len(seen) == 201
    for drawn in seen:
        assert [len(cell) for cell in drawn] == [2, 3, 2]
        assert all(set(cell) <= set(whole) for cell, whole in zip(drawn, cells, strict=True))
    counts = np.array([(drawn[1] == 10).sum() for drawn in seen[1:]])  # Binomial(3, 1/3)
    assert abs(counts.mean() - 1) < 4 * np.sqrt(2 / 3 / 200)
    firsts, lasts = np.array([(d[0][0], d[2][0] - 100) for d in seen[1:]]).T
    assert abs(np.corrcoef(firsts, lasts)[0, 1]) < 4 / np.sqrt(200)  # settings are drawn by themselves


def test_a_stratified_interval_is_that_of_a_sum_of_variances():
    cells = [skewed(seed, 200) for seed in range(4)]
    found = bootstrap(lambda drawn: np.mean([cell.mean() for cell in drawn]), cells)
    sd = np.sqrt(sum(cell.var() / 200 for cell in cells)) / 4
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * sd, rel=0.1)


def test_the_same_seed_gives_the_same_interval_and_another_another():
    x = skewed(6)
    assert bootstrap(np.mean, x, seed=1) == bootstrap(np.mean, x, seed=1)
    assert bootstrap(np.mean, x, seed=1) != bootstrap(np.mean, x, seed=2)


def test_a_list_of_numbers_is_one_setting_and_its_statistic_gets_an_array():
    def shape(drawn):
        assert isinstance(drawn, np.ndarray)
        return float(drawn.sum())

    assert bootstrap(shape, [1.0, 2.0, 3.0]) == bootstrap(shape, np.array([1.0, 2.0, 3.0]))
    assert bootstrap(lambda drawn: float(drawn[0].sum()), [[1.0, 2.0, 3.0]]).value == 6


def test_a_higher_level_is_wider():
    x = skewed(7)
    narrow, wide = bootstrap(np.mean, x, level=0.5), bootstrap(np.mean, x, level=0.99)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_infinite_times_reach_the_interval():
    times = np.where(np.arange(20) < 12, skewed(8), inf)
    found = bootstrap(median, times)
    assert np.isfinite(found.value)
    assert np.isfinite(found.low)
    assert found.high == inf
    assert bootstrap(median, np.full(5, inf)) == (inf, inf, inf)


def test_one_run_bounds_nothing():
    assert bootstrap(median, [7.0]) == (7.0, -inf, inf)
    assert bootstrap(lambda drawn: drawn[0].mean(), [[1.0, 2.0], [3.0]]) == (1.5, -inf, inf)
    assert bootstrap(median, [5.0, 5.0]) == (5.0, 5.0, 5.0)


# ---- bands ------------------------------------------------------------------------------------------------


def test_a_band_is_the_bootstrap_of_every_point(monkeypatch):
    curves = np.cumsum(np.random.default_rng(9).exponential(size=(11, 7)), axis=1)
    middle, low, high = band(curves, resamples=400, seed=5)
    monkeypatch.setattr(bootstrapping, "BLOCK", 2 * 400 * 11)  # two points at a time: the same band
    for one, other in zip((middle, low, high), band(curves, resamples=400, seed=5), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
    drawn = np.random.default_rng(5).integers(11, size=(400, 11))
    for point in range(7):
        found = np.sort([np.median(curves[rows, point]) for rows in drawn])
        assert middle[point] == pytest.approx(np.median(curves[:, point]))
        assert low[point] == pytest.approx(found[9])  # .025 x 399 = 9.975, and outward
        assert high[point] == pytest.approx(found[390])
        alone = bootstrap(np.median, curves[:, point], resamples=400)
        assert low[point] == pytest.approx(alone.low, abs=0.35 * (alone.high - alone.low))


def test_the_band_of_one_run_is_unbounded():
    middle, low, high = band([[1.0, 2.0]])
    assert middle.tolist() == [1, 2]
    assert low.tolist() == [-inf, -inf]
    assert high.tolist() == [inf, inf]


def test_the_band_of_equal_runs_has_no_width():
    for ends in band(np.tile([1.0, 4.0], (3, 1))):
        assert ends.tolist() == [1, 4]


def test_the_band_of_medians_takes_infinite_times():
    curves = np.array([[1.0, inf], [2.0, inf], [3.0, 5.0]])
    middle, _, high = band(curves)
    assert middle.tolist() == [2, inf]
    assert high.tolist() == [3, inf]


# ---- shares -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "n"), [(0, 10), (7, 10), (20, 20), (1, 1)])
def test_a_proportion_has_wilsons_interval(k, n):
    z = stats.norm.ppf(0.975)
    middle, half = (k + z * z / 2) / (n + z * z), z / (n + z * z) * np.sqrt(k * (n - k) / n + z * z / 4)
    found = proportion(k, n)
    assert found.value == k / n
    assert found.low == pytest.approx(middle - half, abs=1e-12)
    assert found.high == pytest.approx(middle + half, abs=1e-12)
    assert proportion(k, n, level=0.8).high <= found.high


def test_the_probability_of_improvement_is_that_of_mann_and_whitney():
    rng = np.random.default_rng(10)
    x, y = rng.integers(0, 9, 25).astype(float), rng.integers(2, 12, 17).astype(float)
    assert set(x) & set(y)  # there are ties
    found = probability_of_improvement(x, y)
    assert found.value == pytest.approx(stats.mannwhitneyu(y, x).statistic / (25 * 17))
    assert found.low < found.value < found.high
    assert probability_of_improvement(y, x).value == pytest.approx(1 - found.value)


def test_the_probability_of_improvement_averages_over_settings():
    xs, ys = [skewed(0), skewed(1, 7)], [skewed(2, 9, 150.0), skewed(3, 12, 80.0)]
    each = [probability_of_improvement(x, y).value for x, y in zip(xs, ys, strict=True)]
    assert probability_of_improvement(xs, ys).value == pytest.approx(np.mean(each))


@pytest.mark.slow
def test_its_interval_covers_the_truth_and_is_wide_for_few_runs():
    """X and Y exponential with means 1 and 2: P(X < Y) = 2/3."""
    rng, replications = np.random.default_rng(11), 200
    covered = 0
    for i in range(replications):
        found = probability_of_improvement(rng.exponential(1, 20), rng.exponential(2, 20), resamples=200, seed=i)
        covered += found.low <= 2 / 3 <= found.high
    assert abs(covered / replications - 0.94) < 3.5 * np.sqrt(0.94 * 0.06 / replications)


def test_never_against_never_is_a_tie():
    assert probability_of_improvement([1.0, inf], [inf, inf]).value == 0.75
    assert probability_of_improvement([inf, inf, inf], [inf, inf]).value == 0.5


def test_winning_every_time_is_as_sure_as_the_runs_are_many():
    low = proportion(20, 20).low
    found = probability_of_improvement(np.arange(20), np.arange(20) + 50)
    assert found == pytest.approx((1.0, low, 1.0))
    assert probability_of_improvement(np.arange(20) + 50, np.arange(20)) == pytest.approx((0.0, 0.0, 1 - low))
    assert probability_of_improvement([1.0, 2.0], [3.0, 4.0, 5.0]).low == pytest.approx(proportion(2, 2).low)
    settings = probability_of_improvement([[1.0, 2.0]] * 3, [[3.0, 4.0]] * 3)
    assert settings == pytest.approx((1.0, proportion(6, 6).low, 1.0))
    tie = probability_of_improvement([inf, inf], [inf, inf])
    assert tie.value == 0.5
    assert tie.low == pytest.approx(0.5 * proportion(2, 2).low)
    assert tie.high == pytest.approx(1 - tie.low)


def test_one_run_against_another_decides_nothing():
    assert probability_of_improvement([1.0], [2.0]) == (1.0, -inf, inf)


# ---- lines, powers, local polynomials ---------------------------------------------------------------------


def test_a_line_is_scipys():
    x = np.array([1000.0, 1001.0, 1003.0, 1007.0])
    y = np.array([2.0, 3.5, 3.0, 9.0])
    fit = stats.linregress(x, y)
    assert line(x, y) == pytest.approx((fit.slope, fit.intercept))
    assert line([0, 2], [1, 5]) == pytest.approx((2, 1))


def test_an_exact_power_law_is_found_exactly():
    x = np.array([10.0, 20.0, 50.0, 100.0])
    found = power_law(x, [np.full(4, 3 * n**1.5) for n in x])
    assert found == pytest.approx((1.5, 1.5, 1.5))


def test_the_exponent_is_the_slope_of_the_medians_and_its_interval_the_bootstraps():
    x = np.arange(10.0, 101.0, 10.0)
    cells = [skewed(int(n), 9, 5 * n) for n in x]
    found = power_law(x, cells)
    assert found.value == pytest.approx(line(np.log(x), np.log([np.median(cell) for cell in cells]))[0])
    again = bootstrap(lambda drawn: line(np.log(x), np.log([median(c) for c in drawn]))[0], cells, resamples=1000)
    width = again.high - again.low
    assert found.low == pytest.approx(again.low, abs=0.1 * width)
    assert found.high == pytest.approx(again.high, abs=0.1 * width)
    assert found.inside(0.5, 1.5)


def test_exponents_of_two_regressors_are_told_apart():
    X = np.array([(n, k) for n in (10.0, 20.0, 40.0) for k in (2.0, 5.0, 10.0, 20.0)])
    cells = [skewed(i, 30, n**1.2 * k**0.5) for i, (n, k) in enumerate(X)]
    found = power_laws(X, cells)
    logs = np.log([np.median(cell) for cell in cells])
    fit = np.linalg.lstsq(np.column_stack([np.log(X), np.ones(12)]), logs, rcond=None)[0]
    assert [one.value for one in found] == pytest.approx(fit[:2])
    assert found[0].overlaps(1.2, 1.2)
    assert found[1].overlaps(0.5, 0.5)
    assert found[0].high - found[0].low < 0.7
    assert power_laws(X[:, :1], cells)[0] == power_law(X[:, 0], cells)


def test_a_cell_that_is_not_learned_leaves_the_exponent_undecided():
    cells = [[5.0, 6.0, 7.0], [9.0, 11.0, 10.0], [20.0, inf, inf]]
    assert power_law([1, 2, 4], cells) == UNDECIDED
    assert power_laws([[1, 3], [2, 1], [4, 1], [8, 2]], [*cells, [9.0, 9.0, 9.0]]) == [UNDECIDED] * 2


def test_a_cell_that_is_only_just_learned_leaves_the_interval_open_on_both_sides():
    cells = [[5.0, 6.0, 7.0], [9.0, 11.0, 10.0], [20.0, 21.0, inf]]
    found = power_law([1, 2, 4], cells)
    assert found.value == pytest.approx(line(np.log([1, 2, 4]), np.log([6, 10, 21]))[0])
    assert (found.low, found.high) == (-inf, inf)


def test_a_rare_straggler_does_not_open_the_interval():
    cells = [skewed(i, 15, n) for i, n in enumerate((10.0, 20.0, 40.0))]
    cells[2][0] = inf
    assert power_law([10, 20, 40], cells).bounded


def test_cells_of_one_run_have_an_exponent_but_no_interval():
    assert power_law([1, 2, 4], [[3.0], [6.0], [12.0]]) == (pytest.approx(1.0), -inf, inf)


def local_twin(x, y, at, span, degree):
    """Loess by normal equations, point by point."""
    found = []
    for point in at:
        near = sorted(range(len(x)), key=lambda i: abs(x[i] - point))[: int(span * len(x) + 1e-9)]
        h = abs(x[near[-1]] - point)
        w = np.array([(1 - (abs(x[i] - point) / h) ** 3) ** 3 for i in near])
        A = np.vander(x[near] - point, degree + 1, increasing=True)
        found.append(np.linalg.solve(A.T * w @ A, A.T * w @ y[near])[0])
    return found


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
@pytest.mark.parametrize("span", [0.4, 0.75, 1.0])
def test_local_polynomials_are_those_of_the_normal_equations(degree, span):
    rng = np.random.default_rng(12)
    x = rng.uniform(0, 10, 40)
    y, at = np.sin(x) + rng.normal(0, 0.3, 40), np.linspace(x.min(), x.max(), 15)
    found = local_polynomial(x, y, at, span=span, degree=degree)
    np.testing.assert_allclose(found, local_twin(x, y, at, span, degree), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_a_polynomial_of_its_degree_comes_back_exactly(degree):
    x = np.linspace(100, 200, 30)
    y = np.polyval([3.0, -2.0, 1.0, 5.0][: degree + 1], (x - 150) / 10)
    at = np.linspace(100, 200, 7)
    expected = np.polyval([3.0, -2.0, 1.0, 5.0][: degree + 1], (at - 150) / 10)
    np.testing.assert_allclose(local_polynomial(x, y, at, degree=degree), expected, rtol=1e-9, atol=1e-9)


def test_many_runs_at_each_x_are_smoothed_as_in_the_figures():
    x = np.repeat([2.0, 5.0, 10.0, 20.0, 30.0, 50.0, 100.0], 10)
    y = x * np.exp(np.random.default_rng(13).normal(0, 0.2, 70))
    at = np.linspace(2, 100, 20)
    assert np.square(at - local_polynomial(x, y, at)).mean() < 0.05 * at.var()
    assert local_polynomial(x, y, 10.0).shape == (1,)


def test_a_span_with_too_few_points_is_refused():
    x, y = np.arange(10.0), np.arange(10.0)
    with pytest.raises(ValueError, match=r"too few points: .*degree 2 .*widen span or lower degree"):
        local_polynomial(x, y, [5.0], span=0.3)
    with pytest.raises(ValueError, match="too few points"):
        local_polynomial(np.repeat([1.0, 2.0], 20), np.ones(40), [1.0], degree=1)


# ---- bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: median([]), "times must be a list of at least one run"),
        (lambda: median([1.0, nan]), "times must not hold NaN or -inf: write inf"),
        (lambda: median([-inf, 1.0]), "times must not hold NaN or -inf"),
        (lambda: median([[1.0]]), r"times must be a list .*shape \(1, 1\)"),
        (lambda: median(["a"]), "times must be numbers, one per run"),
        (lambda: iqm([1.0, inf]), "x holds infinite values, which cannot enter an average: use the median"),
        (lambda: bootstrap(np.mean, []), "strata must be at least one run"),
        (lambda: bootstrap(np.mean, 3.0), "strata must be at least one run"),
        (lambda: bootstrap(np.mean, [[1.0, 2.0], []]), "strata must be a list of at least one run"),
        (lambda: bootstrap(np.mean, [1.0, nan]), "strata must not hold NaN"),
        (lambda: bootstrap(np.mean, np.ones((2, 2))), r"strata must be one array of runs or a list .*\(2, 2\)"),
        (lambda: bootstrap(lambda x: nan, [1.0, 2.0]), "statistic gave NaN"),
        (lambda: bootstrap(np.mean, [1.0, 2.0], level=95), "level must lie between 0 and 1, such as 0.95, got 95"),
        (lambda: bootstrap(np.mean, [1.0, 2.0], level=1.0), "level must lie between 0 and 1"),
        (lambda: bootstrap(np.mean, [1.0, 2.0], resamples=39), "resamples must be .* at least 40, got 39"),
        (lambda: band([1.0, 2.0]), r"curves must have shape \(runs, points\)"),
        (lambda: band([[nan]]), "curves must not hold NaN"),
        (lambda: band([[1.0]], level=0), "level must lie between 0 and 1"),
        (lambda: proportion(1, 0), "trials must be a whole number of at least 1, got 0"),
        (lambda: proportion(3, 2), "successes must be at most trials, got 3 of 2"),
        (lambda: proportion(-1, 2), "successes must be a whole number"),
        (lambda: probability_of_improvement([1.0], [[1.0]]), "x and y must both be"),
        (lambda: probability_of_improvement([[1.0]], [[1.0], [2.0]]), "lists of as many settings"),
        (lambda: line([1, 1], [2, 3]), "x must hold at least two different numbers"),
        (lambda: line([1, 2], [2, 3, 4]), r"y must have shape \(2,\), got \(3,\)"),
        (lambda: line([1, 2], [2, inf]), "y holds infinite values.*medians of cells"),
        (lambda: power_law([1, 2], [[1.0], [0.0]]), "cells must hold positive times"),
        (lambda: power_law([1, 2], [[1.0], []]), r"cells\[1\] must be a list of at least one run"),
        (lambda: power_law([1, 2, 3], [[1.0], [2.0]]), r"X must have shape \(cells, regressors\) with 2 cells"),
        (lambda: power_law([0, 2], [[1.0], [2.0]]), "X must be positive and finite"),
        (lambda: power_law([2, 2], [[1.0], [2.0]]), "X must tell its regressors apart"),
        (lambda: power_laws([[1, 1], [2, 2], [3, 3]], [[1.0]] * 3), "X must tell its regressors apart"),
        (lambda: power_law([1, 2], [[1.0], [2.0]], level=2), "level must lie between 0 and 1"),
        (lambda: local_polynomial([1, 2], [1, inf], [1]), "y holds infinite values.*medians of cells"),
        (lambda: local_polynomial([1, 2, 3], [1, 2, 3], [4]), "at must lie within x, 1 to 3"),
        (lambda: local_polynomial([1, 2], [1, 2], [1], span=0), r"span must lie in \(0, 1\]"),
        (lambda: local_polynomial([1, 2], [1, 2], [1], degree=-1), "degree must be a whole number"),
        (lambda: local_polynomial([], [], [1]), "x must be a list of at least one run"),
    ],
)
def test_a_bad_argument_is_named_with_a_remedy(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ---- differences of shares ---------------------------------------------------------------------------------


def test_a_difference_of_shares_is_newcombes():
    """The examples of Newcombe (1998, Statistics in Medicine 17:873-890), method 10."""
    assert difference(56, 70, 48, 80) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)
    assert difference(9, 10, 3, 10) == pytest.approx((0.6, 0.1705, 0.8090), abs=5e-5)
    assert difference(5, 56, 0, 29) == pytest.approx((0.0893, -0.0381, 0.1926), abs=5e-5)


def test_medians_that_are_not_known_leave_a_statistic_undecided():
    known, unknown = [100.0, 110.0, 120.0], [np.inf, np.inf, 5.0]
    assert bootstrap_summaries(np.sum, [known, unknown]) == (np.inf, -np.inf, np.inf)
    sometimes = bootstrap_summaries(np.sum, [known, [90.0, 100.0, np.inf]])
    assert sometimes.value == 210
    assert (sometimes.low, sometimes.high) == (-np.inf, np.inf)
    assert bootstrap_summaries(np.sum, [known, known]) == bootstrap(
        lambda drawn: sum(np.median(cell) for cell in drawn), [known, known]
    )


def test_a_bootstrap_of_means_is_the_plain_one_with_means():
    cells = [np.array([1.0, 2.0, 7.0]), np.array([4.0, 5.0, 9.0, 11.0])]
    fast = bootstrap_summaries(np.sum, cells, summary=np.mean)
    plain = bootstrap(lambda drawn: sum(float(np.mean(cell)) for cell in drawn), cells)
    assert fast.value == plain.value == pytest.approx(10 / 3 + 29 / 4)
    error = np.sqrt(sum(cell.var() / len(cell) for cell in cells))  # what the bootstrap estimates
    for ends in (fast, plain):
        assert ends.low == pytest.approx(ends.value - 1.96 * error, abs=0.3 * error)
        assert ends.high == pytest.approx(ends.value + 1.96 * error, abs=0.3 * error)
    unknown = [cells[0], np.array([1.0, np.inf])]
    assert bootstrap_summaries(np.sum, unknown, summary=np.mean) == (np.inf, -np.inf, np.inf)
