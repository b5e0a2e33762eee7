"""`rlsvi tetris`: a saved or a freshly trained agent playing Tetris, in the terminal or as an animation."""

import importlib

import pytest
from PIL import Image
from typer.testing import CliRunner

import rlsvi
from rlsvi.cli.app import app
from rlsvi_paper.tetris import Tetris, TetrisEnv, rules, simulate_tetris
from saved import read, write

show = importlib.import_module("rlsvi.cli.watch")  # rlsvi.cli.watch itself is the command

SMALL_BOARD = ("--height", 8, "--width", 4)
TRAIN = ("--games", 3, *SMALL_BOARD, "--pieces-limit", 4)


def run(*arguments):
    return CliRunner().invoke(app, ["tetris", *(str(a) for a in arguments)])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A file with an agent that has learned a few games on a small board."""
    path = tmp_path_factory.mktemp("agents") / "player.rlsvi"
    agent = rlsvi.StationaryRLSVI(basis=Tetris(), form="afterstate", seed=0)
    simulate_tetris(agent, rules(8, 4), 3)
    agent.save(path)
    return path


def test_a_fresh_agent_is_trained_and_shown():
    result = run(*TRAIN)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("┌────────┐") == 5  # the empty board, and one after each piece
    assert "rows removed with 4 pieces; the game goes on" in result.stdout
    assert "3/3" in result.stderr
    assert "in the last 3 of 3 games" in result.stderr
    assert show.HOME not in result.stdout  # nobody's cursor is moved in a file


def test_a_saved_agent_plays_as_the_one_that_was_trained(tmp_path, saved):
    fresh = run(*TRAIN, "--quiet", "--save", tmp_path / "player.rlsvi")
    assert fresh.exit_code == 0, fresh.stderr
    assert fresh.stderr == f"agent: {tmp_path / 'player.rlsvi'}\n"
    for path in (tmp_path / "player.rlsvi", saved):  # which know their rules
        again = run(path, "--pieces-limit", 4)
        assert again.exit_code == 0, again.stderr
        assert again.stdout == fresh.stdout


def test_other_seeds_bring_other_pieces_and_a_game_ends(saved):
    one, two = (run(saved, "--seed", seed, "--pieces-limit", 2000).stdout for seed in (1, 2))
    assert one != two
    assert one.endswith("the game is over (game over: top row)\n")


def test_what_is_shown_is_what_predict_plays(saved):
    agent, env = rlsvi.load(saved), TetrisEnv(8, 4, render_mode="ansi")
    observation, info = env.reset(seed=3)
    frames = [env.render()]
    for _ in range(3):
        action, _ = agent.predict(observation, deterministic=True, action_mask=info["action_mask"])
        observation, _, _, _, info = env.step(action)
        frames.append(env.render())
    shown = run(saved, "--seed", 3, "--pieces-limit", 3).stdout
    assert shown.startswith("\n".join(frames) + "\n")


def test_in_a_terminal_frames_replace_each_other_at_the_speed_asked_for(saved, monkeypatch):
    waits = []
    monkeypatch.setattr(show, "is_terminal", lambda: True)
    monkeypatch.setattr(show.time, "monotonic", lambda: 0.0)
    monkeypatch.setattr(show.time, "sleep", waits.append)
    result = run(saved, "--pieces-limit", 3, "--speed", 4)
    assert result.exit_code == 0, result.stderr
    assert waits == [0.25, 0.5, 0.75, 1.0]  # the clock stands still
    assert result.stdout.startswith(show.HIDE + show.CLEAR + show.HOME)
    assert result.stdout.count(show.HOME) == 4
    assert show.SHOW in result.stdout
    waits.clear()
    run(saved, "--pieces-limit", 3, "--speed", 0)
    assert waits == []


def test_an_animation(saved, tmp_path):
    path = tmp_path / "game.gif"
    result = run(saved, "--gif", path, "--pieces-limit", 6, "--speed", 10)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("\n") == 1
    assert f"animation: {path}" in result.stderr
    env = TetrisEnv(8, 4, render_mode="rgb_array")
    env.reset(seed=0)
    with Image.open(path) as film:
        assert film.format == "GIF"
        assert film.n_frames == 7
        assert film.info["duration"] == 100
        assert film.size == env.render().shape[1::-1]
        assert film.info["loop"] == 0


def test_ctrl_c_ends_it_cleanly(saved, tmp_path, monkeypatch):
    step, calls = TetrisEnv.step, []

    def interrupted(self, action):
        calls.append(action)
        if len(calls) % 3 == 0:
            raise KeyboardInterrupt
        return step(self, action)

    monkeypatch.setattr(TetrisEnv, "step", interrupted)
    monkeypatch.setattr(show, "is_terminal", lambda: True)
    result = run(saved, "--speed", 0)
    assert result.exit_code == 130
    assert result.stderr == "stopped; the game was not finished\n"
    assert result.stdout.endswith(show.SHOW)
    result = run(saved, "--gif", tmp_path / "game.gif", "--quiet")
    assert result.exit_code == 130
    assert list(tmp_path.iterdir()) == []


def test_help_teaches():
    result = run("--help")
    assert result.exit_code == 0
    for word in (
        "Ctrl-C",
        "--gif",
        "--game-over",
        "--speed",
        "--pieces-limit",
        "Example: rlsvi tetris",
    ):
        assert word in result.stdout


@pytest.mark.parametrize("game_over", ["top row", "overflow"])
def test_an_agent_plays_by_the_rules_it_has_learned(game_over, tmp_path):
    by = {"height": 4, "width": 5, "pieces": "SZ", "game_over": game_over}
    agent = rlsvi.StationaryRLSVI(basis=Tetris(units="raw"), form="afterstate", lam=50.0, seed=0)
    simulate_tetris(agent, rules(**by), 3)
    agent.save(tmp_path / "raw")
    result = run(tmp_path / "raw", "--pieces-limit", 200, "--pieces", "ZS")  # the same, in another order
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    env = TetrisEnv(**by, render_mode="ansi")
    env.reset(seed=0)
    assert result.stdout.startswith(env.render())
    assert result.stdout.endswith(f"(game over: {game_over})\n")


def test_what_a_file_does_not_tell_must_be_told(tmp_path):
    agent = rlsvi.StationaryRLSVI(basis=Tetris(), form="afterstate", lam=50.0, seed=0)
    simulate_tetris(agent, rules(4, 5, "SZ"), 1)
    agent.save(tmp_path / "some")
    header, arrays = read(tmp_path / "some")
    write(tmp_path / "some", {**header, "setting": {"height": 4, "width": 5}}, arrays)
    for told, words in [
        ((), ("does not tell all the rules", "give --pieces, --game-over")),
        (("--pieces", "SZ"), ("does not tell all the rules", "give --game-over")),
        (("--pieces", "SZ", "--game-over", "overflow"), ()),
        (("--pieces", "IOTSZJL", "--game-over", "overflow"), ("with other rules", "7 actions", "14 actions")),
        (("--pieces", "SZ", "--height", 5), ("has learned with height 4", "leave --height out")),
    ]:
        result = run(tmp_path / "some", "--pieces-limit", 3, *told)
        assert result.exit_code == (2 if words else 0), result.stderr
        assert bool(result.stderr) == bool(words)
        for word in words:
            assert word in result.stderr, result.stderr


def test_files_that_do_not_play_tetris_are_refused(tmp_path, saved):
    rlsvi.RLSVI(seed=0).learn(rlsvi.envs.FiniteMDPEnv(rlsvi.mdp.chain(4)), episodes=1).save(tmp_path / "chain")
    rlsvi.StationaryRLSVI(basis=Tetris()).save(tmp_path / "new")
    (tmp_path / "text").write_text("hello")
    for arguments, words in [
        ((tmp_path / "nothing",), ("there is no file",)),
        ((tmp_path / "chain",), ("does not play Tetris", "rlsvi watch")),
        ((tmp_path / "chain", "--height", 8), ("does not play Tetris", "rlsvi watch")),
        ((tmp_path / "new",), ("has learned nothing", "train it first")),
        ((tmp_path / "text",), ("not a saved agent",)),
        ((tmp_path,), (f"cannot load {tmp_path}: it is a folder", "name the file")),
        ((saved, "--width", 6), ("has learned with width 4", "leave --width out")),
        ((saved, "--pieces", "SZ"), ("has learned with pieces 'IOTSZJL'", "leave --pieces out")),
        ((saved, "--height", 9), ("has learned with height 8", "leave --height out")),
        ((saved, "--game-over", "overflow"), ("has learned with game_over 'top row'", "leave --game-over out")),
        ((saved, "--game-over", "never"), ('game_over must be "top row" or "overflow"',)),
        ((saved, "--save", tmp_path / "other"), ("--save goes with an agent that is trained",)),
        ((saved, "--gif", tmp_path / "no" / "game.gif"), ("cannot write", "there is no folder")),
        (("--save", tmp_path / "no" / "player"), ("cannot write", "there is no folder")),
        (("--pieces", "Q"), ("pieces must be letters of IOTSZJL",)),
        (("--height", 0), ("height must be a whole number of at least 1",)),
        (("--games", 0), ("--games",)),
        (("--speed", -1), ("--speed",)),
    ]:
        result = run(*arguments)
        assert result.exit_code == 2, arguments
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
        for word in words:
            assert word in result.stderr, arguments
