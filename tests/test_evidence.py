"""The lam and sigma of the largest evidence: against a dense twin, and against the truth of synthetic data."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

import rlsvi
from rlsvi import LSVI, RLSVI, IncrementalRLSVI, Problem
from rlsvi.bases import Dense
from rlsvi.mdp import FiniteMDP
from rlsvi.simulate import simulate
from test_unknown_noise import A, H, S, basis_of, noisy_mdp
from twin import Rows, lsvi, raw_episodes, regression


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
    with pytest.raises(ValueError, match="forgotten its data"):
        rlsvi.evidence(agent)
    agent = RLSVI(seed=0)
    simulate(agent, Problem(noisy_mdp(), Dense(np.zeros((S, A, 2)))), 3)
    with pytest.raises(ValueError, match="features seen are 0"):
        rlsvi.evidence(agent)
