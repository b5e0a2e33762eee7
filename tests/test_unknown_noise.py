"""RLSVI with noise that is not known, against a dense twin from raw episodes."""

import numpy as np
import pytest

import rlsvi
from rlsvi import RLSVI, InverseGamma, Problem
from rlsvi.bases import Dense, StateFeatures, Tabular
from rlsvi.core.random import bits, gamma, normal, stream
from rlsvi.mdp import FiniteMDP
from rlsvi.simulate.finite import simulate
from twin import Rows, assert_same, raw_episodes, regression, ridge_regression, state_of
from values import action_values

S, A, H = 4, 2, 3


def noisy_mdp(std=0.5, seed=0):
    rng = np.random.default_rng(seed)
    return FiniteMDP.from_arrays(
        rng.dirichlet(np.ones(S), size=(S, A)),
        rng.normal(size=(S, A)),
        horizon=H,
        start=np.append(rng.dirichlet(np.ones(S - 1)), 0.0),
        rewards="gaussian",
        reward_std=std,
        terminal_reward=rng.normal(size=S),
        absorbing=np.arange(S) == S - 1,
    )


def basis_of(kind):
    table = np.random.default_rng(1).normal(size=(S, A, 3))
    return {
        "tabular": Tabular(),
        "dense": Dense(table),
        "blocks": StateFeatures(lambda s: table[s, 0]),
    }[kind]


def twin_plan(agent, episodes, rows, noise):
    """Algorithm 1 with the conjugate draw of sigma_h^2, from all raw episodes."""
    learner, prior = agent._learner, agent.sigma
    blocks, d = learner.features.blocks, learner.features.dim
    bits(noise)
    theta, sigma = np.zeros((H + 1, blocks * d)), np.zeros(H)
    for h in reversed(range(H)):
        X, b = regression(episodes, h, rows, theta[h + 1])
        m = ridge_regression(X, b, agent.lam, agent.prior_mean)
        misfit = ((X @ m - b) ** 2).sum() + agent.lam * ((m - agent.prior_mean) ** 2).sum()
        sigma[h] = np.sqrt((prior.scale + misfit / 2) / gamma(noise, prior.shape + len(b) / 2))
        P = agent.lam * np.eye(blocks * d) + X.T @ X
        w = np.full(blocks * d, np.nan)
        for block in learner.mind.memory.live[h, : learner.mind.memory.lives[h]]:
            part = slice(block * d, (block + 1) * d)
            z = np.array([normal(noise) for _ in range(d)])
            w[part] = sigma[h] * np.linalg.solve(np.linalg.cholesky(P[part, part]).T, z)
        theta[h] = m + np.nan_to_num(w)  # blocks that are not alive touch no state that has been seen
    return theta[:H], sigma


@pytest.mark.parametrize("kind", ["tabular", "dense", "blocks"])
def test_a_plan_is_the_dense_conjugate_posterior(kind):
    mdp = noisy_mdp()
    problem = Problem(mdp, basis_of(kind))
    agent = RLSVI(lam=0.7, sigma=InverseGamma(2.0, 0.3), prior_mean=0.4, seed=3)
    history = simulate(agent, problem, 60, trace=True)
    episodes = raw_episodes(history.trace, mdp)
    assert min(len(e) for e in episodes) < H  # some end early
    rows = Rows(problem.basis.bind(S, A, H, 0))
    values = agent._learner.plan(True, stream(5))
    theta, sigma = twin_plan(agent, episodes, rows, stream(5))
    np.testing.assert_allclose(values.sigma, sigma, rtol=1e-9)
    for h in range(H):
        live = agent._learner.mind.memory.alive[h]
        found = values.theta[h][live]
        np.testing.assert_allclose(found, theta[h].reshape(len(live), -1)[live], rtol=1e-7, atol=1e-9)


def test_blocks_without_data_are_drawn_with_the_sigma_of_their_period():
    agent = RLSVI(lam=4.0, sigma=InverseGamma(3.0, 2.0), seed=0)
    simulate(agent, Problem(noisy_mdp()), 1)
    learner, noise = agent._learner, stream(1)
    unseen = next(s for s in range(S - 1) if learner.mind.rows[1, s] < 0)
    draws = []
    for _ in range(2000):
        values = learner.plan(True, noise)
        draws.append(action_values(agent, values, 1, unseen)[0] / values.sigma[1])
    spread = 1 / np.sqrt(4.0)
    assert abs(np.std(draws) / spread - 1) < 4 / np.sqrt(2 * len(draws))


def test_the_noise_of_many_rewards_is_found():
    """H = 1, a table: sigma^2 is drawn around the variance of the rewards."""
    mdp = FiniteMDP.from_arrays(
        np.ones((1, 2, 1)), np.array([[1.0, 1.1]]), horizon=1, start=[1.0], rewards="gaussian", reward_std=0.3
    )
    agent = RLSVI(sigma=InverseGamma(), seed=1)
    simulate(agent, Problem(mdp), 4000)
    noise = stream(0)
    drawn = [agent._learner.plan(True, noise).sigma[0] for _ in range(200)]
    assert abs(np.mean(drawn) / 0.3 - 1) < 4 / np.sqrt(2 * 4000) + 0.01  # the prior adds half of 1 in 4000 x .045
    assert abs(np.std(drawn) * np.sqrt(2 * 4000) / 0.3 - 1) < 4 / np.sqrt(2 * 200)


def test_learning_goes_on_after_loading_and_in_either_loop(tmp_path):
    mdp = noisy_mdp()
    whole, agent = (RLSVI(sigma=InverseGamma(1.0, 0.1), seed=2) for _ in range(2))
    simulate(whole, Problem(mdp), 50)
    agent.learn(rlsvi.envs.FiniteMDPEnv(mdp), episodes=20).save(tmp_path / "a")
    loaded = rlsvi.load(tmp_path / "a")
    simulate(loaded, Problem(mdp), 30)
    assert loaded.sigma == InverseGamma(1.0, 0.1)
    assert_same(state_of(loaded), state_of(whole))


def test_bad_noise_is_refused():
    with pytest.raises(ValueError, match="sigma must be a positive"):
        RLSVI(sigma="unknown")
    with pytest.raises(ValueError, match="shape must be a positive"):
        RLSVI(sigma=InverseGamma(0.0))
