"""What the library computes is what it computed when the digests were recorded; see tests/golden."""

import numpy as np
import pytest

from golden import LIBRARY
from golden.digests import agree, recorded_form
from watch import python

EXPECTED = LIBRARY.recorded()


def test_every_case_is_recorded_with_its_machine():
    assert EXPECTED.keys() == LIBRARY.cases.keys()
    assert all(case["recorded on"] and case["compared"] for case in EXPECTED.values())


def case(name):
    """A case by its name; what no other test compiles belongs to the second suite."""
    return pytest.param(name, marks=[pytest.mark.slow] * name.startswith("ensemble-weights"))


@pytest.mark.parametrize("name", [case(name) for name in LIBRARY.cases])
def test_what_is_computed_is_as_recorded(name):
    assert not LIBRARY.differences(name, EXPECTED[name]["computed"])


@pytest.mark.slow
def test_plain_python_computes_the_same():
    """Every state, action, reward, weight and factor, without compilation."""
    python(
        "from golden import LIBRARY; assert not LIBRARY.main([])", NUMBA_DISABLE_JIT="1", PYTHONWARNINGS="ignore"
    )


def test_summaries_allow_for_rounding_alone():
    numbers = np.random.default_rng(0).normal(size=(20, 6))
    expected = recorded_form(numbers, rounded=True)
    assert agree(recorded_form(numbers * (1 + 1e-9), rounded=True), expected)
    changed, moved = numbers.copy(), numbers.copy()
    changed[3, 4] += 0.01
    moved[[0, 1]] = moved[[1, 0]]
    for other in (changed, moved, numbers[:-1], np.where(numbers > 2, -np.inf, numbers)):
        assert not agree(recorded_form(other, rounded=True), expected)


def test_digests_know_neither_signs_of_zeros_nor_kinds_of_nan():
    assert recorded_form(np.array([0.0, np.nan]), rounded=False) == recorded_form(np.array([-0.0, -np.nan]), False)
    assert recorded_form(np.array([1.0]), rounded=False) != recorded_form(np.array([1.0 + 2.0**-52]), False)
