"""The proofs of docs/errata.md: each inequality, and what it says, by closed forms; and that less would not do."""

import math

import numpy as np
import pytest
from scipy import special, stats

from rlsvi import RLSVI, problems
from rlsvi.bases import Tabular
from rlsvi.simulate import simulate
from rlsvi_paper.theory import bounds, expected_excess, optimism
from rlsvi_paper.theory.optimism import beta_curve, normal_curve, with_rounding

STEP = math.pi / 8
PAIRS = [(0.01, 0.03), (0.05, 0.05), (0.3, 0.4), (0.6, 0.6), (1.0, 0.2), (1.1, 0.5), (4.0, 0.5), (30.0, 9.0)]


# ---- one draw: a variable in [0, 1] against a normal ----------------------------------------------------------


def test_one_draw_is_below_a_normal_of_variance_pi_8():
    """sqrt(variance) phi(z) >= Phi(z) Phi(-z), with equality at 0 for pi / 8; anything less fails there."""
    z = np.linspace(-6.0, 6.0, 2401)
    for variance, least in ((1.0, 0.3), (STEP, -1e-12)):
        ratio = math.sqrt(variance) - special.ndtr(z) * special.ndtr(-z) / stats.norm.pdf(z)
        assert ratio.min() > least
    assert math.sqrt(0.99 * STEP) * stats.norm.pdf(0) < 0.25


@pytest.mark.parametrize("m", [0.01, 0.2, 0.5, 0.9])
def test_a_two_point_variable_is_below_it_at_every_t(m):
    def coin(t):
        return m * np.maximum(1 - t, 0.0) + (1 - m) * np.maximum(-t, 0.0), np.zeros(len(t))

    assert optimism.least_gap(normal_curve(m, math.sqrt(STEP)), coin, 0.0, 1.0).gap > -1e-12
    if m == 0.5:
        assert optimism.least_gap(normal_curve(m, math.sqrt(0.9 * STEP)), coin, 0.0, 1.0).gap < -1e-3


# ---- the urn: M_n + N(0, 1 / (s + n)) falls from the normal to the Beta --------------------------------------


def stages(a, b, variances, t):
    """E[(M_n + N(0, variances[n]) - t)+], where M_n is the mean after n draws from the urn."""
    found = []
    for n, variance in enumerate(variances):
        k = np.arange(n + 1)
        excess = expected_excess.normal_excess(0.0, variance**0.5, t[:, None] - (a + k) / (a + b + n))
        found.append(excess @ stats.betabinom.pmf(k, n, a, b))
    return np.array(found)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_every_draw_from_the_urn_lowers_the_excess(a, b):
    """The steps of the proof from the normal to the Beta, for the variances of Lemma 1 and for the least ones."""
    s, t, n = a + b, np.linspace(-0.5, 1.5, 81), np.arange(12)
    for variances in (1 / (s + n), [optimism.optimistic_variance(s + i) for i in n]):
        excess = stages(a, b, variances, t)
        assert (np.diff(excess, axis=0) <= 1e-12).all()
        assert (excess[-1] >= expected_excess.beta_excess(a, b, t) - 1e-12).all()


def test_half_of_the_variance_does_not_lower_it():
    excess = stages(
        0.6, 0.6, [0.5 * optimism.optimistic_variance(1.2 + i) for i in range(5)], np.linspace(0, 1, 21)
    )
    assert np.diff(excess, axis=0).max() > 1e-3


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_less_variance_than_lemma_1_says_is_enough(a, b):
    variance = optimism.optimistic_variance(a + b)
    terms = 1 / (a + b + np.arange(1, 10_000)) ** 2
    assert variance == pytest.approx(STEP * (terms.sum() + 1 / (a + b + 9999.5)), rel=1e-8)
    assert variance < math.pi / (8 * (a + b) + 4) < 1 / (a + b)
    normal = normal_curve(a / (a + b), math.sqrt(variance))
    assert optimism.least_gap(normal, with_rounding(beta_curve(a, b)), 0.0, 1.0).gap >= -1e-13


def test_lemma_1_needs_no_least_sum():
    """For Dirichlet variables with sums down to .05, of which the lemma says nothing."""
    rng = np.random.default_rng(3)
    for total in (0.05, 0.3, 1.0, 1.9):
        V = np.array([0.0, 1.0, *rng.uniform(size=2)])
        found = optimism.lemma_gap(total * rng.dirichlet(np.ones(4)), V, nodes=1600)
        assert found.gap > found.error


# ---- single crossing for a sum of at least 2 -------------------------------------------------------------------


def log_densities(a, b, x):
    beta = (a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - special.betaln(a, b)
    return stats.norm.logpdf(x, a / (a + b), (a + b) ** -0.5), beta


def test_where_one_weight_is_below_1_the_densities_cross_once():
    """Where g >= 0 the Beta is the denser one: A <= .155, A <= x, and (1 - A) A^A > sqrt(2.155 / (2 pi))."""
    x = np.linspace(1e-4, 1 - 1e-4, 4001)
    assert (x * (1 - 2 * x) / (1 - x + x**2)).max() < 0.155
    assert (1 - 0.155) * 0.155**0.155 > math.sqrt(2.155 / (2 * math.pi))
    rising = 0
    for A in (1e-3, 0.01, 0.05, 0.1, 0.15, 0.5, 3.0):
        for C in A * np.linspace(0.0, 1.0, 6)[:-1] if A < 1 else (0.0, 0.5, 0.9):
            g = 1 - 2 * x - A * (1 / x - 1 + x) - C * (1 / (1 - x) - x)
            normal, beta = log_densities(1 + A, 1 - C, x)
            slope = np.gradient(normal - beta, x)
            assert np.abs(slope - g)[400:-400].max() < 1e-3
            assert (x[g >= 0] >= A).all()
            assert (beta > normal)[g >= 0].all()
            rising += (g >= 0).any()
            assert A < 0.05 or optimism.density_crossings(1 + A, 1 - C) == 1  # its grid ends at 4e-18
    assert rising > 5  # so that the case is not empty


def least_ratio(A, B):
    """The bound of log f_B - log f_N where h <= 0."""
    powers = special.xlogy(A, A) + special.xlogy(B, B) - (A + B + 1) * np.log(A + B + 2)
    return np.log1p(A) + 0.5 * powers + 0.5 * math.log(2 * math.pi)


def test_where_both_weights_are_above_1_the_densities_cross_twice():
    """The bound is positive, is one, and falls with B; along both borders it is what the page says."""
    x, few = np.linspace(1e-3, 1 - 1e-3, 999), np.linspace(1e-3, 1 / 3, 200)
    many = np.logspace(math.log10(1 / 3), 5, 2000)
    assert least_ratio(few, few).min() == pytest.approx(0.0230, abs=1e-4)
    assert (np.diff(least_ratio(few, few)) < 0).all()
    assert least_ratio(many, 1 / 3).min() == pytest.approx(0.0123, abs=1e-4)
    assert (np.diff(least_ratio(np.linspace(1 / 3, 1.0, 101), 1 / 3), n=2) > 0).all()  # convex up to 1
    wide = many[many >= 1]
    upper = 7 * (18 * wide + 7) / (3 * wide * (18 * wide + 28))
    assert (np.log1p(7 / (3 * wide)) <= upper).all()
    assert (upper <= 2 / (1 + wide) + 3 / (3 * wide + 7)).all()
    inside = 0
    for A in (0.01, 0.1, 0.3, 0.5, 2.0, 20.0):
        for B in np.array([0.1, 0.5, 1.0]) * min(A, 1 / (9 * A)):
            h = A / x**2 + B / (1 - x) ** 2 - (A + B + 2)
            normal, beta = log_densities(1 + A, 1 + B, x)
            assert (beta - normal)[h <= 0].min(initial=math.inf) >= least_ratio(A, B)
            assert least_ratio(A, B) > least_ratio(A, 1.01 * B)
            assert B < 0.05 or optimism.density_crossings(1 + A, 1 + B) == 2  # its grid ends at 4e-18
            inside += (h <= 0).any()
    assert inside > 5


def test_between_the_cases_r_is_still_strictly_convex():
    """The least h is 3 (AB)^(1/3) (A^(1/3) + B^(1/3)) - 2; for AB = 1/9 it is 0 at A = B alone, and x = 1/2."""
    x = np.arange(1, 100) / 100
    for A in (1 / 3, 0.34, 1.0, 5.0):
        B = 1 / (9 * A)
        least = 3 * (A * B) ** (1 / 3) * (A ** (1 / 3) + B ** (1 / 3)) - 2
        h = A / x**2 + B / (1 - x) ** 2 - (A + B + 2)
        assert (h >= least - 1e-12).all()
        if A == 1 / 3:
            assert abs(least) < 1e-12
            assert (h[x != 0.5] > 1e-4).all()
            assert abs(h[49]) < 1e-12
        else:
            assert least > 1e-5


def test_for_smaller_sums_the_densities_can_cross_three_times():
    assert optimism.density_crossings(1.001, 0.316) == 3
    assert optimism.crossings(1.001, 0.316) <= 1
    assert optimism.crossings(1.0, 1.0) <= 1


# ---- Lemma 2 ---------------------------------------------------------------------------------------------------


def test_the_parameters_that_lemma_2_needs():
    lam, sigma = bounds.optimistic_parameters(5, 3)
    assert sigma**2 == pytest.approx(STEP * 5)
    assert lam * sigma**2 == pytest.approx(5)
    lam, sigma = bounds.optimistic_parameters(3, 1, alpha_P=0.1, alpha_R=[[0.2, 3.0], [1.0, 1.0]])
    assert (lam * sigma**2, sigma**2) == pytest.approx((3.2, STEP))
    for S, H in ((1, 1), (5, 5), (50, 20)):
        ours, theirs = bounds.optimistic_parameters(S, H), bounds.theorem_parameters(S, H)
        assert ours[1] < theirs[1]
        assert ours[0] * ours[1] ** 2 < theirs[0] * theirs[1] ** 2


@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.05, 0.05), (0.2, 3.0), (3.0, 0.2)])
def test_they_are_enough_in_the_last_period(prior):
    parameters = bounds.optimistic_parameters(1, 1, alpha_P=1e-3, alpha_R=prior)
    for n, lows in ((0, 0), (1, 0), (1, 1), (3, 2), (20, 11), (20, 20)):
        found = optimism.last_period_gap(n, lows, *parameters, alpha_R=prior)
        assert found.gap >= -1e-13


def test_half_of_that_noise_is_not_enough():
    lam, sigma = bounds.optimistic_parameters(1, 1)
    assert optimism.last_period_gap(20, 10, 4 * lam, sigma / 2).gap < -1e-3


def test_outcomes_of_the_prior_moved_to_0_are_better():
    """The coupling: with lambda sigma^2 observations of 0 in place of the prior, P'v is larger, draw by draw."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        counts, alpha = rng.poisson(2.0, size=4), rng.gamma(1.0, size=4)
        v, extra = -rng.uniform(size=4), rng.gamma(1.0)
        seen, prior = (rng.gamma(weights, size=(50, 4)) for weights in (counts, alpha))
        more = rng.gamma(extra, size=50)
        ours = seen @ v / (seen.sum(axis=1) + prior.sum(axis=1) + more)
        posterior = (seen + prior) @ v / (seen + prior).sum(axis=1)
        assert (ours >= posterior).all()


def test_they_are_enough_in_all_periods_within_sampling_error():
    rng = np.random.default_rng(2)
    into, parameters = rng.poisson(3.0, size=(3, 2, 2, 2)), bounds.optimistic_parameters(2, 3)
    found = optimism.q_gap(into, rng.binomial(into.sum(axis=-1), 0.5), *parameters, draws=20_000)
    assert (found.gap > -4.5 * found.error).all()
    assert (found.value > -4.5 * found.value_error).all()


def test_the_biases_are_then_of_the_printed_order_whatever_the_horizon():
    """For a prior weight of 1 everywhere and rewards of -1: b_P as printed, b_R at most 1'alpha times as large."""
    n, S = np.logspace(0, 8, 401), 5
    for H in (5, 20):
        lam, sigma = bounds.optimistic_parameters(S, H)
        ridge = lam * sigma**2
        rewards, transitions = (n + 1) / (n + 2) - n / (n + ridge), H - n * H / (n + ridge)
        assert (rewards * (n + S)).max() <= S
        assert transitions * (n + S) / (H * S) == pytest.approx(np.ones(401))


def test_optimism_of_each_is_not_optimism_of_sums():
    """Two independent coins are as each of two equal ones, but the sum of equal ones has the larger excess."""
    independent, equal = np.array([0, 1, 1, 2.0]), np.array([0, 0, 2, 2.0])
    assert np.maximum(independent - 1, 0).mean() < np.maximum(equal - 1, 0).mean()


def test_the_theorem_needs_an_upper_bound_of_lambda():
    """With a very large lambda, which the theorem allows, play is random."""
    problem, episodes = problems.dirichlet(3, 2, 2, seed=0), 2000
    sigma = bounds.theorem_parameters(3, 2)[1]
    paid = simulate(RLSVI(lam=1e10, sigma=sigma, basis=Tabular(), seed=0), problem, episodes).regret.sum()
    assert paid == pytest.approx(episodes * problem.random_regret, rel=0.1)


def test_they_learn_sooner_than_the_parameters_of_theorem_1():
    problem, episodes = problems.dirichlet(5, 2, 5, seed=100), 5000
    paid = []
    for lam, sigma in (bounds.theorem_parameters(5, 5), bounds.optimistic_parameters(5, 5)):
        agent = RLSVI(lam=lam, sigma=sigma, basis=Tabular(), seed=100)
        paid.append(simulate(agent, problem, episodes).regret.sum())
    assert paid[1] < 0.6 * paid[0]
