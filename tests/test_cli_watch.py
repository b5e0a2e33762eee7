"""`rlsvi watch`: a saved agent in its environment, in the terminal or as an animation."""

import importlib
import sys

import gymnasium as gym
import pytest
from PIL import Image
from typer.testing import CliRunner

import rlsvi
from rlsvi.cli.app import app

show = importlib.import_module("rlsvi.cli.watch")  # rlsvi.cli.watch itself is the command


def run(*arguments):
    return CliRunner().invoke(app, ["watch", *(str(a) for a in arguments)])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A file with an agent that has learned a chain."""
    path = tmp_path_factory.mktemp("agents") / "walker.rlsvi"
    rlsvi.RLSVI(seed=0).learn(gym.make("rlsvi/Chain-v0", length=5), 30).save(path)
    return path


def test_what_is_shown_is_what_predict_plays(saved):
    agent, env = rlsvi.load(saved), gym.make("rlsvi/Chain-v0", length=5, render_mode="ansi")
    observation, _ = env.reset(seed=3)
    frames, state, over = [env.render()], None, False
    while not over:
        action, state = agent.predict(observation, state, deterministic=True)
        observation, _, terminated, truncated, _ = env.step(action)
        frames.append(env.render())
        over = terminated or truncated
    shown = run(saved, "--seed", 3)
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.startswith("\n".join(frames) + "\nreturn")
    assert "the episode is over" in shown.stdout
    assert show.HOME not in shown.stdout  # nobody's cursor is moved in a file


def test_in_a_terminal_frames_replace_each_other_at_the_speed_asked_for(saved, monkeypatch):
    waits = []
    monkeypatch.setattr(show, "is_terminal", lambda: True)
    monkeypatch.setattr(show.time, "monotonic", lambda: 0.0)
    monkeypatch.setattr(show.time, "sleep", waits.append)
    result = run(saved, "--steps", 3, "--speed", 4)
    assert result.exit_code == 0, result.stderr
    assert waits == [0.25, 0.5, 0.75, 1.0]  # the clock stands still
    assert result.stdout.startswith(show.HIDE + show.CLEAR + show.HOME)
    assert result.stdout.count(show.HOME) == 4
    assert show.SHOW in result.stdout
    waits.clear()
    run(saved, "--steps", 3, "--speed", 0)
    assert waits == []


def test_an_animation(saved, tmp_path):
    path = tmp_path / "walk.gif"
    result = run(saved, "--gif", path, "--steps", 4, "--speed", 10)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("\n") == 1
    assert f"animation: {path}" in result.stderr
    with Image.open(path) as film:
        assert (film.format, film.n_frames, film.info["duration"], film.info["loop"]) == ("GIF", 5, 100, 0)


def test_ctrl_c_ends_it_cleanly(saved, tmp_path, monkeypatch):
    step, calls = rlsvi.envs.ChainEnv.step, []

    def interrupted(self, action):
        calls.append(action)
        if len(calls) % 3 == 0:
            raise KeyboardInterrupt
        return step(self, action)

    monkeypatch.setattr(rlsvi.envs.ChainEnv, "step", interrupted)
    monkeypatch.setattr(show, "is_terminal", lambda: True)
    result = run(saved, "--speed", 0)
    assert result.exit_code == 130
    assert result.stderr == "stopped; the episode was not finished\n"
    assert result.stdout.endswith(show.SHOW)
    result = run(saved, "--gif", tmp_path / "walk.gif", "--quiet")
    assert result.exit_code == 130
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("display", ["", "dummy"])
def test_what_drawing_needs_is_named(display, tmp_path, monkeypatch):
    """FrozenLake draws with pygame, which the library does not bring."""
    path = tmp_path / "lake.rlsvi"
    rlsvi.RLSVI(seed=0).learn(gym.make("FrozenLake-v1", max_episode_steps=5), steps=1).save(path)
    monkeypatch.setitem(sys.modules, "pygame", None)
    monkeypatch.setenv("SDL_VIDEODRIVER", display)
    result = run(path, *(() if display else ("--gif", tmp_path / "lake.gif")))
    assert result.exit_code == 2
    assert "pygame is not installed" in result.stderr
    assert "pip install" in result.stderr
    assert "gymnasium[" in result.stderr
    assert "window" not in result.stderr


def test_files_that_cannot_be_shown_are_refused(tmp_path, saved):
    rlsvi.RLSVI(seed=0).learn(rlsvi.envs.FiniteMDPEnv(rlsvi.mdp.chain(4)), episodes=1).save(tmp_path / "chain")
    rlsvi.RLSVI(seed=0).save(tmp_path / "new")
    (tmp_path / "text").write_text("hello")
    for arguments, words in [
        ((tmp_path / "nothing",), ("there is no file",)),
        ((tmp_path / "chain",), ("does not tell in which environment", "--env")),
        ((tmp_path / "new",), ("has learned nothing", "train it first")),
        ((tmp_path / "text",), ("not a saved agent",)),
        ((tmp_path,), (f"cannot load {tmp_path}: it is a folder", "name the file")),
        ((saved, "--gif", tmp_path / "no" / "walk.gif"), ("cannot write", "there is no folder")),
        ((saved, "--speed", -1), ("--speed",)),
    ]:
        result = run(*arguments)
        assert result.exit_code == 2, arguments
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
        for word in words:
            assert word in result.stderr, arguments
