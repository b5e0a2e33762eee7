"""A little of everything, on whatever versions are installed; `make smoke-lowest` runs it on the lowest ones."""

import subprocess
import sys

import numpy as np
import pytest

import rlsvi


def command(*arguments, folder=None):
    done = subprocess.run(
        [sys.executable, "-m", "rlsvi", *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_public_name_can_be_had():
    assert all(getattr(rlsvi, name) is not None for name in rlsvi.__all__)


def test_an_agent_learns_and_goes_on_from_its_file(tmp_path):
    env = rlsvi.envs.FiniteMDPEnv(rlsvi.mdp.chain(5))
    agent = rlsvi.RLSVI(seed=1).learn(env, episodes=5)
    agent.save(tmp_path / "agent.rlsvi")
    again = rlsvi.load(tmp_path / "agent.rlsvi")
    assert again.episodes == agent.episodes == 5
    assert again.predict(0, deterministic=True) == agent.predict(0, deterministic=True)


def test_a_comparison_has_a_table_and_a_picture(tmp_path):
    agents = {"rlsvi": rlsvi.RLSVI(), "dithering": rlsvi.LSVI(explore=rlsvi.EpsilonGreedy(0.1))}
    runs = rlsvi.compare(agents, rlsvi.problems.chain(5), episodes=20, seeds=2, progress=False)
    assert runs.summary()["agent"].to_list() == ["rlsvi", "dithering"]
    assert np.isfinite(runs.frame["regret"].to_numpy()).all()
    runs.plot(tmp_path / "regret.png")
    assert (tmp_path / "regret.png").stat().st_size > 1000


@pytest.mark.parametrize("arguments", [("--help",), ("list",), ("train", "--help")])
def test_the_command_line_answers(arguments):
    assert command(*arguments)


@pytest.mark.slow
def test_the_command_line_trains_and_evaluates(tmp_path):
    train = ("train", "rlsvi/Chain-v0", "--env-arg", "length=5", "--episodes", 5, "--evaluate", 2)
    command(*train, "--out", "agent.rlsvi", "--quiet", folder=tmp_path)
    assert (tmp_path / "agent.rlsvi").exists()
    assert (tmp_path / "agent.png").exists()
    assert "mean" in command("evaluate", "agent.rlsvi", "--episodes", 2, "--quiet", folder=tmp_path)
