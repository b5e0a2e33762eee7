"""The simulator: pieces, drops and features against cells that fall row by row, exact values of small games."""

import os
import subprocess
import sys

import numpy as np
import pytest
import tetris_twin as twin

import rlsvi_paper.tetris
from rlsvi.core.random import reseed, stream, uniform
from rlsvi_paper.tetris import LETTERS, Exact, play, policy_iteration, rules, scoring_weights, solve
from rlsvi_paper.tetris.features import (
    BERTSEKAS,
    DELLACHERIE,
    afterstates,
    count_bits,
    evaluate,
    kind_of,
    names,
    natural_units,
    new_room,
    smallest_dtype,
)
from rlsvi_paper.tetris.features import values as values_of
from rlsvi_paper.tetris.game import new_game, over, place, placements, start, step

SIZES = [(20, 10, "top row"), (20, 10, "overflow"), (4, 10, "top row"), (7, 4, "overflow"), (11, 6, "top row")]
LARGE_BOARDS = [(30, 32, "top row"), (100, 5, "overflow")]


def fill(game, board):
    """Put cells, (rows, columns) from the floor up, onto the board of a game."""
    game.rows[:] = 0
    game.rows[: len(board)] = board @ (1 << np.arange(board.shape[1]))
    game.heights[:] = [max(np.flatnonzero(column) + 1, default=0) for column in board.T]
    game.cells[0] = board.sum()


def cells_of(game, width):
    return (game.rows[:, None] >> np.arange(width) & 1).astype(bool)


def random_board(rng, r):
    """Boards of every kind: ragged, full of holes, nearly full with one gap a row, and tall to the limit."""
    H, W = r.height + 4, r.width
    board = np.zeros((H, W), bool)
    top = rng.integers(0, r.usable + 1)
    style = rng.integers(4)
    if style == 0:  # ragged, few holes
        heights = np.clip(top + rng.integers(-4, 1, W), 0, r.usable)
        board[:] = np.arange(H)[:, None] < heights
        board &= rng.random((H, W)) < 0.95
    elif style == 1:  # rubble
        board[:top] = rng.random((top, W)) < rng.uniform(0.1, 0.95)
    else:  # one or two gaps a row, mostly in the same columns: rows to fill up, several at once
        board[:top] = True
        gap = rng.integers(0, W, 2)
        board[:top, gap[: style - 1]] = False
        for row in np.flatnonzero(rng.random(top) < 0.2):
            board[row, rng.integers(0, W)] = False
    for row in np.flatnonzero(board.all(axis=1)):
        board[row, rng.integers(0, W)] = False
    return board


# ---- pieces -----------------------------------------------------------------------------------------------


def test_the_pieces_are_the_seven_tetrominoes_with_their_placements():
    table = placements(10)
    assert dict(zip(LETTERS, np.diff(table.first).tolist(), strict=True)) == {
        "I": 17, "O": 9, "T": 34, "S": 17, "Z": 17, "J": 34, "L": 34,
    }  # fmt: skip
    for i, letter in enumerate(LETTERS):
        options = twin.moves(letter, 10)
        for (shape, column), p in zip(options, range(table.first[i], table.first[i + 1]), strict=True):
            bits = [sum(1 << column + j for j in range(4) if row[j]) for row in shape]
            assert table.bits[p].tolist() == bits
            assert table.column[p] == column
            span = shape.any(axis=0).sum()
            assert table.span[p] == span
            assert table.tall[p] == shape.any(axis=1).sum()
            assert table.low[p, :span].tolist() == [np.flatnonzero(shape[:, j])[0] for j in range(span)]
            assert table.high[p, :span].tolist() == [np.flatnonzero(shape[:, j])[-1] + 1 for j in range(span)]


def test_a_narrow_board_has_the_rotations_that_fit():
    assert np.diff(placements(2).first).tolist() == [2, 1, 2, 1, 1, 2, 2]
    assert rules(8, 2).actions == 2


# ---- placements -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("height", "width", "game_over"),
    [*SIZES, *(pytest.param(*size, marks=pytest.mark.slow) for size in LARGE_BOARDS)],
)
def test_all_placements_against_pieces_that_fall_row_by_row(height, width, game_over):
    r = rules(height, width, game_over=game_over)
    rng, game = np.random.default_rng([height, width]), new_game(r)
    rooms = [new_room(r, kind, smallest_dtype(kind, r)) for kind in (BERTSEKAS, DELLACHERIE)]
    drops, kinds = 0, np.zeros(5, int)
    while drops < 5_000:
        board = random_board(rng, r)
        fill(game, board)
        assert not over(r, game)
        for piece, letter in enumerate(LETTERS):
            game.piece[0] = piece
            *wanted, removed, fatal, boards = twin.look(board, height, r.usable, letter)
            n = len(removed)
            for kind, room in enumerate(rooms):
                assert afterstates(r, kind, game, room.planes, 0, room.removed, room.fatal) == n
                assert np.array_equal(room.planes[:, :n].T, wanted[kind])
                assert np.array_equal(room.removed[:n], removed)
                assert np.array_equal(room.fatal[:n], fatal)
            a = int(rng.integers(n))
            assert place(r, game, r.placements.first[piece] + a) == removed[a]
            assert np.array_equal(cells_of(game, width), boards[a])
            assert game.heights.tolist() == wanted[0][a, :width].tolist()
            assert game.cells[0] == boards[a].sum()
            assert over(r, game) == fatal[a]
            fill(game, board)
            drops += n
            kinds += np.bincount(removed, minlength=5)
    assert kinds[1] > 20
    assert (kinds[2:] > 0).all() or r.usable < 4 or (height, width, game_over) in LARGE_BOARDS


def test_features_go_where_they_are_asked_to_and_nowhere_else():
    r = rules()
    game, planes = new_game(r), np.full((22, 60), 99, np.uint8)
    removed, fatal = np.full(60, 99, np.uint8), np.zeros(60, bool)
    for kind in (BERTSEKAS, DELLACHERIE):
        assert afterstates(r, kind, game, planes, 7, removed, fatal) == 17
        assert (planes[:, :7] == 99).all()
        assert (planes[:, 24:] == 99).all()
        assert (removed[7:24] == 0).all()
        assert (np.delete(removed, np.arange(7, 24)) == 99).all()


@pytest.mark.parametrize("kind", [BERTSEKAS, DELLACHERIE])
def test_values_are_dot_products_in_the_order_of_the_features(kind):
    r = rules()
    game, rng = new_game(r), np.random.default_rng(0)
    fill(game, random_board(rng, r))
    weights = rng.standard_normal(len(names(kind, 10)))
    for piece in range(7):
        game.piece[0] = piece
        rooms = [new_room(r, kind, dtype) for dtype in (np.float64, np.uint8, np.int16)]
        counts = {evaluate(r, kind, game, weights, room) for room in rooms}
        n = counts.pop()
        assert not counts
        one_by_one = np.zeros(n)
        for k, weight in enumerate(weights):
            one_by_one += weight * rooms[0].planes[k, :n]
        for room in rooms:
            assert room.values[:n].tobytes() == one_by_one.tobytes()
        some = np.empty(3)
        values_of(rooms[1].planes, 2, 3, weights, some)
        assert some.tobytes() == one_by_one[2:5].tobytes()


def test_units_names_and_types():
    r = rules()
    assert natural_units(BERTSEKAS, r, scaled=False).tolist() == [1.0] * 22
    assert natural_units(BERTSEKAS, r, scaled=True).tolist() == [1 / 20] * 21 + [1.0]
    assert natural_units(DELLACHERIE, r, scaled=False).tolist() == [0.5] + [1.0] * 8
    assert names(BERTSEKAS, 4)[3:8] == (
        "height of column 3",
        *(f"difference between columns {c} and {c + 1}" for c in range(3)),
        "greatest height",
    )
    assert smallest_dtype(BERTSEKAS, r) is np.uint8  # the paper: heights up to 20, holes up to 199
    assert smallest_dtype(BERTSEKAS, rules(30, 10)) is np.int16
    assert smallest_dtype(DELLACHERIE, rules(100, 32)) is np.int32
    assert (kind_of("bertsekas"), kind_of("dellacherie")) == (BERTSEKAS, DELLACHERIE)
    with pytest.raises(ValueError, match=r"features must be .*bertsekas.* or .*dellacherie.*, got 'best'"):
        kind_of("best")


def test_bits_are_counted():
    for word in [0, 1, 5, 2**33 - 1, 2**62 - 1, *np.random.default_rng(0).integers(0, 2**62, 100).tolist()]:
        assert count_bits(word) == word.bit_count()


# ---- games ------------------------------------------------------------------------------------------------


def test_pieces_are_drawn_one_by_one_from_their_own_stream_with_equal_chances():
    r = rules(pieces="TSZ")
    game, words, twin_words = new_game(r), stream(4), stream(4)
    seen = []
    for _ in range(3000):
        start(r, game, words)
        seen.append(LETTERS[game.piece[0]])
        assert seen[-1] == "TSZ"[int(uniform(twin_words) * 3)]
    counts = np.array([seen.count(letter) for letter in "TSZ"])
    assert (np.abs(counts - 1000) < 5 * np.sqrt(3000 * 2 / 9)).all()


def test_a_game_ends_when_the_top_row_is_touched_or_overflown():
    for game_over, towers in (("top row", 2), ("overflow", 3)):  # of O's, two rows each
        r = rules(6, 4, "O", game_over)
        game, words = new_game(r), stream(0)
        start(r, game, words)
        placed, ended = 0, False
        while not ended:
            before = words.copy()
            removed, ended = step(r, game, 0, words)
            placed += 1
            assert removed == 0
            assert np.array_equal(before, words) == ended  # no piece is drawn after the end
        assert placed == towers + 1
    r = rules(6, 4, "O", "overflow")  # rows are removed before the board is looked at
    game, words = new_game(r), stream(0)
    start(r, game, words)
    assert [step(r, game, a, words) for a in (0, 0, 0, 2, 2, 2)][-1] == (2, False)
    assert game.cells[0] == game.heights.sum() == 0


def test_dellacherie_plays_as_well_as_he_is_said_to():
    """His six weights, of which hundreds of thousands of rows a game are reported."""
    weights = np.array([-1.0, 1.0, -1.0, -1.0, -4.0, -1.0, 0.0, 0.0, 0.0])
    weights *= natural_units(DELLACHERIE, rules(), scaled=False)
    scores = play(rules(), DELLACHERIE, weights, 4, 5000, seed=1)
    assert not scores.over.any()
    assert (scores.pieces == 5000).all()
    assert (np.abs(scores.rows / 5000 - 0.4) < 0.004).all()  # at most 200 cells are left on the board
    careless = play(rules(), BERTSEKAS, np.zeros(22), 50, 5000)
    assert careless.over.all()
    assert careless.pieces.mean() < 50


def test_a_game_is_the_same_with_the_same_seed():
    weights = -np.ones(22)
    one, two = (play(rules(), BERTSEKAS, weights, 20, 100_000, seed=3) for _ in range(2))
    other = play(rules(), BERTSEKAS, weights, 20, 100_000, seed=4)
    assert np.array_equal(one.rows, two.rows)
    assert not np.array_equal(one.rows, other.rows)
    assert (one.pieces * 4 - one.rows * 10 >= 0).all()


PLAY = """
import sys, numpy as np
from rlsvi_paper.tetris import play, rules
from rlsvi_paper.tetris.features import evaluate, new_room
from rlsvi_paper.tetris.game import new_game, start, step
from rlsvi.core.random import stream
r, found = rules(9, 6), []
for kind, d in enumerate((14, 9)):
    weights = -np.random.default_rng(0).random(d)
    found += [np.array(play(r, kind, weights, 3, 30, seed=2)[:3]).ravel()]
    game, room, words = new_game(r), new_room(r, kind), stream(1)
    start(r, game, words)
    for a in (0, 3, 1, 2, 4, 0):
        n = evaluate(r, kind, game, weights, room)
        found += [room.values[:n], room.planes[:, :n].ravel(), room.removed[:n], room.fatal[:n]]
        step(r, game, a, words)
sys.stdout.buffer.write(np.concatenate(found).tobytes())
"""


@pytest.mark.slow
def test_compiled_code_and_plain_python_give_the_same_bits():
    def run(disable):
        settings = {**os.environ, "NUMBA_DISABLE_JIT": disable, "PYTHONWARNINGS": "ignore"}
        return subprocess.run([sys.executable, "-c", PLAY], env=settings, capture_output=True, check=True).stdout

    compiled, plain = run("0"), run("1")
    assert len(compiled) > 10_000
    assert compiled == plain


# ---- exact values -----------------------------------------------------------------------------------------


def naive_value(height, width, pieces, usable):
    """Expected rows of the best play: boards in a dictionary, cells that fall, sweeps until nothing changes."""
    empty = np.zeros((height + 4, width), bool)
    options = [twin.moves(letter, width) for letter in pieces]
    after, todo = {}, [empty]
    while todo:
        board = todo.pop()
        if board.tobytes() in after:
            continue
        after[board.tobytes()] = here = []
        for piece in options:
            here.append([])
            for shape, column in piece:
                landed = board.copy()
                _, removed, _ = twin.drop(landed, shape, column)
                ended = landed[usable:].any()
                here[-1].append((removed, None if ended else landed.tobytes()))
                if not ended:
                    todo.append(landed)
    V, change = dict.fromkeys(after, 0.0) | {None: 0.0}, 1.0
    while change > 1e-12:
        change = 0.0
        for board, options in after.items():
            value = np.mean([max(r + V[landed] for r, landed in piece) for piece in options])
            change, V[board] = max(change, abs(value - V[board])), value
    return V[empty.tobytes()], len(after)


@pytest.mark.parametrize(
    ("height", "width", "pieces", "game_over"), [(4, 6, "SZ", "top row"), (3, 4, "STZ", "overflow")]
)
def test_small_games_against_an_enumeration_of_their_own(height, width, pieces, game_over):
    r = rules(height, width, pieces, game_over)
    wanted, boards = naive_value(height, width, pieces, r.usable)
    found = solve(r)
    assert found.boards == boards > 50
    assert wanted > 0.1
    assert abs(found.rows - wanted) < 1e-8


def test_the_value_of_mini_tetris():
    """4 rows of which 3 are of use, 10 columns, S and Z: the yardstick of the agents."""
    found = solve(rules(4, 10, "SZ"))
    assert found == Exact(pytest.approx(3.1235, abs=5e-5), 74_239, "top row")


# ---- bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"height": 0}, "height must be a whole number of at least 1, got 0"),
        ({"height": 3.5}, "height must be a whole number"),
        ({"height": 101}, "height must be at most 100, got 101"),
        ({"width": 1}, "width must be a whole number of at least 2, got 1"),
        ({"width": 33}, "width must be at most 32, got 33"),
        ({"pieces": ""}, "pieces must be letters of IOTSZJL, such as \"SZ\", got ''"),
        ({"pieces": "SX"}, "pieces must be letters of IOTSZJL"),
        ({"pieces": 7}, "pieces must be letters of IOTSZJL"),
        ({"pieces": "SZS"}, "pieces must name each piece once"),
        ({"game_over": "never"}, 'game_over must be "top row" or "overflow", got \'never\''),
        ({"height": 2}, "piece O does not fit on a board 10 wide with 1 usable rows"),
        ({"height": 1}, "piece I does not fit .* make width or height larger"),
        ({"height": 3, "width": 2}, "piece I does not fit on a board 2 wide with 2 usable rows"),
    ],
)
def test_bad_rules(arguments, message):
    with pytest.raises(ValueError, match=message):
        rules(**arguments)


def test_games_too_large_to_solve():
    with pytest.raises(ValueError, match=r"19 usable rows x 10 columns has more than 62 cells"):
        solve(rules())
    with pytest.raises(ValueError, match="more than most_boards = 1000 boards can be reached"):
        solve(rules(4, 10, "SZ"), most_boards=1000)
    with pytest.raises(ValueError, match="a game can be made to last for ever"):
        solve(rules(2, 2, "O", "overflow"))


def test_bad_players():
    for arguments, message in [
        ((np.zeros(21), 1, 1, 0), r"weights must have shape \(22,\), got \(21,\)"),
        ((np.full(22, np.nan), 1, 1, 0), "weights must be finite"),
        ((np.zeros(22), 0, 1, 0), "games must be a whole number of at least 1"),
        ((np.zeros(22), 1, 0, 0), "max_pieces must be a whole number of at least 1"),
        ((np.zeros(22), 1, 1, -1), "seed must be a whole number"),
    ]:
        with pytest.raises(ValueError, match=message):
            play(rules(), BERTSEKAS, *arguments)
    for kind in (7, 2, -1, True, 0.0, "bertsekas", None):
        with pytest.raises(ValueError, match=r"kind must be (a whole number of at least 0|at most 1), got"):
            play(rules(), kind, np.zeros(22), 1, 1)


def test_what_is_no_rules_is_refused():
    for call in (
        lambda r: play(r, BERTSEKAS, np.zeros(22), 1, 1),
        lambda r: policy_iteration(r, np.zeros(22)),
        scoring_weights,
        solve,
    ):
        for bad in (None, {"height": 20}, (20, 10)):
            with pytest.raises(TypeError, match=r"rules must be what rlsvi_paper.tetris.rules\(\) returns, got"):
                call(bad)


def test_nothing_public_trusts_its_caller():
    """Compiled functions, and arrays they would write to, are known to their modules only."""
    found = {
        name: getattr(rlsvi_paper.tetris, name) for name in dir(rlsvi_paper.tetris) if not name.startswith("_")
    }
    assert "Rules" in found
    assert not [name for name, value in found.items() if hasattr(value, "py_func")]
    assert not {"Game", "Room", "new_game", "new_room", "step", "start", "evaluate"} & set(dir(rlsvi_paper.tetris))


# ---- the rule by which games end --------------------------------------------------------------------------


@pytest.mark.parametrize("game_over", ["top row", "overflow"])
def test_rules_know_what_they_were_told_and_scores_know_their_rule(game_over):
    r = rules(5, 4, "ZOT", game_over)
    assert r.game_over == game_over
    assert r.setting == {"height": 5, "width": 4, "pieces": "OTZ", "game_over": game_over}
    assert rules(**r.setting).setting == r.setting
    scores = play(r, BERTSEKAS, np.zeros(10), 2, 3)
    assert scores.game_over == game_over
    assert policy_iteration(r, np.zeros(10), iterations=0, games=1).game_over == game_over
    assert solve(rules(3, 4, "OZ", game_over)).game_over == game_over


def test_the_streams_of_players_start_as_those_of_environments():
    words = np.empty(4, dtype=np.uint64)
    reseed(words, np.uint64(8))
    r = rules(6, 4, "IOT")
    game, room, rows, pieces, ended = new_game(r), new_room(r, BERTSEKAS), 0, 0, False
    start(r, game, words)
    while not ended:  # with zero weights: the most rows, or else the first placement
        n = evaluate(r, BERTSEKAS, game, np.zeros(10), room)
        removed, ended = step(r, game, int(np.argmax(room.removed[:n])), words)
        rows, pieces = rows + removed, pieces + 1
    scores = play(r, BERTSEKAS, np.zeros(10), 1, 1000, seed=8)
    assert (scores.rows[0], scores.pieces[0], scores.over[0]) == (rows, pieces, 1)
