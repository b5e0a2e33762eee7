"""`rlsvi watch`: a saved or a freshly trained agent playing Tetris, in the terminal or as a moving picture."""

import sys

import pytest
from PIL import Image
from typer.testing import CliRunner

import rlsvi
from rlsvi.bases import Tetris
from rlsvi.cli import app
from rlsvi.envs.tetris import TetrisEnv
from rlsvi.simulate_tetris import simulate_tetris
from rlsvi.tetris import rules

module = sys.modules["rlsvi.cli.watch"]  # the name in rlsvi.cli is that of the command
SMALL = ("--height", 8, "--width", 4)
TRAIN = ("tetris", "--games", 3, *SMALL, "--pieces-limit", 4)


def run(*arguments):
    return CliRunner().invoke(app, ["watch", *(str(a) for a in arguments)])


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
    assert module.HOME not in result.stdout  # nobody's cursor is moved in a file


def test_a_saved_agent_plays_as_the_one_that_was_trained(tmp_path, saved):
    fresh = run(*TRAIN, "--quiet", "--save", tmp_path / "player.rlsvi")
    assert fresh.exit_code == 0, fresh.stderr
    assert fresh.stderr == f"agent: {tmp_path / 'player.rlsvi'}\n"
    for path in (tmp_path / "player.rlsvi", saved):  # its board is known from its features
        again = run(path, "--pieces-limit", 4)
        assert again.exit_code == 0, again.stderr
        assert again.stdout == fresh.stdout


def test_other_seeds_bring_other_pieces_and_a_game_ends(saved):
    one, two = (run(saved, "--seed", seed, "--pieces-limit", 2000).stdout for seed in (1, 2))
    assert one != two
    assert one.endswith("the game is over\n")


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
    monkeypatch.setattr(module, "_is_terminal", lambda: True)
    monkeypatch.setattr(module.time, "monotonic", lambda: 0.0)
    monkeypatch.setattr(module.time, "sleep", waits.append)
    result = run(saved, "--pieces-limit", 3, "--speed", 4)
    assert result.exit_code == 0, result.stderr
    assert waits == [0.25, 0.5, 0.75, 1.0]  # the clock stands still
    assert result.stdout.startswith(module.HIDE + module.CLEAR + module.HOME)
    assert result.stdout.count(module.HOME) == 4
    assert module.SHOW in result.stdout
    waits.clear()
    run(saved, "--pieces-limit", 3, "--speed", 0)
    assert waits == []


def test_a_moving_picture(saved, tmp_path):
    path = tmp_path / "game.gif"
    result = run(saved, "--gif", path, "--pieces-limit", 6, "--speed", 10)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("\n") == 1
    assert f"picture: {path}" in result.stderr
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
    monkeypatch.setattr(module, "_is_terminal", lambda: True)
    result = run(saved, "--speed", 0)
    assert result.exit_code == 130
    assert result.stderr == "stopped; the game was not finished\n"
    assert result.stdout.endswith(module.SHOW)
    result = run(saved, "--gif", tmp_path / "game.gif", "--quiet")
    assert result.exit_code == 130
    assert list(tmp_path.iterdir()) == []


def test_help_teaches():
    result = run("--help")
    assert result.exit_code == 0
    for word in ("Ctrl-C", "--gif", "--speed", "--pieces-limit", "Example: rlsvi watch tetris", "posterior mean"):
        assert word in result.stdout


def test_files_that_do_not_play_tetris_are_refused(tmp_path, saved):
    rlsvi.RLSVI(seed=0).learn(rlsvi.envs.FiniteMDPEnv(rlsvi.mdp.chain(4)), episodes=1).save(tmp_path / "chain")
    rlsvi.StationaryRLSVI(basis=Tetris()).save(tmp_path / "new")
    (tmp_path / "text").write_text("hello")
    for arguments, words in [
        ((tmp_path / "nothing",), ("there is no file", "rlsvi watch tetris")),
        ((tmp_path / "chain",), ("holds RLSVI", "does not play Tetris", "StationaryRLSVI")),
        ((tmp_path / "new",), ("has learned nothing", "train it first")),
        ((tmp_path / "text",), ("not a saved agent",)),
        ((tmp_path,), (str(tmp_path),)),
        ((saved, "--width", 6), ("10 placements", "there are 18", "--width and --pieces")),
        ((saved, "--pieces", "SZ"), ("10 placements", "there are 5", "--width and --pieces")),
        ((saved, "--height", 9), ("another board", "--height and --width")),
        ((saved, "--save", tmp_path / "other"), ("--save goes with tetris",)),
        ((saved, "--gif", tmp_path / "no" / "game.gif"), ("cannot write", "there is no folder")),
        (("tetris", "--save", tmp_path / "no" / "player"), ("cannot write", "there is no folder")),
        (("tetris", "--pieces", "Q"), ("pieces must be letters of IOTSZJL",)),
        (("tetris", "--height", 0), ("height must be a whole number of at least 1",)),
        (("tetris", "--games", 0), ("--games",)),
        (("tetris", "--speed", -1), ("--speed",)),
    ]:
        result = run(*arguments)
        assert result.exit_code == 2, arguments
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
        for word in words:
            assert word in result.stderr, arguments
