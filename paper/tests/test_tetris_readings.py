"""The readings of Q in the figures on Tetris: who plays, which one decides, and how steady a player is."""

import numpy as np
import polars as pl
import pytest
from tables import figure_called, published

from rlsvi_paper.tetris import tetris as players
from rlsvi_paper.tetris.levels import PRINTED, READINGS, kept, level, longest, scores, shortest, steadiness

LEVELS = "as computed here"


def learners(name, **settings):
    """The jobs of a figure at the paper's scale in which a player with these settings learns."""
    jobs = [job for job in figure_called(name).plan("paper") if job.function.endswith(":learning_games")]
    return [job for job in jobs if all(job.settings[key] == value for key, value in settings.items())]


@pytest.mark.parametrize("name", READINGS)
def test_every_reading_has_rlsvi_and_four_schedules_with_twenty_seeds_or_more_on_both_boards(name):
    large = learners("tetris", **READINGS[name], games=500, memory=100_000)
    runs = {
        (it.settings["agent"], it.settings["epsilon"], it.settings["decay"], it.settings["seed"]) for it in large
    }
    assert {("RLSVI", 0.0, 1.0, seed) for seed in range(20)} <= runs
    for epsilon, decay in ((0.1, 0.95), (0.1, 0.98), (1.0, 0.95), (1.0, 0.98)):
        assert {("LSVI", epsilon, decay, seed) for seed in range(20)} <= runs
    small = learners("mini-tetris", **{**READINGS[name], "units": "raw"}, board="mini", games=2000)
    assert len(small) == 2 * 7 * 50


def test_the_reading_that_decides_is_the_printed_one():
    assert {"form": "literal", "units": "raw", "gamma": 0.99} == READINGS[PRINTED]
    assert players.SIDES[PRINTED][0]["memory"] == 10**5


def test_what_the_small_board_is_compared_with_is_computed_once():
    small = {job.name for job in learners("mini-tetris", board="20x10")}
    assert len(small) == 4 * 5 * 20
    assert small < {job.name for job in learners("tetris")}


@pytest.mark.parametrize(("gamma", "met"), [(0.99, 0), (0.999, 1)])
def test_all_readings_are_beside_each_other_and_the_printed_one_decides(gamma, met):
    (claim,) = [it for it in figure_called("tetris").claims if LEVELS in it.words]
    meant = (pl.col("form") == "literal") & (pl.col("gamma") == gamma)
    rows = pl.when(meant).then(99_000).otherwise(1)
    verdict = claim.judge(published("tetris", 5).with_columns(rows=rows))
    rows = [row for row in verdict.table if row[0] in READINGS][: len(READINGS)]
    assert [row[0] for row in rows] == list(READINGS)
    expected = ["reproduced" if i == met else "not reproduced" for i in range(len(READINGS))]
    assert [row[-1] for row in rows] == expected
    assert verdict.readings == tuple(zip(READINGS, expected, strict=True))
    assert verdict.outcome == expected[0]


def playing(who, rows, games=100):
    """Games of a player with twelve seeds: rows by the seed and the share of the games that have been played."""
    found = {"games": games, "game": range(1, games + 1)}
    runs = [
        pl.DataFrame({**who, **found, "seed": i, "rows": [rows(i, g / games) for g in found["game"]]})
        for i in range(12)
    ]
    return pl.concat(runs)


def test_levels_are_of_the_shortest_runs_and_what_is_kept_of_those_asked_for():
    who = players.LONG_RUNS[PRINTED][0]
    frame = pl.concat(playing(who, lambda seed, at: 5000 if at <= 0.9 else 2500, games) for games in (100, 120))
    assert (shortest(frame), longest(frame)) == (100, 120)
    assert scores(frame, who).shape == (12, 100)
    assert scores(frame, who, 120).shape == (12, 120)
    np.testing.assert_allclose(level(frame, who), 5000 * (40 + 0.5 * 10) / 50)
    best, last = kept(frame, who)
    np.testing.assert_allclose(best, 5000)
    np.testing.assert_allclose(last, 5000 * (10 + 0.5 * 10) / 20)
    best, last = kept(frame, who, 8, 120)
    np.testing.assert_allclose(last, 5000 * (3 + 0.5 * 12) / 15)


def test_a_player_is_steadier_that_varies_less_and_keeps_more():
    rlsvi, (lsvi, *_) = players.SIDES[PRINTED]
    steady = playing(rlsvi, lambda seed, at: 5000 + 10 * seed)
    frame = pl.concat([steady, playing(lsvi, lambda seed, at: (5000 + 400 * seed) // (1 + (at > 0.9)))])
    varies, keeps = steadiness(frame, rlsvi, lsvi)
    theirs = [level(frame, who) for who in (rlsvi, lsvi)]
    assert varies.value == pytest.approx(np.divide(*(it.std() / it.mean() for it in theirs)))
    assert varies.high < 1
    assert keeps.value == pytest.approx(1 / 0.75)
    back = steadiness(frame, lsvi, rlsvi)
    assert back[0].low > 1
    assert back[1].high < 1
