"""PSRL with normal noise, against its definition; and the loops of the tabular agents of this package."""

import numpy as np
import pytest
from scipy import stats

import test_tabular
from rlsvi import problems
from rlsvi.simulate.finite import simulate
from rlsvi_paper.agents import GaussianPSRL, WorstCaseRLSVI
from test_tabular import PROBLEMS, SMALL_RANGE, WIDE_RANGE, played, small

AGENTS = {
    "Gaussian PSRL": GaussianPSRL(scale=0.3, reward_range=WIDE_RANGE),
    "worst case": WorstCaseRLSVI(scale=0.003, clip=True, reward_range=WIDE_RANGE),
}


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", AGENTS)
def test_the_fused_loop_is_the_gymnasium_loop(name, problem, monkeypatch):
    monkeypatch.setitem(test_tabular.AGENTS, name, AGENTS[name])
    test_tabular.test_the_fused_loop_is_the_gymnasium_loop(name, problem)


def test_the_mean_plan_solves_the_mean_of_the_posterior():
    test_tabular.test_the_mean_plan_solves_the_mean_of_the_posterior(GaussianPSRL(reward_range=SMALL_RANGE))


def test_gaussian_psrl_has_the_noise_of_its_definition():
    agent, (n, _, into) = played(GaussianPSRL(reward_range=SMALL_RANGE, scale=0.7, alpha_P=0.5), small())
    plans = [agent._plan(False, first=True).plan for _ in range(3000)]
    Q, V = np.array([p.Q for p in plans]), np.array([p.V for p in plans])
    r = agent._learner.mind.counts.reward
    for h in range(3):
        p = (0.5 + into[h, ..., :3]) / (1.5 + into[h, ..., :3].sum(axis=2, keepdims=True))
        mean = (r[h] - 1.0) / (n[h] + 2.0) + (h < 2) * np.einsum("say,ny->nsa", p, V[:, h + 1, :3])
        variance = 0.49 * (1 / (2 + n[h]) + (h < 2) * 9 / (1.5 + n[h]))
        z = (Q[:, h] - mean) / np.sqrt(variance)
        assert stats.kstest(z.ravel(), stats.norm.cdf).pvalue > 1e-4


def test_it_learns_to_swim():
    agent, problem = GaussianPSRL(scale=0.05, alpha_P=0.1, alpha_R=0.3), problems.river_swim(4, 10)
    regret = [simulate(agent.clone(seed=s), problem, 3000).regret[-100:].mean() for s in range(3)]
    assert np.median(regret) < 0.2 * problem.random_regret


def test_it_finds_the_treasure():
    agent = GaussianPSRL(scale=0.05, alpha_P=0.01, alpha_R=(0.1, 0.02), reward_range=(-0.01, 1.0), seed=0)
    assert simulate(agent, problems.deep_sea(6, seed=2), 1500).regret[-100:].mean() < 0.1


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="scale"):
        GaussianPSRL(scale=0.0)
