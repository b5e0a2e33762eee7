"""`rlsvi fit`: from a log to a saved agent."""

import json
import shlex
import sys

import gymnasium as gym
import pytest
from typer.testing import CliRunner

import rlsvi
from contract.environments import drifting, numbered
from contract.state import assert_equal, everything
from pages import blocks, commands
from rlsvi.cli import app

OWN = """
import rlsvi

class Mine(rlsvi.RLSVI):
    pass
"""


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


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


def test_the_page_on_logged_data():
    page = "docs/how-to/logged-data.md"
    exec(blocks(page)[0], {})
    for command in commands(page):
        done = run(*shlex.split(command))
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
    for name in ("RLSVI", "own_agents:Mine"):
        done = run("fit", "log.parquet", "--agent", name, "--agent-arg", "horizon=3")
        assert done.exit_code == 0, done.output
        agent = rlsvi.load("policy.rlsvi")
        assert type(agent).__name__ == name.split(":")[-1]
        assert agent.steps == log.height


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("none.parquet",), "there is no log none.parquet"),
        (("log.parquet", "--agent", "Nobody"), "there is no agent 'Nobody'"),
        (("log.parquet", "--agent", "compare"), "there is no agent 'compare'"),
        (("log.parquet", "--agent", "RLSVI"), "pass horizon="),
        (("log.parquet", "--agent-arg", "horizon"), "--agent-arg takes NAME=VALUE, such as horizon=20"),
        (("log.parquet", "--column", "rewards=r"), "columns has 'rewards'"),
        (("cut.parquet",), "cut.parquet is not a whole Parquet file"),
    ],
)
def test_what_cannot_be_fitted_is_said_in_a_line(arguments, said, tmp_path):
    rlsvi.record(numbered(), None, 5, path="log.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "log.parquet").read_bytes()[:-5])
    done = run("fit", *arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert not (tmp_path / "policy.rlsvi").exists()
