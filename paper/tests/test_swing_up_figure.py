"""The runs of the figure on the swing-up of a cart and pole."""

import numpy as np
import pytest

from rlsvi.agents import EpsilonGreedy
from rlsvi.envs import SwingUpEnv
from rlsvi_paper.descendants import swing_up as figure


def test_a_watched_environment_counts_rewarded_steps_and_returns():
    env = figure.Watched(SwingUpEnv())
    env.reset(seed=0)
    env.step(0)
    env.unwrapped.state = (0.0, 0.0, 0.0, 0.0)
    env.step(1)
    env.step(2)
    env.reset()
    env.step(1)
    assert env.up == [2, 0]
    assert env.returns == [pytest.approx(-0.1 + 1 + 0.9), 0.0]


def test_agents_without_noise_have_the_same_ridge_and_bounds():
    noisy, still = figure.SWINGERS[figure.NOISY](0), figure.SWINGERS[figure.GREEDY](0)
    assert still.lam * still.sigma**2 == pytest.approx(noisy.lam * noisy.sigma**2)
    assert still.bounds == noisy.bounds
    assert still.repeat == noisy.repeat == 4
    assert figure.SWINGERS[figure.DITHERING](0).explore == EpsilonGreedy(0.2)
    assert still.explore == noisy.explore != EpsilonGreedy(0.2)


def test_a_run_is_that_of_its_agent_alone():
    found = figure.swung(agent=figure.NOISY, height=-0.5, push_cost=0.0, episodes=3, seed=4)
    env = figure.Watched(SwingUpEnv(-0.5, 0.0))
    agent = figure.SWINGERS[figure.NOISY](int(np.random.SeedSequence(4).generate_state(2, np.uint64)[1]))
    for _ in range(3):
        agent.learn(env, episodes=1)
    assert found["up"] == sum(env.up) / 3
    assert found["rewarded"] == np.mean(np.array(env.up) > 0)
    assert found["late"] == env.returns[-1]
    assert found["score"] == sum(env.returns) / 3 == found["up"], "pushes are free"
