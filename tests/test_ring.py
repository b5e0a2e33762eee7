"""The ring and its sums: exact whatever was added and evicted; targets and factors as plain code computes them."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from rlsvi import StationaryRLSVI
from rlsvi.agents.stationary import (
    FINE,
    Ring,
    begin_transition,
    empty_ring,
    evict,
    new_work,
    pairs_of,
    place_for,
    plan,
    resize_ring,
    set_weights,
    targets,
)
from rlsvi.core.elementary import factorise, pair_product, pair_sum, two_product, two_sum
from rlsvi.core.random import gamma, stream
from rlsvi.core.regression import Model, solve_upper
from rlsvi.envs.task import Task

ACTIONS, BLOCKS, DIM = 5, 3, 4


def numbers(rng, dtype, shape):
    """Features of a type; floats of very different sizes."""
    if dtype == np.float64:
        return rng.normal(size=shape) * 10.0 ** rng.integers(-6, 7, size=shape)
    return rng.integers(0 if dtype == np.uint8 else -3000, 256 if dtype == np.uint8 else 3000, shape).astype(dtype)


def add_transition(ring, x, block, reward, goes_on, next_x, next_block, legal, row):
    """Keep a transition with the legal ones of all next actions, if it goes on. False if there is no room."""
    following = np.flatnonzero(legal & goes_on)
    p = begin_transition(ring, x, block, reward, len(following), row)
    if p >= 0:
        columns = slice(p, p + len(following))
        ring.next_x[:, columns], ring.next_block[columns] = next_x[following].T, next_block[following]
    return p >= 0


class Copy:
    """The same transitions in a list, and a ring that is fed alike."""

    def __init__(self, dtype, memory, known=False, blocks=BLOCKS, seed=0, room=8):
        self.rng, self.dtype, self.memory, self.known, self.blocks = (
            np.random.default_rng(seed),
            dtype,
            memory,
            known,
            blocks,
        )
        self.ring = empty_ring(ACTIONS, blocks, np.array([1.0, 0.5, 0.25, 3.0]), dtype, known, memory, room)
        self.row, self.list = np.zeros(DIM, self.ring.gram.dtype), []

    def add(self, ends=0.2):
        rng = self.rng
        x, block, reward = numbers(rng, self.dtype, DIM), int(rng.integers(self.blocks)), float(rng.normal())
        goes_on = bool(rng.random() > ends)
        following = numbers(rng, self.dtype, (ACTIONS, DIM + self.known))
        next_block = rng.integers(self.blocks, size=ACTIONS).astype(np.int32)
        legal = rng.random(ACTIONS) < 0.6
        legal[rng.integers(ACTIONS)] = True
        entry = x, block, reward, goes_on, following, next_block, legal
        while not add_transition(self.ring, *entry, self.row):
            room = len(self.ring.x)
            room = min(2 * room, self.memory or 10**9) if self.ring.size[0] == room else room
            self.ring = resize_ring(self.ring, room, self.ring.next_x.shape[1] + 7)
        self.list.append(entry)
        if self.memory is not None:
            self.list = self.list[-self.memory :]

    def forget(self):
        evict(self.ring, self.row)
        self.list = self.list[1:]


def contents(ring):
    """What a ring holds, oldest first, as lists."""
    found = []
    for t in range(int(ring.size[0])):
        i = (ring.first[0] + t) % len(ring.x)
        columns = slice(ring.start[i], ring.start[i] + ring.following[i])
        entry = ring.x[i], ring.block[i], ring.reward[i], ring.next_x[:, columns].T, ring.next_block[columns]
        found.append(tuple(np.asarray(part).tolist() for part in entry))
    return found


def expected(entries):
    found = []
    for x, block, reward, goes_on, following, next_block, legal in entries:
        legal = legal & goes_on
        found.append((x.tolist(), block, reward, following[legal].tolist(), next_block[legal].tolist()))
    return found


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float64])
@pytest.mark.parametrize(("memory", "known"), [(1, False), (7, True), (40, False), (None, True)])
def test_a_ring_holds_the_last_transitions_in_order(dtype, memory, known):
    copy = Copy(dtype, memory, known, room=1)
    for i in range(150):
        copy.add(ends=0.9 if i // 30 % 2 else 0.1)
        assert contents(copy.ring) == expected(copy.list)
        assert pairs_of(copy.ring) == sum(len(entry[3]) for entry in expected(copy.list))
        if i % 11 == 0:
            copy.forget()
    while copy.list:
        assert contents(copy.ring) == expected(copy.list)
        copy.forget()
    assert copy.ring.size[0] == 0
    copy.add()
    assert contents(copy.ring) == expected(copy.list)


def test_columns_are_used_in_a_circle_and_never_twice():
    ring = empty_ring(ACTIONS, 1, np.ones(DIM), np.uint8, False, None, 4)._replace(
        next_x=np.zeros((DIM, 10), np.uint8)
    )
    assert [place_for(ring, n) for n in (0, 10, 11)] == [0, 0, -1]
    ring.size[0], ring.start[0], ring.head[0] = 1, 4, 8  # 4 .. 7 are used
    assert [place_for(ring, n) for n in (2, 3, 4)] == [8, 0, -1]
    ring.head[0] = 2  # 4 .. 9 and 0 .. 1 are used
    assert [place_for(ring, n) for n in (0, 1, 2)] == [2, 2, -1]


@pytest.mark.parametrize("memory", [1, 3, 20, 150, None])
def test_a_learner_makes_room_for_any_episode(memory, monkeypatch):
    """Not a column more than asked for, so that rings turn often; compiled code relies on there being a place."""
    monkeypatch.setattr("rlsvi.agents.stationary.columns_for", lambda pairs: pairs)
    learner = StationaryRLSVI(memory=memory).new_learner(Task(0, ACTIONS, 2), 0)
    learner.mind = learner.mind._replace(ring=resize_ring(learner.mind.ring, 1, 1))
    rng, row = np.random.default_rng(0), np.zeros(len(learner.mind.ring.units))
    for _ in range(200):
        pairs = rng.integers(0, ACTIONS + 1, size=rng.integers(1, 30)).astype(np.int32)
        pairs[rng.random(len(pairs)) < 0.3] = rng.choice([0, ACTIONS])
        learner.make_room(pairs)
        for n in pairs:
            ring = learner.mind.ring
            assert begin_transition(ring, np.ones(1), 0, 0.0, n, row) >= 0
        if memory is not None and memory < 20:  # exact room, as after loading
            learner.mind = learner.mind._replace(ring=resize_ring(ring, len(ring.x), pairs_of(ring)))


def gram(entries, block):
    """The sum of x x', as fractions."""
    total = [[Fraction(0)] * DIM for _ in range(DIM)]
    for x, b, *_ in entries:
        if b == block:
            for i in range(DIM):
                for j in range(DIM):
                    total[i][j] += Fraction(x[i].item()) * Fraction(x[j].item())
    return total


@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
def test_sums_of_integers_are_exact(dtype):
    copy = Copy(dtype, 60)
    for _ in range(700):
        copy.add()
    for b in range(BLOCKS):
        exact = gram(copy.list, b)
        assert all(copy.ring.gram[b, i, j] == exact[i][j] for i in range(DIM) for j in range(i, DIM))


def test_sums_of_floats_are_good_to_25_digits_after_many_evictions():
    copy = Copy(np.float64, 60)
    sizes = np.zeros((BLOCKS, DIM))
    for _ in range(3000):
        copy.add()
        for b in range(BLOCKS):
            sizes[b] = np.maximum(sizes[b], copy.ring.gram[b].diagonal())
    for b in range(BLOCKS):
        exact = gram(copy.list, b)
        for i in range(DIM):
            for j in range(i, DIM):
                found = Fraction(copy.ring.gram[b, i, j]) + Fraction(copy.ring.low[b, i, j])
                assert abs(found - exact[i][j]) < 1e-25 * np.sqrt(sizes[b, i] * sizes[b, j])


def test_error_free_sums_and_products():
    rng = np.random.default_rng(0)
    for a, b, c, d in rng.normal(size=(300, 4)) * 10.0 ** rng.integers(-9, 9, size=(300, 4)):
        assert sum(map(Fraction, two_sum(a, b))) == Fraction(a) + Fraction(b)
        assert sum(map(Fraction, two_product(a, b))) == Fraction(a) * Fraction(b)
        c, d = 1e-17 * np.sin(c) * a, 1e-17 * np.sin(d) * b
        exact = (Fraction(a) + Fraction(c)) * (Fraction(b) + Fraction(d))
        assert abs(sum(map(Fraction, pair_product(a, c, b, d))) - exact) < 1e-30 * abs(exact)
        total = Fraction(a) + Fraction(c) + Fraction(b) + Fraction(d)
        assert abs(sum(map(Fraction, pair_sum(a, c, b, d))) - total) < 1e-31 * (abs(a) + abs(b))


@pytest.mark.parametrize("size", [1e2, 1e10])
def test_the_factor_is_right_to_the_last_digits_at_condition_1e20(size):
    """Rows that span two directions of six, of size 1e10, and a ridge of 1."""
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(size=(20, 2)) @ rng.normal(size=(2, 6)) * size)
    ring = empty_ring(1, 1, np.ones(6), np.float64, False, None, 32)
    for x in X:
        add_transition(ring, x, 0, 0.0, False, x[None], np.zeros(1, np.int32), np.ones(1, bool), np.zeros(6))
    high, low, inv = ring.gram[0].copy(), ring.low[0].copy(), np.zeros(6)
    for i in range(6):
        high[i, i], low[i, i] = pair_sum(high[i, i], low[i, i], 1.0, 0.0)
    assert factorise(high, inv, low)
    with mpmath.workdps(80):
        A = mpmath.matrix(X.tolist())
        L = mpmath.cholesky(A.T * A + mpmath.eye(6))
        for j in range(6):
            assert inv[j] == pytest.approx(float(1 / L[j, j]), rel=1e-10)
            for i in range(j, 6):
                assert abs(high[j, i] - float(L[i, j])) < 2e-16 * abs(float(L[i, j])) + 1e-11 * float(L[j, j])


@pytest.mark.parametrize("matrix", [[[1.0, 2.0], [0.0, 3.0]], [[0.0, 0.0], [0.0, 1.0]], [[np.nan, 0], [0, 1]]])
def test_a_matrix_that_is_not_positive_definite_is_refused(matrix):
    assert not factorise(np.array(matrix, dtype=float), np.zeros(2), np.zeros((2, 2)))


# ---- targets ----------------------------------------------------------------------------------------------


def plain_targets(copy, theta, discount):
    """In the order of the planes, in float64: what compiled code must give bit for bit."""
    found = []
    for _, _, reward, goes_on, following, next_block, legal in copy.list:
        best = 0.0
        if goes_on:
            values = []
            for x, b in zip(following[legal], next_block[legal], strict=True):
                q = 0.0
                for k in range(DIM):
                    w = copy.ring.units[k] * theta[b, k]
                    q += float(x[k]) * (discount * w if copy.known else w)
                values.append(q + float(x[DIM]) * 1.0 if copy.known else q)
            best = max(values)
        found.append(best if copy.known else reward + discount * best)
    return np.array(found)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float64])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("blocks", [1, 3])
def test_targets_are_those_of_plain_code_bit_for_bit(dtype, known, blocks):
    copy = Copy(dtype, 700, known, blocks)
    for _ in range(1000):
        copy.add()
    work = new_work(copy.ring, ACTIONS)
    for i, scale in enumerate([[1, 1, 1, 1], [1e-9, 1, 1e9, 1], [0, 0, 0, 0], [1e15, 1, 1, 1], [0, 1e-3, 0, 0]]):
        theta = np.random.default_rng(i).normal(size=(blocks, DIM)) * scale
        set_weights(work.w, copy.ring.units, theta, 0.9)
        targets(copy.ring, work, 0.9)
        wanted = plain_targets(copy, theta, 0.9)
        assert work.b[:700].tobytes() == wanted.tobytes()
        assert work.largest[0] == np.abs(wanted).max()


@pytest.mark.parametrize("theta", [[1.0, 1.0 + 1e-9, -1.0 - 1e-12], [1.0, 4e-6, -2.4e-5], [1e-5, 3e-10, 1.0]])
def test_actions_that_16_bits_cannot_tell_apart(theta):
    """Weights so alike, or so different, that only float64 sees which action is the best."""
    rng = np.random.default_rng(0)
    ring = empty_ring(30, 1, np.ones(3), np.uint8, False, None, 64)
    row, entries = np.zeros(3, np.int64), []
    for i in range(64):
        first = rng.integers(0, 120, size=30) if i % 2 else np.full(30, i)
        x = np.stack([first, rng.integers(0, 255, 30), rng.integers(0, 40, 30)], axis=1).astype(np.uint8)
        if i % 2:
            x[:, 1], x[:, 2] = 120 - first + rng.integers(0, 2, 30), rng.integers(0, 2, 30)
        entries.append(x)
        assert add_transition(ring, x[0], 0, 0.0, True, x, np.zeros(30, np.int32), np.ones(30, bool), row)
    work = new_work(ring, 30)
    set_weights(work.w, ring.units, np.array([theta]), 1.0)
    targets(ring, work, 1.0)
    sums = [(x[:, 0] * theta[0] + x[:, 1] * theta[1]) + x[:, 2] * theta[2] for x in entries]
    assert work.b.tobytes() == np.array([q.max() for q in sums]).tobytes()


@pytest.mark.parametrize("blocks", [1, 3])
def test_a_plan_does_not_depend_on_where_transitions_lie(blocks):
    copy = Copy(np.uint8, 300, True, blocks)
    for _ in range(431):
        copy.add()
    model, found = Model(np.full((blocks, DIM), 0.3), 2.0, 0.5, 0.0, 0.0, 0.9), []
    moved = [copy.ring, resize_ring(copy.ring, 300, pairs_of(copy.ring)), resize_ring(copy.ring, 999, 5000)]
    assert moved[0].first[0] > 0
    for ring in moved:
        theta = np.zeros((blocks, DIM))
        assert plan(ring, model, new_work(ring, ACTIONS), theta, True, 3, stream(5)) == FINE
        found.append(theta.tobytes())
    assert len(set(found)) == 1
    assert len(Ring._fields) == 15


# ---- unknown noise ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [0.2, 0.9, 1.0, 2.5, 400.0])
def test_gamma_variates(shape):
    noise = stream(3)
    draws = np.array([gamma(noise, shape) for _ in range(20_000)])
    assert draws.mean() == pytest.approx(shape, abs=5 * np.sqrt(shape / 20_000))
    assert stats.kstest(draws, stats.gamma(shape).cdf).statistic < 2.2 / np.sqrt(20_000)  # p = 1e-4


def test_unknown_noise_is_drawn_from_the_conjugate_posterior():
    """Inverse gamma for sigma^2, Student t for every weight; targets are rewards, as gamma = 0."""
    copy = Copy(np.uint8, None, blocks=2, seed=4)
    for _ in range(12):
        copy.add()
    ridge, a, b, n = 3.0, 1.5, 2.0, 4000
    model = Model(np.full((2, DIM), 0.2), ridge, 0.0, a, b, 0.0)
    work, noise = new_work(copy.ring, ACTIONS), stream(9)
    A = np.zeros((12, 2, DIM))
    for i, (x, block, *_) in enumerate(copy.list):
        A[i, block] = x * copy.ring.units
    A, y = A.reshape(12, -1), np.array([entry[2] for entry in copy.list])
    P = A.T @ A + ridge * np.eye(2 * DIM)
    mean = np.linalg.solve(P, A.T @ y + ridge * 0.2)
    a_n = a + 6
    b_n = b + 0.5 * (y @ y + ridge * 2 * DIM * 0.04 - mean @ P @ mean)
    thetas, variances = [], []
    for _ in range(n):
        theta = np.zeros((2, DIM))
        assert plan(copy.ring, model, work, theta, True, 1, noise) == FINE
        thetas.append(theta.ravel())
        variances.append(work.sigma[0] ** 2)
    assert stats.kstest(variances, stats.invgamma(a_n, scale=b_n).cdf).statistic < 2.2 / np.sqrt(n)
    assert np.mean(variances) == pytest.approx(b_n / (a_n - 1), rel=5 / np.sqrt(n * (a_n - 2)))
    spread = np.sqrt(b_n / a_n * np.linalg.inv(P).diagonal())
    for k in range(2 * DIM):
        t = (np.array(thetas)[:, k] - mean[k]) / spread[k]
        assert stats.kstest(t, stats.t(2 * a_n).cdf).statistic < 2.2 / np.sqrt(n)
    theta = np.zeros((2, DIM))
    assert plan(copy.ring, model, work, theta, False, 1, noise) == FINE
    np.testing.assert_allclose(theta.ravel(), mean, rtol=1e-10)


def test_known_noise_is_drawn_from_the_gaussian_posterior():
    copy = Copy(np.int16, None, blocks=1, seed=4)
    for _ in range(3):
        copy.add()
    model, work, noise = (
        Model(np.zeros((1, DIM)), 2.0, 0.7, 0.0, 0.0, 0.0),
        new_work(copy.ring, ACTIONS),
        stream(1),
    )
    A = np.array([entry[0] * copy.ring.units for entry in copy.list])
    P = A.T @ A + 2.0 * np.eye(DIM)
    mean = np.linalg.solve(P, A.T @ [entry[2] for entry in copy.list])
    L = np.linalg.cholesky(P)
    draws = []
    for _ in range(4000):
        theta = np.zeros((1, DIM))
        assert plan(copy.ring, model, work, theta, True, 1, noise) == FINE
        draws.append(L.T @ (theta[0] - mean) / 0.7)
    draws = np.array(draws)
    for k in range(DIM):
        assert stats.kstest(draws[:, k], stats.norm.cdf).statistic < 2.2 / np.sqrt(4000)
    assert np.abs(np.corrcoef(draws.T) - np.eye(DIM)).max() < 5 / np.sqrt(4000)
    z = np.array([1.0, 2.0, 3.0, 4.0])
    solve_upper(work.factor.U[0], work.factor.inv[0], z)
    np.testing.assert_allclose(L.T @ z, [1, 2, 3, 4], rtol=1e-6)
