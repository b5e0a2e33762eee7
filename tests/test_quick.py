"""Targets found in 16 bits: those of plain float64 sums bit for bit, whatever the weights and the bytes."""

import numpy as np
import pytest

from rlsvi.agents.stationary.quick import LOOSE, quick_values, shorten
from rlsvi.agents.stationary.ring import LINE, add_transition, columns_for, empty_ring, resized
from rlsvi.agents.stationary.targets import BATCH, new_weights, set_weights, targets
from rlsvi.core.compile import unsigned

GAMMA = 0.9
WEIGHTS = {
    "ordinary": lambda rng, d: rng.normal(size=d),
    "negative": lambda rng, d: -rng.random(d),
    "ties": lambda rng, d: rng.integers(-1, 2, d).astype(float),
    "nearly ties": lambda rng, d: 1.0 + 1e-13 * rng.integers(-9, 9, d),
    "of all sizes": lambda rng, d: rng.normal(size=d) * 10.0 ** rng.integers(-12, 12, d),
    "one large": lambda rng, d: np.where(np.arange(d) == d // 2, 1e3, 1.0) * rng.normal(size=d),
    "huge": lambda rng, d: 1e290 * rng.normal(size=d),
    "tiny": lambda rng, d: 1e-290 * rng.normal(size=d),
    "subnormal": lambda rng, d: 5e-324 * rng.integers(-5, 5, d),
    "zero": lambda rng, d: np.zeros(d),
}
BYTES = {
    "all": lambda rng, shape: rng.integers(0, 256, shape),
    "extreme": lambda rng, shape: 255 * rng.integers(0, 2, shape),
    "few": lambda rng, shape: rng.integers(0, 14) + rng.integers(0, 4, shape),
    "high": lambda rng, shape: rng.integers(240, 256, shape),
    "flags": lambda rng, shape: rng.integers(0, 2, shape),
    "some constant": lambda rng, shape: np.where(np.arange(shape[1]) % 3 == 1, 255, rng.integers(0, 30, shape)),
}


def filled(d, actions, states, bytes_of, *, known=False, memory=None, ends=0.2, seed=0):
    """A ring, and its rewards and next actions in a list."""
    rng, zeros = np.random.default_rng(seed), np.zeros(actions, np.int32)
    ring, kept = empty_ring(actions, 1, np.ones(d), np.uint8, known, memory, memory or states), []
    for _ in range(states):
        x, n = bytes_of(rng, (actions, d + known)).astype(np.uint8), int(rng.integers(1, actions + 1))
        goes_on, reward, legal = bool(rng.random() >= ends), float(rng.normal()), np.arange(actions) < n
        assert add_transition(ring, x[0, :d], 0, reward, goes_on, x, zeros, legal, np.zeros(d, np.int64))
        kept.append((reward, x[: n if goes_on else 0]))
    return ring, kept[-(memory or states) :]


def plain(kept, theta, known):
    """Every value in float64, plane by plane."""
    found = []
    for reward, rows in kept:
        q = np.zeros(len(rows))
        for k, weight in enumerate(theta):
            q = q + rows[:, k] * ((GAMMA if known else 1.0) * weight)
        q = q + rows[:, len(theta)] * 1.0 if known else q
        best = q.max() if len(q) else 0.0
        found.append(best if known else reward + GAMMA * best)
    return np.array(found)


def found_in(ring, actions, theta):
    weights, b = new_weights(ring, actions), np.zeros(len(ring.x))
    set_weights(weights, ring.units, theta[None], GAMMA)
    largest = targets(ring, weights, GAMMA, b)
    return b[: ring.size[0]], largest, shorten(ring, weights.w, weights.quick)


@pytest.mark.parametrize("data", BYTES)
@pytest.mark.parametrize(("d", "actions"), [(1, 3), (4, 17), (22, 34)])
def test_targets_are_those_of_plain_sums(data, d, actions):
    known = d == 4
    ring, kept = filled(d, actions, 330, BYTES[data], known=known, memory=250)
    quick = 0
    for name, weights_of in WEIGHTS.items():
        theta = weights_of(np.random.default_rng(1), d)
        b, largest, plan = found_in(ring, actions, theta)
        wanted = plain(kept, theta, known)
        assert b.tobytes() == wanted.tobytes(), name
        assert largest == np.abs(wanted).max()
        quick += plan.margin >= 0
    assert quick >= (3 if d > 1 else 7)  # most weights are not done without


@pytest.mark.parametrize("moved", [0, 1, 31, 33])
def test_where_the_columns_lie_does_not_matter(moved):
    """Planes that do not begin alike, as in a ring of an odd width."""
    ring, kept = filled(5, 9, 400, BYTES["few"])
    odd = np.zeros((5, ring.next_x.shape[1] + 2 * moved + 1), np.uint8)
    odd[:, moved : moved + ring.next_x.shape[1]] = ring.next_x
    there = ring._replace(next_x=odd, start=ring.start + moved)
    theta = WEIGHTS["ordinary"](np.random.default_rng(2), 5)
    b, _, plan = found_in(there, 9, theta)
    assert plan.margin >= 0
    assert b.tobytes() == plain(kept, theta, False).tobytes()


@pytest.mark.parametrize(
    ("actions", "states", "ends"), [(2, 3 * BATCH, 0.995), (1, BATCH + 5, 0.0), (BATCH + 7, 6, 0.3)]
)
def test_batches_of_many_states_and_of_one(actions, states, ends):
    ring, kept = filled(3, actions, states, BYTES["all"], ends=ends)
    theta = WEIGHTS["ordinary"](np.random.default_rng(3), 3)
    b, _, plan = found_in(ring, actions, theta)
    assert plan.margin >= 0
    assert b.tobytes() == plain(kept, theta, False).tobytes()


@pytest.mark.parametrize("data", BYTES)
@pytest.mark.parametrize("name", ["ordinary", "negative", "of all sizes", "one large", "tiny"])
def test_v_is_the_sum_of_its_integers_and_never_overflows(data, name):
    """Compared with Python's integers, also for the least and the largest bytes that each plane has held."""
    ring, kept = filled(7, 12, 60, BYTES[data], ends=0.0)
    corner = np.zeros((7, 32), np.int64)
    signs = np.random.default_rng(4).integers(0, 2, corner.shape)
    theta = WEIGHTS[name](np.random.default_rng(5), 7)
    signs[:, 0], signs[:, 1] = theta > 0, theta < 0
    corner[:] = np.where(signs, ring.most[:, None], ring.least[:, None])
    weights = new_weights(ring, 12)
    set_weights(weights, ring.units, theta[None], GAMMA)
    quick, plan = weights.quick, shorten(ring, weights.w, weights.quick)
    assert 0 <= plan.margin < LOOSE
    W = np.zeros(7, np.int64)
    for g in range(plan.small):
        W[int(quick.plane[g])] = int(quick.small[g]) * (-1 if quick.flip[g] else 1)
    for g in range(plan.large, 7):
        W[int(quick.plane[g])] = (
            int(quick.large[g]) if theta[int(quick.plane[g])] > 0 else int(quick.large[g]) - 65536
        )
    assert (np.sign(W) * np.sign(theta) >= 0).all()
    least = np.minimum(W * ring.least, W * ring.most).sum()
    columns = np.hstack([corner, *(rows.T for _, rows in kept)]).astype(np.uint8)
    columns = np.ascontiguousarray(columns[:, :256])
    quick_values(quick, plan, columns, unsigned(0), unsigned(0), unsigned(columns.shape[1]))
    wanted = 1 + W @ columns.astype(np.int64) - least
    assert (quick.value[: columns.shape[1]] == wanted).all()
    assert wanted.min() == 1
    assert 30_000 < wanted.max() <= 65_535
    q = np.zeros(columns.shape[1])
    for k in range(7):
        q = q + columns[k] * theta[k]
    for a in np.argsort(-q)[:40]:  # no action is better than one whose V is larger by more than the margin
        assert (wanted[q <= q[a]] <= wanted[a] + plan.margin).all()


@pytest.mark.parametrize("weight", [np.nan, np.inf, -np.inf, 1e308, 0.0])
def test_weights_that_are_done_without(weight):
    ring, _ = filled(2, 4, 20, BYTES["all"], ends=0.0)
    b, _, plan = found_in(ring, 4, np.array([weight, 0.0]))
    assert plan.margin == -1
    assert np.isfinite(b).all() == (weight == 0.0)


def test_many_planes_of_all_bytes_are_done_without():
    ring, kept = filled(200, 4, 30, BYTES["all"])
    theta = WEIGHTS["ordinary"](np.random.default_rng(6), 200)
    b, _, plan = found_in(ring, 4, theta)
    assert plan.margin == -1
    assert b.tobytes() == plain(kept, theta, False).tobytes()


def test_a_ring_is_as_wide_as_an_odd_number_of_lines():
    for pairs in (0, 1, 64, 65, 128, 129, 3400):
        assert columns_for(pairs) >= pairs
        assert columns_for(pairs) < pairs + 2 * LINE
        assert columns_for(pairs) % (2 * LINE) == LINE
    ring = empty_ring(3, 1, np.ones(2), np.uint8, False, None, 50)
    assert ring.next_x.shape[1] == len(ring.next_block) == columns_for(150)
    assert resized(ring, 60, 1000).next_x.shape[1] == len(resized(ring, 60, 1000).next_block) == columns_for(1000)
