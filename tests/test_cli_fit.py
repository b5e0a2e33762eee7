"""`rlsvi fit`: from a log to a saved agent."""

import json
import subprocess
import sys

import gymnasium as gym
import numpy as np
import polars as pl
import pytest

import rlsvi
from command_line import run
from contract.environments import drifting, numbered
from contract.state import assert_equal, everything

OWN = """
import rlsvi

class Mine(rlsvi.RLSVI):
    pass

def made(env, seed, sigma=1.0):
    assert env.action_space.n == 3
    return Mine(seed=seed, horizon=3, sigma=sigma)

one = Mine(horizon=3)
"""


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))


def test_the_default_agent_of_an_environment(tmp_path):
    env = gym.make("CartPole-v1")
    log = rlsvi.record(env, None, 5, path=tmp_path / "log.parquet")
    done = run("fit", "log.parquet", "--env", "CartPole-v1", "--seed", 3, "--out", "policy.rlsvi", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["episodes"], found["steps"], found["file"]) == (5, log.height, "policy.rlsvi")
    expected = rlsvi.agent_for(env, seed=3).fit(log, env)
    found = rlsvi.load("policy.rlsvi")
    assert str(found.environment) == "CartPole-v1"
    expected.environment = found.environment
    assert_equal(everything(found, tmp_path), everything(expected, tmp_path))
    done = run("evaluate", "policy.rlsvi", "--episodes", 2)
    assert done.exit_code == 0, done.output


def test_spaces_of_the_log_and_other_names(tmp_path):
    log = rlsvi.record(drifting(), None, 5)
    log.rename({"reward": "r"}).write_parquet("log.parquet")
    done = run("fit", "log.parquet", "--column", "reward=r", "--out", "policy.rlsvi")
    assert done.exit_code == 0, done.output
    assert f"TableOrFeatures(gamma=0.99, seed=0) has learned from 5 episodes, {log.height} steps" in done.stdout
    assert rlsvi.load("policy.rlsvi").steps == log.height


def test_an_agent_by_its_name(tmp_path):
    log = rlsvi.record(numbered(), None, 5, path="log.parquet")
    (tmp_path / "own_agents.py").write_text(OWN)
    for name in ("RLSVI", "rlsvi", "own_agents:Mine", "own_agents:one"):
        done = run("fit", "log.parquet", "--agent", name, "--agent-arg", "horizon=3", "--seed", 7)
        assert done.exit_code == 0, done.output
        agent = rlsvi.load("policy.rlsvi")
        assert type(agent).__name__ == ("Mine" if ":" in name else "RLSVI")
        assert (agent.steps, agent.seed) == (log.height, 7)
    done = run("fit", "log.parquet", "--agent", "own_agents:made", "--agent-arg", "sigma=0.5", "--seed", 7)
    assert done.exit_code == 0, done.output
    agent = rlsvi.load("policy.rlsvi")
    assert (agent.steps, agent.seed, agent.sigma) == (log.height, 7, 0.5)


def test_a_log_in_chunks(tmp_path):
    env = gym.make("MountainCar-v0", max_episode_steps=30)
    log = rlsvi.record(env, None, 10, seed=1, path="log.parquet")
    given = "fit", "log.parquet", "--env", "MountainCar-v0", "--chunk", 64, "--agent-arg", "gamma=0.9"
    for name in ("default", "BoundedRLSVI"):
        done = run(*given, "--agent", name, "--seed", 3)
        assert done.exit_code == 0, done.output
        agent, same = rlsvi.load("policy.rlsvi"), rlsvi.BoundedRLSVI(gamma=0.9, seed=3)
        assert agent.steps == log.height
        same.fit("log.parquet", env, chunk=64)
        x = np.array(log["observation"].to_list(), np.float32)
        assert (agent.predict(x, deterministic=True)[0] == same.predict(x, deterministic=True)[0]).all()
    assert "for --agent BoundedRLSVI" in run(*given, "--agent", "psrl").output
    assert "need --env" in run("fit", "log.parquet", "--chunk", 64).output


OTHER = """
import rlsvi

class Elsewhere(rlsvi.RLSVI):
    pass
"""


def command(*arguments):
    """The exit code and stderr of the command in a new process."""
    code = "from rlsvi.cli.app import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.slow
def test_a_saved_agent_of_the_users_own(tmp_path):
    (tmp_path / "elsewhere.py").write_text(OTHER)
    rlsvi.record(gym.make("FrozenLake-v1"), None, 5, path="log.parquet")
    fit = "fit", "log.parquet", "--env", "FrozenLake-v1", "--agent", "elsewhere:Elsewhere"
    assert command(*fit)[0] == 0
    evaluate = "evaluate", "policy.rlsvi", "--episodes", "2", "--quiet"
    code, said = command(*evaluate)
    assert code == 2
    assert "import the module that defines it first, on the command line with --import MODULE" in said
    assert command(*evaluate, "--import", "elsewhere") == (0, "")
    train = "train", "FrozenLake-v1", "--resume", "policy.rlsvi", "--out", "more.rlsvi"
    for arguments in (evaluate, ("watch", "policy.rlsvi"), train):
        done = run(*arguments, "--import", "nowhere")
        assert done.exit_code == 2
        assert "--import names nowhere, but there is no module nowhere" in done.stderr
    done = run(*train, "--episodes", 2, "--evaluate", 1, "--import", "elsewhere")
    assert done.exit_code == 0, done.output


def test_observations_in_several_columns(tmp_path):
    log = rlsvi.record(drifting(), None, 5)
    names = [("observation", "x", "clock"), ("next_observation", "later_x", "later")]
    wide = [pl.col(name).arr.get(i).alias(new) for name, *columns in names for i, new in enumerate(columns)]
    log.with_columns(wide).drop("observation", "next_observation").write_parquet("log.parquet")
    columns = "--column", "observation=x,clock", "--column", "next_observation=later_x,later"
    done = run("fit", "log.parquet", *columns)
    assert done.exit_code == 0, done.output
    assert rlsvi.load("policy.rlsvi").steps == log.height


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("none.parquet",), "there is no log none.parquet"),
        (("log.parquet", "--agent", "Nobody"), "unknown agent 'Nobody' in --agent: `rlsvi list` shows all"),
        (("log.parquet", "--agent", "psrll"), "unknown agent 'psrll' in --agent: did you mean psrl?"),
        (("log.parquet", "--agent", "compare"), "unknown agent 'compare'"),
        (("log.parquet", "--agent", "RLSVI"), "pass horizon="),
        (("log.parquet", "--agent-arg", "horizon"), "--agent-arg takes NAME=VALUE, such as horizon=20"),
        (
            ("log.parquet", "--agent", "RLSVI", "--agent-arg", "horizn=20"),
            "--agent-arg horizn does not go with RLSVI: did you mean horizon?",
        ),
        (("log.parquet", "--agent", "rlsvi", "--agent-arg", "horizn=20"), "did you mean horizon?"),
        (("log.parquet", "--agent-arg", "horizn=20"), "--agent-arg does not go with default"),
        (("log.parquet", "--agent", "json:loads"), "is called with env and seed"),
        (
            ("log.parquet", "--column", "rewards=r"),
            "--column rewards=.. is no column of a log: did you",
        ),
        (("log.parquet", "--column", "reward"), "--column takes NAME=VALUE, such as reward=r"),
        (("cut.parquet",), "cut.parquet cannot be read, is it a whole Parquet file"),
    ],
)
def test_what_cannot_be_fitted_is_said_in_a_line(arguments, said, tmp_path):
    rlsvi.record(numbered(), None, 5, path="log.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "log.parquet").read_bytes()[:-5])
    done = run("fit", *arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert not (tmp_path / "policy.rlsvi").exists()
