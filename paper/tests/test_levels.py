"""The jobs of the figures on Tetris, and what they keep of the games."""

import numpy as np
import pytest

from rlsvi_paper.tetris import levels, play, policy_iteration, rules, scoring_weights
from rlsvi_paper.tetris.levels import SIDES, learning_games, lsvi, player, run_of
from rlsvi_paper.tetris.mini_tetris import mini_optimum
from rlsvi_paper.tetris.runs import Player, learn_tetris, schedule
from rlsvi_paper.tetris.tetris import policies, published_player

MINI = {"board": "mini", "known": 1.0, "memory": 2000.0}


def test_a_run_keeps_means_of_ten_games_and_the_largest_norm():
    found = learning_games(**player(**MINI), games=120, seed=5)
    expected = learn_tetris([Player(5, known=True, memory=2000)], rules(4, pieces="SZ"), 120)
    assert found["game"].tolist() == list(range(10, 121, 10))
    np.testing.assert_array_equal(found["rows"], expected.rows[0].reshape(12, 10).mean(axis=1))
    np.testing.assert_array_equal(found["size"], expected.size[0].reshape(12, 10).max(axis=1))
    other = learning_games(**player(**MINI, game_over="overflow"), games=120, seed=5)
    print(other["rows"], found["rows"])
    assert other["rows"].sum() > found["rows"].sum() > 0  # one row more is of use


def test_the_runs_are_what_their_settings_say():
    rlsvi, (lsvi_of, _) = SIDES["before removal, γ = .999"]
    assert run_of({**rlsvi, "seed": 3}) == Player(3, gamma=0.999, before=True)
    assert run_of({**lsvi_of, "seed": 4}) == Player(4, 0.999, 0.0, epsilon=0.1, decay=0.95, before=True)
    changes = {"known": 1.0, "scaled": 1.0, "unknown": 1.0, "memory": 1e4}
    assert run_of({**player(**changes), "seed": 0}) == Player(
        0, known=True, scaled=True, unknown=True, memory=10_000
    )
    assert learning_games.play_together is levels.run_together


@pytest.mark.parametrize(
    ("way", "words", "at_first", "later"),
    [
        ({}, "ε = 0", 0.0, 0.0),
        ({"epsilon": 0.1, "decay": 0.5}, "ε = 0.1 × 0.5ˡ", 0.1, 0.1 * 0.5**9),
        ({"epsilon": 3.0, "delay": 3.0}, "ε = 3/(3 + l)", 1.0, 0.25),
        ({"eta": 30.0, "delay": 10.0}, "η = 30/(10 + l)", 3.0, 30 / 19),
        ({"eta": 0.001}, "η = 0.001", 0.001, 0.001),
    ],
)
def test_schedules_fall_as_they_say(way, words, at_first, later):
    who = lsvi(**way)
    assert levels.schedule(who) == words
    found = schedule(run_of({**who, "seed": 0}), 10)
    assert (found[0], found[-1]) == (at_first, pytest.approx(later))


def test_all_ways_to_dither_differ():
    found = [tuple(lsvi(**way).items()) for way in levels.WAYS]
    assert len(set(found)) == len(found) == 35


def test_policies_are_those_of_policy_iteration():
    settings = {"iterations": 3, "games": 4, "lam": 0.3, "seed": 2}
    found = policies(start="scoring", again=5, game_over="top row", **settings)
    twin = policy_iteration(rules(), scoring_weights(rules()), max_pieces=10**6, **settings)
    np.testing.assert_array_equal(found["mean"], twin.rows.mean(axis=1))
    assert found["best"] == twin.rows.mean(axis=1).argmax()
    for name, weights in (("best_anew", twin.weights[found["best"]]), ("last_anew", twin.weights[3])):
        assert found[name] == play(rules(), 0, weights, 5, 10**6, seed=10_002).rows.mean()


@pytest.mark.slow
def test_published_weights_play_far_better():
    found = published_player(again=1, game_over="top row", seed=0)
    assert found["published"] > 20_000


def test_the_optimum_is_that_of_the_small_board():
    found = mini_optimum(seed=0)
    assert found == {"optimum": pytest.approx(3.12353515625, abs=1e-8), "boards": 74239}
