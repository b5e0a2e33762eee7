"""The Cholesky factor kept by rank-one updates, against numpy.linalg on well conditioned matrices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlsvi.core.checks import LARGEST_NUMBER, ridge_of
from rlsvi.core.regression import prior_factor, rank_one, solve, solve_lower, solve_upper

cases = st.tuples(st.integers(1, 40), st.integers(0, 60), st.integers(0, 2**32 - 1))


def updated(d, rows, ridge=1.0):
    """The factor after all `rows`, as (U, inv)."""
    U, inv = prior_factor((), d, ridge)
    for row in rows:
        assert rank_one(U, inv, row.copy())
    return U, inv


def case(d, n, seed):
    """Rows, and the matrix ridge I + X'X they make: condition below 1e5."""
    X = np.random.default_rng(seed).standard_normal((n, d))
    return X, 0.5 * np.eye(d) + X.T @ X


def check(d, n, seed):
    X, P = case(d, n, seed)
    U, inv = updated(d, X, 0.5)
    L = np.linalg.cholesky(P)
    # n updates of rounding 1e-16 each, times a condition below 1e5.
    np.testing.assert_allclose(U.T, L, rtol=1e-9, atol=1e-9 * L.max())
    np.testing.assert_allclose(inv * np.diag(U), 1.0, rtol=1e-15)
    b = np.random.default_rng(seed + 1).standard_normal(d)
    for function, expected in (
        (solve_lower, np.linalg.solve(L, b)),
        (solve_upper, np.linalg.solve(L.T, b)),
        (solve, np.linalg.solve(P, b)),
    ):
        x = b.copy()
        function(U, inv, x)
        np.testing.assert_allclose(x, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@settings(max_examples=60, deadline=None, derandomize=True)
@given(cases)
def test_updates_and_solves_agree_with_numpy(drawn):
    check(*drawn)


@pytest.mark.parametrize("d", [299, 300])
def test_updates_and_solves_agree_with_numpy_in_many_dimensions(d):
    check(d, 500, 0)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7])
def test_solves_invert_the_factor_to_rounding(d):
    X, _ = case(d, 20, d)
    U, inv = updated(d, X)
    b = np.arange(1.0, d + 1)
    x = U.T @ b
    solve_lower(U, inv, x)
    np.testing.assert_allclose(x, b, rtol=1e-13)
    x = U @ b
    solve_upper(U, inv, x)
    np.testing.assert_allclose(x, b, rtol=1e-13)


def test_the_order_of_the_rows_does_not_matter():
    X, _ = case(9, 30, 4)
    np.testing.assert_allclose(updated(9, X)[0], updated(9, X[::-1])[0], rtol=0, atol=1e-12)


def test_a_row_of_zeros_changes_nothing():
    U, inv = updated(3, case(3, 5, 0)[0])
    before = U.copy(), inv.copy()
    assert rank_one(U, inv, np.zeros(3))
    assert np.array_equal(U, before[0])
    assert np.array_equal(inv, before[1])


def test_the_upper_triangle_alone_is_written():
    U, _ = updated(6, case(6, 9, 1)[0])
    assert not np.tril(U, -1).any()


@pytest.mark.parametrize("where", [0, 1, 4])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
def test_a_row_that_breaks_the_factor_is_reported(where, bad):
    """NaN and infinity; and 1e200, whose square overflows."""
    U, inv = updated(5, case(5, 3, 2)[0])
    x = np.ones(5)
    x[where] = bad
    assert not rank_one(U, inv, x)


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_no_row_that_is_let_in_breaks_a_factor_that_is_let_in(d):
    """The smallest ridge and the largest features, equal, alone, mixed with small ones, and in any order."""
    rng = np.random.default_rng(d)
    rows = LARGEST_NUMBER * rng.uniform(-1, 1, (50, d)) * 10.0 ** rng.integers(-190, 1, (50, d))
    rows = [
        *np.full((3, d), LARGEST_NUMBER),
        *rows,
        *LARGEST_NUMBER * np.eye(d),
        *np.full((3, d), -LARGEST_NUMBER),
    ]
    ridge = ridge_of(1.001e-300, 1.0)
    for order in (rows, rows[::-1], [rows[i] for i in rng.permutation(len(rows))]):
        U, inv = updated(d, order, ridge)
        assert np.isfinite(U).all()
        assert np.isfinite(inv).all()


def test_a_factor_that_is_not_one_is_reported():
    U, inv = updated(2, case(2, 3, 2)[0])
    U[0, 0] = np.nan
    assert not rank_one(U, inv, np.ones(2))


def test_directions_never_seen_keep_exactly_their_prior():
    """1e5 large rows in two of six directions: the other four keep the ridge's bits."""
    rows = np.zeros((2, 6))
    rows[0, [1, 4]], rows[1, [1, 4]] = (1e6, 2e6), (3e6, -1e6)
    U, inv = prior_factor((), 6, 0.01)
    for i in range(100_000):
        rank_one(U, inv, rows[i % 2].copy())
    unseen = [0, 2, 3, 5]
    assert np.array_equal(U[np.ix_(unseen, unseen)], 0.1 * np.eye(4))
