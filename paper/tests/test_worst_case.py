"""RLSVI with worst-case noise, clipped, and with bounded targets: each against its definition in plain NumPy."""

import math

import numpy as np
import pytest
from scipy import stats

import rlsvi
from rlsvi import RLSVI, InverseGamma, Problem, problems
from rlsvi.core.random import normal, stream
from rlsvi.envs import FiniteMDPEnv
from rlsvi.simulate.finite import simulate
from rlsvi_paper.agents import BoundedTargetRLSVI, WorstCaseRLSVI
from rlsvi_paper.extensions.worst_case import (
    BOUNDED,
    CLIPPED,
    MAKERS,
    RANDOM,
    RUSSO,
    TUNED,
    Setting,
    worst_case_regret,
)
from test_tabular import PROBLEMS, WIDE_RANGE, played
from test_value_iteration import bound, random_basis, random_mdp
from twin import Rows, assert_same, raw_episodes, ridge_regression, state_of
from values import action_values

# ---- worst-case noise ---------------------------------------------------------------------------------------


def values_by_definition(agent, sums, legal, noise, episodes, sampled):
    """Q of Russo's algorithm, clipped if the agent is, and how many pairs were clipped."""
    n, r, into = sums
    H, S, A = n.shape
    low, high = agent.reward_range
    beta = 0.5 * S * H**3 * math.log(2 * H * S * A * (episodes + 1)) * agent.scale**2
    tries = 2 * beta * 4 * math.log(40 * S * A * agent.planned * H / agent.delta)
    Q, V, clipped = np.full((H, S, A), -np.inf), np.zeros(S), 0
    for h in reversed(range(H)):
        for s, a in np.ndindex(S, A):
            if sampled and agent.clip and n[h, s, a] <= tries:
                Q[h, s, a], clipped = (H - h) * high, clipped + 1
                continue
            # in units of (reward - low) / (high - low): rewards in [0, 1], and V_{h+1} in [0, H-h-1]
            ended = into[h, s, a, S] * (H - h - 1) * (0.0 - low)  # after an early end all rewards are 0
            later = into[h, s, a, :S] @ (V - (H - h - 1) * low) + ended
            unit = (r[h, s, a] - n[h, s, a] * low + later) / (high - low) / (n[h, s, a] + 1)
            if sampled:
                unit += math.sqrt(beta / (n[h, s, a] + 1)) * normal(noise)
            Q[h, s, a] = (H - h) * low + (high - low) * unit
        Q[h][~legal[h]] = -np.inf
        V = Q[h].max(axis=1)
    return Q, clipped


@pytest.mark.parametrize("sampled", [True, False])
@pytest.mark.parametrize("clip", [True, False])
def test_values_are_those_of_the_papers(clip, sampled):
    problem = PROBLEMS["masked"]()
    agent = WorstCaseRLSVI(scale=0.005, clip=clip, planned=60, reward_range=WIDE_RANGE)
    agent, sums = played(agent, problem, 60)
    mind, noise = agent._learner.plan(sampled, stream(3)), stream(3)
    Q, clipped = values_by_definition(agent, sums, mind.counts.legal, noise, 60, sampled)
    np.testing.assert_allclose(mind.plan.Q, Q, rtol=1e-11, atol=1e-11)
    assert sums[2][:-1, :, :, -1].any(), "no episode ended early"
    if clip and sampled:
        assert 0 < clipped < Q.size, "one branch was not tested"


def test_the_noise_of_the_theorem_has_its_variance():
    """Before any data: N(0, 1/2 S H^3 log(2 H S A)) in the last period, where nothing is added to it."""
    agent, problem = WorstCaseRLSVI(seed=0), problems.chain(4)
    S, A, H, noise = 4, 2, 3, stream(1)
    simulate(agent, problem, 0)
    drawn = np.array([agent._learner.plan(True, noise).plan.Q[-1].ravel() for _ in range(500)]).ravel()
    theory = stats.norm(scale=math.sqrt(0.5 * S * H**3 * math.log(2 * H * S * A)))
    assert stats.kstest(drawn, theory.cdf).pvalue > 1e-4


def test_clipped_as_the_theorem_has_it_all_actions_are_alike_at_first():
    problem = problems.chain(4)
    history = simulate(WorstCaseRLSVI(clip=True, planned=100, seed=0), problem, 100)
    np.testing.assert_allclose(history.regret, problem.random_regret, rtol=1e-12)


# ---- bounded targets ----------------------------------------------------------------------------------------


def bounded_by_definition(episodes, rows, H, ridge, bounds):
    """The posterior mean of every period, regressed on r + V_{h+1} clipped; and how many targets were."""
    theta, clipped = np.zeros((H, rows.weights)), 0
    for h in reversed(range(H)):
        A, b = [], []
        for steps in episodes:
            if len(steps) > h:
                s, a, reward, following, legal = steps[h]
                V = 0.0 if following is None else (rows(h + 1, following) @ theta[h + 1])[legal].max()
                target = V if following is None else min(max(V, bounds[h + 1][0]), bounds[h + 1][1])
                clipped += target != V
                A.append(rows(h, s)[a])
                b.append(reward + target)
        theta[h] = ridge_regression(np.array(A).reshape(-1, rows.weights), np.array(b), ridge, 0.0)
    return theta, clipped


@pytest.mark.parametrize("kind", ["tabular", "dense", "blocks"])
def test_targets_are_clipped_with_any_basis(kind):
    S, A, H, rng = 4, 2, 3, np.random.default_rng(5)
    mdp = random_mdp(rng, S, A, H, True)
    problem, bounds = Problem(mdp, random_basis(rng, kind, S, A, H)), [(-1.0, 1.0), (0.1, 0.4), (-0.3, 0.2)]
    agent, rows = BoundedTargetRLSVI(lam=2.0, sigma=0.3, bounds=bounds, seed=3), Rows(bound(problem))
    episodes = raw_episodes(simulate(agent, problem, 30, trace=True).trace, mdp)
    theta, clipped = bounded_by_definition(episodes, rows, H, 2.0 * 0.3**2, bounds)
    values = agent._learner.plan(False, stream(0))
    assert clipped > 0
    for steps in episodes:
        for h, (s, a, *_) in enumerate(steps):
            assert action_values(agent, values, h, s)[a] == pytest.approx(rows(h, s)[a] @ theta[h], abs=1e-7)


UNKNOWN = [pytest.param(it, marks=pytest.mark.slow) for it in (InverseGamma(2.0, 1.0), rlsvi.ByEvidence(first=4))]


@pytest.mark.parametrize("sigma", [0.3, *UNKNOWN])
def test_bounds_that_hold_change_nothing_and_tight_ones_do(sigma):
    problem = problems.chain(5, 3)
    same = {"sigma": sigma, "basis": problem.basis, "seed": 1}
    plain, wide, none, tight = (
        RLSVI(**same),
        BoundedTargetRLSVI(bounds=(-1e6, 1e6), **same),
        BoundedTargetRLSVI(**same),
        BoundedTargetRLSVI(bounds=(0.0, 0.0), **same),
    )
    for agent in (plain, wide, none, tight):
        agent.learn(FiniteMDPEnv(problem.mdp), episodes=20)
    for other in (wide, none):
        assert_same(state_of(plain), state_of(other))
    assert not np.array_equal(plain._learner.mind.values.Q, tight._learner.mind.values.Q)
    assert (tight._learner.mind.values.V == 0).all()


def test_wrong_bounds_are_named():
    with pytest.raises(ValueError, match=r"bounds must be two numbers or a pair for each period, \(H, 2\)"):
        BoundedTargetRLSVI(bounds=np.zeros((2, 3)))
    with pytest.raises(ValueError, match="bounds must have the lower number first"):
        BoundedTargetRLSVI(bounds=[(0, 1), (1, 0)])
    agent = BoundedTargetRLSVI(bounds=[(0, 1), (0, 1)], seed=0)
    with pytest.raises(ValueError, match=r"a pair for each period, \(4, 2\), got shape \(2, 2\)"):
        simulate(agent, problems.chain(5), 1)


def test_bounds_of_every_period_are_saved(tmp_path):
    agent, problem = BoundedTargetRLSVI(bounds=np.outer([4, 3, 2, 1], [0.0, 0.2]), seed=0), problems.chain(5)
    simulate(agent, problem, 5)
    agent.save(tmp_path / "agent")
    again = rlsvi.load(tmp_path / "agent")
    np.testing.assert_array_equal(again.bounds, agent.bounds)
    for each in (agent, again):
        simulate(each, problem, 5)
    assert_same(state_of(agent), state_of(again))


# ---- the figure ---------------------------------------------------------------------------------------------


def test_jobs_give_agents_their_scale_and_random_play_its_regret():
    what = {"task": "chain", "episodes": 40, "seed": 0}
    by_chance = worst_case_regret(agent=RANDOM, scale=1.0, **what)["regret"]
    np.testing.assert_allclose(by_chance[-1], 40 * problems.chain(10).random_regret)
    for agent in (RUSSO, CLIPPED, TUNED, BOUNDED):
        found = worst_case_regret(agent=agent, scale=0.0003, **what)
        assert found["episode"][-1] == 40
        assert (np.diff(found["regret"]) >= -1e-12).all()
        made = MAKERS[agent](Setting(0.0003, (-1.0, 2.0), 4, 3, 400, 5))
        assert getattr(made, "scale", None) == 0.0003 or made.sigma == 0.0003
        assert getattr(made, "clip", False) == (agent == CLIPPED)
    assert made.bounds.tolist() == [[-3.0, 6.0], [-2.0, 4.0], [-1.0, 2.0]]
