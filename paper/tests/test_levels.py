"""Jobs that learn many games of Tetris: killed, they go on where they were; and what the others compute."""

import numpy as np
import polars as pl
import pytest

from rlsvi import StationaryLSVI, StationaryRLSVI
from rlsvi.agents import EpsilonGreedy, Exponential
from rlsvi.study.job import Job
from rlsvi.study.store import Store
from rlsvi.study.sweep import sweep
from rlsvi_paper.tetris import Tetris, play, policy_iteration, rules, scoring_weights, simulate_tetris
from rlsvi_paper.tetris import levels as games
from rlsvi_paper.tetris.mini_tetris import mini_optimum
from rlsvi_paper.tetris.tetris import policies, published_player
from watch import started, until

MINI = rules(4, pieces="SZ")


def rlsvi():
    return StationaryRLSVI(basis=Tetris(), form="afterstate", memory=300, seed=3)


def lsvi():
    explore = EpsilonGreedy(Exponential(0.5, 0.9))
    return StationaryLSVI(basis=Tetris(units="raw"), explore=explore, memory=300, seed=3)


@pytest.mark.parametrize("new", [rlsvi, lsvi])
@pytest.mark.parametrize("stop", [10, 30])
def test_games_go_on_from_where_they_were_kept(new, stop, tmp_path, monkeypatch):
    expected = simulate_tetris(new(), MINI, 50)

    class Stopped(BaseException):
        pass

    def stopping(agent, *arguments, **options):
        if agent.episodes == stop:
            raise Stopped
        return simulate_tetris(agent, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(games, "simulate_tetris", stopping)
        with pytest.raises(Stopped):
            games.learned(new(), MINI, 50, tmp_path, every=0.0)
    assert {path.name for path in tmp_path.iterdir()} == {f"{stop}.npz", f"{stop}.rlsvi"}
    played = []

    def counting(agent, *arguments, **options):
        played.append(agent.episodes)
        return simulate_tetris(agent, *arguments, **options)

    monkeypatch.setattr(games, "simulate_tetris", counting)
    found = games.learned(new(), MINI, 50, tmp_path)
    assert played == list(range(stop, 50, 10))
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("damaged", ["20.rlsvi", "20.npz"])
def test_what_cannot_be_read_is_not_believed(damaged, tmp_path):
    expected = games.learned(rlsvi(), MINI, 25, None)
    games.learned(rlsvi(), MINI, 25, tmp_path, every=0.0)
    (tmp_path / damaged).write_bytes((tmp_path / damaged).read_bytes()[:-100])
    for mine, other in zip(games.learned(rlsvi(), MINI, 25, tmp_path), expected, strict=True):
        np.testing.assert_array_equal(mine, other)


KILLED = """
import sys
from rlsvi_paper.tetris import levels as games
from rlsvi_paper.tetris.mini_tetris import mini_optimum
from rlsvi_paper.tetris.tetris import policies, published_player
from rlsvi.study.job import Job
from rlsvi.study.sweep import sweep
games.learned.__defaults__ = (0.0,)
sweep([Job.of(games.learning_games, board="mini", agent="RLSVI", form="literal", units="raw", games=1500, seed=1)],
      sys.argv[1], "serial")
"""


@pytest.mark.slow
def test_a_killed_run_of_many_games_goes_on(tmp_path):
    settings = {"board": "mini", "agent": "RLSVI", "form": "literal", "units": "raw", "games": 1500, "seed": 1}
    store, job = Store(tmp_path / "store"), Job.of(games.learning_games, **settings)
    with started("-c", KILLED, store.folder) as process:
        assert until(lambda: list(store.unfinished(job).glob("*.rlsvi")), 120, process), process.stderr.read()
        process.kill()
    assert store.read(job) is None
    (kept,) = [int(path.stem) for path in store.unfinished(job).glob("*.rlsvi")][-1:]
    assert 0 < kept < 1500
    frame = sweep([job], store, "serial")
    whole = games.learning_games(**settings)
    assert frame["rows"].to_numpy().tobytes() == whole["rows"].tobytes()
    assert frame["excess"].unique().to_list() == [whole["excess"]]


# ---- the jobs of the figures on Tetris ----------------------------------------------------------------------


def test_the_players_are_what_their_settings_say():
    usual = {"board": "mini", "form": "literal", "units": "raw", "games": 30, "seed": 5}
    agent = StationaryLSVI(
        basis=Tetris(units="raw"), explore=EpsilonGreedy(Exponential(0.3, 0.9)), gamma=0.9, memory=50, seed=5
    )
    found = games.learning_games(**usual, agent="LSVI", epsilon=0.3, decay=0.9, gamma=0.9, memory=50)
    np.testing.assert_array_equal(found["rows"], simulate_tetris(agent, MINI, 30).rows)
    fixed = games.learning_games(**usual, agent="LSVI", epsilon=0.3, game_over="overflow")
    agent = StationaryLSVI(basis=Tetris(units="raw"), explore=EpsilonGreedy(0.3), seed=5)
    np.testing.assert_array_equal(
        fixed["pieces"], simulate_tetris(agent, rules(4, pieces="SZ", game_over="overflow"), 30).pieces
    )
    known, unknown = (games.learning_games(**usual, agent=name) for name in ("RLSVI", "RLSVI, unknown noise"))
    assert known["size"] != unknown["size"]
    agent = StationaryRLSVI(basis=Tetris(units="raw"), seed=5)
    assert known["size"] == simulate_tetris(agent, MINI, 30).size.max()


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


def test_tables_of_jobs_have_a_row_a_game():
    found = games.learning_games(board="mini", agent="RLSVI", form="literal", units="raw", games=7, seed=0)
    assert pl.DataFrame(found)["game"].to_list() == list(range(1, 8))
