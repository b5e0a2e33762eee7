"""Verdicts: the rules of judging, and all claims on few runs, on runs that failed and on runs that are alike."""

import math
import re
from dataclasses import replace
from itertools import product

import numpy as np
import polars as pl
import pytest
from tables import ALL, LONG, judged, published, unlearned

from rlsvi.study.statistics import (
    Interval,
    bootstrap,
    bootstrap_summaries,
    line,
    power_law,
    power_laws,
    probability_of_improvement,
)
from rlsvi_paper import figure_called
from rlsvi_paper.chain.chain_regret import stays_low
from rlsvi_paper.claim import (
    Outcome,
    Verdict,
    all_of,
    at_least,
    at_most,
    between,
    choice,
    computed,
    exactly,
    in_readings,
    printed,
    share_of,
    varied,
    worst_of,
)
from rlsvi_paper.claim import claim as declared
from rlsvi_paper.figure import FEWEST_SEEDS
from rlsvi_paper.results import paired_times, times_as_much


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """Enough of them for tables that leave no doubt."""
    for function in (bootstrap, bootstrap_summaries, power_laws, power_law, probability_of_improvement):
        monkeypatch.setitem(function.__kwdefaults__, "resamples", 100)


YES, NO, OPEN = Outcome.REPRODUCED, Outcome.NOT_REPRODUCED, Outcome.INCONCLUSIVE


# ---- from an interval to an outcome -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (1.2, 1.8, YES),
        (1.0, 2.0, YES),
        (0.5, 1.5, OPEN),
        (1.5, 2.5, OPEN),
        (0.5, 2.5, OPEN),
        (0.5, 1.0, OPEN),
        (0.2, 0.9, NO),
        (2.1, 3.0, NO),
        (2.1, math.inf, NO),
        (math.inf, math.inf, NO),
        (-math.inf, math.inf, OPEN),
    ],
)
def test_between_needs_all_or_nothing_of_the_interval(low, high, outcome):
    interval = Interval(1.5, low, high)
    assert between(interval, 1.0, 2.0, "words") == Verdict(outcome, "words", interval)


@pytest.mark.parametrize(
    ("low", "high", "least", "most"),
    [(1.0, 3.0, YES, OPEN), (0.5, 1.0, OPEN, YES), (0.0, 0.9, NO, YES), (1.1, math.inf, YES, NO)],
)
def test_at_least_and_at_most_look_at_one_end(low, high, least, most):
    interval = Interval(1.0, low, high)
    assert at_least(interval, 1.0, "words") == Verdict(least, "words", interval)
    assert at_most(interval, 1.0, "words") == Verdict(most, "words", interval)


def test_exactly_knows_no_doubt():
    assert exactly(True, "words") == Verdict(YES, "words", None)
    assert exactly(False, "words") == Verdict(NO, "words", None)


def test_all_of_is_the_worst_with_the_figure_that_decided():
    good, open_, bad = (
        Verdict(outcome, str(outcome), Interval(i, i, i)) for i, outcome in enumerate((YES, OPEN, NO))
    )
    assert all_of(good) == good
    assert all_of(good, open_) == Verdict(OPEN, "reproduced; inconclusive", open_.interval)
    assert all_of(open_, bad, good) == Verdict(NO, "inconclusive; not reproduced; reproduced", bad.interval)
    assert all_of(good, Verdict(YES, "", None)) == Verdict(YES, "reproduced", good.interval)
    assert all_of(good, exactly(False, "never")) == Verdict(NO, "reproduced; never", None)


def test_worst_of_has_the_words_of_one_and_a_table_of_all():
    good, bad = exactly(True, "the first holds"), Verdict(NO, "the second fails", Interval(2.0, 2.0, 2.0))
    rows = [(good, ("1", "yes")), (bad, ("2", "no")), (None, ("3", "not judged"))]
    table = (("case", "holds"), ("1", "yes"), ("2", "no"), ("3", "not judged"))
    found = worst_of(("case", "holds"), rows)
    assert found == Verdict(NO, "holds in 1 of 2 cases; the second fails", bad.interval, table)
    assert worst_of(("case", "holds"), rows[:1]) == Verdict(YES, "the first holds", None, table[:2])


def test_the_first_reading_decides_and_the_others_are_told():
    bad, good = Verdict(NO, "as printed", Interval(1.0, 1.0, 1.0)), exactly(True, "otherwise")
    found = in_readings(
        ("reading", "rows", "verdict"),
        {"printed": (bad, ("3",)), "later": (good, ("4",))},
        [("remark", "", "")],
    )
    assert found.readings == (("printed", NO), ("later", YES))
    assert found.table[1:] == (
        ("printed", "3", "not reproduced"),
        ("later", "4", "reproduced"),
        ("remark", "", ""),
    )
    assert found._replace(table=(), readings=()) == bad


@pytest.mark.parametrize(
    ("holds", "low", "high", "words"), [([True] * 5, 0.4, 1.0, "5 of 5"), ([0, 0, 1], 0.0, 0.95, "1 of 3")]
)
def test_a_share_of_runs_has_an_interval_and_their_number(holds, low, high, words):
    interval, told = share_of(holds)
    assert told == words
    assert interval.value == pytest.approx(np.mean(holds))
    assert low < interval.low < interval.value <= interval.high <= high


# ---- every claim --------------------------------------------------------------------------------------------


def test_a_claim_is_its_function_with_words_and_place():
    @declared("It grows", "section 6", lambda frame: frame.head(1))
    def grows(frame):
        """The slope is
        positive.
        """
        return exactly(frame.height == 1, "counted")

    assert (grows.name, grows.words, grows.where) == ("grows", "It grows", "section 6")
    assert grows.criterion == "The slope is positive."
    frame = pl.DataFrame({"seed": [1, 2]})
    assert grows.judge(frame).outcome is NO
    assert grows.judge(grows.rows(frame)).outcome is YES


def test_a_claim_may_yield_verdicts_and_remarks_of_which_the_worst_decides():
    @declared("It grows", "section 6")
    def grows(frame):
        """It does."""
        yield "of two runs"
        yield exactly(True, "the first grows")
        yield exactly(frame.height == 1, "the second")
        yield "and that is all"

    words = "of two runs; the first grows; the second; and that is all"
    assert grows.judge(pl.DataFrame({"seed": [1]})) == Verdict(YES, words)
    assert grows.judge(pl.DataFrame({"seed": [1, 2]})) == Verdict(NO, words)


def test_a_claim_that_is_computed_is_computed_once():
    calls = []

    @computed("It is", "section 5")
    def known():
        """By arithmetic."""
        calls.append(1)
        return exactly(True, "so it is")

    assert [known.judge(frame) for frame in (None, None)] == [Verdict(YES, "so it is")] * 2
    assert len(calls) == 1


def test_a_verdict_is_computed_with_each_other_value_of_its_choices():
    def judge():
        """Above a threshold; the unit is another choice."""
        unit, least = choice("unit", 1.0, 10.0), choice("at least", 2.0, 1.0, 3.0)
        return exactly(2.5 / unit >= least, f"{unit} {least}")

    found = varied(judge)
    assert (found.outcome, found.measured) == (YES, "1.0 2.0")
    assert found.variants == (("unit 10", NO), ("at least 1", YES), ("at least 3", NO))
    assert judge() == exactly(True, "1.0 2.0")  # nothing stays chosen
    assert varied(lambda: exactly(True, "")).variants == ()


@pytest.mark.parametrize("ratio", [times_as_much, paired_times])
def test_means_and_medians_are_both_tried(ratio):
    """Nine of ten runs are half as long, and one is much longer."""
    values, others = np.array([1.0] * 9 + [100.0]), np.full(10, 2.0)
    found = varied(lambda: at_most(ratio(values, others), 1.0, ""))
    assert found.interval.value == pytest.approx(5.45)
    assert (found.outcome, found.variants) == (OPEN, (("statistic median", YES),))


def test_a_run_that_is_never_done_counts_as_it_is_told_in_a_mean():
    values, others = np.array([1.0] * 9 + [np.inf]), np.full(10, 2.0)
    found = varied(lambda: at_most(times_as_much(values, others, "median", 3.0), 1.0, ""))
    assert (found.outcome, found.interval.value, found.variants) == (YES, 0.5, (("statistic mean", YES),))


def test_an_error_leaves_no_choice_behind():
    def judge():
        return exactly(1 / choice("by", 1.0, 0.0) > 0, "")

    with pytest.raises(ZeroDivisionError):
        varied(judge)
    assert judge().outcome is YES


@pytest.mark.parametrize(("figure", "outcome"), [(0.0, YES), (0.6, YES), (1.2, NO), (-1.2, NO)])
def test_a_printed_figure_is_compared_with_as_few_runs_as_it_has(figure, outcome):
    """The mean of five standard normals has a standard deviation of .447, so that 95% are within .877."""
    runs = np.random.default_rng(1).normal(size=20_000)
    found = printed(runs, 5, figure, "so much")
    assert found.outcome is outcome
    assert abs(found.interval.high - 0.877) < 0.05  # four standard errors of a quantile of 10,000 draws
    assert abs(found.interval.low + 0.877) < 0.05


def test_every_function_has_one_claim_of_a_figure():
    for name in ALL:
        names = [claim.name for claim in figure_called(name).claims]
        assert len(set(names)) == len(names)


# ---- whatever the table -------------------------------------------------------------------------------------


def alike(frame):
    """Every run found the same, whatever its settings."""
    found = {"time", "regret", "rows", "share", "lost"} & set(frame.columns)
    return frame.with_columns(pl.when(pl.col(name).is_not_null()).then(1).alias(name) for name in found)


TABLES = {"published": lambda frame: frame, "unlearned": unlearned, "alike": alike}
WHATEVER = [
    pytest.param(name, made, seeds, marks=[pytest.mark.slow] * (name in LONG or (made, seeds) != ("unlearned", 5)))
    for name, made, seeds in product(ALL, TABLES, (1, 5))
]


@pytest.mark.parametrize(("name", "made", "seeds"), WHATEVER)
def test_verdicts_never_raise(name, made, seeds):
    """Nor on few runs, on runs that never learned or that are all the same. Few seeds decide nothing."""
    figure, frame = figure_called(name), TABLES[made](published(name, seeds))
    for claim, verdict in zip(figure.claims, figure.judge(frame), strict=True):
        assert verdict.outcome in Outcome
        assert verdict.measured
        assert "nan" not in verdict.measured
        assert len({len(row) for row in verdict.table}) <= 1
        if verdict.interval is not None:
            assert verdict.interval.low <= verdict.interval.high
            if claim.rows(frame)["seed"].n_unique() < FEWEST_SEEDS:
                assert verdict.outcome is OPEN


def test_small_runs_leave_open_what_larger_ones_could_reproduce():
    frame = published("chain-length")

    def verdict(outcome):
        it = figure_called("chain-length")

        @declared("It is so", "section 6")
        def so(frame):
            """It is."""
            return outcome

        (quick,), (paper,) = (replace(it, claims=[so]).judge(frame, scale) for scale in ("quick", "paper"))
        assert paper == outcome
        return quick

    estimate = Interval(1.0, 0.5, 1.5)
    assert verdict(Verdict(NO, "words", estimate)) == Verdict(OPEN, "words", estimate)
    assert verdict(Verdict(YES, "words", estimate)) == Verdict(YES, "words", estimate)
    assert verdict(exactly(False, "no run can change it")).outcome is NO


def test_seeds_are_counted_for_the_rows_of_each_claim():
    it = figure_called("chain-sigma")
    frame = published("chain-sigma").filter(pl.col("stuck").is_not_null() | (pl.col("seed") < 2))
    assert [verdict.outcome for verdict in it.judge(frame)] == [OPEN, OPEN, YES]
    assert it.seeds(frame) == 2


def test_exponents_are_those_of_the_table():
    N, K = pl.col("length"), pl.col("features")
    (verdict,) = figure_called("chain-scaling").judge(
        published("chain-scaling", 5).with_columns(time=1.0 * N**2 * K)
    )
    assert re.match(r"N to the power 2\.0+ \(.*; K to the power 1\.0+ \(", verdict.measured)


def test_the_edge_of_the_stable_region_is_found_for_all_readings():
    limit = {("variance", False): 0.35, ("std", False): 0.2, ("std", True): 0.03, ("variance", True): 1.0}
    edge = pl.struct("rho_is", "deterministic").map_elements(lambda it: limit[tuple(it.values())], pl.Float64)
    frame = published("chain-agnostic")
    words = "There is some region"
    frame = frame.with_columns(time=pl.when(pl.col("rho") <= edge).then(50.0).otherwise(math.inf))
    (verdict,) = [it for claim, it in judged("chain-agnostic", frame).items() if words in claim]
    assert verdict.measured.endswith("up to ρ* = 0.35")
    assert [row[-2:] for row in verdict.table[1:]] == [(f"{rho:g}", "reproduced") for rho in limit.values()]


def test_the_stable_range_is_unbroken_around_the_reference():
    from rlsvi_paper.chain.chain_lambda import decades, stable

    values = 10.0 ** np.arange(-3, 4)
    fine = np.array([True, False, True, True, True, True, False])
    assert decades(values, fine, 3) == pytest.approx(3)
    assert decades(values, np.ones(7, bool), 3) == pytest.approx(6)
    assert decades(values, np.eye(7, dtype=bool)[3], 3) == 0
    assert stable(np.array([1.0, 2.0, 2.1, 4.0]), 0).tolist() == [True, True, False, False]


def test_slopes_are_those_of_the_four_parts():
    from rlsvi_paper.chain.chain_features_many import slopes

    K = np.array([2.0, 4, 5, 6, 8, 10, 12, 16, 20, 24, 30])
    of_times = slopes(10, K)
    assert of_times(3 * K) == pytest.approx([1, 1, 1, 1])
    assert of_times(np.minimum(K, 20)) == pytest.approx([1, 1, 1, 0])
    bent = np.maximum(K, 5)
    assert of_times(bent) == pytest.approx([0, 1, line(K[K <= 10], bent[K <= 10])[0], 1])


def test_learning_by_the_measure_of_the_readme_ends_with_the_last_stretch_of_regret():
    episode = np.arange(1.0, 2000.0, 10.0)
    regret = np.minimum(episode, [[600.0], [900.0]])  # as random play, and from then on nothing
    found = stays_low(pl.DataFrame({"best": [1.0, 1.0]}), episode, regret)
    np.testing.assert_allclose(found, [591, 891])
