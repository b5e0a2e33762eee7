"""Random streams: NumPy's SFC64 bit for bit, distributions against SciPy, draws always of the same number."""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from rlsvi.core import random as streams
from rlsvi.core.random import argmax_set, bits, normal, pick, reseed, sequence, stream, uniform

SEEDS = [
    0,
    1,
    12345,
    2**63 + 5,
    10**30,
    np.random.SeedSequence(7, spawn_key=(2, 3)),
    np.random.SeedSequence([1, 2]),
]
# A p-value below this is a failure. Seeds are fixed, so a pass stays a pass.
RARE_CHANCE = 1e-4

MASK = 2**64 - 1


def draws(function, state, n, *arguments):
    dtype = {bits: np.uint64, pick: np.int64}.get(function, np.float64)
    return np.array([function(state, *arguments) for _ in range(n)], dtype=dtype)


def slow_sfc64(a, b, c, n):
    """SFC64 with Python's integers: yields a 64-bit word and the state after it."""
    while True:
        out = (a + b + n) & MASK
        n = (n + 1) & MASK
        a, b, c = b ^ (b >> 11), (c + (c << 3)) & MASK, (((c << 24) | (c >> 40)) + out) & MASK
        yield out, (a, b, c, n)


# ---- bits -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_bits_are_those_of_numpys_sfc64(seed):
    assert np.array_equal(draws(bits, stream(seed), 1000), np.random.SFC64(seed).random_raw(1000))


@pytest.mark.parametrize("seed", SEEDS)
def test_uniform_is_numpys_random_bit_for_bit(seed):
    assert np.array_equal(
        draws(uniform, stream(seed), 1000), np.random.Generator(np.random.SFC64(seed)).random(1000)
    )


def test_bits_are_the_vectors_written_down_here():
    """Written down from numpy.random.SFC64(1).random_raw(5), NumPy 2.4: notices a change in NumPy as well."""
    expected = [
        18365948275979584072,
        6864396556639111295,
        7917024265190753706,
        14104257147265189493,
        15367196606101136102,
    ]
    assert draws(bits, stream(1), 5).tolist() == expected
    assert np.random.SFC64(1).random_raw(5).tolist() == expected


@pytest.mark.parametrize("word", [0, 1, 0x9E3779B97F4A7C15, MASK])
def test_reseed_is_practrands_seeding(word):
    """All three words the seed, the counter one, twelve words thrown away."""
    state = stream(99)
    reseed(state, np.uint64(word))
    slow = slow_sfc64(word, word, word, 1)
    for _ in range(12):
        _, words = next(slow)
    assert tuple(state.tolist()) == words
    assert draws(bits, state, 100).tolist() == [next(slow)[0] for _ in range(100)]


def test_a_seed_sequence_is_not_used_up():
    seed = np.random.SeedSequence(5)
    assert np.array_equal(stream(seed), stream(seed))
    assert sequence(seed) is seed


def test_no_seed_gives_fresh_streams():
    assert not np.array_equal(stream(), stream())


# ---- uniform and normal -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_normal_is_numpys_and_takes_as_many_draws(seed):
    """10^6 draws in all; of each 250,000 about 2,500 need a second look and 65 come from the tail."""
    n = 250_000
    state, numpys = stream(seed), np.random.SFC64(seed)
    ours, theirs = draws(normal, state, n), np.random.Generator(numpys).standard_normal(n)
    assert np.abs(ours - theirs).max() < 1e-14
    assert (np.abs(ours) > streams._R).sum() > 30  # the tail was tested
    assert np.array_equal(state, numpys.state["state"]["state"])


def test_uniform_has_the_uniform_distribution():
    u = draws(uniform, stream(10), 200_000)
    assert u.min() >= 0
    assert u.max() < 1
    assert stats.kstest(u, "uniform").pvalue > RARE_CHANCE


def test_normal_has_the_normal_distribution():
    x = draws(normal, stream(11), 400_000)
    assert stats.kstest(x, "norm").pvalue > RARE_CHANCE
    # Mean 0 and variance 1 with standard errors sqrt(1/n) and sqrt(2/n), kurtosis 3 with sqrt(96/n): 4 of them.
    n = len(x)
    assert abs(x.mean()) < 4 / math.sqrt(n)
    assert abs(x.var() - 1) < 4 * math.sqrt(2 / n)
    assert abs((x**4).mean() - 3) < 4 * math.sqrt(96 / n)


def test_normal_has_the_right_tails():
    """Beyond the ziggurat's r = 3.65, and beyond 3, on either side: counts within 4 standard deviations."""
    n = 1_000_000
    x = draws(normal, stream(12), n)
    for edge in (3.0, streams._R):
        expected = n * stats.norm.sf(edge)
        for count in ((x > edge).sum(), (x < -edge).sum()):
            assert abs(count - expected) < 4 * math.sqrt(expected)
    tail = np.abs(x[np.abs(x) > streams._R])
    assert stats.kstest(tail, lambda t: 1 - stats.norm.sf(t) / stats.norm.sf(streams._R)).pvalue > RARE_CHANCE


def test_ziggurat_layers_have_equal_area():
    """x_i (f(x_{i-1}) - f(x_i)) = r f(r) + tail for every layer, worked out anew with 50 digits."""
    r, accept, width, density = streams._ziggurat()
    with mpmath.workdps(50):
        f = lambda t: mpmath.exp(-(mpmath.mpf(t) ** 2) / 2)  # noqa: E731
        area = r * f(r) + mpmath.sqrt(mpmath.pi / 2) * mpmath.erfc(mpmath.mpf(r) / mpmath.sqrt(2))
        x = [mpmath.mpf(0)] + [mpmath.mpf(w) * 2**52 for w in width[1:]]
        assert x[255] == r
        # A layer's height is a difference of densities near 1/256 of their size, and each x is rounded to 1e-16.
        for i in range(1, 256):
            assert abs(x[i] * (f(x[i - 1]) - f(x[i])) / area - 1) < 1e-13
            assert abs(density[i] - f(x[i])) < 1e-16
        assert abs(width[0] * 2**52 * f(r) / area - 1) < 1e-14  # the base: a box as large as box and tail
        for i in [0, *range(2, 256)]:
            inner = r if i == 0 else x[i - 1]
            assert abs(accept[i] - inner / mpmath.mpf(width[i])) < 4  # of 2^52, by rounding of width
    assert accept[1] == 0
    assert density[0] == 1


# ---- pick -------------------------------------------------------------------------------------------------


def test_pick_has_the_given_frequencies():
    p = np.array([0.1, 0.0, 0.25, 0.6, 0.05])
    n = 100_000
    counts = np.bincount(draws(pick, stream(20), n, p), minlength=5)
    assert counts[1] == 0
    used = p > 0
    assert stats.chisquare(counts[used], n * p[used]).pvalue > RARE_CHANCE


@pytest.mark.parametrize(
    "p",
    [[1.0], [0.0, 1.0, 0.0], [0.5, 0.5], [1.0, 0.0, 0.0], [0.3, 0.3, 0.3], [0.1] * 10, [0.0, 0.0]],
    ids=str,
)
def test_pick_takes_exactly_one_draw(p):
    p = np.array(p)
    for seed in range(50):
        picking, drawing = stream(seed), stream(seed)
        pick(picking, p)
        bits(drawing)
        assert np.array_equal(picking, drawing)


def test_pick_with_a_total_below_one_gives_the_rest_to_the_last_possible_index():
    n = 10_000
    picked = draws(pick, stream(21), n, np.array([0.25, 0.25, 0.0]))
    assert set(picked.tolist()) == {0, 1}
    # 3/4 of the draws, with a standard deviation of sqrt(3/16 n); 4 of them.
    assert abs((picked == 1).mean() - 0.75) < 4 * math.sqrt(3 / 16 / n)


def test_pick_is_the_inverse_of_the_distribution_function():
    p = np.random.default_rng(0).dirichlet(np.ones(7))
    u = draws(uniform, stream(22), 1000)
    assert np.array_equal(draws(pick, stream(22), 1000, p), np.searchsorted(np.cumsum(p), u, side="right"))


# ---- argmax_set -------------------------------------------------------------------------------------------


def spread(values, allowed=None):
    values = np.array(values, dtype=np.float64)
    allowed = np.ones(len(values), dtype=bool) if allowed is None else np.array(allowed)
    probabilities = np.full(len(values), np.nan)
    return argmax_set(values, allowed, probabilities), probabilities.tolist()


@pytest.mark.parametrize(
    ("values", "allowed", "expected"),
    [
        ([1, 3, 2], None, [0, 1, 0]),
        ([3, 1, 3, 3], None, [1 / 3, 0, 1 / 3, 1 / 3]),
        ([0, 0], None, [0.5, 0.5]),
        ([-5], None, [1]),
        ([9, 3, 9, 3], [False, True, False, True], [0, 0.5, 0, 0.5]),
        ([np.nan, 1, np.inf], [False, True, False], [0, 1, 0]),
        ([-np.inf, -1e300], None, [0, 1]),
    ],
)
def test_argmax_set_is_fair_over_the_allowed_maxima(values, allowed, expected):
    assert spread(values, allowed) == (True, expected)


@pytest.mark.parametrize(
    ("values", "allowed"),
    [
        ([1, np.nan, 2], None),
        ([np.nan, 1], None),
        ([1, np.inf], None),
        ([-np.inf, -np.inf], None),
        ([1, 2], [False, False]),
        ([1, -np.inf], [False, True]),
    ],
)
def test_argmax_set_refuses_what_cannot_be_compared(values, allowed):
    assert not spread(values, allowed)[0]


def test_ties_are_broken_evenly():
    """Three ties of four actions, 30,000 draws: chi-square."""
    _, chances = spread([2, 2, 1, 2])
    counts = np.bincount(draws(pick, stream(30), 30_000, np.array(chances)), minlength=4)
    assert counts[2] == 0
    assert stats.chisquare(counts[[0, 1, 3]]).pvalue > RARE_CHANCE
