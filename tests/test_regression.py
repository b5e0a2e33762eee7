"""Block Bayesian regression: closed forms, dense formulas, 50 digits at the paper's scale, bad input."""

import copy
import math

import mpmath
import numpy as np
import pytest
from scipy import stats

import rlsvi
from rlsvi.core.random import normal, stream
from rlsvi.core.regression import FactorError, Posterior, add, prior_factor


def fitted(X, blocks, targets, **options):
    """The posterior after the rows X of the blocks `blocks`."""
    posterior = Posterior(int(np.max(blocks)) + 1, X.shape[1], **options)
    for row, block, target in zip(X, blocks, targets, strict=True):
        posterior.observe(int(block), row, target)
    return posterior


def snapshot(posterior):
    return copy.deepcopy(vars(posterior))


def unchanged(posterior, before):
    after = vars(posterior)
    for name, value in before.items():
        for a, b in zip(*((v if isinstance(v, tuple) else (v,)) for v in (value, after[name])), strict=True):
            if not np.array_equal(a, b):
                return False
    return before.keys() == after.keys()


# ---- closed form and dense formulas -----------------------------------------------------------------------


@pytest.mark.parametrize(("lam", "sigma"), [(1.0, 0.1), (0.2, 2.0), (100.0, 1e-3)])
def test_a_table_has_the_closed_form_posterior(lam, sigma):
    """Phi = I: cell b has mean (sum of its targets + ridge m) / (n + ridge), variance sigma^2 / (n + ridge)."""
    rng = np.random.default_rng(0)
    cells, m = rng.integers(0, 7, 50), 0.3
    targets = rng.standard_normal(50)
    posterior = Posterior(8, 1, lam, sigma, prior_mean=m)  # cell 7 is never seen
    for cell, target in zip(cells, targets, strict=True):
        posterior.observe(int(cell), np.ones(1), target)
    n = np.bincount(cells, minlength=8)
    ridge = lam * sigma**2
    sums = np.bincount(cells, weights=targets, minlength=8)
    np.testing.assert_allclose(posterior.mean()[:, 0], (sums + ridge * m) / (n + ridge), rtol=1e-12)
    variance = [posterior.variance(b, np.ones(1)) for b in range(8)]
    np.testing.assert_allclose(variance, sigma**2 / (n + ridge), rtol=1e-12)
    assert posterior.counts.tolist() == n.tolist()


@pytest.mark.parametrize(
    ("blocks", "dim", "n", "seed"), [(1, 4, 0, 0), (1, 1, 5, 1), (1, 6, 30, 2), (3, 5, 40, 3)]
)
def test_mean_variance_and_evidence_agree_with_the_dense_formulas(blocks, dim, n, seed):
    """Everything as one dense regression with covariances written out; noise .7, precision 2."""
    rng = np.random.default_rng(seed)
    lam, sigma = 2.0, 0.7
    prior = rng.standard_normal((blocks, dim))
    X, block, targets = rng.standard_normal((n, dim)), rng.integers(0, blocks, n), rng.standard_normal(n)
    posterior = Posterior(blocks, dim, lam, sigma, prior)
    A = np.zeros((n, blocks * dim))
    for i in range(n):
        posterior.observe(int(block[i]), X[i], targets[i])
        A[i, block[i] * dim : (block[i] + 1) * dim] = X[i]
    covariance = np.linalg.inv(A.T @ A / sigma**2 + lam * np.eye(blocks * dim))
    mean = covariance @ (A.T @ targets / sigma**2 + lam * prior.ravel())
    np.testing.assert_allclose(posterior.mean().ravel(), mean, rtol=1e-10, atol=1e-12)
    for b in range(blocks):
        x = rng.standard_normal(dim)
        here = slice(b * dim, (b + 1) * dim)
        assert posterior.variance(b, x) == pytest.approx(x @ covariance[here, here] @ x, rel=1e-10)
    marginal = sigma**2 * np.eye(n) + A @ A.T / lam
    evidence = stats.multivariate_normal(A @ prior.ravel(), marginal).logpdf(targets) if n else 0.0
    assert posterior.log_evidence() == pytest.approx(evidence, rel=1e-10, abs=1e-12)


def test_blocks_are_one_dense_regression_with_block_structured_features():
    rng = np.random.default_rng(5)
    B, d, n = 4, 3, 60
    X, block, targets = rng.standard_normal((n, d)), rng.integers(0, B, n), rng.standard_normal(n)
    A = np.zeros((n, B, d))
    A[np.arange(n), block] = X
    split = fitted(X, block, targets, lam=0.5, sigma=0.3)
    dense = fitted(A.reshape(n, -1), np.zeros(n, int), targets, lam=0.5, sigma=0.3)
    np.testing.assert_allclose(split.mean().ravel(), dense.mean()[0], rtol=1e-11)
    assert split.log_evidence() == pytest.approx(dense.log_evidence(), rel=1e-11)
    # The same normals in the same order, so even a sample agrees.
    np.testing.assert_allclose(split.sample(3).ravel(), dense.sample(3)[0], rtol=1e-10)


def test_evidence_is_highest_at_the_noise_the_data_have():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((400, 3))
    targets = X @ rng.standard_normal(3) + 0.5 * rng.standard_normal(400)
    sigmas = [0.05, 0.2, 0.5, 1.0, 3.0]
    evidence = [fitted(X, np.zeros(400, int), targets, sigma=s).log_evidence() for s in sigmas]
    assert np.argmax(evidence) == sigmas.index(0.5)


# ---- samples ----------------------------------------------------------------------------------------------


def test_whitened_samples_are_standard_normal():
    """z = L'(theta - mean) / sigma of 20,000 samples; P = L L' is worked out by NumPy."""
    rng = np.random.default_rng(7)
    n, d, sigma = 20_000, 5, 0.3
    X, targets = rng.standard_normal((12, d)) * [1, 10, 0.1, 3, 1], rng.standard_normal(12)
    posterior = fitted(X, np.zeros(12, int), targets, lam=2.0, sigma=sigma, prior_mean=0.5)
    P = 2.0 * sigma**2 * np.eye(d) + X.T @ X
    mean = np.linalg.solve(P, X.T @ targets + 2.0 * sigma**2 * 0.5)
    state = stream(0)
    theta = np.array([posterior.sample(state)[0] for _ in range(n)])
    z = (theta - mean) @ np.linalg.cholesky(P) / sigma
    # Means have standard error sqrt(1/n), variances sqrt(2/n), covariances sqrt(1/n): 4.5 of them for 20 numbers.
    error = 4.5 / math.sqrt(n)
    assert np.abs(z.mean(axis=0)).max() < error
    assert np.abs(np.cov(z.T) - np.eye(d)).max() < math.sqrt(2) * error
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-4


def test_a_sample_with_a_seed_is_the_same_again_and_a_stream_goes_on():
    posterior = Posterior(2, 3)
    assert np.array_equal(posterior.sample(1), posterior.sample(1))
    assert not np.array_equal(posterior.sample(1), posterior.sample(2))
    state = stream(1)
    first, second = posterior.sample(state), posterior.sample(state)
    assert np.array_equal(first, posterior.sample(1))
    assert not np.array_equal(first, second)


def test_a_sample_of_the_prior_is_the_prior_mean_and_scaled_normals():
    posterior = Posterior(2, 2, lam=4.0, sigma=0.1, prior_mean=np.array([[1.0, 2.0], [3.0, 4.0]]))
    state = stream(9)
    z = np.array([normal(state) for _ in range(4)]).reshape(2, 2)
    np.testing.assert_allclose(posterior.sample(9), [[1, 2], [3, 4]] + z / 2, rtol=1e-14)


# ---- the paper's scale ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chain():
    """The 50-chain with its coherent basis of 10, and 2,000 episodes of an agent on it."""
    problem = rlsvi.problems.chain(50, 10, seed=0)
    return problem, rlsvi.simulate.finite.simulate(rlsvi.RLSVI(seed=0), problem, 2000, trace=True).trace


def exact(X, counts, sums, lam, sigma):
    """P / sigma^2, its inverse and the mean with 50 digits, for distinct rows X seen `counts` times."""
    d = X.shape[1]
    P, y = mpmath.mpf(lam) * mpmath.eye(d), mpmath.zeros(d, 1)
    noise = mpmath.mpf(sigma) ** 2
    for row, count, total in zip(X, counts, sums, strict=True):
        x = mpmath.matrix(row.tolist())
        P += int(count) / noise * x * x.T
        y += total / noise * x
    covariance = mpmath.inverse(P)
    return P, covariance, covariance * y


@pytest.mark.slow
@pytest.mark.parametrize(
    ("h", "lam", "condition", "extrapolation"),
    [(0, 1.0, 1e11, 1e-4), (3, 1.0, 1e11, 1e-4), (4, 1.0, 1e6, 1e-4), (20, 1.0, 1e3, 1e-4), (3, 1e-4, 1e15, 1e-2)],
)
def test_the_chains_posterior_after_100_000_updates_is_right_to_ten_digits(
    chain, h, lam, condition, extrapolation
):
    """Early periods see fewer pairs than there are weights: condition 4e11 (h = 0) and 8e11 (h = 3) at lambda = 1.

    Measured on visited pairs, largest of all h: relative error of a variance 4e-12 (h = 4; 8e-14 where the
    condition is worst), error of a mean 8e-9 posterior standard deviations. On pairs never visited, where a
    mean is an extrapolation: 8e-6. Inverting P in float64 gets 1e-5 and 2e-2 on visited pairs.
    """
    problem, trace = chain
    rng = np.random.default_rng(1)
    rows = np.resize(rng.permutation(2000), 100_000)
    pairs = (2 * trace.states[:, h] + trace.actions[:, h])[rows]
    X = problem.basis.phi[h].reshape(100, 10)
    targets = problem.solution.Q[h].ravel()[pairs] + 0.1 * rng.standard_normal(len(pairs))
    posterior = Posterior(1, 10, lam=lam, sigma=0.1)
    for pair, target in zip(pairs, targets, strict=True):
        posterior.observe(0, X[pair], target)
    mean = posterior.mean()[0]

    seen, counts = np.unique(pairs, return_counts=True)
    naive_covariance = 0.1**2 * np.linalg.inv(lam * 0.1**2 * np.eye(10) + X[pairs].T @ X[pairs])
    naive_mean = naive_covariance @ (X[pairs].T @ targets) / 0.1**2
    with mpmath.workdps(50):
        sums = [mpmath.fsum(map(mpmath.mpf, targets[pairs == pair].tolist())) for pair in seen]
        P, covariance, reference = exact(X[seen], counts, sums, lam, 0.1)

        def variance(x):
            x = mpmath.matrix(x.tolist())
            return (x.T * covariance * x)[0]

        def relative(found, x):
            return abs(float(found / variance(x) - 1))

        def deviations(weights, x):
            difference = mpmath.matrix(weights.tolist()) - reference
            return abs(float((mpmath.matrix(x.tolist()).T * difference)[0] / mpmath.sqrt(variance(x))))

        singular = mpmath.svd_r(P, compute_uv=False)
        assert condition < singular[0] / singular[9] < 100 * condition
        unseen = np.setdiff1d(np.arange(100), seen)
        assert max(relative(posterior.variance(0, X[pair]), X[pair]) for pair in range(100)) < 1e-10
        assert max(deviations(mean, X[pair]) for pair in seen) < 1e-7
        assert max(deviations(mean, X[pair]) for pair in unseen) < extrapolation
        if condition > 1e10:  # what would not do
            assert max(relative(x @ naive_covariance @ x, x) for x in X[seen]) > 1e-8
            assert max(deviations(naive_mean, x) for x in X[seen]) > 1e-4


# ---- add --------------------------------------------------------------------------------------------------


def test_a_million_terms_sum_as_exactly_as_one():
    scales = np.random.default_rng(0).uniform(0.9, 1.1, 1_000_000)
    x = np.array([0.1, -0.3])
    total, error = np.zeros(2), np.zeros(2)
    for scale in scales:
        add(total, error, x, scale)
    for k in range(2):
        terms = scales * x[k]
        true = math.fsum(terms)
        assert abs(total[k] - true) <= math.ulp(true)
        assert abs(np.cumsum(terms)[-1] - true) > math.ulp(true)  # plain summation does not do


def test_add_keeps_what_a_large_total_would_swallow():
    total, error = np.array([1e16]), np.zeros(1)
    for _ in range(1000):
        add(total, error, np.array([0.25]), 1.0)
    add(total, error, np.array([1e16]), -1.0)
    assert total[0] == 250.0


# ---- bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lam", "sigma"), [(1.0, 1e200), (1e-300, 1e-100), (1e300, 1e10)])
def test_a_ridge_that_is_no_number_is_refused(lam, sigma):
    with pytest.raises(ValueError, match=r"lam|sigma"):
        Posterior(1, 1, lam, sigma)


@pytest.fixture
def posterior():
    rng = np.random.default_rng(0)
    return fitted(rng.standard_normal((9, 3)), np.arange(9) % 2, rng.standard_normal(9))


def test_the_callers_row_is_left_alone(posterior):
    x = np.array([1.0, 2.0, 3.0])
    posterior.observe(0, x, 1.0)
    posterior.variance(0, x)
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_features_that_overflow_change_nothing(posterior):
    before = snapshot(posterior)
    with pytest.raises(ValueError, match="x must be finite"):
        posterior.observe(1, np.array([1.0, 1.0, 1e200]), 1.0)
    assert unchanged(posterior, before)


def test_a_factor_gone_bad_is_never_used(posterior):
    posterior.factor.inv[0, 1] = np.nan
    for use in (posterior.mean, posterior.sample, lambda: posterior.variance(0, np.ones(3))):
        with pytest.raises(FactorError, match="no longer finite"):
            use()


def test_prior_factor_is_a_root_of_the_ridge():
    U, inv = prior_factor((2, 3), 4, 0.25)
    assert U.shape == (2, 3, 4, 4)
    assert np.array_equal(U[1, 2], 0.5 * np.eye(4))
    assert np.array_equal(inv, np.full((2, 3, 4), 2.0))
