"""The lam and sigma of the largest evidence: against a dense twin, and against the truth of synthetic data."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

import rlsvi
from rlsvi import LSVI, RLSVI, ByEvidence, IncrementalRLSVI, Problem
from rlsvi.bases import Dense
from rlsvi.envs import FiniteMDPEnv
from rlsvi.mdp import FiniteMDP
from rlsvi.simulate.finite import simulate
from test_unknown_noise import A, H, S, basis_of, noisy_mdp
from twin import Rows, assert_same, lsvi, raw_episodes, regression, state_of


def log_evidence(episodes, rows, theta, lam, sigma, mean):
    """Every period's targets under N(A mean, sigma^2 I + A A' / lam)."""
    total = 0.0
    for h in range(H):
        X, b = regression(episodes, h, rows, theta[h + 1] if h + 1 < H else None)
        covariance = sigma**2 * np.eye(len(b)) + X @ X.T / lam
        total += multivariate_normal(X @ np.full(X.shape[1], mean), covariance).logpdf(b)
    return total


@pytest.mark.parametrize("kind", ["tabular", "dense", "blocks"])
def test_evidence_is_largest_by_a_dense_twin_too(kind):
    mdp = noisy_mdp(std=0.4)
    problem = Problem(mdp, basis_of(kind))
    agent = RLSVI(lam=0.7, sigma=0.6, prior_mean=0.2, seed=3)
    episodes = raw_episodes(simulate(agent, problem, 50, trace=True).trace, mdp)
    rows = Rows(problem.basis.bind(S, A, H, 0))
    found = rlsvi.evidence(agent)
    theta, _ = lsvi(episodes, rows, H, found.lam * found.sigma**2, 0.2)

    def loss(logs):
        return -log_evidence(episodes, rows, theta, *np.exp(logs), 0.2)

    here = np.log([found.lam, found.sigma])
    assert found.log_evidence == pytest.approx(-loss(here), rel=1e-7)
    best = minimize(loss, here + 0.3, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10})
    np.testing.assert_allclose(here, best.x, atol=2e-4)


@pytest.mark.parametrize("std", [0.05, 0.5, 2.0])
def test_the_noise_and_the_prior_of_synthetic_data_are_found(std):
    """H = 1, 40 weights drawn from N(0, I / lam): n rewards tell sigma to 1/sqrt(2n), they lam to sqrt(2/40)."""
    rng = np.random.default_rng(1)
    K, n, lam = 40, 4000, 4.0
    phi, theta = rng.normal(size=(60, 2, K)), rng.normal(size=K) / np.sqrt(lam)
    mdp = FiniteMDP.from_arrays(
        np.full((60, 2, 60), 1 / 60),
        phi @ theta,
        horizon=1,
        start=np.full(60, 1 / 60),
        rewards="gaussian",
        reward_std=std,
    )
    agent = RLSVI(lam=1.0, sigma=10.0, seed=0)
    simulate(agent, Problem(mdp, Dense(phi)), n)
    found = rlsvi.evidence(agent)
    assert abs(np.log(found.sigma / std)) < 4 / np.sqrt(2 * n)
    assert abs(np.log(found.lam / lam)) < 4 * np.sqrt(2 / K)
    again = agent.clone(lam=found.lam, sigma=found.sigma)
    simulate(again, Problem(mdp, Dense(phi)), n)
    assert rlsvi.evidence(again).sigma == pytest.approx(found.sigma, rel=8 / np.sqrt(2 * n))


def test_where_one_begins_does_not_matter():
    mdp = noisy_mdp()
    found = []
    for lam in (0.5, 2.0):
        agent = LSVI(lam=lam, seed=1, explore=rlsvi.EpsilonGreedy(1.0))  # the same data, whatever lam
        simulate(agent, Problem(mdp), 200)
        found.append(rlsvi.evidence(agent))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4)


def test_what_cannot_be_told_is_refused():
    with pytest.raises(ValueError, match="learned nothing yet"):
        rlsvi.evidence(RLSVI())
    agent = IncrementalRLSVI(seed=0)
    simulate(agent, Problem(noisy_mdp()), 3)
    with pytest.raises(ValueError, match="keeps no sums of its data"):
        rlsvi.evidence(agent)
    agent = RLSVI(seed=0)
    simulate(agent, Problem(noisy_mdp(), Dense(np.zeros((S, A, 2)))), 3)
    with pytest.raises(ValueError, match="features seen are 0"):
        rlsvi.evidence(agent)
    agent = RLSVI(seed=0)
    simulate(agent, rlsvi.problems.chain(6), 3)  # too few to meet a reward
    with pytest.raises(ValueError, match="all targets are 0"):
        rlsvi.evidence(agent)


def test_what_does_not_settle_is_said(monkeypatch):
    agent = RLSVI(lam=100.0, sigma=5.0, seed=0)
    simulate(agent, Problem(noisy_mdp()), 20)
    monkeypatch.setattr("rlsvi.agents.finite.evidence.ROUNDS", 1)
    with pytest.warns(RuntimeWarning, match="still change each other after 1 rounds"):
        rlsvi.evidence(agent)


# ---- as they come -----------------------------------------------------------------------------------------


def test_they_are_due_at_doubling_times():
    assert [t for t in range(100) if ByEvidence(first=3).due(t)] == [3, 6, 12, 24, 48, 96]
    agent = RLSVI(sigma=ByEvidence(first=3), seed=0)
    simulate(agent, Problem(noisy_mdp()), 0)
    assert agent._mind_for(100)[1] == 3  # episodes for which they are good
    simulate(agent, Problem(noisy_mdp()), 7)
    assert agent._mind_for(100)[1] == 5
    assert agent._mind_for(2)[1] == 2
    assert agent._found[2] == 6


@pytest.mark.parametrize("kind", ["tabular", "dense", "blocks"])
def test_an_agent_has_the_lam_and_sigma_of_its_data(kind):
    """As if the data had been learned with them from the start: factors, noise, and the plan."""
    mdp = noisy_mdp(std=0.4)
    problem = Problem(mdp, basis_of(kind))
    agent = RLSVI(lam=0.7, sigma=ByEvidence(sigma=2.0, first=4), prior_mean=0.2, seed=3)
    assert agent._parameters() == (0.7, 2.0)
    history = simulate(agent, problem, 64, trace=True)
    assert agent._found[2] == 32
    agent._settle()
    lam, sigma, at = agent._found
    assert at == 64
    rows, d = Rows(problem.basis.bind(S, A, H, 0)), agent._learner.features.dim
    theta, data = lsvi(raw_episodes(history.trace, mdp), rows, H, lam * sigma**2, 0.2)
    plain = agent._learner.plan(False, agent._streams[0].copy())
    for h in range(H):
        P = data[h].T @ data[h] + lam * sigma**2 * np.eye(rows.weights)
        for b in range(agent._learner.features.blocks):
            part, U = slice(b * d, (b + 1) * d), np.triu(agent._learner.mind.factor.U[h, b])
            np.testing.assert_allclose(U.T @ U, P[part, part], rtol=1e-9, atol=1e-12 * P.max())
            np.testing.assert_allclose(agent._learner.mind.factor.inv[h, b] * np.diag(U), 1.0, rtol=1e-14)
            if agent._learner.mind.memory.alive[h, b]:
                np.testing.assert_allclose(plain.theta[h, b], theta[h, part], rtol=1e-7, atol=1e-9)
    found = rlsvi.evidence(agent)
    np.testing.assert_allclose(found[:2], (lam, sigma), rtol=1e-4)


def test_in_either_loop_and_after_loading_they_are_the_same(tmp_path):
    mdp = noisy_mdp()
    whole, agent = (RLSVI(sigma=ByEvidence(first=4), seed=2) for _ in range(2))
    simulate(whole, Problem(mdp), 40)
    agent.learn(FiniteMDPEnv(mdp), episodes=8).save(tmp_path / "a")  # just before they are found anew
    loaded = rlsvi.load(tmp_path / "a")
    simulate(loaded, Problem(mdp), 3)
    loaded.save(tmp_path / "a")
    loaded = rlsvi.load(tmp_path / "a").learn(FiniteMDPEnv(mdp), episodes=29)
    assert loaded._found == whole._found
    assert loaded.sigma == ByEvidence(first=4)
    assert loaded._learner.mind.prior.sigma == whole._learner.mind.prior.sigma == whole._found[1]
    assert_same(state_of(loaded), state_of(whole))


def test_they_are_kept_while_all_targets_are_0_and_begin_anew_in_a_clone():
    agent = RLSVI(lam=3.0, sigma=ByEvidence(sigma=0.5, first=2), seed=0)
    simulate(agent, rlsvi.problems.chain(8), 5)
    assert agent._found == (3.0, 0.5, 4)
    assert agent.clone()._found is None


def test_it_is_for_rlsvi_alone():
    with pytest.raises(ValueError, match=r"ByEvidence\(\) is for RLSVI"):
        IncrementalRLSVI(sigma=ByEvidence())
    with pytest.raises(ValueError, match="first must be"):
        ByEvidence(first=0)
    with pytest.raises(ValueError, match="sigma must be"):
        ByEvidence(sigma=0.0)
