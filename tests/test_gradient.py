"""RLSVI by stochastic gradients: its step, the noise of its ensemble, its face, and very many features."""

import gymnasium
import numpy as np
import pytest

import rlsvi
from rlsvi import GradientRLSVI, Problem
from rlsvi.agents.contract import Step
from rlsvi.agents.finite.gradient import NOTHING, GradientPlan, Sparse, nudge, sparse
from rlsvi.bases import StateFeatures
from rlsvi.core.random import normal, reseed, stream
from rlsvi.envs import FiniteMDPEnv
from rlsvi.mdp import FiniteMDP, chain
from rlsvi.simulate.finite import simulate
from test_unknown_noise import noisy_mdp


def test_a_step_is_the_least_of_its_term_and_of_the_way_there():
    rng = np.random.default_rng(0)
    theta, start, mass, then = rng.normal(size=4), rng.normal(size=4), rng.random(4), rng.normal(size=4)
    x, following, n = np.array([0.5, 0.0, -1.0, 2.0]), rng.normal(size=(2, 4)), np.array([1.0, 9.0, 2.0, 5.0])
    target, touched = 0.7 + max(following @ then), x != 0
    held, share = 0.3 + mass, 0.3 / n
    P = np.diag(held + share) + np.outer(x, x)
    wanted = np.linalg.solve(P, held * theta + share * start + target * x)
    expected = np.where(touched, wanted, theta), np.where(touched, 0.9 * mass + x**2 + share, mass)
    rows, one = sparse([0, 0], following, 4, [0, 1]), sparse([0], x[None], 4, [0])
    assert nudge(theta, start, mass, n, then, one, 0.7, rows, 0.3, 0.1)
    np.testing.assert_allclose(theta, expected[0], rtol=1e-12)
    np.testing.assert_allclose(mass, expected[1], rtol=1e-12)


def replayed(X, b, ridge, start, times, nu=0.0):
    """The weights after all transitions were replayed so many times, in random orders."""
    theta, mass, n = start.copy(), np.zeros(len(start)), np.count_nonzero(X, axis=0).astype(float)
    rng, rows = np.random.default_rng(0), [sparse([0], x[None], len(start), [0]) for x in X]
    for _ in range(times):
        for i in rng.permutation(len(X)):
            assert nudge(theta, start, mass, n, theta, rows[i], b[i], NOTHING, ridge, nu)
    return theta


def test_a_table_learns_the_mean_of_its_targets_and_of_its_prior():
    """After T replays of all: ridge (1 + T) times theta_p, T times each target."""
    b = np.random.default_rng(0).normal(size=50)
    for T in (1, 30):
        theta = replayed(np.ones((50, 1)), b, 0.5, np.full(1, 2.0), T)
        assert theta[0] == pytest.approx((T * b.sum() + 0.5 * (1 + T) * 2.0) / (50 * T + 0.5 * (1 + T)), rel=1e-12)


def test_replays_go_to_the_solution_of_the_regression():
    """Features that overlap, some of them rare. What is left of theta_p - solution falls as replays go on."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 4)) * (rng.random((20, 4)) < [0.9, 0.6, 0.6, 0.15])
    b, start, ridge = rng.normal(size=20), rng.normal(size=4) + 3, 4.0
    solution = np.linalg.solve(X.T @ X + ridge * np.eye(4), X.T @ b + ridge * start)
    few, many = (np.abs(replayed(X, b, ridge, start, times) - solution).max() for times in (20, 2000))
    assert many < few / 20
    assert many < 0.01
    free = np.linalg.lstsq(X, b, rcond=None)[0]
    assert np.abs(free - solution).max() > 0.5  # without a prior it would be elsewhere


def test_a_number_that_is_not_finite_is_noticed():
    theta, mass = np.full(1, 1e308), np.zeros(1)
    one = Sparse(np.array([0, 1]), np.zeros(1, np.int64), np.full(1, 1e10))
    assert not nudge(theta, theta.copy(), mass, np.ones(1), theta, one, 0.0, NOTHING, 0.5, 0.0)


MEMBERS, SEEN, REPLAYS, RIDGE = 300, 25, 300, 4.0


def improved(learner, member, noise):
    """The weights of one of the ensemble after its gradient steps."""
    plan = GradientPlan(learner.theta[member].copy(), learner.mass[member].copy(), member)
    learner._improve(plan, noise)
    return plan


def replayed_ensemble(nu):
    """H = 1, one pair, 25 rewards of 1, sigma = 2; the weights, and the solution of each of the ensemble."""
    mdp = FiniteMDP.from_arrays(np.ones((1, 1, 1)), np.ones((1, 1)), horizon=1, start=[1.0])
    agent = GradientRLSVI(lam=1.0, sigma=2.0, ensemble=MEMBERS, updates=1, nu=nu, seed=0)
    agent.learn(FiniteMDPEnv(mdp), episodes=SEEN)
    learner, scratch, weights, solutions = agent._learner, np.zeros(4, np.uint64), [], []
    learner.updates = REPLAYS
    for member in range(MEMBERS):
        weights.append(improved(learner, member, agent._streams[0]).theta[0, 0])
        total = RIDGE * learner.start[member, 0, 0]
        for seen in learner.transitions(0):
            reseed(scratch, learner.keys[member] ^ np.uint64(seen.key))
            total += 1.0 + 2.0 * normal(scratch)
        solutions.append(total / (SEEN + RIDGE))
    return np.array(weights), np.array(solutions)


def test_the_ensemble_is_a_sample_of_the_posterior():
    """Mean 25 / 29, standard deviation 2 / sqrt(29). Of n random draws a mean has a variance of 2^2 / n on top."""
    theta, solutions = replayed_ensemble(0.0)
    uneven = 2.0 * SEEN / (SEEN + RIDGE) / np.sqrt(REPLAYS)
    away = np.sqrt(np.mean((theta - solutions) ** 2)) / uneven
    assert abs(away - 1) < 4 / np.sqrt(2 * MEMBERS)
    mean, spread = SEEN / (SEEN + RIDGE), np.hypot(2.0 / np.sqrt(SEEN + RIDGE), uneven)
    assert abs(theta.mean() - mean) < 4 * spread / np.sqrt(MEMBERS)
    assert abs(theta.std() / spread - 1) < 4 / np.sqrt(2 * MEMBERS)


def test_forgetting_adds_no_more_spread_than_is_said():
    """nu / 2 times the variance of the targets, at most; a share of the prior and the ridge make steps smaller."""
    theta, solutions = replayed_ensemble(0.05)
    added = np.mean((theta - solutions) ** 2) / (0.05 / 2 * 2.0**2)
    assert 0.25 < added < 1 + 4 * np.sqrt(2 / MEMBERS)


def test_what_is_forgotten_is_as_before():
    """Two actions, a memory of three: weights of an action that is not in it are theta_p again."""
    mdp = FiniteMDP.from_arrays(np.ones((1, 2, 1)), np.ones((1, 2)), horizon=1, start=[1.0])
    agent = GradientRLSVI(ensemble=2, updates=3, memory=3, seed=0).learn(FiniteMDPEnv(mdp), episodes=1)
    learner, noise = agent._learner, stream(0)
    for action in (0, 1):
        for _ in range(3):
            step = Step(learner.look(0, 0, None), action, 1.0, None)
            learner.remember([step], learner.plan(False, noise), True)
        for member in (0, 1):
            learner.theta[member], learner.mass[member], _ = improved(learner, member, noise)
        moved = learner.theta[:, 0] != learner.start[:, 0]
        assert moved.tolist() == [[action == 0, action == 1]] * 2
        assert learner.touching.tolist() == [[3.0 * (action == 0), 3.0 * (action == 1)]]


def test_it_learns_a_chain():
    agent = GradientRLSVI(seed=0)
    agent.learn(FiniteMDPEnv(chain(4)), episodes=250)
    env, total = FiniteMDPEnv(chain(4)), 0.0
    for seed in range(40):
        s, _ = env.reset(seed=seed)
        h, done = None, False
        while not done:
            action, h = agent.predict(s, h, deterministic=True)
            s, reward, done, _, _ = env.step(action)
            total += reward
    assert total > 0.5 * 40 * (1 - 1 / 4) ** 3


def test_it_runs_with_a_hundred_thousand_features():
    """It is not to learn here: a matrix of them would take 80 GB a period."""
    half = 50_000

    def near(x):
        phi, j = np.zeros(half), int((float(x[0]) + 1.2) / 1.8 * half)
        phi[max(j - 5, 0) : j + 5] = 0.3
        return phi

    agent = GradientRLSVI(basis=StateFeatures(near), ensemble=2, updates=8, seed=0)
    agent.learn(gymnasium.make("MountainCar-v0", max_episode_steps=8), episodes=5)
    assert agent._learner.theta.shape == (2, 8, 3 * half)
    assert agent.predict(np.array([0.1, 0.0], np.float32))[0] in range(3)


def test_misuse_is_refused():
    for name, value in (("nu", 1.0), ("sigma", rlsvi.InverseGamma())):
        with pytest.raises(ValueError, match=name):
            GradientRLSVI(**{name: value})
    with pytest.raises(TypeError, match="no fused loop"):
        simulate(GradientRLSVI(), Problem(noisy_mdp()), 1)
