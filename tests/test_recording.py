"""`rlsvi.record`: what was played, and how likely it was."""

import gymnasium as gym
import numpy as np
import polars as pl
import pytest

import rlsvi
from contract.environments import drifting, numbered

COLUMNS = ["episode", "step", "observation", "action", "reward", "next_observation", "terminated", "truncated"]


def test_a_log_holds_what_was_played(tmp_path):
    agent = rlsvi.RLSVI(seed=1).learn(numbered(), episodes=20)
    log = rlsvi.record(numbered(), agent, 30, seed=5, path=tmp_path / "log.parquet")
    assert log.columns == [*COLUMNS, "mask", "next_mask", "propensity"]
    returns = log.group_by("episode", maintain_order=True).agg(pl.col("reward").sum())["reward"].to_numpy()
    assert returns == pytest.approx(rlsvi.evaluate(agent, numbered(), 30, seed=5).returns)
    assert (log["propensity"] == 1.0).all()
    assert log.equals(rlsvi.record(numbered(), agent, 30, seed=5))
    assert pl.read_parquet(tmp_path / "log.parquet").equals(log)


def test_propensities_are_the_shares_of_actions():
    agent = rlsvi.RLSVI(seed=1).learn(numbered(), episodes=20)
    log = rlsvi.record(numbered(), agent, 3000, seed=5, epsilon=0.5).filter(pl.col("step") == 0)
    shares = log.group_by("observation", "action").agg(pl.len(), pl.col("propensity").unique())
    assert (shares["propensity"].list.len() == 1).all()
    for (_,), part in shares.group_by("observation"):
        n = part["len"].sum()
        for many, (chance,) in part.select("len", "propensity").iter_rows():
            assert many / n == pytest.approx(chance, abs=4 * np.sqrt(chance * (1 - chance) / n) + 1e-12)


def test_random_actions_are_legal_and_equally_likely():
    log = rlsvi.record(numbered(), None, 200)
    legal = log["mask"].list.sum()
    assert (log["propensity"] - 1 / legal).abs().max() < 1e-15
    assert "propensity" not in rlsvi.record(numbered(), rlsvi.RLSVI(seed=1), 3, learning=True).columns
    agent = rlsvi.RLSVI(seed=1).learn(numbered(), episodes=20)
    assert "propensity" not in rlsvi.record(numbered(), agent, 3, deterministic=False).columns


def test_an_episode_beyond_the_limit_is_cut_off():
    env = gym.make("CartPole-v1")
    log = rlsvi.record(env, None, 3, limit=4)
    assert log["step"].to_list() == [0, 1, 2, 3] * 3
    assert not log["truncated"].any()
    agent = rlsvi.agent_for(env, seed=0).fit(log, env)
    assert (agent.episodes, agent.steps) == (3, 12)


def test_arguments():
    with pytest.raises(TypeError, match="agent must have a method predict"):
        rlsvi.record(drifting(), 7, 1)
    with pytest.raises(ValueError, match="epsilon must lie in"):
        rlsvi.record(drifting(), None, 1, epsilon=2)
    with pytest.raises(TypeError, match="learning=True needs an agent that learns"):
        rlsvi.record(drifting(), None, 1, learning=True)
    with pytest.raises(ValueError, match="episodes must be a whole number of at least 1"):
        rlsvi.record(drifting(), None, 0)
