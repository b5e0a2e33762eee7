"""`rlsvi.evaluate`: fresh episodes, and what is said of them."""

import gymnasium as gym
import numpy as np
import polars as pl
import pytest

import rlsvi
from rlsvi.envs.task import play
from rlsvi.study.evaluation import Evaluation


class Count(gym.Env):
    """Pays the first number drawn, three times; or goes on for ever."""

    observation_space, action_space = gym.spaces.Discrete(2), gym.spaces.Discrete(2)

    def __init__(self, ends=True):
        self.ends = ends

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.pays, self.t = float(self.np_random.integers(10)), 0
        return 0, {"action_mask": np.array([0, 1])}

    def step(self, action):
        assert action == 1
        self.t += 1
        return self.t % 2, self.pays, self.ends and self.t == 3, False, {}


class Player:
    """Remembers how it was asked."""

    def __init__(self):
        self.asked = []

    def predict(self, observation, state=None, episode_start=None, deterministic=False, action_mask=None):
        self.asked.append((observation, state, deterministic, action_mask is not None))
        return 1, 10 if state is None else state + 1


def test_the_calls_and_the_numbers():
    player = Player()
    found = rlsvi.evaluate(player, Count(), 5, seed=3)
    assert player.asked[:4] == [(0, None, True, True), (1, 10, True, False), (0, 11, True, False), player.asked[0]]
    assert (found.steps, found.cut, len(found.returns)) == (15, 0, 5)
    assert set((found.returns / 3).tolist()) <= set(range(10))
    assert len(set(found.returns.tolist())) > 1  # of ten numbers, five times the same: 1e-4
    assert found.mean == pytest.approx(np.mean(found.returns))
    assert found.error == pytest.approx(np.std(found.returns, ddof=1) / 5**0.5)
    half = 2.7764451 * found.error  # Student's t of 4 degrees of freedom
    assert found.interval == pytest.approx((found.mean, found.mean - half, found.mean + half))
    assert np.array_equal(rlsvi.evaluate(player, Count(), 5, seed=3).returns, found.returns)
    assert not np.array_equal(rlsvi.evaluate(player, Count(), 5, seed=4).returns, found.returns)
    rlsvi.evaluate(player, Count(), 1, deterministic=False)
    assert player.asked[-1][2] is False


def test_an_episode_without_end_is_cut_off_and_said_so():
    found = rlsvi.evaluate(Player(), Count(ends=False), 2, limit=7)
    assert (found.steps, found.cut) == (14, 2)
    assert str(found).endswith("; 2 did not end and were cut off")
    assert str(rlsvi.evaluate(Player(), Count(ends=False), 1, limit=7)).endswith("; 1 did not end and was cut off")
    shown = []
    assert play(Player(), Count(), 0, limit=2, show=lambda: shown.append(1))[1:] == (2, False)
    assert len(shown) == 3


def test_the_horizon_of_the_agent_is_named_if_it_cuts_off_episodes():
    env = gym.make("CliffWalking-v1", max_episode_steps=20)
    agent = rlsvi.RLSVI(horizon=3, seed=0).learn(env, 1)
    found = rlsvi.evaluate(agent, env, 2)
    assert (found.cut, found.horizon) == (2, 3)
    assert str(found).endswith("were cut off after the agent's horizon of 3 steps")
    assert rlsvi.evaluate(agent, env, 2, limit=2).horizon == 0, "the limit is shorter"


def test_what_is_printed():
    assert str(Evaluation(np.array([1.0, 3.0]), 5, 0)) == (
        "mean return 2.00 of 2 fresh episodes (standard error 1, 95% interval -10.71 to 14.71), "
        "smallest 1.00, largest 3.00"
    )
    one = Evaluation(np.array([1.0]), 5, 0)
    assert str(one) == "mean return 1.00 of 1 fresh episode"
    assert one.summary()["low"] is None


def test_none_is_random_play_and_a_function_plays_as_in_a_recording():
    env = gym.make("FrozenLake-v1", is_slippery=False)
    log = rlsvi.record(env, episodes=30, seed=3)
    recorded = log.group_by("episode", maintain_order=True).agg(pl.col("reward").sum())["reward"].to_list()
    assert rlsvi.evaluate(None, env, 30, seed=3).returns.tolist() == recorded
    path = {0: 2, 1: 2, 2: 1, 6: 1, 10: 1, 14: 2}
    assert rlsvi.evaluate(path.get, env, 2).returns.tolist() == [1.0, 1.0]
    assert rlsvi.evaluate(lambda s: [0.0, 1.0], Count(), 2).steps == 6, "it may return probabilities"
    assert rlsvi.evaluate(None, Count(), 9, limit=1).steps == 9, "only the legal action is played"


@pytest.mark.parametrize("wrong", [3, rlsvi.RLSVI, lambda: 0])
def test_what_cannot_play_is_named(wrong):
    with pytest.raises(TypeError, match=r"^agent must be"):
        rlsvi.evaluate(wrong, Count(), 2)


def test_an_agent_plays_as_many_periods_as_it_knows():
    env = gym.make("rlsvi/Chain-v0", length=9)
    agent = rlsvi.PSRL(horizon=4, seed=0).learn(env, 3, evaluate_every=1)
    found = rlsvi.evaluate(agent, env, 2)
    assert (found.steps, found.cut) == (8, 2)
    assert rlsvi.record(env, agent, 2).height == 8
