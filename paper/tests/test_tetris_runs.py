"""Many runs of Tetris together: the bits of one agent alone, of a card, and the readings that no agent has."""

from itertools import product

import numpy as np
import pytest
import tetris_twin as twin

from rlsvi.agents import Boltzmann, EpsilonGreedy, Exponential, StationaryLSVI, StationaryRLSVI
from rlsvi.core import card
from rlsvi.core.regression import InverseGamma
from rlsvi_paper.schedules import falling
from rlsvi_paper.tetris import LETTERS, Tetris, rules, simulate_tetris
from rlsvi_paper.tetris.game import set_board
from rlsvi_paper.tetris.lanes import COUNT, MOST_PIECES, look, put
from rlsvi_paper.tetris.runs import (
    DROP,
    LEFT,
    RIGHT,
    ROTATE,
    Player,
    board_of,
    learn_tetris,
    new_run,
    setting_of,
)
from rlsvi_paper.tetris.tetris_readings import SETTINGS, player_of, reading_run, run_together
from test_gpu import simulated

MINI = rules(4, pieces="SZ")
FEW = {"memory": 150}  # transitions, so few that some are dropped
KNOWN = {  # players that an agent can be
    "literal": Player(3, gamma=0.999, **FEW),
    "LSVI": Player(4, sigma=0.0, epsilon=0.1, decay=0.98, **FEW),
    "afterstate": Player(5, known=True, scaled=True, **FEW),
    "LSVI, afterstate": Player(6, sigma=0.0, known=True, **FEW),
    "falling": Player(7, sigma=0.0, known=True, epsilon=3.0, delay=3.0, **FEW),
    "Boltzmann": Player(8, sigma=0.0, known=True, scaled=True, eta=30.0, delay=1.0, **FEW),
    "unknown noise": Player(3, gamma=0.999, known=True, unknown=True, **FEW),
    "literal, unknown noise": Player(3, unknown=True, **FEW),
}
OTHERS = {
    "prior first": Player(3, prior_first=True),
    "floor": Player(3, floor=0.0),
    "early": Player(3, early=True),
    "few": Player(3, few=True),
    "before": Player(3, before=True),
}


def agent(player):
    """The agent that learns like a player."""
    common = {"gamma": player.gamma, "memory": player.memory, "seed": player.seed, "diverged_above": 1e300}
    common |= {"basis": Tetris(units="scaled" if player.scaled else "raw")}
    common["form"] = "afterstate" if player.known else "literal"
    if player.sigma > 0:
        return StationaryRLSVI(sigma=InverseGamma() if player.unknown else player.sigma, **common)
    scale = player.epsilon + player.eta
    schedule = falling(scale, player.delay) if player.delay else Exponential(scale, player.decay)
    return StationaryLSVI(explore=(Boltzmann if player.eta else EpsilonGreedy)(schedule), **common)


@pytest.mark.parametrize("board", [MINI, rules()], ids=["mini", "20 x 10"])
@pytest.mark.parametrize("name", KNOWN)
def test_a_run_has_the_bits_of_an_agent_alone(board, name):
    player, games = KNOWN[name], 40
    found, expected = learn_tetris([player], board, games), simulate_tetris(agent(player), board, games)
    np.testing.assert_array_equal(found.rows[0], expected.rows)
    np.testing.assert_array_equal(found.pieces[0], expected.pieces)
    np.testing.assert_allclose(found.size[0], expected.size, rtol=1e-14)  # the norms are summed in another way


def test_every_reading_has_the_same_bits_on_a_simulated_card():
    code = """
import numpy as np
from rlsvi_paper.tetris.runs import Player, learn_tetris
from rlsvi_paper.tetris import rules
players = [
    Player(1, gamma=0.999, memory=9), Player(2, sigma=0.0, epsilon=0.1, decay=0.98, memory=7),
    Player(3, known=True, scaled=True, evaluate_from=3, memory=9), Player(5, few=True, memory=9),
    Player(4, prior_first=True, floor=0.0, early=True, memory=9), Player(6, before=True, memory=9),
    Player(7, unknown=True, memory=9), Player(8, sigma=0.0, eta=3.0, delay=1.0, memory=9),
]
one, other = (learn_tetris(players, rules(5, 4, "SZO"), 6, device=it) for it in ("cpu", "cuda"))
print([np.array_equal(a, b) for a, b in zip(one, other)], int(one.rows.sum()) > 0, int(one.pieces.sum()) > 50)
"""
    assert simulated(code) == "[True, True, True, True] True True"


@pytest.mark.skipif(not card.is_usable(), reason="there is no graphics card")
def test_every_reading_has_the_same_bits_on_a_card():
    players = [*KNOWN.values(), *OTHERS.values(), Player(3, gamma=0.999, evaluate_from=10)]
    one, other = (learn_tetris(players, rules(), 30, device=it) for it in ("cpu", "cuda"))
    for mine, its in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize("before", [False, True])
def test_features_are_those_of_the_slow_twin_after_and_before_full_rows_are_removed(before):
    board, rng, full = rules(10, 6), np.random.default_rng(0), 0
    for letter, _ in product(LETTERS, range(20)):
        player = Player(0, before=before, memory=10)
        run, everything = new_run(player, board), board_of(board)
        cells = np.zeros((14, 6), np.bool_)
        cells[:4] = rng.random((4, 6)) < 0.8
        cells[:4, rng.integers(6)] = False  # no row is full
        set_board(run.game, cells[9::-1].astype(np.int64), LETTERS.index(letter))
        options = twin.moves(letter, 6)
        run.state[COUNT] = len(options)
        look(run, everything, setting_of(player), 0, 1)
        for a, (shape, column) in enumerate(options):
            after, expected = cells.copy(), np.zeros(14, np.int64)
            row, removed, _ = twin.drop(after, shape, column)
            if before:
                after = cells.copy()
                after[row : row + 4, column : column + 4] |= shape[:, : 6 - column]
            twin.bertsekas(after, expected)
            found = run.next_x[a].view(np.uint8)[:15]
            np.testing.assert_array_equal(found, [*expected, removed])
            full += removed
    assert full > 100


@pytest.mark.parametrize("name", [name for name in OTHERS if name != "early"])  # that one changes few games
def test_what_no_agent_has_changes_the_games(name):
    usual, found = learn_tetris([Player(3), OTHERS[name]], rules(), 80).pieces
    assert not np.array_equal(usual, found)


def test_games_with_the_posterior_mean_do_not_change_what_is_learned():
    usual, found = (
        learn_tetris([Player(3, gamma=0.999, **more)], MINI, 30) for more in ({}, {"evaluate_from": 10})
    )
    np.testing.assert_array_equal(usual.rows, found.rows)
    np.testing.assert_array_equal(usual.size, found.size)
    assert (found.mean_rows[0, :10] == -1).all()
    assert (found.mean_rows[0, 10:] >= 0).all()


@pytest.mark.parametrize("early", [False, True])
def test_the_top_row_may_count_before_full_rows_are_removed(early):
    board = rules(3, 4)  # 2 rows are usable; an I fills both of them
    run = new_run(Player(0, memory=10), board)
    set_board(run.game, np.array([[0, 0, 0, 0], [1, 0, 1, 1], [1, 0, 1, 1]]), LETTERS.index("I"))
    table = board.placements
    first = table.first[LETTERS.index("I")]
    upright = next(p for p in range(first, table.first[1]) if table.column[p] == 1 and table.span[p] == 1)
    removed, over = put(board, run.game, upright, early)
    assert removed == 2
    assert over == early  # it stands 4 high, of which 2 are left
    assert run.game.heights.tolist() == [0, 2, 0, 0]


def test_moves_lead_to_the_neighbouring_placements():
    board = board_of(rules())
    table, width = board.rules.placements, board.rules.width
    for p in range(len(table.column)):
        piece = np.searchsorted(table.first, p, side="right") - 1
        moves = board.moves[p]
        assert moves[DROP] == p
        assert ((moves >= table.first[piece]) & (moves < table.first[piece + 1])).all()
        for move, step in ((LEFT, -1), (RIGHT, 1)):
            to = moves[move]
            assert (table.high[to] == table.high[p]).all()
            assert table.column[to] == min(max(table.column[p] + step, 0), width - table.span[p])
        turned = moves[ROTATE]
        assert turned != p or piece == LETTERS.index("O")
        assert abs(table.column[turned] - table.column[p]) <= 3
        around = p
        for _ in range(4):
            around = board.moves[around, ROTATE]
        assert (table.high[around] == table.high[p]).all()  # the same rotation after four turns


def test_few_moves_take_several_steps_and_place_as_many_pieces():
    found = learn_tetris([Player(0, few=True)], rules(), 5)
    assert (found.pieces > 5).all()


def test_a_game_that_is_cut_off_keeps_its_last_transition():
    """Perfect play of squares on two columns never ends; the places of the next placements are not used again."""
    player, board = Player(0, sigma=0.0, known=True, memory=50), rules(6, 2, "O")
    found = learn_tetris([player], board, 3)
    assert found.pieces.tolist() == [[MOST_PIECES] * 3]


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_run_of_a_reading_is_summarised(setting):
    given = {"setting": setting, "sigma": 0.0, "epsilon": 1.0, "decay": 0.95, "games": 4, "seed": 7}
    found = reading_run(**given)
    assert found["first_row"] == 5  # random play removes none
    assert found["level"] == 0.0
    assert (found["mean_level"] == 0.0) == (setting in ("as printed", "γ = .999"))
    assert player_of(given).seed == 7
    assert reading_run.play_together is run_together


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"players": []}, ValueError, "at least one Player"),
        ({"players": [3]}, ValueError, "at least one Player"),
        ({"players": 3}, ValueError, "at least one Player"),
        ({"players": [Player(-1)]}, ValueError, "seed"),
        ({"players": [Player(0, gamma=np.nan)]}, ValueError, "gamma"),
        ({"players": [Player(0, gamma=7)]}, ValueError, "gamma must be at least 0 and at most 1, got 7"),
        ({"players": [Player(0, sigma=-1.0)]}, ValueError, "sigma must be at least 0, got -1"),
        ({"players": [Player(0, epsilon=5.0)]}, ValueError, "epsilon"),
        ({"players": [Player(0, decay=2.0)]}, ValueError, "decay"),
        ({"players": [Player(0, floor=np.nan)]}, ValueError, "floor"),
        ({"players": [Player(0, few=3)]}, ValueError, "few"),
        ({"players": [Player(0, evaluate_from=2**70)]}, ValueError, "evaluate_from"),
        ({"players": [Player(0, unknown=3)]}, ValueError, "unknown"),
        ({"players": [Player(0, sigma=0.0, unknown=True)]}, ValueError, "sigma must be positive"),
        ({"players": [Player(0, epsilon=0.1, eta=0.1)]}, ValueError, "epsilon"),
        ({"players": [Player(0, epsilon=5.0, delay=3.0)]}, ValueError, "epsilon"),
        ({"players": [Player(0, eta=-1.0)]}, ValueError, "eta must be at least 0, got -1"),
        ({"players": [Player(0, delay=-1.0)]}, ValueError, "delay must be at least 0"),
        ({"players": [Player(0, memory=0)]}, ValueError, "memory"),
        ({"rules": rules(100, 2, "I")}, ValueError, "60 high"),
        ({"rules": rules(20, 12)}, ValueError, "at most 10 wide"),
        ({"rules": rules(40, 10)}, ValueError, "no feature exceeds 255"),
        ({"rules": 3}, TypeError, "rlsvi_paper.tetris.rules"),
        ({"games": 0}, ValueError, "games"),
        ({"device": "tpu"}, ValueError, "device"),
    ],
)
def test_bad_arguments_are_named(change, error, words):
    given = {"players": [Player(0)], "rules": MINI, "games": 3, "device": "cpu"} | change
    players, board, games = given.pop("players"), given.pop("rules"), given.pop("games")
    with pytest.raises(error, match=words):
        learn_tetris(players, board, games, **given)
