"""A little of the reproduction, on whatever versions are installed: for `make wheel` and `make smoke-lowest`."""

import json
import subprocess
import sys

import gymnasium
import pytest

import rlsvi
import rlsvi_paper


def command(*arguments):
    done = subprocess.run([sys.executable, "-m", "rlsvi", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", rlsvi_paper.FIGURES)
def test_every_figure_can_be_had_and_has_jobs(name):
    assert rlsvi_paper.figure_called(name).plan("quick", seeds=1)


def test_its_figures_and_agents_are_listed():
    listed = json.loads(command("list", "--json"))
    assert listed["figures"] == rlsvi_paper.FIGURES
    assert "worst-case-rlsvi" in listed["agents"]


def test_its_commands_are_there():
    assert {"bsuite", "paper", "report", "tetris"} <= {*command("--help").split()}


def test_an_agent_plays_tetris_stepped_and_compiled():
    board = rlsvi_paper.tetris.rules(height=6, width=5, pieces="IO")
    agent = rlsvi.StationaryRLSVI(basis=rlsvi_paper.tetris.Tetris(), form="afterstate", gamma=0.99, seed=0)
    games = rlsvi_paper.tetris.simulate_tetris(agent, board, 2)
    assert games.pieces.min() > 0
    env = gymnasium.make("rlsvi/Tetris-v0", **board.setting)
    assert agent.learn(env, 1).episodes == 3


def test_a_figure_is_computed_judged_and_reported(tmp_path):
    out = str(tmp_path)
    assert "reproduced" in command("paper", "dithering", "--seeds", "1", "--executor", "serial", "--out", out)
    command("report", out)
    assert (tmp_path / "dithering.svg").exists()
    assert (tmp_path / "report.html").exists()
