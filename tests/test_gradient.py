"""RLSVI by stochastic gradients: its step, the noise of its ensemble, its face, and very many features."""

import numpy as np
import pytest

import rlsvi
from rlsvi import GradientRLSVI, Problem
from rlsvi.agents.archive import ArchiveError
from rlsvi.agents.gradient import nudge, sparse
from rlsvi.bases import StateFeatures
from rlsvi.envs import FiniteMDPEnv
from rlsvi.mdp import FiniteMDP, chain
from rlsvi.simulate import simulate
from test_saving import CODE, Drift
from test_unknown_noise import noisy_mdp

EMPTY = np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0)


def state_of(agent):
    learner = agent._learner
    found = [agent._streams, learner.theta, learner.mass, learner.keys, np.array([learner.episodes, agent.steps])]
    for past in learner.past:
        for seen in past:
            found += [np.array([seen.key], np.uint64), np.array([seen.reward]), *seen.phi, *seen.following]
    return [array.tobytes() for array in found]


def test_a_step_is_that_of_a_kalman_filter_with_a_diagonal_covariance():
    rng = np.random.default_rng(0)
    theta, mass, then = rng.normal(size=4), rng.random(4), rng.normal(size=4)
    x, following = np.array([0.5, 0.0, -1.0, 2.0]), rng.normal(size=(2, 4))
    target = 0.7 + max(following @ then)
    C = np.diag(1 / (0.3 + mass))
    wanted = theta + C @ x * (target - x @ theta) / (1 + x @ C @ x)
    rows = sparse([0, 0], following, 4, [0, 1])
    one = sparse([0], x[None], 4, [0])
    expected_mass = np.where(x != 0, 0.9 * mass + x**2, mass)
    assert nudge(theta, mass, then, *one[1:], 0.7, *rows, 0.3, 0.1)
    np.testing.assert_allclose(theta, wanted, rtol=1e-12)
    np.testing.assert_allclose(mass, expected_mass, rtol=1e-12)


def test_a_table_learns_the_mean_of_its_targets():
    theta, mass, rng = np.full(1, 2.0), np.zeros(1), np.random.default_rng(0)
    b = rng.normal(size=50)
    for target in b:
        assert nudge(theta, mass, theta, np.zeros(1, np.int64), np.ones(1), target, *EMPTY, 0.5, 0.0)
    assert theta[0] == pytest.approx((b.sum() + 0.5 * 2.0) / 50.5, rel=1e-12)


def test_a_number_that_is_not_finite_is_noticed():
    theta, mass = np.full(1, 1e308), np.zeros(1)
    assert not nudge(theta, mass, theta, np.zeros(1, np.int64), np.full(1, 1e10), 0.0, *EMPTY, 0.5, 0.0)


def test_the_ensemble_has_the_spread_of_the_posterior():
    """H = 1, one pair, n rewards: weights around their mean with standard deviation sigma / sqrt(n + ridge)."""
    mdp = FiniteMDP.from_arrays(np.ones((1, 1, 1)), np.ones((1, 1)), horizon=1, start=[1.0])
    agent = GradientRLSVI(lam=1.0, sigma=2.0, ensemble=400, updates=1, nu=0.0, seed=0)
    agent.learn(FiniteMDPEnv(mdp), episodes=25)
    learner = agent._learner
    assert abs(learner.theta.std() / 1.0 - 1) < 0.2  # before much is learned: theta_p
    learner.agent.updates = 1000
    for member in range(400):
        learner._learn(member, agent._streams[0])
    assert abs(learner.theta.mean() - 1.0) < 4 * 0.4 / np.sqrt(400) + 0.01
    assert abs(learner.theta.std() / 0.4 - 1) < 4 / np.sqrt(2 * 400) + 0.05  # replays are uneven


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


PATTERNS = {
    "table": (GradientRLSVI(seed=5, updates=4, ensemble=3), lambda: FiniteMDPEnv(noisy_mdp()), None),
    "any observation": (
        GradientRLSVI(seed=5, updates=4, ensemble=3, memory=7, basis=CODE, reward_offset=-1.0),
        Drift,
        CODE,
    ),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_learning_goes_on_after_loading_bit_for_bit(name, tmp_path):
    pattern, env, basis = PATTERNS[name]
    whole, agent = pattern.clone().learn(env(), episodes=30), pattern.clone()
    for part in (0, 8, 1, 21):
        agent.save(tmp_path / "agent.rlsvi")
        agent = rlsvi.load(tmp_path / "agent.rlsvi", basis)
        agent.learn(env(), episodes=part)
    assert type(agent) is GradientRLSVI
    assert state_of(agent) == state_of(whole)
    assert max(len(past) for past in agent._learner.past) == min(30, pattern.memory)


def test_a_hundred_thousand_features_fit():
    """A matrix of them would take 80 GB a period."""
    half = 50_000

    def near(x):
        phi, j = np.zeros(half), int((float(x[0]) + 3) / 6 * half)
        phi[max(j - 5, 0) : j + 5] = 0.3
        return phi

    agent = GradientRLSVI(basis=StateFeatures(near), ensemble=2, updates=8, seed=0)
    env = Drift()
    agent.learn(env, episodes=5)
    assert agent._learner.theta.shape == (2, 8, 3 * half)
    assert agent.predict(np.array([0.1]))[0] in range(3)


def test_misuse_is_refused(tmp_path):
    for name, value in (
        ("ensemble", 0),
        ("updates", 1.5),
        ("memory", 0),
        ("nu", 1.0),
        ("sigma", rlsvi.InverseGamma()),
    ):
        with pytest.raises(ValueError, match=name):
            GradientRLSVI(**{name: value})
    with pytest.raises(TypeError, match="no compiled loop"):
        simulate(GradientRLSVI(), Problem(noisy_mdp()), 1)
    agent = GradientRLSVI(seed=0, ensemble=2).learn(FiniteMDPEnv(noisy_mdp()), episodes=3)
    agent.save(tmp_path / "a")
    header, arrays = rlsvi.agents.archive.read(tmp_path / "a")
    for name, change in (("phi.index", 10**6), ("theta", np.nan), ("count", 1)):
        damaged = arrays | {name: arrays[name] + arrays[name].dtype.type(change)}
        rlsvi.agents.archive.write(tmp_path / "b", header, damaged)
        with pytest.raises(ArchiveError, match="damaged"):
            rlsvi.load(tmp_path / "b")
