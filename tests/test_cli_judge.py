"""`rlsvi judge`: what a saved agent is worth, by a log."""

import json
import sys

import gymnasium as gym
import polars as pl
import pytest

import rlsvi
from command_line import run
from contract.environments import numbered

pytestmark = pytest.mark.filterwarnings("always:importance sampling rests on")


@pytest.fixture(scope="module")
def log():
    return rlsvi.record(numbered(), None, 12, seed=4)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))


def test_the_command_prints_what_value_of_returns(log):
    agent = rlsvi.RLSVI(seed=1).fit(log, numbered())
    agent.save("policy.rlsvi")
    log.rename({"reward": "points"}).write_parquet("log.parquet")
    expected = rlsvi.value_of(agent, log, gamma=0.9, level=0.8, seed=2)
    options = ["--gamma", 0.9, "--level", 0.8, "--seed", 2, "--column", "reward=points"]
    done = run("judge", "policy.rlsvi", "log.parquet", *options, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == json.loads(json.dumps(expected.summary()))
    done = run("judge", "policy.rlsvi", "log.parquet", *options)
    assert done.stdout == f"{expected}\n"
    assert "warning: importance sampling rests on" in done.stderr


def test_csv_is_read_by_both_commands():
    log = rlsvi.record(gym.make("FrozenLake-v1"), None, 50, path="log.parquet")
    log.write_csv("log.csv")
    found = []
    for name in ("log.parquet", "log.csv"):
        done = run("fit", name, "--env", "FrozenLake-v1", "--out", f"{name}.rlsvi")
        assert done.exit_code == 0, done.output
        found.append(run("judge", f"{name}.rlsvi", name, "--json").stdout)
    assert found[0] == found[1]
    assert json.loads(found[0])["steps"] == log.height


def test_the_command_knows_the_environment_of_the_agent():
    env = gym.make("FrozenLake-v1")
    log = rlsvi.record(env, None, 50, path="log.parquet")
    done = run("fit", "log.parquet", "--env", "FrozenLake-v1", "--out", "policy.rlsvi")
    assert done.exit_code == 0, done.output
    done = run("judge", "policy.rlsvi", "log.parquet", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["horizon"], found["episodes"], found["steps"]) == (100, 50, log.height)
    done = run(
        "judge", "policy.rlsvi", "log.parquet", "--env", "FrozenLake-v1", "--max-episode-steps", 7, "--json"
    )
    assert json.loads(done.stdout)["horizon"] == 7


def test_errors_of_the_command(log):
    done = run("judge", "policy.rlsvi", "log.parquet")
    assert done.exit_code == 2
    assert "there is no file policy.rlsvi" in done.stderr
    rlsvi.RLSVI(seed=1).fit(log, numbered()).save("policy.rlsvi")
    done = run("judge", "policy.rlsvi", "log.parquet")
    assert done.exit_code == 2
    assert "there is no log log.parquet" in done.stderr
    log.write_parquet("log.parquet")
    done = run("judge", "policy.rlsvi", "log.parquet", "--gamma", 2)
    assert done.exit_code == 2
    assert "gamma must lie in [0, 1]" in done.stderr


def test_the_environment_of_the_file_can_be_changed_and_columns_are_as_for_fit():
    env = gym.make("MountainCar-v0", max_episode_steps=20)
    log = rlsvi.record(env, None, 20, seed=1)
    columns = {"observation": ["position", "speed"], "next_observation": ["position_after", "speed_after"]}
    for name, parts in columns.items():
        values = zip(*log[name].to_list(), strict=True)
        log = log.drop(name).with_columns(pl.Series(part, list(x)) for part, x in zip(parts, values, strict=True))
    log.drop("propensity").write_parquet("log.parquet")
    named = [word for name, parts in columns.items() for word in ("--column", f"{name}={','.join(parts)}")]
    done = run("fit", "log.parquet", "--env", "MountainCar-v0", *named)
    assert done.exit_code == 0, done.output
    options = "judge", "policy.rlsvi", "log.parquet", *named, "--max-episode-steps", 5, "--json"
    done = run(*options)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["horizon"] == 5
    assert rlsvi.load("policy.rlsvi").environment.max_episode_steps is None


OWN = """
import rlsvi

class JudgedHere(rlsvi.RLSVI):
    pass
"""


def test_an_agent_of_ones_own_needs_its_module(log, tmp_path):
    (tmp_path / "judged_here.py").write_text(OWN)
    log.drop("propensity").write_parquet("log.parquet")
    done = run("fit", "log.parquet", "--agent", "judged_here:JudgedHere", "--agent-arg", "horizon=3")
    assert done.exit_code == 0, done.output
    done = run("judge", "policy.rlsvi", "log.parquet", "--import", "judged_here", "--horizon", 3)
    assert done.exit_code == 0, done.output
    done = run("judge", "policy.rlsvi", "log.parquet", "--import", "judged_here", "--max-episode-steps", 3)
    assert done.exit_code != 0
    assert "need --env" in done.output
