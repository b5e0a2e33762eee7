"""What the reproduction computes is what it computed when the digests were recorded; see golden_cases.py."""

import pytest
from golden_cases import PAPER

EXPECTED = PAPER.recorded()


def test_every_case_is_recorded():
    assert EXPECTED.keys() == PAPER.cases.keys()


@pytest.mark.parametrize("name", PAPER.cases)
def test_what_is_computed_is_as_recorded(name):
    assert not PAPER.differences(name, EXPECTED[name]["computed"])
