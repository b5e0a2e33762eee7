"""The model of a shop, against the same in plain NumPy."""

import numpy as np
import pytest
import shop_model_twin as twin

from rlsvi.core.regression import FactorError
from rlsvi_shop.model import targets
from rlsvi_shop.model.regression import (
    FIRST_RIDGES,
    RIDGE_STEP,
    Noise,
    Ridges,
    Rows,
    Sizes,
    best_ridges,
    check_memory,
    evidence_for,
    factor_products,
    factor_shared,
    first_values,
    learnable,
    no_products,
    solve_weights,
)
from rlsvi_shop.model.targets import add_grams, add_masses, add_rights, sign_of, targets_of, work_row

N = 8
RIDGES = Ridges(0.7, 1.3, 2.5, 1.7)
every_size = pytest.mark.parametrize("sizes", twin.SIZES, ids=twin.NAMES)


def problem(sizes, seed=0, count=25):
    rng = np.random.default_rng(seed)
    products = no_products(sizes).longer(N)
    products.z[...] = rng.standard_normal(products.z.shape) * (rng.random(products.z.shape) < 0.7)
    products.offered[...] = np.arange(N) != 3
    log = twin.visits_of(sizes, N, count, seed)
    visits = log.arrays()
    add_grams(
        visits, 0, count, 1.0, products.z, products.gram, products.dirty, sizes.slots, *work_row(sizes.width)
    )
    products.answers[...] = np.bincount(visits.product[visits.x != 0], minlength=N)
    base = np.append(rng.standard_normal(sizes.slots), 0.0)
    return products, visits, base, rng


def dense(products, visits, sizes, ridges):
    rows = list(twin.rows_of(visits, products.z, sizes))
    X = np.array([twin.joint(u, a, products.z, sizes) for *_, a, u in rows])
    return rows, X, X.T @ X + np.diag(twin.prior(sizes, N, ridges))


@every_size
@pytest.mark.parametrize("table", [1, 10**6])
def test_targets(sizes, table, monkeypatch):
    monkeypatch.setattr(targets, "LARGEST_BLOCK", table)
    many = 40  # several blocks of 16 with the small table
    rng = np.random.default_rng(1)
    visits = twin.visits_of(sizes, many, 30, 1).arrays()
    z, offered = rng.standard_normal((many, sizes.product)), rng.random(many) < 0.8
    z[rng.random(z.shape) < 0.3] = 0.0
    weight, base = rng.standard_normal((3, sizes.width, many)), np.append(rng.standard_normal(sizes.slots), 0.0)
    found = targets_of(visits, weight, base, z, offered, -0.5, 1.5)
    for i, slot, t, _, _ in twin.rows_of(visits, z, sizes):
        for s in range(3):
            expected = twin.target(visits, i, slot, weight[s], base, z, offered, -0.5, 1.5, sizes)
            assert found[s, t] == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_nothing_is_left_to_recommend():
    sizes = Sizes(4, 0, 0, 3)
    visits = twin.visits_of(sizes, 3, 20).arrays()
    offered = np.array([True, False, False])
    found = targets_of(visits, np.full((1, sizes.width, 3), 5.0), np.ones(5), np.zeros((3, 0)), offered, 0.0, 9.0)
    first = {int(visits.first[i]): i for i in range(20) if visits.first[i] < visits.first[i + 1]}
    for t in range(len(visits.product)):
        i = max(first[begin] for begin in first if begin <= t)
        if 0 in visits.product[visits.first[i] : t + 1]:
            assert found[0, t] == visits.reward[t]


@every_size
def test_sums_over_rows(sizes):
    products, visits, base, rng = problem(sizes)
    goals = rng.standard_normal((2, len(visits.product)))
    right, mass = np.zeros((2, N, sizes.width)), np.zeros((N, sizes.slots, sizes.width))
    add_rights(visits, 25, goals, base, products.z, right, *work_row(sizes.width))
    add_masses(visits, 25, products.z, mass, *work_row(sizes.width))
    gram = np.zeros_like(products.gram)
    for _, slot, t, a, u in twin.rows_of(visits, products.z, sizes):
        gram[a] += np.outer(u, u)
        mass[a, slot] -= u
        right[:, a] -= np.outer(goals[:, t] - base[slot], u)
    assert gram == pytest.approx(products.gram, abs=1e-12)
    assert right == pytest.approx(0.0, abs=1e-12)
    assert mass == pytest.approx(0.0, abs=1e-12)


def test_signs_of_positions_that_are_shared():
    signs = np.array([sign_of(n, 16) for n in range(2000)])
    assert (signs[:16] == 1.0).all()
    assert set(signs) == {-1.0, 1.0}
    assert abs(signs[16:].mean()) < 0.1


@every_size
def test_the_posterior_mean_is_that_of_a_joint_regression(sizes):
    products, visits, _, rng = problem(sizes)
    rows, X, precision = dense(products, visits, sizes, RIDGES)
    y = rng.standard_normal((len(rows), 3))
    right = np.zeros((3, N, sizes.width))
    for (*_, a, u), goals in zip(rows, y, strict=True):
        right[:, a] += np.outer(goals, u)
    factor_products(products, sizes, RIDGES.of_own(sizes))
    shared = factor_shared(products.z, products.B, RIDGES.of_shared(sizes))
    none = Noise(np.zeros((N, 3, sizes.own)), np.zeros((3, sizes.shared)))
    weight, beta = solve_weights(products, shared, sizes, right, none)
    expected = np.linalg.solve(precision, X.T @ y)
    for s in range(3):
        assert weight[s] == pytest.approx(twin.on_u(expected[:, s], products.z, sizes), abs=1e-9)
        assert beta[s] == pytest.approx(expected[N * sizes.own :, s], abs=1e-9)


@every_size
def test_samples_have_the_covariance_of_the_posterior(sizes):
    products, visits, _, rng = problem(sizes)
    S = 20_000
    precision = dense(products, visits, sizes, RIDGES)[2]
    factor_products(products, sizes, RIDGES.of_own(sizes))
    shared = factor_shared(products.z, products.B, RIDGES.of_shared(sizes))
    noise = Noise(rng.standard_normal((N, S, sizes.own)), rng.standard_normal((S, sizes.shared)))
    weight, beta = solve_weights(products, shared, sizes, np.zeros((S, N, sizes.width)), noise)
    theta = weight[:, : sizes.own].copy()
    if sizes.product:
        g = np.einsum("am,smg->sga", products.z, beta.reshape(S, sizes.product, sizes.crossed))
        theta[:, : 1 + sizes.customer] -= g[:, : 1 + sizes.customer]
    samples = np.concatenate([theta.transpose(0, 2, 1).reshape(S, -1), beta], axis=1)
    # If samples have the covariance P^-1, then L' samples are white: no entry is more than five deviations away.
    white = samples @ np.linalg.cholesky(precision)
    assert np.abs(white.mean(axis=0)).max() < 5.0 / S**0.5
    excess = np.abs(white.T @ white / S - np.eye(white.shape[1]))
    assert excess.max() < 5.0 * (2.0 / S) ** 0.5


@every_size
def test_values_have_the_mean_and_the_deviation_of_the_joint_posterior(sizes):
    products, visits, base, rng = problem(sizes)
    rows, _, precision = dense(products, visits, sizes, RIDGES)
    factor_products(products, sizes, RIDGES.of_own(sizes))
    shared = factor_shared(products.z, products.B, RIDGES.of_shared(sizes))
    weight = rng.standard_normal((sizes.width, N))
    value, spread = first_values(products, weight, shared, base[0], sizes)
    u = np.zeros(sizes.width)
    u[: 1 + sizes.customer] = np.mean([u[: 1 + sizes.customer] for *_, u in rows], axis=0)
    if sizes.product:
        u[sizes.own] = 1.0  # all slots are left
    for a in range(N):
        x = twin.joint(u, a, products.z, sizes)
        assert value[a] == pytest.approx(base[0] + u @ weight[:, a], abs=1e-9)
        assert spread[a] == pytest.approx(np.sqrt(x @ np.linalg.solve(precision, x)), rel=1e-9)


@every_size
def test_the_variance_that_coming_answers_take_from_a_weight(sizes):
    """As many answers again, spread over the seven products offered, are rows of the size of those seen."""
    products, visits, _, _ = problem(sizes)
    products.gram[2], products.dirty[2] = 0.0, True  # nobody has seen it: its factor is diagonal
    factor_products(products, sizes, RIDGES.of_own(sizes))
    rows = [u for *_, a, u in twin.rows_of(visits, products.z, sizes) if a != 2]
    factor = factor_shared(products.z, products.B, RIDGES.of_shared(sizes))
    found, shared = learnable(products, factor, sizes, RIDGES.of_shared(sizes))
    assert (found.shape, shared.shape) == ((N, sizes.own), (sizes.shared,))
    for k in range(sizes.own):
        coming = sum(u[k] ** 2 for u in rows) / 7
        ridge = RIDGES.of_own(sizes)[k]
        before, after = 1.0 / ridge, 1.0 / (ridge + coming)
        assert found[2, k] == pytest.approx((before - after) / before, abs=1e-12)
    for a in range(N):  # the last weight, given no other, has the precision of a regression with the others known
        gram = products.gram[a, : sizes.own, : sizes.own] + np.diag(RIDGES.of_own(sizes))
        last = 1.0 / np.linalg.inv(gram)[-1, -1]
        assert found[a, -1] == pytest.approx(coming / (coming + last), abs=1e-9)
    for k in range(sizes.shared):
        precision = factor @ factor.T
        before, data = slice(k), precision[k, k] - RIDGES.of_shared(sizes)[k]
        given = precision[k, k] - precision[k, before] @ np.linalg.solve(
            precision[before, before], precision[before, k]
        )
        assert shared[k] == pytest.approx(data / (data + given), abs=1e-9)


@every_size
def test_products_that_nobody_answered_are_solved_like_all_others(sizes):
    products, _, _, rng = problem(sizes)
    products.gram[[1, 6]], products.dirty[:] = 0.0, True
    factor_products(products, sizes, RIDGES.of_own(sizes))
    shared = factor_shared(products.z, products.B, RIDGES.of_shared(sizes))
    noise = Noise(rng.standard_normal((N, 3, sizes.own)), rng.standard_normal((3, sizes.shared)))
    right = rng.standard_normal((3, N, sizes.width))
    right[:, [1, 6]] = 0.0
    weight, beta = solve_weights(products, shared, sizes, right, noise)
    products.gram[:, 0, 0] = 1.0  # which makes it solve with every factor
    again, same_beta = solve_weights(products, shared, sizes, right, noise)
    assert weight == pytest.approx(again, rel=1e-12)
    assert beta == pytest.approx(same_beta, rel=1e-12)


def test_only_products_with_new_data_are_factored():
    sizes = twin.SIZES[3]
    products = problem(sizes)[0]
    factor_products(products, sizes, RIDGES.of_own(sizes))
    before = products.L.copy()
    products.gram[...] *= 2.0
    products.dirty[5] = True
    factor_products(products, sizes, RIDGES.of_own(sizes))
    assert [a for a in range(N) if (products.L[a] != before[a]).any()] == [5]


def test_a_precision_that_is_not_positive_raises():
    sizes = twin.SIZES[0]
    products = problem(sizes)[0]
    products.gram[2] = np.nan
    with pytest.raises(FactorError, match="product 2"):
        factor_products(products, sizes, np.ones(sizes.own))


@every_size
@pytest.mark.parametrize("sigma", [None, 0.8])
def test_evidence_is_the_density_of_all_targets(sizes, sigma):
    products, visits, _, rng = problem(sizes)
    rows, X, _ = dense(products, visits, sizes, RIDGES)
    y = rng.standard_normal(len(rows))
    right = np.zeros((N, sizes.width))
    for (*_, a, u), goal in zip(rows, y, strict=True):
        right[a] += goal * u
    found = evidence_for(products, sizes, Rows(len(y), right, float(y @ y)), sigma)(RIDGES)
    shape = np.eye(len(y)) + X @ np.diag(1.0 / twin.prior(sizes, N, RIDGES)) @ X.T
    distance = y @ np.linalg.solve(shape, y)
    noise = distance / len(y) if sigma is None else sigma**2
    log = -0.5 * (len(y) * np.log(noise) + np.linalg.slogdet(shape)[1] + distance / noise)
    assert found.sigma == pytest.approx(noise**0.5, rel=1e-9)
    assert found.log == pytest.approx(log, rel=1e-9)


def test_the_prior_found_is_better_than_its_neighbours():
    sizes = twin.SIZES[3]
    products, visits, _, rng = problem(sizes, count=200)
    rows, X, _ = dense(products, visits, sizes, RIDGES)
    weights = rng.standard_normal(X.shape[1]) * np.where(np.arange(X.shape[1]) < N * sizes.own, 0.1, 1.0)
    y = X @ weights + 0.5 * rng.standard_normal(len(rows))
    right = np.zeros((N, sizes.width))
    for (*_, a, u), goal in zip(rows, y, strict=True):
        right[a] += goal * u
    known = Rows(len(y), right, float(y @ y))
    of = evidence_for(products, sizes, known, None)
    best, found = best_ridges(of, FIRST_RIDGES, True)
    assert best.own > 3.0 * best.shared  # deviations of 0.1 and of 1
    assert found.sigma == pytest.approx(0.5, rel=0.15)
    for name in Ridges._fields:
        for by in (RIDGE_STEP, 1 / RIDGE_STEP):
            near = best._replace(**{name: getattr(best, name) * by})
            if (
                min(near) >= 10.0 or name == "shared"
            ):  # the least ridges of weights that products have of their own
                assert of(near).log < found.log


def test_a_model_that_does_not_fit_is_refused_before_it_is_allocated():
    with pytest.raises(ValueError, match=r"products with history = 4096 .* smaller `history`"):
        check_memory(Sizes(10, 0, 0, 4096), 10**6, 16, 0)
