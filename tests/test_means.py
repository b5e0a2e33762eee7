"""Intervals of means of few runs: that they cover what they promise, against SciPy where it has them."""

import math

import numpy as np
import pytest
from scipy import stats

from rlsvi.study.statistics import mean, multiple, paired_ratio, ratio, ratio_of_medians


def test_the_interval_of_a_mean_is_students():
    x = np.array([3.0, 5.0, 4.0, 8.0, 6.5])
    expected = stats.ttest_1samp(x, 0.0).confidence_interval(0.9)
    found = mean(x, level=0.9)
    assert found == pytest.approx((x.mean(), expected.low, expected.high))


def test_means_of_five_runs_are_covered_as_promised():
    """4,000 samples of five: the standard error of a share of .95 is .0034."""
    rng = np.random.default_rng(0)
    covered = [found.low <= 1.0 <= found.high for found in (mean(rng.normal(1.0, 0.3, 5)) for _ in range(4000))]
    assert np.mean(covered) == pytest.approx(0.95, abs=4 * 0.0034)


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.05, 0.2])
def test_ratios_of_means_of_five_runs_are_covered_as_promised(spread):
    rng = np.random.default_rng(1)
    covered = []
    for _ in range(1000):
        found = ratio(rng.normal(3.0, 3.0 * spread, 5), rng.normal(2.0, 0.5 * spread, 5))
        covered.append(found.low <= 1.5 <= found.high)
    assert np.mean(covered) == pytest.approx(0.95, abs=4 * 0.0069)


def test_a_ratio_turned_round_is_the_inverse():
    rng = np.random.default_rng(2)
    x, y = rng.lognormal(0.0, 0.3, size=6), rng.lognormal(0.0, 0.3, size=5)
    there, back = ratio(x, y), ratio(y, x)
    assert (back.value, back.low, back.high) == pytest.approx((1 / there.value, 1 / there.high, 1 / there.low))


def test_the_ends_are_where_the_difference_is_just_significant():
    rng = np.random.default_rng(3)
    x, y = rng.normal(5.0, 1.0, 5), rng.normal(3.0, 0.5, 7)
    found = ratio(x, y)
    for f in (found.low, found.high):
        assert stats.ttest_ind(x, f * y, equal_var=False).pvalue == pytest.approx(0.05, rel=1e-6)


def test_a_multiple_of_what_may_be_nothing_is_open_above():
    x, y = np.array([0.7, 0.8, 0.75, 0.72, 0.78]), np.array([0.0, 0.0, 0.0, 0.0, 0.65])
    found = ratio(x, y)
    assert found.high == math.inf
    assert 1.0 < found.low < 5.0
    assert ratio(y, x).low == 0.0


def test_what_is_nothing_or_alone():
    zero, some = np.zeros(3), np.array([1.0, 2.0, 3.0])
    assert ratio(zero, zero) == (1.0, 1.0, 1.0)
    assert ratio(some, zero) == (math.inf, math.inf, math.inf)
    assert ratio(zero, some) == (0.0, 0.0, 0.0)
    assert ratio(some[:1], some) == (0.5, -math.inf, math.inf)
    assert ratio(np.full(3, 4.0), np.full(3, 2.0)) == (2.0, 2.0, 2.0)
    assert mean(some[:1]) == (1.0, -math.inf, math.inf)
    assert multiple(0.0, 0.0) == multiple(math.inf, math.inf) == 1.0
    assert multiple(1.0, 0.0) == multiple(math.inf, 3.0) == math.inf
    assert multiple(3.0, math.inf) == 0.0


def test_a_paired_ratio_draws_both_of_an_instance_together():
    """Twice as much on every instance is twice as much in every draw; unpaired it is not."""
    x = np.array([1.0, 5.0, 2.0, 9.0])
    assert paired_ratio(2 * x, x) == pytest.approx((2.0, 2.0, 2.0))
    assert ratio(2 * x, x).low < 1.5
    assert paired_ratio(x, np.zeros(4)) == (math.inf, math.inf, math.inf)
    assert paired_ratio(x[:1], x[1:2]) == (0.2, -math.inf, math.inf)


def test_a_ratio_of_medians_takes_runs_that_never_end():
    never, some = np.full(3, math.inf), np.array([1.0, 2.0, 3.0])
    assert ratio_of_medians(never, never) == (1.0, 1.0, 1.0)
    assert ratio_of_medians(some, never) == (0.0, 0.0, 0.0)
    assert ratio_of_medians(4 * some, np.full(3, 2.0)) == (4.0, 2.0, 6.0)


def test_numbers_that_are_none_are_refused():
    with pytest.raises(ValueError, match="values"):
        mean(np.array([1.0, np.nan]))
    with pytest.raises(ValueError, match="others"):
        ratio(np.ones(2), np.array([]))
