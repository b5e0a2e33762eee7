"""Tetris through Gymnasium: its checks, pieces and boards as compiled loops see them, the basis, pictures."""

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

import rlsvi
from rlsvi.core.random import reseed
from rlsvi_paper.tetris import LETTERS, Tetris, TetrisEnv, rules
from rlsvi_paper.tetris.environment import COLOURS, TERMINAL, View, picture, text
from rlsvi_paper.tetris.features import BERTSEKAS, DELLACHERIE, afterstates, evaluate, new_room
from rlsvi_paper.tetris.game import new_game, start, step

IDS = ["rlsvi/Tetris-v0", "rlsvi/MiniTetris-v0"]


@pytest.mark.parametrize("name", IDS)
def test_check_env(name):
    check_env(gymnasium.make(name).unwrapped)


def test_the_two_games():
    full, mini = (gymnasium.make(name).unwrapped for name in IDS)
    assert full.rules[:4] == (20, 10, 19, 34)
    assert mini.rules[:4] == (4, 10, 3, 17)
    assert [LETTERS[p] for p in mini.rules.letters] == ["S", "Z"]
    assert full.horizon is None
    other = gymnasium.make(IDS[0], height=8, width=6, pieces="TI", game_over="overflow", max_pieces=9).unwrapped
    assert other.rules[:4] == (8, 6, 8, 18)
    assert other.horizon == 9
    assert other.reset()[1]["game_over"] == other.step(0)[4]["game_over"] == "overflow"
    assert full.reset()[1]["game_over"] == "top row"
    assert other.observation_space["board"].shape == (8, 6)


def games(env, seed, episodes=3):
    """Observations, rewards and ends of episodes played at random."""
    choose, shown = np.random.default_rng(5), []
    for episode in range(episodes):
        observation, info = env.reset(seed=seed if episode == 0 else None)
        ended = False
        while not ended:
            action = int(choose.choice(np.flatnonzero(info["action_mask"])))
            after, reward, terminated, truncated, info = env.step(action)
            assert env.observation_space.contains(after)
            shown.append((observation, action, reward, terminated, truncated))
            observation, ended = after, terminated or truncated
    return shown


def test_an_episode_is_what_the_compiled_loop_plays():
    env = TetrisEnv(8, 6, max_pieces=5)
    r, words = env.rules, np.empty(4, dtype=np.uint64)
    game, fresh, pieces = new_game(r), True, 0
    reseed(words, np.uint64(11))
    ends = set()
    for observation, action, reward, terminated, truncated in games(env, 11, 20):
        if fresh:
            start(r, game, words)
            pieces = 0
        board = (game.rows[:8, None] >> np.arange(6) & 1)[::-1]
        assert np.array_equal(observation["board"], board)
        assert observation["piece"] == game.piece[0]
        removed, over = step(r, game, action, words)
        pieces += 1
        assert (reward, terminated, truncated) == (removed, over, not over and pieces == 5)
        fresh = terminated or truncated
        ends.add((terminated, truncated))
    assert ends == {(False, False), (True, False), (False, True)}


def test_seeds():
    def seen(seed):
        return [(o["board"].tobytes(), int(o["piece"]), r) for o, _, r, _, _ in games(TetrisEnv(8, 6), seed)]

    assert seen(3) == seen(3) != seen(4)
    assert seen(None) != seen(None)  # by chance they agree once in 7^20 times
    with pytest.raises(ValueError, match=r"seed must be below 2\*\*64"):
        TetrisEnv().reset(seed=2**64)


def test_masks_and_samples():
    env = TetrisEnv()
    counts = set()
    for seed in range(40):
        observation, info = env.reset(seed=seed)
        legal = info["action_mask"].sum()
        assert info["action_mask"].tolist() == [1] * legal + [0] * (34 - legal)
        assert legal == [17, 9, 34, 17, 17, 34, 34][observation["piece"]]
        env.action_space.seed(seed)
        assert max(env.action_space.sample() for _ in range(50)) < legal
        counts.add(legal)
    assert counts == {9, 17, 34}
    assert env.action_space.sample(mask=np.eye(34, dtype=np.int8)[33]) == 33


def test_what_cannot_be_done_is_refused_and_changes_nothing():
    env = TetrisEnv(pieces="OT", render_mode="ansi")
    with pytest.raises(ResetNeeded, match=r"call reset\(\) first"):
        env.step(0)
    with pytest.raises(ResetNeeded, match=r"before render\(\)"):
        env.render()
    seed = next(seed for seed in range(99) if env.reset(seed=seed)[0]["piece"] == 1)
    env.reset(seed=seed)
    shown = env.render()
    with pytest.raises(ValueError, match=r"action 9 is not legal: piece O has the placements 0..8, choose one"):
        env.step(9)
    for action in (34, -1, 1.0, "left", None):
        with pytest.raises(ValueError, match=r"is not one of 0..33"):
            env.step(action)
    assert env.render() == shown
    for _ in range(10):
        terminated = env.step(np.int64(0))[2]
        if terminated:
            break
    assert terminated
    with pytest.raises(ResetNeeded, match="the episode is over"):
        env.step(0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pieces": "SX"}, "pieces must be letters of IOTSZJL"),
        ({"height": 1}, "piece I does not fit"),
        ({"max_pieces": 0}, "max_pieces must be a whole number of at least 1"),
        ({"render_mode": "human"}, "render_mode must be one of ansi, rgb_array or None, got 'human'"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        TetrisEnv(**arguments)


# ---- the basis --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("features", "kind"), [("bertsekas", BERTSEKAS), ("dellacherie", DELLACHERIE)])
def test_the_basis_gives_the_features_of_the_compiled_loop(features, kind):
    env, basis = TetrisEnv(9, 7, "IOTS"), Tetris(features)
    bound = basis.bind(None, int(env.action_space.n), 1, env.reset(seed=0)[0])
    room, checked = new_room(env.rules, kind), 0
    assert (bound.blocks, bound.dim, bound.table) == (1, len(room.planes), None)
    for episode in range(10):
        observation, info = env.reset(seed=episode)
        ended = False
        while not ended:
            n = afterstates(env.rules, kind, env._game, room.planes, 0, room.removed, room.fatal)
            block, phi = bound.at(0, observation)
            assert block.tolist() == [0] * env.action_space.n
            assert np.array_equal(phi[:n], room.planes[:, :n].T * bound.units)
            assert not phi[n:].any()
            rewards = bound.rewards(observation)
            assert rewards[:n].tolist() == room.removed[:n].tolist()
            assert not rewards[n:].any()
            greatest = np.argmax(room.removed[:n])
            checked += room.removed[greatest]
            observation, _, ended, _, info = env.step(int(greatest))
    assert info["action_mask"].any()
    assert checked > 0


def test_features_of_the_first_board_by_hand():
    """An O in the left corner of a board 4 wide, 5 high: heights 2 2 0 0, one step of 2, no hole."""
    observation = {"board": np.zeros((5, 4), np.int8), "piece": LETTERS.index("O")}
    raw = Tetris(units="raw").bind(None, 5, 1, observation)
    assert raw.at(0, observation)[1][0].tolist() == [2, 2, 0, 0, 0, 2, 0, 2, 0, 1]
    scaled = Tetris().bind(None, 5, 1, observation)
    assert scaled.at(0, observation)[1][0].tolist() == [0.4, 0.4, 0, 0, 0, 0.4, 0, 0.4, 0, 1]
    mine = Tetris(units=np.arange(1.0, 11.0)).bind(None, 5, 1, observation)
    assert mine.at(0, observation)[1][1].tolist() == [0, 4, 6, 0, 10, 0, 14, 16, 0, 10]
    assert not scaled.at(0, observation)[1][3:].any()


def test_bad_bases():
    observation = {"board": np.zeros((5, 4), np.int8), "piece": 0}
    with pytest.raises(ValueError, match='features must be "bertsekas" or "dellacherie"'):
        Tetris("nice").bind(None, 4, 1, observation)
    for units, message in [
        ("small", 'units must be "scaled", "raw" or a vector of numbers'),
        ([1.0], r"units must have shape \(10,\), got \(1,\)"),
        (np.zeros(10), "units must be positive"),
        (np.full(10, np.nan), "units must be finite"),
    ]:
        with pytest.raises(ValueError, match=message):
            Tetris(units=units).bind(None, 4, 1, observation)
    for bad in (3, np.zeros((5, 4)), {"board": np.zeros((5, 4))}, {"board": np.zeros(5), "piece": 0}):
        with pytest.raises(ValueError, match="the Tetris basis needs observations"):
            Tetris().bind(None, 4, 1, bad)
    bound = Tetris().bind(None, 4, 1, observation)
    with pytest.raises(ValueError, match=r"piece I has 5 placements, but there are 4 actions only"):
        bound.at(0, observation)
    with pytest.raises(ValueError, match=r"board must have shape \(5, 4\), got \(6, 4\)"):
        bound.at(0, {"board": np.zeros((6, 4)), "piece": 0})
    with pytest.raises(ValueError, match="piece must be a number from 0 to 6"):
        bound.at(0, {"board": np.zeros((5, 4)), "piece": 7})
    for bad in (None, 3, {"board": np.zeros((5, 4)), "piece": 1.5}, {"board": None, "piece": 0}):
        with pytest.raises(ValueError, match="the Tetris basis needs observations"):
            bound.at(0, bad)
    for cell in (7, -1, 0.5, np.nan, "1"):
        with pytest.raises(ValueError, match="board must hold zeros and ones only, 1 for a filled cell, got"):
            bound.at(0, {"board": np.full((5, 4), cell), "piece": 1})


def test_boards_of_any_type_are_read_alike():
    board = np.arange(20).reshape(5, 4) % 3 == 0
    bound = Tetris().bind(None, 34, 0, {"board": board, "piece": 1})
    for kind in (np.int8, np.float64, object):
        phi, wanted = (bound.at(0, {"board": it, "piece": 1})[1] for it in (board.astype(kind), board))
        assert np.array_equal(phi, wanted)


@pytest.mark.parametrize("basis", [Tetris(), Tetris("dellacherie", np.arange(1.0, 10.0))])
def test_an_agent_learns_through_the_basis_and_is_saved_with_it(tmp_path, basis):
    env = gymnasium.make(IDS[1], max_pieces=6)
    agent = rlsvi.RLSVI(basis=basis, seed=0)
    agent.learn(env, episodes=4)
    agent.save(tmp_path / "agent")
    loaded = rlsvi.load(tmp_path / "agent")
    for other in (agent, loaded):
        other.learn(env, episodes=2)
    observation, _ = env.reset(seed=1)
    assert isinstance(loaded.basis, Tetris)
    assert loaded.predict(observation, deterministic=True) == agent.predict(observation, deterministic=True)


# ---- pictures ---------------------------------------------------------------------------------------------


def letters(shown):
    """The cells of a text, bottom row last: the letter of its colour, or a dot."""
    lines = []
    for line in shown.split("\n"):
        for letter, colour in zip(LETTERS, TERMINAL, strict=True):
            line = line.replace(f"\x1b[38;5;{colour}m██\x1b[0m", letter)
        lines.append(line.replace("\x1b[38;5;238m· \x1b[0m", "."))
    return lines


def test_text():
    env = TetrisEnv(4, 4, "O", render_mode="ansi")
    env.reset(seed=0)
    env.step(0)
    lines = letters(env.render())
    assert lines[:2] == ["    OO  "] * 2
    assert [line.strip() for line in lines][2:] == [
        "┌────────┐", "│....│", "│....│", "│OO..│", "│OO..│", "└────────┘", "rows 0  pieces 1  piece O",
    ]  # fmt: skip
    assert env.step(2)[1] == 2
    assert [line.strip() for line in letters(env.render())][3:] == [
        "│....│", "│....│", "│....│", "│....│", "└────────┘", "rows 2  pieces 2  piece O",
    ]  # fmt: skip
    env.step(0)
    env.step(0)
    assert letters(env.render())[-1].endswith("game over")


def test_colours_stay_with_their_blocks_when_rows_are_removed():
    env = TetrisEnv(12, 6, render_mode="ansi")
    for seed in range(5):
        _, info = env.reset(seed=seed)
        ended, removed = False, 0
        while not ended:
            room = new_room(env.rules, DELLACHERIE)
            n = evaluate(env.rules, DELLACHERIE, env._game, np.array([-0.5, 1, -1, -1, -4, -1, 0, 0, 0]), room)
            assert n == info["action_mask"].sum()
            observation, reward, terminated, _, info = env.step(int(np.argmax(room.values[:n])))
            assert np.array_equal(env._view.cells[:12][::-1] > 0, observation["board"])
            removed += reward
            ended = terminated or env._view.pieces == 100
        assert removed == env._view.rows > 5


def test_every_piece_is_shown_above_the_board():
    cells = np.zeros((9, 4), np.int8)
    for piece, letter in enumerate(LETTERS):
        above = "".join(letters(text(View(cells, piece), 5))[:2])
        assert above.count(letter) == 4
    narrow = text(View(np.zeros((9, 2), np.int8), 0), 5)  # an I that can only stand: its lower half
    assert "".join(letters(narrow)[:2]).count("I") == 2


def test_pictures():
    cells = np.zeros((24, 10), np.int8)
    empty = picture(View(cells, 1), 20)
    assert empty.dtype == np.uint8
    assert empty.ndim == 3
    cells[0, 0] = 5
    red = picture(View(cells, 1), 20)
    y, x = np.nonzero((red != empty).any(axis=2))
    assert 20 < np.ptp(y) < 30  # one block changed, in the lower left
    assert 20 < np.ptp(x) < 30
    assert y.min() > 0.8 * len(red)
    assert x.max() < 0.2 * red.shape[1]
    assert (red == COLOURS[4]).all(axis=2).sum() > 200
    score = picture(View(cells, 1, rows=1234567890), 20)
    y, _ = np.nonzero((score != red).any(axis=2))
    assert y.min() > 0.9 * len(red)
    env = gymnasium.make(IDS[1], render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().shape == picture(View(np.zeros((8, 10), np.int8)), 4).shape


def test_rendering_without_a_mode_says_so():
    env = TetrisEnv()
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="make the environment with a render_mode"):
        assert env.render() is None


def test_rules_are_shared():
    assert np.array_equal(TetrisEnv(6, 5).rules.placements.bits, rules(6, 5).placements.bits)
