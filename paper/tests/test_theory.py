"""The executable theory against closed forms, quadrature and sampling."""

import math

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from rlsvi import mdp, problems
from rlsvi.bases import Tabular
from rlsvi.simulate.finite import simulate
from rlsvi_paper.chain.learning import expected_first_reward
from rlsvi_paper.theory import bounds, expected_excess, optimism
from rlsvi_paper.theory.optimism import normal_curve


def random_case(rng, least=2.0):
    """Weights of sum at least `least`, some small and some large, and values in [0, 1]."""
    d = int(rng.integers(2, 8))
    alpha = rng.gamma(0.7, 3.0, size=d)
    return alpha * max(1.0, least / alpha.sum()), rng.random(d)


# ---- E[(X - t)+] --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mean", "std"), [(0.3, 0.5), (-1.0, 0.1)])
def test_the_excess_of_a_normal_is_its_integral(mean, std):
    for t in (mean - 2 * std, mean, mean + 3 * std):
        whole, _ = integrate.quad(lambda x, t=t: (x - t) * stats.norm.pdf(x, mean, std), t, mean + 12 * std)
        assert expected_excess.normal_excess(mean, std, t) == pytest.approx(whole, rel=1e-7)


@pytest.mark.parametrize(("a", "b"), [(2.0, 3.0), (0.4, 0.7), (30.0, 5.0)])
def test_the_excess_of_a_beta_is_its_integral(a, b):
    for t in (-0.5, 0.2, 0.8, 1.5):
        whole, _ = integrate.quad(lambda x: stats.beta.sf(x, a, b), max(t, 0.0), 1.0) if t < 1 else (0.0, 0.0)
        assert expected_excess.beta_excess(a, b, t) == pytest.approx(whole + max(-t, 0.0), abs=1e-7)


@pytest.mark.parametrize("alpha", [(0.5, 0.5), (0.3, 2.0), (1.0, 1.0), (50.0, 0.5), (500.0, 300.0), (1e4, 2e4)])
def test_the_integral_is_exact_where_the_dirichlet_is_a_beta(alpha):
    t = np.linspace(-0.2, 1.2, 57)
    found = expected_excess.dirichlet_excess(alpha, [0.0, 1.0], t)
    off = np.abs(found.value - expected_excess.beta_excess(alpha[1], alpha[0], t))
    assert off.max() < 1e-12
    assert (off <= found.error + 1e-15).all()
    assert found.error.max() < 1e-8


def test_equal_values_merge_their_weights():
    """Dirichlet weights of one value add up: three states with two values are a Beta."""
    t = np.linspace(0.1, 0.9, 9)
    merged = expected_excess.dirichlet_excess([1.5, 0.7, 0.0, 2.0], [0.2, 0.8, 0.99, 0.8], t).value
    assert merged == pytest.approx(0.6 * expected_excess.beta_excess(2.7, 1.5, (t - 0.2) / 0.6), abs=1e-14)


def test_three_values_against_an_integral_over_one_of_them():
    """P_2 ~ Beta, and what it leaves is split by an independent Beta between the other two."""
    alpha, V = np.array([1.2, 0.8, 2.5]), np.array([0.9, 0.1, 0.4])
    for t in (0.3, 0.55):

        def given(y, t=t):
            left = (1 - y) * (V[0] - V[1])
            excess = left * expected_excess.beta_excess(alpha[0], alpha[1], (t - y * V[2] - (1 - y) * V[1]) / left)
            return float(excess) * stats.beta.pdf(y, alpha[2], alpha[0] + alpha[1])

        whole, _ = integrate.quad(given, 0, 1 - 1e-12, limit=200, epsabs=1e-11)
        assert expected_excess.dirichlet_excess(alpha, V, t).value[0] == pytest.approx(whole, abs=1e-9)


def test_many_values_against_samples():
    rng = np.random.default_rng(3)
    for _ in range(5):
        alpha, V = random_case(rng, 0.3)
        Y = rng.dirichlet(alpha, size=40_000) @ V
        t = np.quantile(Y, [0.1, 0.5, 0.9])
        parts = np.maximum(Y[:, None] - t, 0.0)
        error = parts.std(axis=0) / math.sqrt(len(Y))
        assert (
            np.abs(expected_excess.dirichlet_excess(alpha, V, t).value - parts.mean(axis=0)) < 4.5 * error
        ).all()


def test_the_error_bound_holds_even_with_few_nodes():
    rng = np.random.default_rng(4)
    for nodes in (16, 32):
        for _ in range(20):
            alpha, V = random_case(rng)
            t = np.linspace(V.min(), V.max(), 7)
            rough, exact = (expected_excess.dirichlet_excess(alpha, V, t, nodes=n) for n in (nodes, 400))
            assert (np.abs(rough.value - exact.value) <= rough.error + exact.error).all()


# ---- Lemma 1 ------------------------------------------------------------------------------------------------


def test_lemma_1_in_a_thousand_random_cases():
    rng = np.random.default_rng(0)
    gaps = [optimism.lemma_gap(*random_case(rng)) for _ in range(1000)]
    assert min(g.gap for g in gaps) > 0
    assert max(g.error for g in gaps) < 1e-8


def test_the_gap_is_what_a_fine_grid_says():
    alpha, V = np.array([1.0, 2.5, 0.5]), np.array([0.0, 0.3, 1.0])
    t = np.linspace(0, 1, 3001)
    mean, std = alpha @ V / alpha.sum(), 1 / math.sqrt(alpha.sum())
    gaps = expected_excess.normal_excess(mean, std, t) - expected_excess.dirichlet_excess(alpha, V, t).value
    found = optimism.lemma_gap(alpha, V)
    assert found.gap == pytest.approx(gaps.min(), abs=1e-4)
    assert expected_excess.normal_excess(mean, std, found.t) - expected_excess.dirichlet_excess(
        alpha, V, found.t
    ).value == pytest.approx(found.gap, abs=1e-15)


def test_the_least_gap_is_found_between_the_points():
    """A kink that a parabola touches twice from above, where no point of the first grid is."""

    def kinked(t):
        return np.abs(t - 0.3141), np.full(len(t), 1e-15)

    def above(t):  # touches the kink from above: (t - c)^2 / (2 e) + e / 2 >= |t - c|
        return (t - 0.3141) ** 2 / 0.002 + 0.0005, (t - 0.3141) / 0.001

    found = optimism.least_gap(above, kinked, 0.0, 1.0, points=3)
    assert found.gap == pytest.approx(0.0, abs=1e-9)
    assert abs(found.t - 0.3141) == pytest.approx(0.001, abs=1e-4)
    assert found.error < 1e-8


def test_the_bound_between_points_is_one():
    """Whatever the tolerance: no point of a fine grid is below the least gap by more than its error."""
    rng = np.random.default_rng(5)
    for tolerance in (1e-2, 1e-5, 1e-9):
        for _ in range(10):
            alpha, V = random_case(rng)
            alpha = alpha * 30
            found = optimism.lemma_gap(alpha, V, tolerance=tolerance)
            mean, std = alpha @ V / alpha.sum(), 1 / math.sqrt(alpha.sum())
            t = np.linspace(V.min(), V.max(), 401)
            gaps = (
                expected_excess.normal_excess(mean, std, t) - expected_excess.dirichlet_excess(alpha, V, t).value
            )
            assert gaps.min() >= found.gap - found.error
            assert found.error < tolerance + 1e-8


def test_one_value_is_certain():
    found = optimism.lemma_gap([1.0, 3.0], [0.5, 0.5])
    assert found.gap == pytest.approx(0.5 / math.sqrt(2 * math.pi))
    assert found.t == 0.5


def test_too_few_points_are_said_in_the_error():
    alpha, V = np.full(3, 200.0), np.array([0.0, 0.4, 1.0])
    assert optimism.lemma_gap(alpha, V).error < 2e-9
    normal = normal_curve(alpha @ V / 600, 600**-0.5)

    def dirichlet(t):
        return expected_excess.dirichlet_excess(alpha, V, t)

    assert optimism.least_gap(normal, dirichlet, 0.0, 1.0, most=9).error > 1e-3


@pytest.mark.parametrize(("a", "b"), [(0.05, 0.05), (1.0, 1.0), (0.3, 4.0), (40.0, 2.0)])
def test_the_gap_of_a_beta_is_what_a_fine_grid_says(a, b):
    t = np.linspace(0, 1, 5001)
    gaps = expected_excess.normal_excess(a / (a + b), (a + b) ** -0.5, t) - expected_excess.beta_excess(a, b, t)
    found = optimism.beta_gap(a, b)
    assert found.error < 1e-8
    assert gaps.min() >= found.gap - found.error
    assert found.gap <= gaps.min() + 1e-8


def test_the_matched_gap_is_that_of_the_matched_beta():
    rng = np.random.default_rng(7)
    for _ in range(20):
        alpha, V = rng.gamma(0.7, 3.0, size=4) + 0.05, rng.random(4)
        found, (a, b) = optimism.matched_gap(alpha, V), optimism.matched_beta(alpha, V)
        low, width = V.min(), np.ptp(V)
        t = np.linspace(low, V.max(), 101)
        gaps = (
            width * expected_excess.beta_excess(a, b, (t - low) / width)
            - expected_excess.dirichlet_excess(alpha, V, t).value
        )
        assert gaps.min() >= found.gap - found.error
        assert found.error < 1e-5


def test_a_narrower_normal_would_not_do():
    """The gap can be negative: a normal of half the standard deviation is not optimistic for a wide Beta."""
    t = np.linspace(0, 1, 101)
    gaps = (
        expected_excess.normal_excess(0.5, 0.25, t)
        - expected_excess.dirichlet_excess([0.2, 0.2], [0.0, 1.0], t).value
    )
    assert gaps.min() < -0.05


def test_the_matched_beta_lies_between():
    """Appendix G: the normal is optimistic for the matched Beta, and that for the Dirichlet."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        alpha, V = random_case(rng)
        a, b = optimism.matched_beta(alpha, V)
        assert a + b == pytest.approx(alpha.sum())
        low, high = V.min(), V.max()
        t = np.linspace(low, high, 21)
        beta = (high - low) * expected_excess.beta_excess(a, b, (t - low) / (high - low))
        dirichlet = expected_excess.dirichlet_excess(alpha, V, t)
        assert (beta >= dirichlet.value - dirichlet.error - 1e-14).all()
        assert low + (high - low) * a / (a + b) == pytest.approx(alpha @ V / alpha.sum())


# ---- single crossing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), [(2.0, 3.0), (0.5, 0.5), (1.0, 1.0), (0.3, 4.0), (200.0, 100.0), (1.2, 1.05)])
def test_the_cdfs_cross_once_where_the_sum_is_at_least_one(a, b):
    x = np.linspace(1e-6, 1 - 1e-6, 20_000)
    difference = stats.norm.cdf(x, a / (a + b), 1 / math.sqrt(a + b)) - stats.beta.cdf(x, a, b)
    assert optimism.crossings(a, b) == np.count_nonzero(np.diff(np.sign(difference))) == 1


@pytest.mark.parametrize(("a", "b", "times"), [(1.0, 1.0, 0), (2.0, 0.5, 1), (5.0, 5.0, 2), (0.05, 0.05, 2)])
def test_densities_cross_where_their_difference_changes_sign(a, b, times):
    x = np.linspace(1e-6, 1 - 1e-6, 20_001)
    normal = stats.norm(a / (a + b), (a + b) ** -0.5)
    seen = np.count_nonzero(np.diff(np.sign(stats.beta(a, b).pdf(x) - normal.pdf(x))))
    assert optimism.density_crossings(a, b) == seen == times


def test_three_crossings_for_small_equal_weights():
    assert optimism.crossings(0.05, 0.05) == 3
    x = np.array([1e-12, 0.4, 0.6, 1 - 1e-12])
    difference = stats.norm.cdf(x, 0.5, 1 / math.sqrt(0.1)) - stats.beta.cdf(x, 0.05, 0.05)
    assert np.sign(difference).tolist() == [1, -1, 1, -1]


def test_where_the_lemma_fails_is_where_the_densities_at_one_half_are_equal():
    """For equal weights F_normal - F_beta vanishes at 1/2; it crosses upward where the normal is denser there."""

    def denser(total):
        return stats.norm.pdf(0.5, 0.5, 1 / math.sqrt(total)) - stats.beta.pdf(0.5, total / 2, total / 2)

    expected = optimize.brentq(denser, 0.05, 1.0, xtol=1e-12)
    assert expected == pytest.approx(0.2052, abs=1e-4)
    for share, single in ((0.005, False), (0.5, False), (0.999, False), (1.001, True), (5.0, True)):
        assert (optimism.crossings(0.5 * share * expected, 0.5 * share * expected) == 1) == single


def test_the_lemma_fails_only_near_equal_weights():
    for total, single in ((0.0055, True), (0.0075, False), (0.06, False), (0.07, True)):
        assert (optimism.crossings(0.49 * total, 0.51 * total) == 1) == single
    assert all(optimism.crossings(0.3 * total, 0.7 * total) == 1 for total in np.logspace(-3, 0.6, 60))


def test_a_crossing_beyond_float64_is_counted():
    assert optimism.crossings(1e-4, 2e-4) == 1


def test_optimism_holds_even_where_single_crossing_fails():
    for total in (0.02, 0.1, 0.2):
        assert optimism.crossings(total / 2, total / 2) == 3
        assert optimism.beta_gap(total / 2, total / 2).gap > 0


# ---- Lemma 2 ------------------------------------------------------------------------------------------------


def test_lemma_2_in_the_last_period_exactly():
    lam, sigma = bounds.theorem_parameters(2, 3)
    assert min(optimism.last_period_gap(n, k, lam, sigma).gap for n in range(12) for k in range(n + 1)) > 0
    assert optimism.last_period_gap(4, 4, lam, 0.1).gap < 0  # too little noise


def test_the_last_period_looks_at_all_t():
    """A mean below the posterior's shows far to the left alone, where the excess is the mean less t."""
    found = optimism.last_period_gap(100, 50, 1e-3, 5.0, alpha_R=(1e-3, 50.0))
    mean, other = -50 / (100 + 25e-3), -(50 + 1e-3) / (150 + 1e-3)
    assert found.t == -math.inf
    assert found.gap == pytest.approx(mean - other, rel=1e-9)
    for prior in ((1.0, 1.0), (0.2, 3.0), (3.0, 0.2)):
        for n, k in ((0, 0), (1, 1), (7, 3)):
            assert optimism.last_period_gap(n, k, sum(prior), 1.0, alpha_R=prior).gap > 0


def some_data():
    rng = np.random.default_rng(2)
    into = rng.poisson(1.5, size=(3, 2, 2, 2))
    return into, rng.binomial(into.sum(axis=-1), 0.5)


def test_lemma_2_in_all_periods_within_sampling_error():
    found = optimism.q_gap(*some_data(), *bounds.theorem_parameters(2, 3), draws=20_000)
    assert (found.gap > -4.5 * found.error).all()
    assert found.gap.shape == (3, 2, 2, 9)


def test_means_and_first_values_are_those_of_the_last_period():
    """With one period V_0 is the larger of two normals, and of two Betas."""
    into, lows = np.full((1, 1, 2, 1), 4.0), np.array([[[1.0, 3.0]]])
    lam, sigma = 2.0, 1.5
    found = optimism.q_gap(into, lows, lam, sigma, draws=40_000, seed=3)
    ridge = lam * sigma**2
    means, spread = -lows[0, 0] / (4 + ridge), sigma / math.sqrt(4 + ridge)
    assert (np.abs(found.mean[0, 0] - means - (lows[0, 0] + 1) / 6) < 4.5 * found.mean_error[0, 0]).all()
    normal = means[1] + float(expected_excess.normal_excess(means[0] - means[1], spread * math.sqrt(2), 0.0))
    x = np.linspace(0, 1, 20_001)  # E[max] of two Betas on [-1, 0]: minus the integral of the product of CDFs
    best = -np.trapezoid(stats.beta.cdf(x, 4, 2) * stats.beta.cdf(x, 2, 4), x)
    assert abs(found.value[0] - (normal - best)) < 4.5 * found.value_error[0] + 1e-7


def test_lemma_2_needs_its_sigma():
    into = np.zeros((2, 1, 1, 1))
    into[:] = 6
    lows = np.full((2, 1, 1), 3)
    found = optimism.q_gap(into, lows, 0.5, 0.02, draws=20_000)
    assert (found.gap < -4.5 * found.error).any()


def test_sampled_q_values_agree_with_the_closed_form_in_the_last_period():
    into, lows = some_data()
    lam, sigma = 3.0, 1.5
    found = optimism.q_gap(into, lows, lam, sigma, draws=40_000, seed=1)
    for s, a in np.ndindex(2, 2):
        n, k = into[-1, s, a].sum(), lows[-1, s, a]
        spread = sigma / math.sqrt(n + lam * sigma**2)
        t = found.t[-1, s, a]
        exact = expected_excess.normal_excess(-k / (n + lam * sigma**2), spread, t) - expected_excess.beta_excess(
            1 + n - k, 1 + k, t + 1
        )
        assert (np.abs(found.gap[-1, s, a] - exact) < 4.5 * found.error[-1, s, a]).all()


# ---- Theorem 1 ----------------------------------------------------------------------------------------------


def test_the_parameters_of_theorem_1():
    assert bounds.theorem_parameters(5, 3) == (7.0, math.sqrt(10))


def test_the_agent_of_theorem_1_learns():
    agent = bounds.theorem_agent(3, 2, seed=0)
    assert (agent.lam, agent.sigma, agent.basis) == (5.0, math.sqrt(5), Tabular())
    history = simulate(agent, problems.dirichlet(3, 2, 2, seed=0), 20_000)
    assert history.regret[-2000:].mean() < 0.5 * history.regret[:200].mean()
    assert history.regret.sum() < bounds.regret_shape(3, 2, 2, 40_000)


def test_the_shape_of_the_bound():
    assert bounds.regret_shape(2, 3, 5, 1000) == pytest.approx(math.sqrt(125 * 6 * 1000))
    T, pairs, K = 500.0, 2 * 3 * 5, 1 + 5 * 2
    expected = 2 * pairs + pairs * K * math.log(T + K) + 5 * math.sqrt(pairs * T * math.log(T))
    assert bounds.proof_bound(2, 3, 5, T) == pytest.approx(expected)
    ratio = bounds.proof_bound(2, 3, 5, [1e8, 1e12]) / bounds.regret_shape(2, 3, 5, [1e8, 1e12])
    assert (ratio / np.sqrt(np.log([1e8, 1e12])) < 1.1).all()


# ---- dithering ----------------------------------------------------------------------------------------------


def test_the_chance_of_dithering_is_the_value_of_random_play():
    for N in (2, 5, 9):
        value = mdp.evaluate(mdp.chain(N), np.full((N - 1, N, 2), 0.5))[0, 0]
        assert 1 / expected_first_reward(N) == pytest.approx(value, rel=1e-12)
