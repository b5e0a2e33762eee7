"""The readings of Q in the figures on Tetris: who plays, which one decides, and how steady a player is."""

import numpy as np
import polars as pl
import pytest
from tables import figure_called, published

from rlsvi_paper.tetris.levels import (
    BLOCK,
    FOUR,
    PRINTED,
    READINGS,
    SIDES,
    WAYS,
    first_half,
    kept,
    level,
    lsvi,
    passed,
    player,
    scores,
    shortest,
    steadiness,
    tried,
    tuned,
)

LEVELS = "as computed here"


def learners(name, **settings):
    """The jobs of a figure at the paper's scale in which a player with these settings learns."""
    jobs = [job for job in figure_called(name).plan("paper") if job.function.endswith(":learning_games")]
    return [job for job in jobs if settings.items() <= job.settings.items()]


@pytest.mark.parametrize("name", FOUR)
def test_every_reading_has_rlsvi_and_all_ways_to_dither_on_both_boards(name):
    large, small = READINGS[name], {**READINGS[name], "scaled": 0.0, "board": "mini"}
    boards = [
        ("tetris", {**large, "game_over": "top row"}, 100),
        *(("mini-tetris", {**small, "game_over": rule}, 50) for rule in ("top row", "overflow")),
    ]
    for figure, reading, seeds in boards:
        assert len(learners(figure, **player(**reading))) == seeds
        runs = learners(figure, **reading, sigma=0.0)
        assert {
            len([it for it in runs if lsvi(**reading, **way).items() <= it.settings.items()]) for way in WAYS
        } <= {20, 50}


def test_the_reading_that_decides_is_the_printed_one():
    assert READINGS[PRINTED] == {"gamma": 0.99}
    usual = {"memory": 1e5, "sigma": 1.0, "known": 0.0, "before": 0.0, "scaled": 0.0, "gamma": 0.99}
    assert usual.items() <= SIDES[PRINTED][0].items()


def test_figures_share_their_runs_and_a_card_computes_those_of_a_length_together():
    from rlsvi.study.executors import batch_key

    plans = {name: learners(name) for name in ("tetris", "mini-tetris", "tetris-second")}
    names = {name: {job.name for job in plan} for name, plan in plans.items()}
    long = {job.name for job in learners("tetris", games=1000)}
    assert len(long) == 5 * 100 + 4 * 2 * 50
    assert long < names["tetris-second"]
    assert {job.name for job in learners("mini-tetris", board="20x10")} < long
    assert len(names["tetris-second"]) == 2000
    groups = {batch_key(job) for plan in plans.values() for job in plan}
    assert len(groups) == 4  # two lengths on the large board, two rules on the small one


@pytest.mark.parametrize(("gamma", "met"), [(0.99, 0), (0.999, 1)])
def test_all_readings_are_beside_each_other_and_the_printed_one_decides(gamma, met):
    (claim,) = [it for it in figure_called("tetris").claims if LEVELS in it.words]
    meant = (pl.col("known") == 0) & (pl.col("gamma") == gamma)
    rows = pl.when(meant).then(99_000).otherwise(1)
    verdict = claim.judge(published("tetris").filter(pl.col("seed") < 2005).with_columns(rows=rows))
    rows = [row for row in verdict.table if row[0] in FOUR][: len(FOUR)]
    assert [row[0] for row in rows] == list(FOUR)
    expected = ["reproduced" if i == met else "not reproduced" for i in range(len(FOUR))]
    assert [row[-1] for row in rows] == expected
    assert verdict.readings == tuple(zip(FOUR, expected, strict=True))
    assert verdict.outcome == expected[0]


def playing(who, rows, games=500, seeds=12):
    """Games of a player: rows by the seed and the share of the games that have been played."""
    found = {"games": games, "game": range(BLOCK, games + 1, BLOCK)}
    runs = [
        pl.DataFrame({**who, **found, "seed": i, "rows": [float(rows(i, g / games)) for g in found["game"]]})
        for i in range(seeds)
    ]
    return pl.concat(runs)


def test_levels_are_of_the_games_that_all_have_played():
    rlsvi, (other, _) = SIDES[PRINTED]
    frame = pl.concat(
        [playing(rlsvi, lambda seed, at: 5000 if at <= 0.4 else 2500, 1000), playing(other, lambda seed, at: 1)]
    )
    assert shortest(frame) == 50
    assert scores(frame, rlsvi).shape == (12, 100)
    np.testing.assert_allclose(level(frame, rlsvi), (15 * 5000 + 10 * 2500) / 25)
    best, last = kept(scores(frame, rlsvi), 8)
    np.testing.assert_allclose((best, last), [[5000] * 12, [2500] * 12])
    assert first_half(frame)["game"].max() == 250
    np.testing.assert_array_equal(passed(frame, rlsvi, 4000.0, 100), 100.0)
    assert np.isinf(passed(frame, rlsvi, 6000.0, 100)).all()


def test_the_best_way_is_chosen_by_the_other_seeds_among_those_that_were_run():
    rlsvi, (first, second) = SIDES[PRINTED]
    lucky = playing(first, lambda seed, at: 1000 if seed == 3 else 10, seeds=20)
    steady = playing(second, lambda seed, at: 30)
    frame = pl.concat([playing(rlsvi, lambda seed, at: 1), lucky, steady])
    assert tried(frame, rlsvi) == [first, second]
    expected = np.full(12, 10.0)
    expected[3] = 30.0  # its own luck does not count, though it makes the others choose badly
    np.testing.assert_array_equal(tuned(frame, [first, second]), expected)


def test_a_player_is_steadier_that_varies_less_and_keeps_more():
    rlsvi, (other, _) = SIDES[PRINTED]
    steady = playing(rlsvi, lambda seed, at: 5000 + 10 * seed)
    frame = pl.concat([steady, playing(other, lambda seed, at: (5000 + 400 * seed) // (1 + (at > 0.8)))])
    varies, keeps = steadiness(frame, rlsvi, other)
    theirs = [level(frame, who) for who in (rlsvi, other)]
    assert varies.value == pytest.approx(np.divide(*(it.std() / it.mean() for it in theirs)))
    assert varies.high < 1
    assert keeps.value == pytest.approx(1 / 0.5)
    back = steadiness(frame, other, rlsvi)
    assert back[0].low > 1
    assert back[1].high < 1
