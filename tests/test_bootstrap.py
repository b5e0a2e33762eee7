"""RLSVI by a bootstrap, against weighted least squares on raw transitions, and against closed forms."""

from collections import Counter

import numpy as np
import pytest

import rlsvi
from rlsvi import BootstrapRLSVI, Problem
from rlsvi.core.random import bits, gamma, normal, stream
from rlsvi.core.regression import FactorError
from rlsvi.mdp import FiniteMDP
from rlsvi.simulate.finite import simulate
from test_unknown_noise import A, H, S, basis_of, noisy_mdp
from twin import Rows, assert_same, lsvi, raw_episodes, state_of
from values import action_values

KINDS = ["dense", "tabular", "blocks"]


def coarse_mdp():
    """A few states and rewards, so that transitions repeat; the last state ends an episode."""
    rng = np.random.default_rng(0)
    return FiniteMDP.from_arrays(
        rng.dirichlet(np.ones(S), size=(S, A)),
        rng.uniform(size=(S, A)),
        horizon=H,
        start=np.append(rng.dirichlet(np.ones(S - 1)), 0.0),
        rewards="bernoulli",
        absorbing=np.arange(S) == S - 1,
    )


def played(kind, mdp, episodes=30, **options):
    """An agent that has learned, its raw episodes, and its basis written out."""
    agent = BootstrapRLSVI(seed=3, **options)
    history = simulate(agent, Problem(mdp, basis_of(kind)), episodes, trace=True)
    return agent, raw_episodes(history.trace, mdp), Rows(agent._learner.features)


def weighted(X, b, weights, prior_weights, prior_targets):
    """argmin sum_i w_i (b_i - x_i . theta)^2 + sum_k v_k (theta_k - y_k)^2, as one least-squares problem."""
    K = len(prior_targets)
    X, b = np.vstack([X.reshape(-1, K), np.eye(K)]), np.concatenate([b, prior_targets])
    roots = np.sqrt(np.concatenate([weights, prior_weights]))
    return np.linalg.lstsq(roots[:, None] * X, roots * b, rcond=None)[0]


def twin_plan(agent, episodes, rows, sampled, noise):
    """The algorithm with the agent's random numbers: theta (H, weights), from the distinct raw transitions."""
    memory, d = agent._learner.mind.memory, agent._learner.features.dim
    row_of, theta = agent._learner.mind.rows, np.zeros((H + 1, rows.weights))
    bits(noise) if sampled else None
    for h in reversed(range(H)):
        v, y = np.full(rows.weights, agent.prior_weight), np.full(rows.weights, agent.prior_mean)
        for block in memory.live[h, : memory.lives[h]] if sampled else []:
            for k in range(block * d, (block + 1) * d):
                v[k] = gamma(noise, agent.prior_weight)
                y[k] += normal(noise) / np.sqrt(agent.lam)
        X, b, w = [], [], []
        times = Counter(episode[h][:4] for episode in episodes if len(episode) > h)
        legal = {episode[h][3]: episode[h][4] for episode in episodes if len(episode) > h}
        newest_first = reversed(list(times))
        for s, a, r, following in sorted(newest_first, key=lambda t: (row_of[h, t[0]], t[1])):
            value = 0.0 if following is None else (rows(h + 1, following) @ theta[h + 1])[legal[following]].max()
            X.append(rows(h, s)[a])
            b.append(r + value)
            n = times[s, a, r, following]
            w.append(gamma(noise, n) if sampled else n)
        theta[h] = weighted(np.array(X), np.array(b), np.array(w), v, y)
    return theta[:H]


@pytest.mark.parametrize("sampled", [True, False])
@pytest.mark.parametrize("noisy", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_the_plan_is_weighted_least_squares_on_raw_transitions(kind, noisy, sampled):
    mdp = noisy_mdp() if noisy else coarse_mdp()
    agent, episodes, rows = played(kind, mdp, lam=0.5, prior_weight=0.7, prior_mean=0.3)
    for seed in range(3):
        theta = twin_plan(agent, episodes, rows, sampled, stream(seed))
        plan = agent._learner.plan(sampled, stream(seed))
        for h in range(H):
            live = agent._learner.mind.memory.live[h, : agent._learner.mind.memory.lives[h]]
            expected = theta[h].reshape(plan.theta[h].shape)[live]
            np.testing.assert_allclose(plan.theta[h, live], expected, rtol=1e-8, atol=1e-9)
            known = np.flatnonzero(agent._learner.mind.rows[h] >= 0)
            for s in known:
                Q = plan.Q[h, agent._learner.pairs(agent._learner.mind.rows[h, s])]
                np.testing.assert_allclose(Q, rows(h, s) @ theta[h], rtol=1e-8, atol=1e-9)


@pytest.mark.slow
def test_one_gamma_weight_for_n_copies_is_n_exponential_weights():
    """Means and variances of the first period's values, whose targets are random too, against plain Exp(1)."""
    agent, episodes, rows = played("dense", coarse_mdp(), 40, prior_weight=0.7)
    rng, draws, noise = np.random.default_rng(0), 2000, stream(1)
    found, expected = np.zeros((draws, S * A)), np.zeros((draws, S * A))
    X = np.array([rows(0, s) for s in range(S)]).reshape(S * A, -1)
    for i in range(draws):
        found[i] = X @ agent._learner.plan(True, noise).theta[0].ravel()
        theta = np.zeros((H + 1, rows.weights))
        for h in reversed(range(H)):
            steps = [episode[h] for episode in episodes if len(episode) > h]
            values = [0.0 if f is None else (rows(h + 1, f) @ theta[h + 1])[m].max() for *_, f, m in steps]
            b = np.array([r for _, _, r, _, _ in steps]) + values
            design = np.array([rows(h, s)[a] for s, a, *_ in steps])
            v, y = rng.gamma(0.7, size=rows.weights), rng.normal(size=rows.weights)
            theta[h] = weighted(design, b, rng.exponential(size=len(b)), v, y)
        expected[i] = X @ theta[0]
    error = expected.std(axis=0) * np.sqrt(2 / draws)
    assert (np.abs(found.mean(axis=0) - expected.mean(axis=0)) < 4 * error).all()
    fourth = ((expected - expected.mean(axis=0)) ** 4).mean(axis=0)
    error = np.sqrt(2 * (fourth - expected.var(axis=0) ** 2) / draws)
    assert (np.abs(found.var(axis=0) - expected.var(axis=0)) < 4 * error).all()


def test_a_cell_of_a_table_is_a_beta_mixture_of_its_reward_and_the_artificial_target():
    """theta = B r + (1 - B) y with B ~ Beta(n, prior_weight) and y ~ N(prior_mean, 1 / lam)."""
    mdp = FiniteMDP.from_arrays(np.ones((1, 2, 1)), np.array([[0.0, 2.0]]), horizon=1, start=np.ones(1))
    agent = BootstrapRLSVI(lam=4.0, prior_weight=1.5, prior_mean=0.5, seed=0)
    simulate(agent, Problem(mdp), 20)
    outcomes, noise = agent._learner.mind.own.outcomes, stream(5)
    n = outcomes.times[0, outcomes.head[0, 1]]
    drawn = np.array([agent._learner.plan(True, noise).Q[0, 1] for _ in range(20_000)])
    B = n / (n + 1.5)
    variance_of_B = n * 1.5 / ((n + 1.5) ** 2 * (n + 2.5))
    mean, square = 2 * B + 0.5 * (1 - B), variance_of_B + (1 - B) ** 2
    variance = variance_of_B * (2 - 0.5) ** 2 + square * 0.25
    assert abs(drawn.mean() - mean) < 4 * np.sqrt(variance / len(drawn))
    fourth = ((drawn - mean) ** 4).mean()
    assert abs(drawn.var() - variance) < 4 * np.sqrt((fourth - variance**2) / len(drawn))


@pytest.mark.parametrize("kind", KINDS)
def test_its_mean_is_lsvi_with_the_weight_of_the_artificial_data_as_ridge(kind):
    agent, episodes, rows = played(kind, noisy_mdp(), prior_weight=2.5, prior_mean=0.2)
    theta, _ = lsvi(episodes, rows, H, 2.5, 0.2)
    plan = agent._learner.plan(False, stream(0))
    for h in range(H):
        for s in range(S):
            found = action_values(agent, plan, h, s)
            np.testing.assert_allclose(found, rows(h, s) @ theta[h], rtol=1e-8, atol=1e-9)


def test_what_is_stored_does_not_grow_where_transitions_repeat():
    agent, mdp = BootstrapRLSVI(seed=0), coarse_mdp()
    simulate(agent, Problem(mdp), 2000)
    distinct = (mdp.table.probability > 0).sum() * 2  # two rewards
    assert (agent._learner.mind.own.outcomes.many <= distinct).all()
    steps, _ = agent.steps, simulate(agent, Problem(mdp), 1000)
    assert (agent._learner.mind.own.outcomes.many <= distinct).all()
    assert agent._learner.mind.own.outcomes.times.sum() == agent.steps > steps


def test_where_rewards_never_repeat_every_transition_is_stored():
    agent = BootstrapRLSVI(seed=0)
    simulate(agent, Problem(noisy_mdp()), 100)
    assert agent._learner.mind.own.outcomes.many.sum() == agent.steps


def test_before_the_first_reward_only_random_artificial_data_explore():
    """With a chain of 12 states random play finds the reward in about 2,000 episodes."""
    problem, episodes = rlsvi.problems.chain(12, 5), 400
    without = BootstrapRLSVI(random_prior=False, seed=0)
    history = simulate(without, problem, episodes)
    assert history.reward.sum() == 0
    np.testing.assert_allclose(history.regret, problem.random_regret, rtol=1e-12)
    assert simulate(BootstrapRLSVI(seed=0), problem, episodes).reward.sum() > 50


def test_a_plan_that_fails_changes_nothing():
    agent, problem = BootstrapRLSVI(seed=0), rlsvi.problems.chain(3)
    simulate(agent, problem, 1)
    agent._learner.mind.own.outcomes.reward[0, 0] = 1e160  # its square is no number
    before = state_of(agent)
    with pytest.raises(FactorError):
        simulate(agent, problem, 1)
    assert_same(state_of(agent), before)
