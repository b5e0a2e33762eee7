"""Blocks of rows on all cores: the same bits on any number of them, and the regression that plain NumPy gives."""

import threading
import warnings

import numpy as np
import pytest

from rlsvi.agents.practice.regression import FeatureRegression
from rlsvi.core import machine as blas
from rlsvi.core import machine as module
from rlsvi.core.machine import ROWS, blocks, on_all_cores, threads

LENGTHS = (3, ROWS - 3, 5, ROWS + 9, 700)  # of the parts in which states come: within, at and across blocks


def cores(monkeypatch, count):
    monkeypatch.setattr(module, "cores", lambda: count)
    monkeypatch.setattr(module, "LITTLE_WORK", 0)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def states(rng):
    n, d, actions = sum(LENGTHS), 6, 3
    row = np.sort(rng.integers(0, n, n))
    return rng.normal(size=(n, d)), row, rng.integers(0, actions, n), rng.integers(1, 3, n).astype(float)


def regression_of(x, row, action, count, features=np.asarray):
    made, before = FeatureRegression(3, 6), 0
    for length in LENGTHS:
        made = made.copy()
        made.extend(x[before : before + length], features, threads=True)
        its = (row >= before) & (row < before + length)
        made.add(row[its], action[its], count[its])
        before += length
    made.factor(0.3)
    return made


@pytest.mark.parametrize("rows", [0, 1, ROWS, ROWS + 1, 3 * ROWS])
def test_blocks_cover_all_rows_in_order(rows):
    assert [i for block in blocks(rows) for i in range(rows)[block]] == list(range(rows))


def test_the_regression_in_blocks_is_that_of_plain_numpy():
    rng = np.random.default_rng(0)
    x, row, action, count = states(rng)
    made, phi = regression_of(x, row, action, count, np.tanh), np.tanh(x)
    for a in range(3):
        its = row[action == a]
        assert np.allclose(made.sums[a], phi[its].T @ (phi[its] * count[action == a, None]))
    theta, sums = rng.normal(size=(3, 6)), np.zeros((len(x), 3))
    assert np.allclose(made.values(theta), phi @ theta.T)
    b = rng.normal(size=len(row))
    np.add.at(sums, (row, action), count * b)
    prior = np.kron(0.3 * np.linalg.inv(np.full((3, 3), 0.5) + 0.5 * np.eye(3)), np.eye(6))
    P = prior.copy()
    for a in range(3):
        P[6 * a : 6 * a + 6, 6 * a : 6 * a + 6] += made.sums[a]
    y = np.concatenate([phi.T @ sums[:, a] for a in range(3)])
    assert np.allclose(made.fit(sums).ravel(), np.linalg.solve(P, y))


def test_the_bits_do_not_depend_on_the_number_of_cores(monkeypatch):
    found, used = [], set()

    def features(x):
        used.add(threading.get_ident())
        return np.cos(x)

    for count in (1, 2, 3, 16):
        cores(monkeypatch, count)
        rng = np.random.default_rng(1)
        with blas.one_thread():
            made = regression_of(*states(rng), features)
            theta = made.fit(rng.normal(size=(sum(LENGTHS), 3)))
            found.append((made.sums, theta, made.values(theta), made.shape(rng.normal(size=made.drawn))))
        assert (count == 1) == (used == {threading.get_ident()})
    for other in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_a_copy_does_not_change_what_it_was_copied_from():
    first = FeatureRegression(1, 2)
    first.extend(np.ones((ROWS - 1, 2)))
    second = first.copy()
    second.extend(np.full((5, 2), 7.0))
    theta = np.array([[1.0, 0.0]])
    assert np.array_equal(first.values(theta)[:, 0], np.ones(ROWS - 1))
    assert np.array_equal(second.values(theta)[:, 0], np.r_[np.ones(ROWS - 1), np.full(5, 7.0)])


def test_threads_treat_overflow_as_their_caller_does(monkeypatch):
    cores(monkeypatch, 2)
    large = np.array([1e300])
    with np.errstate(over="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [v[0] for v in on_all_cores(lambda _: large * large, range(4), 1)] == 4 * [np.inf]
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        on_all_cores(lambda _: large * large, range(4), 1)


def test_an_error_in_a_thread_reaches_the_caller(monkeypatch):
    cores(monkeypatch, 2)
    with pytest.raises(ZeroDivisionError):
        on_all_cores(lambda i: 1 / i, range(3), 1)


@pytest.mark.parametrize(("given", "count"), [("1", 1), ("3", 3), ("99", 4), ("0", 1), ("2,1", 4), ("", 4)])
def test_threads_are_limited_as_in_numerical_libraries(monkeypatch, given, count):
    cores(monkeypatch, 4)
    assert threads() == 4
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert threads() == count


def test_jobs_of_a_sweep_use_one_thread():
    from rlsvi.study.executors import one_thread_everywhere

    with one_thread_everywhere():
        assert threads() == 1
