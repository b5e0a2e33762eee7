"""RLSVI and LSVI against the paper's pseudo-code in plain NumPy, and how actions follow from values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import rlsvi
from rlsvi import LSVI, RLSVI, Boltzmann, EpsilonGreedy, Exponential, Greedy, Linear, Problem
from rlsvi.agents.explore import choose, probabilities
from rlsvi.bases import Dense, StateFeatures, Tabular
from rlsvi.core.random import stream
from rlsvi.mdp import FiniteMDP, chain, dirichlet
from rlsvi.simulate.finite import simulate
from twin import Rows, deviation, lsvi, raw_episodes, regression, ridge_regression
from values import action_values


def bound(problem):
    """The problem's own basis, bound to its states."""
    table = problem.mdp.table
    return problem.basis.bind(table.states, table.actions, table.horizon, 0)


def random_mdp(rng, S, A, H, per_period):
    """Masks that change with the period, terminal rewards, and an absorbing state."""
    P = rng.dirichlet(np.full(S, 0.5), size=(H, S, A) if per_period else (S, A))
    legal = rng.random((H, S, A)) < 0.6
    legal[np.arange(H)[:, None], np.arange(S), rng.integers(A, size=(H, S))] = True
    return FiniteMDP.from_arrays(
        P,
        rng.normal(size=P.shape[:-1]),
        horizon=H,
        start=np.append(rng.dirichlet(np.ones(S - 1)), 0.0),
        rewards="gaussian",
        reward_std=0.5,
        terminal_reward=rng.normal(size=S),
        legal=legal,
        absorbing=np.arange(S) == S - 1,
    )


def random_basis(rng, kind, S, A, H):
    if kind == "blocks":
        table = rng.normal(size=(S, 3))
        return StateFeatures(lambda s: table[s])
    shapes = {"dense": (S, A, 4), "dense per period": (H, S, A, 4)}
    return Tabular() if kind == "tabular" else Dense(rng.normal(size=shapes[kind]))


mdps = st.builds(
    lambda seed, S, A, H, per_period, prior: (
        dirichlet(S, A, H, homogeneous=not per_period, seed=seed)
        if prior
        else random_mdp(np.random.default_rng(seed), S, A, H, per_period)
    ),
    st.integers(0, 2**31),
    st.integers(2, 5),
    st.integers(2, 3),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
)


# ---- the regression ---------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    mdps,
    st.sampled_from(["tabular", "dense", "dense per period", "blocks"]),
    st.integers(0, 40),
    st.floats(1e-3, 10.0),
    st.integers(0, 2**31),
)
def test_lsvi_is_the_batch_regression_of_the_paper(mdp, kind, n, lam, seed):
    rng = np.random.default_rng(seed)
    S, A, H = mdp.states, mdp.actions, mdp.horizon
    problem = Problem(mdp, random_basis(rng, kind, S, A, H))
    rows = Rows(bound(problem))
    mean, offset = rng.normal(size=rows.weights), rng.normal()
    agent = LSVI(lam=lam, explore=EpsilonGreedy(0.5), prior_mean=mean, reward_offset=offset, seed=seed)
    episodes = raw_episodes(simulate(agent, problem, n, trace=True).trace, mdp)
    theta, data = lsvi(episodes, rows, H, lam, mean, offset)
    values = agent._learner.plan(False, stream(0))
    for episode in episodes:
        for h, (s, a, *_) in enumerate(episode):
            x = rows(h, s)[a]
            error = action_values(agent, values, h, s)[a] - x @ theta[h]
            # float64 at condition numbers up to about 1e6 here: 1e-8 of a posterior sd leaves room
            assert abs(error) < 1e-8 * deviation(data[h], lam, x)


def test_masked_actions_never_enter_the_target():
    """Two states in a row; in the second, the better action is not legal."""
    P = np.zeros((3, 2, 3))
    P[0, :, 1] = P[1, :, 2] = P[2, :, 2] = 1.0
    legal = np.ones((3, 2), dtype=bool)
    legal[1, 1] = False
    mdp = FiniteMDP.from_arrays(P, np.zeros((3, 2)), horizon=2, start=[1.0, 0, 0], legal=legal)
    prior = np.zeros((2, 6))
    prior[1, 3] = 100.0  # the weight of (state 1, action 1), which no data will ever move
    agent = LSVI(lam=1e-9, prior_mean=prior, seed=0)
    simulate(agent, Problem(mdp), 5)
    values = agent._learner.plan(False, stream(0))
    assert action_values(agent, values, 1, 1)[1] == -np.inf
    assert np.abs(action_values(agent, values, 0, 0)).max() < 1e-6


def sampled_plans(agent, plans, seed=1):
    learner, noise = agent._learner, stream(seed)
    for _ in range(plans):
        yield learner.plan(True, noise)


@pytest.mark.parametrize("kind", ["tabular", "dense per period", "blocks"])
def test_rlsvi_samples_theta_from_the_posterior_given_the_next_period(kind):
    """(theta_h - mean given theta_{h+1}), whitened, is standard normal in all periods together."""
    S, A, H, sigma, lam = 4, 2, 3, 0.3, 2.0
    rng = np.random.default_rng(5)
    mdp = random_mdp(rng, S, A, H, True)
    problem = Problem(mdp, random_basis(rng, kind, S, A, H))
    rows = Rows(bound(problem))
    prior = rng.normal(size=(H, rows.weights))
    agent = RLSVI(lam=lam, sigma=sigma, prior_mean=prior, reward_offset=0.7, seed=3)
    episodes = raw_episodes(simulate(agent, problem, 12, trace=True).trace, mdp)
    alive = np.repeat(agent._learner.mind.memory.alive, agent._learner.features.dim, axis=1)
    plans, ridge = 1500, lam * sigma**2
    white = []
    for values in sampled_plans(agent, plans):
        theta = values.theta.reshape(H, -1)
        z = []
        for h in range(H):
            A_, b = regression(episodes, h, rows, theta[h + 1] if h + 1 < H else None, 0.7)
            L = np.linalg.cholesky(A_.T @ A_ + ridge * np.eye(rows.weights))
            z.append((L.T @ (theta[h] - ridge_regression(A_, b, ridge, prior[h])) / sigma)[alive[h]])
        white.append(np.concatenate(z))
    z = np.array(white)
    # a mean of n normals has sd 1/sqrt(n), a covariance at most sqrt(2/n); five of them cover all entries
    assert np.abs(z.mean(axis=0)).max() < 5 / np.sqrt(plans)
    assert np.abs(z.T @ z / plans - np.eye(z.shape[1])).max() < 5 * np.sqrt(2 / plans)
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-3


def test_reward_offset_is_learned_as_if_the_rewards_had_been_paid():
    """Rewards {0, 1} with offset -1 teach what rewards {-1, 0} teach, and histories keep the real ones."""
    rng = np.random.default_rng(0)
    P, R = rng.dirichlet(np.ones(4), size=(4, 2)), rng.random((4, 2))
    common = {"horizon": 3, "start": [1.0, 0, 0, 0], "rewards": "bernoulli"}
    paid = Problem(FiniteMDP.from_arrays(P, R - 1, reward_values=(-1.0, 0.0), **common))
    plain = Problem(FiniteMDP.from_arrays(P, R, **common))
    shifted, direct = RLSVI(reward_offset=-1.0, seed=2), RLSVI(seed=2)
    first, second = simulate(shifted, plain, 50, trace=True), simulate(direct, paid, 50, trace=True)
    np.testing.assert_array_equal(first.trace.actions, second.trace.actions)
    np.testing.assert_array_equal(shifted._learner.mind.memory.reward, direct._learner.mind.memory.reward)
    np.testing.assert_array_equal(first.trace.rewards - 1, second.trace.rewards)


@pytest.mark.parametrize(
    "given",
    [1.5, np.arange(8.0), np.arange(24.0).reshape(3, 8), np.arange(3.0)[:, None]],
    ids=["number", "vector", "per period", "number per period"],
)
def test_prior_mean_is_the_estimate_where_nothing_was_seen(given):
    agent = LSVI(lam=0.5, prior_mean=given, seed=0)
    problem = Problem(random_mdp(np.random.default_rng(1), 4, 2, 3, False))
    simulate(agent, problem, 0)
    values = agent._learner.plan(False, stream(0))
    seen = np.array([[action_values(agent, values, h, s) for s in range(4)] for h in range(3)])
    np.testing.assert_array_equal(seen.reshape(3, 8), np.broadcast_to(given, (3, 8)))
    simulate(agent, problem, 30)
    learner = agent._learner
    values = learner.plan(False, stream(0))
    mean = np.broadcast_to(given, (3, 8)).reshape(3, 4, 2)
    untouched = 0
    for h in range(3):
        for s in range(4):
            Q = action_values(agent, values, h, s)
            for a in range(2):
                if np.isfinite(Q[a]) and learner.mind.factor.U[h, 2 * s + a, 0, 0] == np.sqrt(0.5):
                    untouched += 1
                    assert Q[a] == pytest.approx(mean[h, s, a], rel=1e-14)
    assert untouched > 0
    assert agent.episodes == 30


@pytest.mark.parametrize("shape", [(7,), (2, 8), (8, 3), (1, 3, 8)])
def test_a_prior_mean_of_another_shape_is_refused(shape):
    with pytest.raises(ValueError, match="prior_mean must be a number"):
        simulate(LSVI(prior_mean=np.zeros(shape)), Problem(random_mdp(np.random.default_rng(1), 4, 2, 3, True)), 1)


def test_ridge_of_lsvi_is_lam_sigma_squared_of_rlsvi():
    """With one action both see the same episodes; the posterior mean of RLSVI is then LSVI's estimate."""
    lam, sigma = 3.0, 0.2
    problem = Problem(dirichlet(5, 1, 4, seed=1), Dense(np.random.default_rng(0).normal(size=(5, 1, 3))))
    randomized, plain = RLSVI(lam=lam, sigma=sigma, seed=0), LSVI(lam=lam * sigma**2, seed=0)
    traces = [simulate(agent, problem, 25, trace=True).trace for agent in (randomized, plain)]
    np.testing.assert_array_equal(traces[0].states, traces[1].states)
    first, second = (agent._learner.plan(False, stream(0)) for agent in (randomized, plain))
    np.testing.assert_allclose(first.theta, second.theta, rtol=1e-10, atol=1e-12)
    assert np.abs(first.theta).min() > 1e-4


# ---- where there are no data ------------------------------------------------------------------------------


def test_the_first_episode_acts_on_the_prior_mean():
    prior = np.random.default_rng(0).normal(size=(5, 12))  # horizon 5, six states, two actions
    best = prior.reshape(5, 6, 2).argmax(axis=2)
    later = set()
    for seed in range(20):
        agent = RLSVI(lam=1e-4, prior_mean=prior, seed=seed)  # samples would be N(prior, 100^2)
        trace = simulate(agent, rlsvi.problems.chain(6), 2, trace=True).trace
        np.testing.assert_array_equal(trace.actions[0], best[np.arange(5), trace.states[0]])
        later.add(tuple(trace.actions[1]))
    assert len(later) > 10


def test_unseen_blocks_are_drawn_from_the_prior_anew_for_every_plan():
    lam, plans, prior = 4.0, 4000, np.arange(60.0).reshape(5, 12)
    agent = RLSVI(lam=lam, prior_mean=prior, seed=0)
    simulate(agent, rlsvi.problems.chain(6), 1)
    learner = agent._learner
    unseen = [(h, s) for h in range(5) for s in (4, 5) if learner.mind.rows[h, s] < 0]
    assert len(unseen) >= 6
    drawn = []
    for values in sampled_plans(agent, plans):
        first = [action_values(agent, values, h, s) for h, s in unseen]
        again = [action_values(agent, values, h, s) for h, s in reversed(unseen)][::-1]
        np.testing.assert_array_equal(first, again)
        drawn.append(np.concatenate(first))
    mean = np.concatenate([prior[h, 2 * s : 2 * s + 2] for h, s in unseen])
    z = (np.array(drawn) - mean) * np.sqrt(lam)
    assert np.abs(z.mean(axis=0)).max() < 5 / np.sqrt(plans)
    # independent between blocks, periods and plans
    assert np.abs(z.T @ z / plans - np.eye(z.shape[1])).max() < 5 * np.sqrt(2 / plans)
    assert np.abs((z[1:] * z[:-1]).mean(axis=0)).max() < 5 / np.sqrt(plans)
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-3


def test_actions_of_seen_states_that_were_never_taken_are_drawn_from_the_prior():
    lam, plans = 0.25, 4000
    agent = RLSVI(lam=lam, sigma=0.1, prior_mean=3.0, seed=0)
    trace = simulate(agent, rlsvi.problems.chain(4), 1, trace=True).trace
    other = 1 - trace.actions[0]
    drawn = [
        [action_values(agent, values, h, trace.states[0, h])[other[h]] for h in range(3)]
        for values in sampled_plans(agent, plans)
    ]
    z = (np.array(drawn) - 3.0) * np.sqrt(lam)
    assert np.abs(z.mean(axis=0)).max() < 5 / np.sqrt(plans)
    assert np.abs(z.T @ z / plans - np.eye(3)).max() < 5 * np.sqrt(2 / plans)


# ---- exploration ------------------------------------------------------------------------------------------


def chances(explore, Q, legal, episode=0):
    rule, parameter = explore.parameters(episode, 1)
    out = np.full(len(Q), np.nan)
    assert probabilities(rule, parameter[0], np.array(Q, dtype=float), np.array(legal, dtype=bool), out)
    return out


def test_greedy_breaks_ties_fairly_among_legal_maxima():
    np.testing.assert_array_equal(chances(Greedy(), [1, 3, 3, 5, 3], [1, 1, 1, 0, 1]), [0, 1 / 3, 1 / 3, 0, 1 / 3])
    np.testing.assert_array_equal(chances(Greedy(), [0, 0], [True, True]), [0.5, 0.5])


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(0, 2**31), st.integers(1, 6), st.floats(0.0, 1.0), st.floats(0.01, 10.0))
def test_exploration_probabilities_are_the_plain_formulas(seed, A, epsilon, eta):
    rng = np.random.default_rng(seed)
    Q, legal = rng.integers(0, 3, A).astype(float), rng.random(A) < 0.6
    legal[rng.integers(A)] = True
    best = legal & (Q == Q[legal].max())
    expected = (1 - epsilon) * best / best.sum() + epsilon * legal / legal.sum()
    np.testing.assert_allclose(chances(EpsilonGreedy(epsilon), Q, legal), expected, atol=1e-15)
    weight = np.exp(Q / eta) * legal
    np.testing.assert_allclose(chances(Boltzmann(eta), Q, legal), weight / weight.sum(), atol=1e-12)


def test_boltzmann_survives_values_that_overflow_exp():
    np.testing.assert_allclose(chances(Boltzmann(1e-3), [1000.0, 1000.0, -1000.0], [1, 1, 1]), [0.5, 0.5, 0])
    np.testing.assert_allclose(chances(Boltzmann(1.0), [-np.inf, -5000.0], [0, 1]), [0, 1])


def test_choose_draws_actions_with_these_probabilities():
    Q, legal, n = np.array([1.0, 2.0, 2.0, 9.0]), np.array([True, True, True, False]), 20_000
    for explore in (Greedy(), EpsilonGreedy(0.3), Boltzmann(0.8)):
        rule, parameter = explore.parameters(0, 1)
        noise, expected = stream(4), chances(explore, Q, legal)
        counts = np.bincount(
            [choose(rule, parameter[0], Q, legal, np.empty(4), noise) for _ in range(n)], minlength=4
        )
        # a count is binomial: sd at most sqrt(n p (1 - p)); none where the probability is zero
        assert (np.abs(counts - n * expected) <= 4.5 * np.sqrt(n * expected * (1 - expected))).all()


@pytest.mark.parametrize("bad", [[np.nan, 1.0], [np.inf, 1.0], [-np.inf, -np.inf]])
def test_no_action_is_chosen_from_values_that_cannot_be_compared(bad):
    assert choose(0, 0.0, np.array(bad), np.array([True, True]), np.empty(2), stream(0)) == -1


def test_a_nan_of_an_illegal_action_does_no_harm():
    assert choose(0, 0.0, np.array([np.nan, 1.0]), np.array([False, True]), np.empty(2), stream(0)) == 1


def test_schedules():
    linear, exponential = Linear(1.0, 0.2, 4), Exponential(0.5, 0.1, 0.01)
    np.testing.assert_allclose([linear(i) for i in range(7)], [1, 0.8, 0.6, 0.4, 0.2, 0.2, 0.2])
    np.testing.assert_allclose([exponential(i) for i in range(4)], [0.5, 0.05, 0.01, 0.01])
    for explore in (EpsilonGreedy(linear), Boltzmann(linear), EpsilonGreedy(lambda i: linear(i))):
        np.testing.assert_allclose(explore.parameters(2, 4)[1], [0.6, 0.4, 0.2, 0.2])
    np.testing.assert_array_equal(EpsilonGreedy(0.3).parameters(5, 2)[1], [0.3, 0.3])


def test_a_schedule_counts_episodes_from_the_first():
    """Uniform in episodes 0..9, greedy ever after: with a clear prior only the first ten ever go wrong."""
    prior = np.tile([0.0, 1.0], 6)
    agent = LSVI(lam=1e9, prior_mean=prior, explore=EpsilonGreedy(lambda i: float(i < 10)), seed=0)
    wrong = [simulate(agent, rlsvi.problems.chain(6), n, trace=True).trace.actions == 0 for n in (4, 6, 30)]
    assert wrong[0].any()
    assert wrong[1].any()
    assert not wrong[2].any()


@pytest.mark.parametrize(
    ("explore", "name"),
    [
        (EpsilonGreedy(-0.1), "epsilon"),
        (EpsilonGreedy(1.1), "epsilon"),
        (EpsilonGreedy(np.nan), "epsilon"),
        (EpsilonGreedy(lambda i: 2.0), "epsilon"),
        (Boltzmann(0.0), "eta"),
        (Boltzmann(-1.0), "eta"),
        (Boltzmann(np.inf), "eta"),
        (Boltzmann(np.nan), "eta"),
    ],
)
def test_bad_exploration_parameters_are_named(explore, name):
    with pytest.raises(ValueError, match=f"{name} must"):
        LSVI(explore=explore)


def test_a_schedule_that_turns_bad_is_noticed_before_anything_is_learned():
    agent = LSVI(explore=EpsilonGreedy(lambda i: 0.1 if i < 5 else 7.0), seed=0)
    with pytest.raises(ValueError, match="epsilon"):
        simulate(agent, rlsvi.problems.chain(4), 10)
    assert agent.episodes == 0


def test_a_linear_schedule_over_no_episodes_is_refused_by_name():
    with pytest.raises(ValueError, match="episodes"):
        LSVI(explore=EpsilonGreedy(Linear(1.0, 0.1, 0)))


# ---- memory -----------------------------------------------------------------------------------------------


def test_every_reward_is_counted_once_and_every_transition_too():
    mdp = random_mdp(np.random.default_rng(3), 4, 3, 3, True)
    agent = RLSVI(sigma=1.0, seed=1)
    episodes = raw_episodes(simulate(agent, Problem(mdp), 200, trace=True).trace, mdp)
    memory, index = agent._learner.mind.memory, agent._learner.mind.rows
    rewards, visits, into = np.zeros((3, 12)), np.zeros((3, 12)), {}
    for episode in episodes:
        for h, (s, a, r, following, _) in enumerate(episode):
            rewards[h, 3 * s + a] += r
            visits[h, 3 * s + a] += 1
            if following is not None:
                key = h, 3 * s + a, index[h + 1, following]
                into[key] = into.get(key, 0) + 1
    np.testing.assert_allclose(memory.reward[..., 0], rewards, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(agent._learner.mind.factor.U[..., 0, 0] ** 2, visits + 1, rtol=1e-12)
    kept = {
        (h, memory.sum_block[h, e], memory.sum_next[h, e]): memory.into[h, e, 0]
        for h in range(3)
        for e in range(memory.sums[h])
    }
    assert kept == into


def test_memory_stops_growing_with_the_number_of_episodes():
    mdp = chain(8)
    agent = LSVI(explore=EpsilonGreedy(1.0), seed=0)
    sizes = []
    for n in (2000, 4000):
        simulate(agent, Problem(mdp), n, regret=False)
        memory = agent._learner.mind.memory
        sizes.append((memory.states.copy(), memory.sums.copy(), [array.shape for array in memory]))
    # at period h the chain can be in h + 1 states at most, each with 2 actions and 2 successors
    assert (sizes[1][0] <= np.arange(7) + 1).all()
    assert (sizes[1][1] <= 3 * sizes[1][0]).all()
    assert sizes[0][2] == sizes[1][2]
    assert (sizes[0][1] == sizes[1][1]).all()
    assert agent.episodes == 6000
    assert agent.steps == 6000 * 7
