"""Tetris, preregistered again: means of five runs, what is compatible with them, and the runs of the figure."""

from functools import partial

import numpy as np
import polars as pl
import pytest

from rlsvi_paper.claim import Outcome, varied
from rlsvi_paper.tetris import tetris_second as second
from rlsvi_paper.tetris.levels import READINGS, SIDES
from rlsvi_paper.tetris.tetris_second import (
    ARGUED,
    AS_PRINTED,
    during,
    limits,
    means_of_five,
    p_value,
    unlikely,
)


def curves(rows, seeds=60):
    """A table in which RLSVI and LSVI of each reading have the rows that `rows` draws, in all games."""
    rng, parts = np.random.default_rng(0), []
    for name, (rlsvi, schedules) in SIDES.items():
        for who in (rlsvi, *schedules):
            for seed, level in enumerate(rows(rng, name, who["sigma"] > 0, seeds)):
                parts.append(
                    {**who, "games": 200, "seed": seed, "game": list(range(10, 201, 10)), "rows": [level] * 20}
                )
    return pl.DataFrame(parts).explode("game", "rows").with_columns(size=1.0)


def drawn(level, other, spread):
    """Levels of the literal reading with a discount of 1; all other readings have 100 rows."""

    def rows(rng, name, mine, seeds):
        if name != "literal, γ = 1":
            return rng.uniform(99, 101, seeds)
        return np.maximum(rng.normal(level if mine else other, spread, seeds), 0)

    return rows


def test_means_of_five_vary_as_they_should_and_repeat_no_run_more_than_by_chance():
    values = np.random.default_rng(0).exponential(1000.0, 40)
    found = means_of_five(values, 0)
    n, variance = len(values), values.var()
    assert found.mean() == pytest.approx(values.mean(), abs=5 * (variance / len(found)) ** 0.5)
    expected = variance * (1 / 5 + 4 / 5 / (n + 1))
    assert found.var() == pytest.approx(expected, rel=5 * (2 / len(found)) ** 0.5 * 1.5)
    assert (np.diff(found) >= 0).all()


@pytest.mark.parametrize("spread", ["normal", "two kinds of runs"])
def test_a_pair_of_means_from_the_same_runs_is_inside_in_about_95_of_100_cases(spread):
    rng, inside, cases = np.random.default_rng(1), 0, 400

    def runs(count):
        usual = rng.normal(5000.0, 1000.0, count)
        return usual if spread == "normal" else np.where(rng.random(count) < 0.35, 100.0, usual)

    for case in range(cases):
        means = [means_of_five(runs(80), 2 * case + i) for i in range(2)]
        inside += p_value(means, [runs(5).mean() for _ in range(2)]) >= 0.05
    assert abs(inside / cases - 0.95) < 4 * (0.05 * 0.95 / cases) ** 0.5


def test_the_region_is_where_both_figures_are_in_their_limits():
    rng = np.random.default_rng(2)
    means = [means_of_five(rng.normal(level, 1000.0, 50), i) for i, level in enumerate((4000.0, 3000.0))]
    for pair in rng.uniform(1500.0, 6000.0, (200, 2)):
        inside = all(it.low <= rows <= it.high for it, rows in zip(map(limits, means), pair, strict=True))
        assert (p_value(means, pair) >= 0.05) == inside
    assert unlikely(means[0], -1.0) == unlikely(means[0], 1e9) == pytest.approx(2 / 20_001)
    assert unlikely(means[0], np.median(means[0])) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(
    ("levels", "argued", "printed"),
    [
        ((4100.0, 3900.0, 3000.0), Outcome.REPRODUCED, Outcome.REPRODUCED),
        ((4500.0, 3500.0, 300.0), Outcome.REPRODUCED, Outcome.NOT_REPRODUCED),
        ((3500.0, 4500.0, 300.0), Outcome.NOT_REPRODUCED, Outcome.REPRODUCED),
        ((500.0, 500.0, 300.0), Outcome.NOT_REPRODUCED, Outcome.NOT_REPRODUCED),
        ((4780.0, 3500.0, 300.0), Outcome.INCONCLUSIVE, Outcome.NOT_REPRODUCED),
    ],
)
def test_a_pair_is_compatible_excluded_or_open(levels, argued, printed):
    frame = curves(drawn(*levels))
    for pair, expected in ((ARGUED, argued), (AS_PRINTED, printed)):
        verdict = second.judged_pair(frame, pair)
        assert verdict.outcome is expected
        assert {name for name, _ in verdict.readings} == set(READINGS)
        if expected is not Outcome.NOT_REPRODUCED:
            assert verdict.readings[0] == ("literal, γ = 1", str(expected))


def test_a_window_is_a_share_of_a_run():
    frame = curves(drawn(1.0, 1.0, 1.0)).with_columns(rows=pl.col("game").cast(pl.Float64))
    who = SIDES["literal, γ = 1"][0]
    expected = {(0.25, 0.5): 80.0, (0.4, 0.5): 95.0, (0.45, 0.55): 105.0, (0.75, 1.0): 180.0}
    for window, rows in expected.items():
        np.testing.assert_allclose(during(frame, who, window), rows, atol=5.0)


def test_a_sentence_says_how_much_it_rests_on_the_window():
    frame = curves(drawn(4100.0, 3900.0, 100.0))
    late = (pl.col("game") > 150) & (pl.col("sigma") > 0) & (pl.col("gamma") == 1.0)
    frame = frame.with_columns(rows=pl.when(late).then(9000.0).otherwise(pl.col("rows")))
    verdict = varied(partial(second.above_published.judge, frame))
    assert "of 10 readings it holds in 1 by games 51 to 100, 1 by" in verdict.measured
    names = [name for name, _ in verdict.variants]
    assert names == ["games 81 to 100", "games 91 to 110", "games 151 to 200", "statistic median"]
    assert second.better_than_tuned.judge(frame).measured.endswith("0 by games 91 to 110, 3 by games 151 to 200")
