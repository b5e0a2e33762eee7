"""Our own exp, log, cosine and powers, against numbers of 60 digits."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from rlsvi.core.elementary import cosine, exp, log, power


def ulps(function, exact, x):
    """The error at x, in units in the last place of the result."""
    with mp.workdps(60):
        y = function(float(x))
        return float(abs(exact(mpf(float(x))) - mpf(y)) / mpf(math.ulp(y)))


def arguments(name):
    rng = np.random.default_rng(0)
    if name == "cosine":
        return np.concatenate([rng.uniform(-3, 3, 500), 10.0 ** rng.uniform(-9, 9, 500), np.arange(-4, 4) / 8])
    if name == "log":
        near_one = 1.0 + np.concatenate([rng.uniform(-0.3, 0.42, 500), [2.0**-52, -(2.0**-53), 0.0]])
        return np.concatenate([rng.random(500), 10.0 ** rng.uniform(-307, 308, 500), near_one, [5e-324, 1.7e308]])
    return np.concatenate(
        [rng.uniform(-708, 709, 500), rng.uniform(-1, 1, 500), -rng.exponential(1e-3, 500), [0.0]]
    )


@pytest.mark.parametrize(("name", "function", "most"), [("log", log, 0.53), ("exp", exp, 0.63)])
def test_the_error_is_as_small_as_said(name, function, most):
    found = [ulps(function, getattr(mp, name), x) for x in arguments(name) if x != 1.0]
    assert max(found) < most


def test_the_cosine_of_turns():
    with mp.workdps(60):
        errors = [abs(cosine(float(x)) - mp.cos(2 * mp.pi * mpf(float(x)))) for x in arguments("cosine")]
    assert max(errors) < 3e-16
    assert [cosine(x / 4) for x in range(-4, 5)] == [1, 0, -1, 0, 1, 0, -1, 0, 1]
    assert all(abs(cosine(x)) <= 1 for x in (2.0**50 + 0.25, -(2.0**52), 1e17, -1e300))


def test_whole_powers():
    with mp.workdps(60):
        for x, n in ((0.9, 1), (0.999, 5000), (-1.1, 7), (1.5, 62), (0.3, 0), (0.0, 0)):
            exact = mpf(x) ** n
            assert abs(mpf(power(x, n)) - exact) <= max(n, 1) * 2.0**-52 * abs(exact)
    assert (power(0.5, 30), power(2.0, 10), power(0.0, 3), power(10.0, 400)) == (2.0**-30, 1024.0, 0.0, math.inf)
    plain = getattr(power, "py_func", power)
    assert all(power(0.97, n) == plain(0.97, n) for n in range(300))


def test_the_ends_of_their_ranges():
    assert (log(0.0), log(1.0), log(math.inf)) == (-math.inf, 0.0, math.inf)
    assert (exp(-math.inf), exp(-709.0), exp(0.0), exp(709.8), exp(math.inf)) == (
        0.0,
        0.0,
        1.0,
        math.inf,
        math.inf,
    )
    assert all(math.isnan(it) for it in (log(-1.0), log(math.nan), exp(math.nan)))


@pytest.mark.parametrize("function", [log, exp, cosine])
def test_compiled_code_has_the_bits_of_plain_python(function):
    """Additions, multiplications and divisions are defined exactly: any other operation would show here."""
    if not hasattr(function, "py_func"):
        pytest.skip("nothing is compiled")
    for x in arguments(function.__name__)[:300]:
        assert function(float(x)) == function.py_func(float(x))
