"""Incremental RLSVI against its recursion computed by hand, and against batch RLSVI where they agree."""

import numpy as np
import pytest

import rlsvi
from rlsvi import RLSVI, Exponential, IncrementalRLSVI, InverseGamma, Linear, Problem
from rlsvi.agents.finite.incremental import LANES, MOST_COLUMNS, new_lanes, regularise_four
from rlsvi.bases import Dense, StateFeatures, Tabular
from rlsvi.core.regression import HUGE_DIAGONAL, FactorError, add_diagonal, prior_factor, rank_one, shrink
from rlsvi.envs import FiniteMDPEnv
from rlsvi.simulate.finite import simulate
from test_unknown_noise import A, H, S, basis_of, noisy_mdp
from twin import Rows, assert_same, raw_episodes, state_of


def precision(U):
    upper = np.triu(U)
    return upper.T @ upper


# ---- the factor -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 5])
def test_a_factor_shrinks_and_gains_a_diagonal(d):
    rng = np.random.default_rng(d)
    (U,), (inv,) = prior_factor((1,), d, 0.3)
    P = 0.3 * np.eye(d)
    for _ in range(4):
        x = rng.normal(size=d)
        P += np.outer(x, x)
        assert rank_one(U, inv, x)
    shrink(U, inv, 0.7)
    assert add_diagonal(U, inv, 0.25, np.empty(d))
    P = 0.7 * P + 0.25 * np.eye(d)
    np.testing.assert_allclose(precision(U), P, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(inv * np.diag(U), 1.0, rtol=1e-14)


def test_a_factor_that_overflows_is_noticed():
    U, inv = np.full((1, 1), 1e200), np.full(1, 1e-200)
    assert not add_diagonal(U, inv, 1.0, np.empty(1))


@pytest.mark.parametrize("d", [1, 2, 5, 10])
@pytest.mark.parametrize("places", [(0, 1, 2, 3), (3, 1, 1, 1)])
def test_four_factors_at_once_are_each_what_it_is_alone(d, places):
    rng = np.random.default_rng(d)
    factor = prior_factor((1, LANES), d, 1e-6)
    P = np.zeros((LANES, d, d))
    for b in range(LANES):
        for _ in range(3):  # fewer rows than columns: a condition of 1e8 or so
            assert rank_one(factor.U[0, b], factor.inv[0, b], 10.0 ** (b - 2) * rng.normal(size=d))
        P[b] = precision(factor.U[0, b])
    before, lanes = factor.U.copy(), new_lanes(d)
    lanes.place[:] = [(0, b) for b in places]
    lanes.X[:] = np.nan  # what it was does not matter
    assert regularise_four(factor, lanes, 0.7, 0.25)
    for b in range(LANES):
        if b in places:
            wanted = 0.7 * P[b] + 0.25 * np.eye(d)
            np.testing.assert_allclose(precision(factor.U[0, b]), wanted, rtol=1e-13, atol=1e-13 * wanted.max())
            np.testing.assert_allclose(factor.inv[0, b] * np.diag(factor.U[0, b]), 1.0, rtol=1e-14)
            assert (np.diag(factor.U[0, b]) > 0).all()
        else:
            assert (factor.U[0, b] == before[0, b]).all()


def test_one_of_four_that_overflows_is_noticed():
    for lane in range(LANES):
        factor, lanes = prior_factor((1, LANES), 2, 1.0), new_lanes(2)
        lanes.place[:] = [(0, b) for b in range(LANES)]
        factor.U[0, lane, 1, 1] = 2 * HUGE_DIAGONAL
        assert not regularise_four(factor, lanes, 1.0, 1.0)


def test_wide_blocks_are_done_one_by_one():
    rng = np.random.default_rng(0)
    mdp, wide = noisy_mdp(), Dense(rng.normal(size=(S, A, MOST_COLUMNS + 1)))
    agent = IncrementalRLSVI(lam=0.7, sigma=0.6, nu=0.2, seed=1)
    P, *_ = by_hand(agent, Problem(mdp, wide), 10)
    for h in range(H):
        np.testing.assert_allclose(precision(agent._learner.mind.factor.U[h, 0]), P[h], rtol=1e-9, atol=1e-11)


# ---- the recursion ----------------------------------------------------------------------------------------


def by_hand(agent, problem, episodes):
    """Play; and follow P = sigma^2 Sigma^-1 and y, with targets from the weights each episode was played with."""
    features = problem.basis.bind(S, A, H, 0)
    rows, K, ridge, mean = Rows(features), features.blocks * features.dim, agent.lam, agent.prior_mean
    ridge *= 1.0 if isinstance(agent.sigma, InverseGamma) else agent.sigma**2
    P, y = np.array([ridge * np.eye(K)] * H), np.full((H, K), ridge * mean)
    counts, squares = np.zeros(H), np.zeros(H)
    for i in range(episodes):
        history = simulate(agent, problem, 1, trace=True)
        theta = agent._learner.mind.values.theta.reshape(H, K) if i else np.full((H, K), mean)
        nu = agent.step_sizes(i, 1)[0]
        P, y, counts, squares = (1 - nu) * P, (1 - nu) * y, (1 - nu) * counts, (1 - nu) * squares
        if agent.keep_prior:
            P, y = P + nu * ridge * np.eye(K), y + nu * ridge * mean
        (episode,) = raw_episodes(history.trace, problem.mdp)
        for h, (s, a, r, following, legal) in enumerate(episode):
            target = r + (0.0 if following is None else (rows(h + 1, following) @ theta[h + 1])[legal].max())
            x = rows(h, s)[a]
            P[h], y[h] = P[h] + np.outer(x, x), y[h] + target * x
            counts[h], squares[h] = counts[h] + 1, squares[h] + target**2
    return P, y, counts, squares


def precisions(agent):
    """P of every period, all blocks in one matrix."""
    blocks, d = agent._learner.features.blocks, agent._learner.features.dim
    found = np.zeros((H, blocks * d, blocks * d))
    for h in range(H):
        for b in range(blocks):
            part = slice(b * d, (b + 1) * d)
            found[h, part, part] = precision(agent._learner.mind.factor.U[h, b])
    return found


@pytest.mark.parametrize("kind", ["tabular", "blocks"])
def test_with_several_blocks_the_precision_is_that_of_the_recursion_too(kind):
    """Their targets have noise that by_hand does not follow: it comes from blocks that are not alive."""
    agent = IncrementalRLSVI(lam=0.7, sigma=0.6, nu=0.1, prior_mean=0.3, seed=1)
    P, *_ = by_hand(agent, Problem(noisy_mdp(), basis_of(kind)), 25)
    np.testing.assert_allclose(precisions(agent), P, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("nu", [0.0, 0.1, Linear(0.5, 0.01, 10), Exponential(0.5, 0.8)])
@pytest.mark.parametrize(("kind", "keep"), [("dense", True), ("dense", False), ("tabular", False)])
def test_the_statistics_are_those_of_the_recursion(kind, keep, nu):
    problem = Problem(noisy_mdp(), basis_of(kind))
    agent = IncrementalRLSVI(lam=0.7, sigma=0.6, nu=nu, keep_prior=keep, prior_mean=0.3, seed=1)
    P, y, counts, _ = by_hand(agent, problem, 25)
    memory, ridge = agent._learner.mind.memory, 0.7 * 0.6**2
    np.testing.assert_allclose(precisions(agent), P, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(memory.reward.reshape(y.shape) + ridge * 0.3, y, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(memory.counts, counts, rtol=1e-12)
    mean = agent._learner.plan(False, agent._streams[0].copy()).theta.reshape(y.shape)
    np.testing.assert_allclose(mean, [np.linalg.solve(P[h], y[h]) for h in range(H)], rtol=1e-8, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("keep", [True, False])
def test_unknown_noise_has_the_misfit_of_the_discounted_data(keep):
    problem = Problem(noisy_mdp(), basis_of("dense"))
    prior = InverseGamma(2.0, 0.1)
    agent = IncrementalRLSVI(lam=0.7, sigma=prior, nu=0.1, keep_prior=keep, prior_mean=0.3, seed=1)
    P, y, counts, squares = by_hand(agent, problem, 25)
    weight = 1.0 if keep else 0.9**25
    noise = rlsvi.core.random.stream(3)
    drawn = np.array([agent._learner.plan(True, noise).sigma ** -2 for _ in range(2000)])
    for h in (H - 1,):
        misfit = squares[h] + weight * 0.7 * 3 * 0.3**2 - y[h] @ np.linalg.solve(P[h], y[h])
        shape, scale = prior.shape + counts[h] / 2, prior.scale + misfit / 2
        assert abs(drawn[:, h].mean() * scale / shape - 1) < 4 / np.sqrt(shape * len(drawn))


def test_one_period_is_batch_rlsvi_where_nothing_is_forgotten():
    """With H = 1 a target is a reward, which never changes."""
    mdp = rlsvi.mdp.FiniteMDP.from_arrays(
        np.full((3, 2, 3), 1 / 3), np.arange(6.0).reshape(3, 2), horizon=1, start=np.full(3, 1 / 3)
    )
    problem = Problem(mdp, Dense(np.random.default_rng(0).normal(size=(3, 2, 4))))
    batch, incremental = RLSVI(seed=4), IncrementalRLSVI(nu=0.0, seed=4)
    first, second = (simulate(agent, problem, 100) for agent in (batch, incremental))
    assert first.reward.tobytes() == second.reward.tobytes()
    assert batch._learner.mind.values.theta.tobytes() == incremental._learner.mind.values.theta.tobytes()


def test_what_is_never_visited_keeps_the_variance_of_the_prior_or_loses_it():
    problem = Problem(noisy_mdp(), Tabular())
    for keep, variance in ((True, 1.0), (False, 0.5**-40)):
        agent = IncrementalRLSVI(lam=1.0, sigma=1.0, nu=0.5, keep_prior=keep, seed=0)
        simulate(agent, problem, 40)
        unseen = agent._learner.mind.factor.inv[0, (S - 1) * A]  # the absorbing state
        assert unseen**2 == pytest.approx(variance, rel=1e-12)


def test_it_learns_a_short_chain_where_it_forgets_and_not_where_targets_are_kept_for_ever():
    """With nu = 0 the targets of the first episodes, made before anything was known, count for ever."""
    late = {}
    for nu in (0.0, 0.01):
        history = simulate(IncrementalRLSVI(nu=nu, seed=0), rlsvi.problems.chain(8), 1500)
        late[nu] = history.regret[-300:].mean() / history.regret[0]
    assert late[0.01] < 0.2 < 0.8 < late[0.0]


# ---- the same face ----------------------------------------------------------------------------------------


def test_predict_acts_in_every_period_and_on_states_never_seen():
    agent = IncrementalRLSVI(seed=1, basis=StateFeatures(lambda s: np.eye(S)[s]))
    agent.learn(FiniteMDPEnv(noisy_mdp()), episodes=5)
    for deterministic in (True, False):
        for h in range(H):
            action, following = agent.predict(S - 1, h, deterministic=deterministic)
            assert action in range(A)
            assert following == h + 1


def test_what_is_forgotten_stays_a_number(tmp_path):
    """Without its prior a block that is never visited would be forgotten for ever."""
    agent = IncrementalRLSVI(nu=0.9, keep_prior=False, seed=0)
    simulate(agent, rlsvi.problems.chain(3), 2000)
    agent.save(tmp_path / "a")
    assert_same(state_of(rlsvi.load(tmp_path / "a")), state_of(agent))


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "stepped"])
def test_a_target_whose_square_is_no_number_is_not_learned_from(fused):
    problem = rlsvi.problems.chain(3)
    agent, env = IncrementalRLSVI(lam=1e-310, sigma=1e10, seed=0), FiniteMDPEnv(problem.mdp)
    agent.learn(env, episodes=1)  # on the prior mean; later values are drawn, and have a size of 1e155
    before = state_of(agent)
    with pytest.raises(FactorError):
        simulate(agent, problem, 1) if fused else agent.learn(env, episodes=1)
    assert_same(state_of(agent), before)
