"""REINFORCE on the chain, against twins in NumPy and against the exact gradient."""

import math

import numpy as np
import polars as pl
import pytest

from rlsvi import problems
from rlsvi.core.random import stream
from rlsvi.mdp import evaluate
from rlsvi_paper.chain import learning
from rlsvi_paper.chain.dithering import features_of, first_reward_of_policy_gradient
from rlsvi_paper.loops.policy_gradient import estimate, new_rollout, play, reinforce, softmax_policy


def log_chance(phi, theta, states, actions):
    """The logarithm of the probability of the actions of an episode, by a plain softmax."""
    total = 0.0
    for h, (s, a) in enumerate(zip(states, actions, strict=True)):
        values = phi[h, s] @ theta[h]
        total += values[a] - math.log(np.exp(values).sum())
    return total


@pytest.mark.parametrize("features", [None, 3])
def test_the_estimate_is_the_reward_times_the_gradient_of_the_log_probability(features):
    problem = problems.chain(4, features, scale="sqrt(HSA)", seed=1)
    phi = features_of(problem)
    theta = np.random.default_rng(0).standard_normal((3, phi.shape[-1])) / 10
    theta[:, -1] += 0.3
    episode, random = new_rollout(phi), stream(5)
    while play(problem.mdp.table, phi, theta, episode, random) == 0:
        estimate(phi, theta, episode)
        assert not episode.gradient.any()
    estimate(phi, theta, episode)
    assert episode.actions.tolist() == [1, 1, 1]
    for h, k in np.ndindex(theta.shape):
        ends = []
        for step in (1e-6, -1e-6):
            moved = theta.copy()
            moved[h, k] += step
            ends.append(log_chance(phi, moved, episode.states, episode.actions))
        assert episode.gradient[h, k] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-6)


def test_the_policy_is_a_softmax():
    phi = features_of(problems.chain(4, 3, seed=1))
    theta = np.random.default_rng(0).standard_normal((3, 3))
    values = np.einsum("hsak,hk->hsa", phi, theta)
    values -= values.max(axis=2, keepdims=True)
    expected = np.exp(values) / np.exp(values).sum(axis=2, keepdims=True)
    np.testing.assert_allclose(softmax_policy(phi, theta), expected, atol=1e-12)


@pytest.mark.parametrize("settings", [{"length": 4, "features": None}, {"length": 5, "features": 3}], ids=str)
def test_the_first_reward_of_a_policy_gradient_comes_as_to_random_play(settings):
    runs, N = 300, settings["length"]
    found = pl.DataFrame(
        [
            first_reward_of_policy_gradient(**settings, step_size=1.0, seed=seed, limit=10**6)
            for seed in range(runs)
        ]
    )
    chance = learning.success(N) / 2 ** (N - 1)
    sd_of_mean = math.sqrt(1 - chance) / chance / math.sqrt(runs)
    assert abs(found["time"].mean() - 1 / chance) < 4 * sd_of_mean
    assert found["gradient"].max() == 0
    assert found["uneven"].max() < 1e-12
    np.testing.assert_allclose(found["regret"], found["time"] * (learning.success(N) - chance), rtol=1e-9)


def test_a_run_that_is_given_up_took_forever():
    found = first_reward_of_policy_gradient(length=30, features=None, step_size=1.0, seed=0, limit=50)
    assert found["time"] == math.inf
    assert found["regret"] == pytest.approx(50 * learning.success(30), rel=1e-6)


def test_where_rewards_are_frequent_the_estimates_are_not_zero():
    """In a river with a reward at its mouth REINFORCE learns, so that its zeros on the chain say something."""
    problem = problems.river_swim(3, 4)
    phi, t = features_of(problem), problem.mdp.table
    theta, episode, random = np.zeros((4, phi.shape[-1])), new_rollout(phi), stream(0)
    before = evaluate(problem.mdp, softmax_policy(phi, theta))[0]
    for _ in range(3000):
        play(t, phi, theta, episode, random)
        estimate(phi, theta, episode)
        theta += 1.0 * episode.gradient
    after = evaluate(problem.mdp, softmax_policy(phi, theta))[0]
    assert t.start @ after > 1.05 * (t.start @ before)
    assert reinforce(t, phi, theta, 1.0, 10**4, episode, random)[1]
