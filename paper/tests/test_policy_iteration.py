"""Approximate policy iteration: against games played step by step and least squares with explicit double sums."""

import numpy as np
import pytest

from rlsvi.core.random import stream, uniform
from rlsvi_paper.tetris import rules
from rlsvi_paper.tetris.features import BERTSEKAS, evaluate, new_room
from rlsvi_paper.tetris.game import new_game, start, step
from rlsvi_paper.tetris.policy_iteration import policy_iteration, scoring_weights

SMALL_BOARD = rules(6, 4, "IOTSZ")  # 10 features


def streams(seed):
    return [stream(np.random.SeedSequence(seed, spawn_key=(i,))) for i in range(2)]


def played(r, w, gamma, limit, pieces, ties):
    """One game: features of its boards from the empty one on, rows removed by each step, whether it was over."""
    game, room = new_game(r), new_room(r, BERTSEKAS)
    start(r, game, pieces)
    boards, rows, ended = [np.append(np.zeros(len(w) - 1), 1.0)], [], False
    while not ended and len(rows) < limit:
        n = evaluate(r, BERTSEKAS, game, w, room)
        value = room.removed[:n] + gamma * room.values[:n]
        best = np.flatnonzero(value == value.max())
        a = int(best[int(uniform(ties) * len(best))])
        boards.append(room.planes[:, a].copy())
        removed, ended = step(r, game, a, pieces)
        rows.append(removed)
    return np.array(boards), rows, ended


def problem(games, w, lam, gamma):
    """Features of all boards but the last ones, and the values to be fitted, sum by sum."""
    X, y = [], []
    for boards, rows, ended in games:
        V = boards @ w
        if ended:
            V[-1] = 0.0
        d = [rows[s] + gamma * V[s + 1] - V[s] for s in range(len(rows))]
        for k in range(len(rows)):
            X.append(boards[k])
            y.append(V[k] + sum((gamma * lam) ** (s - k) * d[s] for s in range(k, len(rows))))
    return np.array(X), np.array(y)


def fitted(X, y, w):
    """The minimiser nearest to w, features in units of their root mean squares."""
    scale = np.sqrt((X**2).sum(axis=0))
    scale[scale == 0] = 1.0
    return w + np.linalg.lstsq(X / scale, y - X @ w, rcond=1e-10)[0] / scale


def initial(r):
    return scoring_weights(r) + 0.1 * np.random.default_rng(0).standard_normal(2 * r.width + 2)


@pytest.mark.parametrize("gamma", [1.0, 0.9])
@pytest.mark.parametrize("lam", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("limit", [5, 10_000])
def test_games_and_weights_against_explicit_sums(lam, gamma, limit):
    settings = {"iterations": 2, "games": 30, "lam": lam, "gamma": gamma, "max_pieces": limit, "seed": 7}
    first = initial(SMALL_BOARD) if limit == 5 else scoring_weights(SMALL_BOARD)  # the latter with many ties
    found = policy_iteration(SMALL_BOARD, first, **settings)
    two = streams(7)
    assert found.weights.shape == (3, 10)
    for t in range(3):
        w = found.weights[t]
        games = [played(SMALL_BOARD, w, gamma, limit, *two) for _ in range(30)]
        assert found.rows[t].tolist() == [sum(rows) for _, rows, _ in games]
        assert found.pieces[t].tolist() == [len(rows) for _, rows, _ in games]
        assert found.over[t].tolist() == [ended for _, _, ended in games]
        if t < 2:
            X, y = problem(games, w, lam, gamma)
            assert found.rank[t] == np.linalg.matrix_rank(X)
            after = fitted(X, y, w)
            assert np.abs(found.weights[t + 1] - after).max() < 1e-9 * np.abs(after).max()
            assert np.abs(after - w).max() > 0.01
    assert found.over[0].all() == (limit > 5)


def test_lambda_one_is_regression_on_what_the_games_brought():
    found = policy_iteration(SMALL_BOARD, initial(SMALL_BOARD), iterations=1, games=40, lam=1.0, seed=2)
    two = streams(2)
    games = [played(SMALL_BOARD, found.weights[0], 1.0, 10_000, *two) for _ in range(40)]
    X = np.concatenate([boards[:-1] for boards, _, _ in games])
    brought = np.concatenate([np.cumsum(rows[::-1])[::-1] for _, rows, _ in games])
    assert np.linalg.matrix_rank(X) == 10
    assert np.allclose(found.weights[1], np.linalg.lstsq(X, brought, rcond=None)[0], rtol=0, atol=1e-9)


def test_lambda_zero_is_one_step_of_value_iteration():
    found = policy_iteration(SMALL_BOARD, initial(SMALL_BOARD), iterations=1, games=40, lam=0.0, gamma=0.8, seed=2)
    two, w = streams(2), found.weights[0]
    games = [played(SMALL_BOARD, w, 0.8, 10_000, *two) for _ in range(40)]
    X = np.concatenate([boards[:-1] for boards, _, _ in games])
    y = np.concatenate([rows + 0.8 * np.append(boards[1:-1] @ w, 0.0) for boards, rows, _ in games])
    assert np.allclose(found.weights[1], np.linalg.lstsq(X, y, rcond=None)[0], rtol=0, atol=1e-9)


def test_what_the_games_do_not_tell_is_left_as_it_was():
    """One piece of two columns on a board of three: some combinations of features never vary."""
    r = rules(6, 3, "O")
    w = 0.3 * np.random.default_rng(1).standard_normal(8)
    found = policy_iteration(r, w, iterations=1, games=20, lam=0.5, seed=4)
    two = streams(4)
    X, y = problem([played(r, w, 1.0, 100, *two) for _ in range(20)], w, 0.5, 1.0)
    assert found.rank[0] == np.linalg.matrix_rank(X) < 8
    assert np.allclose(found.weights[1], fitted(X, y, w), rtol=0, atol=1e-9)


def test_ties_are_broken_at_random():
    found = policy_iteration(rules(8, 6, "O", "overflow"), np.zeros(14), iterations=0, games=200, seed=0)
    assert len(set(found.pieces[0].tolist())) > 3  # always the first placement would be four each


def test_the_first_player_scores_in_the_tens_and_is_improved_on():
    """Of Bertsekas and Ioffe. 100 games each: means of about 38 +- 1.6 and 107 +- 6."""
    found = policy_iteration(rules(), scoring_weights(rules()), iterations=2, games=100, lam=0.3, seed=0)
    assert 20 < found.mean[0] < 60
    assert found.mean[2] - 1.5 * found.mean[0] > 4 * found.rows[2].std(ddof=1) / 10
    assert np.array_equal(found.rank, [22, 22])
    assert np.array_equal(found.weights[0][[0, 18, 19, 20, 21]], [0, 0, -10, -1, 0])


def test_the_same_seed_gives_the_same_bits():
    def run(seed, iterations=3):
        return policy_iteration(SMALL_BOARD, initial(SMALL_BOARD), iterations=iterations, games=10, seed=seed)

    one, two, other, seeds = run(5), run(5), run(6), np.random.SeedSequence(5)
    for field in ("weights", "rows", "pieces", "over", "rank"):
        assert getattr(one, field).tobytes() == getattr(two, field).tobytes()
        assert getattr(one, field).tobytes() == getattr(run(seeds), field).tobytes()
    assert not np.array_equal(one.rows, other.rows)
    assert run(5, 1).weights.tobytes() == one.weights[:2].tobytes()


def test_weights_given_stay_as_they_are_and_progress_is_told():
    w, told = initial(SMALL_BOARD), []
    before = w.copy()
    found = policy_iteration(
        SMALL_BOARD, w, iterations=2, games=3, progress=lambda t, scores: told.append((t, scores.rows.tolist()))
    )
    assert np.array_equal(w, before)
    assert told == [(t, rows.tolist()) for t, rows in enumerate(found.rows)]


def test_a_single_game_has_no_standard_error():
    found = policy_iteration(SMALL_BOARD, initial(SMALL_BOARD), iterations=0, games=1)
    assert found.rank.shape == (0,)


def test_weights_that_blow_up_end_the_iteration():
    huge = 1e100 * np.random.default_rng(0).choice([-1.0, 1.0], 10)
    found = policy_iteration(SMALL_BOARD, huge, iterations=20, games=5, lam=0.0)
    assert found.diverged
    assert len(found.rows) == len(found.weights) == len(found.rank) + 1 < 21
    assert np.isfinite(found.weights).all()
    assert not policy_iteration(SMALL_BOARD, initial(SMALL_BOARD), iterations=2, games=5).diverged


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": np.zeros(9)}, r"weights must have shape \(10,\), got \(9,\)"),
        ({"weights": np.full(10, np.nan)}, "weights must be finite"),
        ({"iterations": -1}, "iterations must be a whole number of at least 0, got -1"),
        ({"games": 0}, "games must be a whole number of at least 1, got 0"),
        ({"max_pieces": 0}, "max_pieces must be a whole number of at least 1, got 0"),
        ({"lam": 1.1}, "lam must lie in \\[0, 1\\], got 1.1"),
        ({"lam": np.nan}, "lam must lie in \\[0, 1\\], got nan"),
        ({"gamma": "1"}, "gamma must lie in \\[0, 1\\], got '1'"),
        ({"gamma": True}, "gamma must lie in \\[0, 1\\], got True"),
        ({"seed": -1}, "seed must be a non-negative integer"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        policy_iteration(**{"rules": SMALL_BOARD, "weights": np.zeros(10)} | arguments)
