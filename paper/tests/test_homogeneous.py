"""Agents that know that periods are alike: each against its definition on the pooled transitions."""

import math

import numpy as np
import pytest
from scipy import stats

from rlsvi import PSRL, RLSVI, UCRL2, Problem, problems
from rlsvi.core.random import normal, stream
from rlsvi.envs import FiniteMDPEnv
from rlsvi.mdp import FiniteMDP
from rlsvi.simulate.finite import simulate
from rlsvi_paper.agents import HomogeneousRLSVI
from rlsvi_paper.extensions.homogeneous import MAKERS, homogeneous_regret
from test_tabular import SMALL_RANGE, best_by_linear_program, transitions
from twin import assert_same, state_of

S, A, H = 3, 2, 4
AGENTS = {
    "PSRL": PSRL(reward_range=SMALL_RANGE, homogeneous=True),
    "UCRL2": UCRL2(reward_range=SMALL_RANGE, scale=0.1, homogeneous=True),
    "RLSVI": HomogeneousRLSVI(sigma=0.5, prior_mean=-0.2),
}


def alike(**options):
    """Periods that are alike; the third state ends an episode."""
    rng = np.random.default_rng(2)
    given = {"absorbing": np.arange(S) == 2, "rewards": "bernoulli", "reward_values": SMALL_RANGE, **options}
    P, R = rng.dirichlet(np.ones(S), size=(S, A)), -rng.uniform(size=(S, A))
    return FiniteMDP.from_arrays(P, R, horizon=H, start=[0.5, 0.5, 0.0], **given)


def played(name, episodes=25):
    """The agent, and its transitions (h, s, a, r, next state or S)."""
    agent, problem = AGENTS[name].clone(seed=5), Problem(alike())
    history = simulate(agent, problem, episodes, trace=True)
    return agent, list(transitions(history, problem))


def pooled(steps):
    """Rewards of all periods, and next states of all but the last, by (s, a)."""
    rewards = {pair: [] for pair in np.ndindex(S, A)}
    following = {pair: [] for pair in np.ndindex(S, A)}
    for h, s, a, r, y in steps:
        rewards[s, a].append(r)
        if h + 1 < H:
            following[s, a].append(y)
    return rewards, {pair: np.bincount(np.array(ys, int), minlength=S + 1) for pair, ys in following.items()}


def test_psrl_solves_the_mean_of_one_mdp_for_all_periods():
    agent, steps = played("PSRL")
    rewards, into = pooled(steps)
    assert sum(counts[S] for counts in into.values()) > 0, "no episode ended early"
    plan, V = agent._learner.plan(False, stream(0)).plan, np.zeros(S + 1)
    for h in reversed(range(H)):
        Q = np.zeros((S, A))
        for (s, a), paid in rewards.items():
            weights = np.append(np.ones(S), 0.0) + into[s, a]
            Q[s, a] = (sum(paid) - 1) / (len(paid) + 2) + (h + 1 < H) * (weights @ V) / weights.sum()
        np.testing.assert_allclose(plan.Q[h], Q, rtol=1e-12)
        V[:S] = Q.max(axis=1)


def test_psrl_draws_one_mdp_from_its_posterior_and_solves_it():
    agent, steps = played("PSRL")
    (rewards, into), noise = pooled(steps), stream(1)
    minds = (agent._learner.plan(True, noise) for _ in range(2000))
    drawn = [(mind.plan.Q, mind.rule.R.copy(), mind.rule.P.copy()) for mind in minds]
    for values, R, P in drawn[:5]:
        V = np.zeros(S + 1)
        for h in reversed(range(H)):
            Q = R + (h + 1 < H) * P @ V
            np.testing.assert_allclose(values[h], Q, rtol=1e-12)
            V[:S] = Q.max(axis=1)
    s, a = max(rewards, key=lambda pair: len(rewards[pair]))
    highs, n, weights = len(rewards[s, a]) + sum(rewards[s, a]), len(rewards[s, a]), into[s, a]
    found = np.array([R[s, a] for _, R, _ in drawn]) + 1
    assert stats.kstest(found, stats.beta(1 + highs, 1 + n - highs).cdf).pvalue > 1e-4
    found = np.array([P[s, a, 0] for _, _, P in drawn])
    assert stats.kstest(found, stats.beta(1 + weights[0], 2 + weights[1:].sum()).cdf).pvalue > 1e-4


def test_ucrl2_has_the_confidence_sets_of_the_pooled_counts():
    agent, steps = played("UCRL2")
    rewards, into = pooled(steps)
    agent._learner.mind.plan.due[0] = True
    mind, t, V = agent._learner.plan(False, stream(0)), len(steps) + 1, np.zeros(S + 1)
    for h in reversed(range(H)):
        for (s, a), paid in rewards.items():
            n, m = max(len(paid), 1), max(into[s, a].sum(), 1)
            reward = 0.1 * math.sqrt(7 * math.log(2 * S * A * t / 0.05) / (2 * n))
            radius = 0.1 * math.sqrt(14 * S * math.log(2 * A * t / 0.05) / m)
            Q = min(np.mean(paid) + reward, 0.0) if paid else 0.0
            if h + 1 < H:
                Q += best_by_linear_program(into[s, a] / m, radius, V) if into[s, a].sum() else V.max()
            assert mind.plan.Q[h, s, a] == pytest.approx(Q, abs=1e-9)
        V[:S] = mind.plan.Q[h].max(axis=1)


def test_ucrl2_counts_a_pair_over_all_periods_for_its_phases():
    agent, problem, before = (
        UCRL2(reward_range=SMALL_RANGE, homogeneous=True, seed=0),
        Problem(alike()),
        np.zeros((S, A)),
    )
    for _ in range(60):
        due = bool(agent._learner.mind.plan.due[0]) if agent.episodes else True
        simulate(agent, problem, 1)
        visits = agent._learner.mind.counts.visits.sum(axis=0)
        if due:
            before = agent._learner.mind.plan.visits.sum(axis=0)
        assert bool(agent._learner.mind.plan.due[0]) == bool((visits - before >= np.maximum(before, 1)).any())


@pytest.mark.parametrize("sampled", [True, False])
def test_rlsvi_fits_every_period_to_the_transitions_of_all(sampled):
    agent, steps = played("RLSVI")
    plan, noise = agent._learner.plan(sampled, stream(3)).plan, stream(3)
    ridge, V = agent.lam * agent.sigma**2, np.zeros(S + 1)
    for h in reversed(range(H)):
        Q = np.zeros((S, A))
        for s, a in np.ndindex(S, A):
            mine = [step for step in steps if step[1:3] == (s, a) and (h + 1 == H or step[0] + 1 < H)]
            targets = [r + (h + 1 < H) * V[y] for _, _, _, r, y in mine]
            Q[s, a] = (sum(targets) - 0.2 * ridge) / (len(targets) + ridge)
            Q[s, a] += sampled and agent.sigma / math.sqrt(len(targets) + ridge) * normal(noise)
        np.testing.assert_allclose(plan.Q[h], Q, rtol=1e-11)
        V[:S] = Q.max(axis=1)


def test_with_one_period_it_is_rlsvi():
    problem = problems.dirichlet(S, A, 1, seed=1)
    first, second = RLSVI(seed=1), HomogeneousRLSVI(seed=1)
    second._streams[0] = stream(2)  # its noise is drawn in another order; let them act alike in the first episode
    for agent in (first, second):
        simulate(agent, problem, 1)
    mean = second._learner.plan(False, stream(0)).plan.Q[0, 0]
    learner = first._learner
    np.testing.assert_allclose(mean, learner.values(learner.plan(False, stream(0)), learner.look(0, 0, None)))


@pytest.mark.parametrize("name", AGENTS)
def test_the_fused_loop_is_the_gymnasium_loop(name):
    fused, stepped = AGENTS[name].clone(seed=1), AGENTS[name].clone(seed=1)
    simulate(fused, Problem(alike()), 30)
    stepped.learn(FiniteMDPEnv(alike()), episodes=30)
    assert_same(state_of(fused), state_of(stepped))


@pytest.mark.parametrize("name", AGENTS)
def test_pooling_learns_faster(name):
    """Mean regret of 300 episodes on ten MDPs whose twelve periods are alike."""
    apart = {
        "PSRL": PSRL(reward_range=SMALL_RANGE),
        "UCRL2": UCRL2(reward_range=SMALL_RANGE, scale=0.1),
        "RLSVI": RLSVI(sigma=0.5),
    }
    regret = np.zeros((2, 10))
    for seed in range(10):
        problem = problems.dirichlet(3, 2, 12, homogeneous=True, seed=seed)
        for row, agent in zip(regret, (AGENTS[name], apart[name]), strict=True):
            row[seed] = simulate(agent.clone(seed=seed), problem, 300).regret.sum()
    less = regret[1] - regret[0]
    assert less.mean() > 3 * less.std(ddof=1) / math.sqrt(len(less))


@pytest.mark.parametrize("env", [False, True], ids=["problem", "environment"])
@pytest.mark.parametrize("name", AGENTS)
def test_periods_that_differ_are_refused(name, env):
    legal = np.ones((H, S, A), bool)
    legal[0, 0, 0] = False
    differing = {
        "transitions and rewards": problems.dirichlet(S, A, H, seed=0).mdp,
        "legal actions": alike(legal=legal),
        "includes r_H": alike(terminal_reward=[-1.0, 0.0, 0.0]),
    }
    for words, mdp in differing.items():
        agent = AGENTS[name].clone(seed=0)
        with pytest.raises(ValueError, match=f"needs periods that are alike, but .*{words}"):
            agent.learn(FiniteMDPEnv(mdp), episodes=1) if env else simulate(agent, Problem(mdp), 1)
    ended = alike(terminal_reward=[0.0, 0.0, -1.0], rewards="deterministic")
    simulate(
        AGENTS[name].clone(seed=0, **({} if name == "RLSVI" else {"reward_range": (-2.0, 0.0)})), Problem(ended), 5
    )


def test_homogeneous_must_be_a_truth():
    for kind in (PSRL, UCRL2):
        with pytest.raises(ValueError, match="homogeneous must be True or False"):
            kind(homogeneous="yes")


@pytest.mark.parametrize(("agent", "pooled"), MAKERS)
def test_jobs_follow_agents_that_know_and_that_do_not(agent, pooled):
    found = homogeneous_regret(
        agent=agent, pooled=pooled, scale=0.1, states=3, actions=2, horizon=4, episodes=50, seed=0
    )
    assert (np.diff(found["regret"]) >= -1e-12).all()
    assert found["episode"][-1] == 50
    assert getattr(MAKERS[agent, pooled](0.1, 0), "homogeneous", False) == pooled
