"""What the library computes is what it computed when the digests were recorded; see tests/golden."""

import pytest

from golden import CASES, COMPILED, EXACT, differences, here, recorded

WHERE, EXPECTED = recorded()


def test_every_case_is_recorded():
    assert EXPECTED.keys() == CASES.keys()


@pytest.mark.parametrize("name", EXACT)
def test_whole_numbers_are_as_recorded(name):
    assert not differences(name, EXPECTED[name])


@pytest.mark.skipif(here() != WHERE, reason=f"rounded numbers were recorded on {WHERE}, this is {here()}")
@pytest.mark.parametrize("name", COMPILED)
def test_rounded_numbers_are_as_recorded(name):
    assert not differences(name, EXPECTED[name])
