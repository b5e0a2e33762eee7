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


class Coin:
    """Acts at random whatever it is asked for."""

    def __init__(self):
        self.random = np.random.default_rng(0)

    def predict(self, observation, state=None, deterministic=True, action_mask=None):
        return int(self.random.choice(np.flatnonzero(action_mask))), state


def test_propensities_are_left_out_where_they_are_not_known():
    assert "propensity" not in rlsvi.record(numbered(), Coin(), 5, epsilon=0.2).columns
    assert "propensity" in rlsvi.record(numbered(), Coin(), 5, epsilon=1.0).columns
    assert "propensity" not in rlsvi.record(drifting(), lambda observation: 1, 5).columns

    class Moody(rlsvi.RLSVI):
        def predict(self, *given, **options):
            return Coin().predict(*given, **options)

    agent = Moody(seed=1).learn(numbered(), episodes=5)
    assert "propensity" not in rlsvi.record(numbered(), agent, 5).columns


def test_a_policy_may_give_probabilities():
    chances = np.array([0.7, 0.3, 0.0])
    log = rlsvi.record(drifting(), lambda observation: chances, 300, epsilon=0.1)
    action, legal = log["action"].to_numpy(), log["mask"].list.sum().fill_null(3).to_numpy()
    assert log["propensity"].to_numpy() == pytest.approx(0.1 / legal + 0.9 * chances[action])
    assert np.bincount(action, minlength=3) / len(action) == pytest.approx(0.1 / 3 + 0.9 * chances, abs=0.05)
    with pytest.raises(ValueError, match=r"probabilities that add up to 0\.5"):
        rlsvi.record(drifting(), lambda observation: chances / 2, 1)
    with pytest.raises(ValueError, match="must give an action, 0 to 2, or 3 probabilities, got"):
        rlsvi.record(drifting(), lambda observation: "left", 1)


def test_an_illegal_action_of_a_policy():
    with pytest.raises(ValueError, match="policy gives action 7: actions are 0 to 2"):
        rlsvi.record(drifting(), lambda observation: 7, 1)
    mask = rlsvi.record(numbered(), None, 1)["mask"][0].to_numpy()
    illegal = int(np.flatnonzero(~mask)[0])
    with pytest.raises(ValueError, match=f"policy gives action {illegal}: the mask does not allow it"):
        rlsvi.record(numbered(), lambda observation: illegal, 1)


def test_a_missing_folder_is_found_before_playing(tmp_path):
    env = gym.wrappers.TransformReward(drifting(), lambda reward: pytest.fail("it was played"))
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        rlsvi.record(env, None, 1, path=tmp_path / "none" / "log.parquet")
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        rlsvi.record(env, None, 1, path=tmp_path)


class Failing(gym.Wrapper):
    """Fails in some step."""

    count = 0

    def step(self, action):
        self.count += 1
        if self.count == 50:
            raise OSError("the sensor is gone")
        return super().step(action)


@pytest.mark.parametrize("piece", [7, 10_000])
def test_finished_episodes_are_kept_when_the_environment_fails(piece, tmp_path, monkeypatch):
    monkeypatch.setattr("rlsvi.offline.recorder.PIECE", piece)
    path = tmp_path / "log.parquet"
    whole = rlsvi.record(numbered(), None, 100)
    with pytest.raises(OSError, match="the sensor is gone") as raised:
        rlsvi.record(Failing(numbered()), None, 100, path=path)
    kept = pl.read_parquet(path)
    assert kept.equals(whole[: kept.height])
    assert whole["episode"][kept.height] == whole["episode"][49] == kept["episode"].max() + 1
    assert raised.value.__notes__ == [
        f"{path} contains the {kept['episode'].max() + 1} episodes before, {kept.height} steps"
    ]
    with pytest.raises(OSError) as raised:
        rlsvi.record(Failing(numbered()), None, 100)
    assert "path=" in raised.value.__notes__[0]
    path.unlink()
    agent = rlsvi.RLSVI(seed=1)
    with pytest.raises(OSError):
        rlsvi.record(Failing(numbered()), agent, 100, learning=True, path=path)
    fitted = rlsvi.RLSVI(seed=1).fit(path, numbered())
    assert fitted.episodes == agent.episodes > 0


def test_agents_that_learn_for_steps():
    log = rlsvi.record(numbered(), rlsvi.ContinualRLSVI(seed=0, gamma=0.9), steps=30, learning=True)
    assert log.height == 30
    with pytest.raises(TypeError, match=r"needs an agent with learn\(env, episodes=..\).*record\(.., steps=..\)"):
        rlsvi.record(numbered(), rlsvi.ContinualRLSVI(seed=0, gamma=0.9), 3, learning=True)
    agent = rlsvi.RLSVI(seed=1)
    assert rlsvi.record(numbered(), agent, steps=30, learning=True).height == agent.steps >= 30

    class Elsewhere(Coin):
        def learn(self, total_timesteps):
            pass

    with pytest.raises(
        TypeError, match=r"Elsewhere has learn\(total_timesteps\): define learn\(self, env, episodes\)"
    ):
        rlsvi.record(numbered(), Elsewhere(), 3, learning=True)
    with pytest.raises(ValueError, match="steps goes with learning=True"):
        rlsvi.record(numbered(), None, steps=3)


def test_arguments():
    with pytest.raises(TypeError, match="policy must be an agent, anything else with a method predict"):
        rlsvi.record(drifting(), 7, 1)
    with pytest.raises(ValueError, match="epsilon must lie in"):
        rlsvi.record(drifting(), None, 1, epsilon=2)
    with pytest.raises(TypeError, match="learning=True needs an agent that learns"):
        rlsvi.record(drifting(), None, 1, learning=True)
    with pytest.raises(ValueError, match="episodes must be a whole number of at least 1"):
        rlsvi.record(drifting(), None, 0)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"epsilon": "half"}, r"epsilon must lie in \[0, 1\], got 'half'"),
        ({"epsilon": None}, "epsilon must lie in"),
        ({"epsilon": True}, "epsilon must lie in"),
        ({"epsilon": np.nan}, "epsilon must lie in"),
        ({"epsilon": [0.5]}, "epsilon must lie in"),
        ({"seed": "one"}, "seed must be a whole number"),
        ({"seed": None}, "seed must be a whole number"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"path": 3}, "path must be the name of a file, got 3"),
        ({"path": b"log.parquet"}, "path must be the name of a file"),
        ({"path": "log\0.parquet"}, "path must be the name of a file"),
        ({"episodes": None, "steps": "many", "learning": True}, "steps must be a whole number"),
        ({"policy": 3}, "policy must be an agent, anything else with a method predict, a function"),
        ({"policy": rlsvi.RLSVI}, "policy must be an agent"),
        ({"policy": lambda: 0}, "policy must be a function of one observation"),
        ({"policy": lambda s: None}, "policy must give an action, 0 to 2, or 3 probabilities, got None"),
        ({"policy": lambda s: "left"}, "policy must give an action, 0 to 2, or 3 probabilities, got 'left'"),
        ({"policy": lambda s: [[1], [1, 2]]}, "policy must give an action"),
    ],
)
def test_arguments_that_are_wrong(options, match):
    with pytest.raises((TypeError, ValueError), match=match):
        rlsvi.record(numbered(), **{"policy": rlsvi.RLSVI(seed=1), "episodes": 2, **options})


def test_a_policy_may_return_an_action_without_a_state():
    class Plain:
        def __init__(self, given):
            self.given = given

        def predict(self, observation, state=None, deterministic=True, action_mask=None):
            return self.given

    assert (rlsvi.record(numbered(), Plain(1), 3)["action"] == 1).all()
    for wrong in (None, "left", (0, 1, 2, 3)):
        with pytest.raises(ValueError, match="policy must give an action, 0 to 2"):
            rlsvi.record(numbered(), Plain(wrong), 3)
