"""What the reproduction computes is what it computed when the digests were recorded; see golden_cases.py."""

from pathlib import Path

import pytest
from golden_cases import PAPER

from watch import python

EXPECTED = PAPER.recorded()


def test_every_case_is_recorded():
    assert EXPECTED.keys() == PAPER.cases.keys()


@pytest.mark.parametrize("name", PAPER.cases)
def test_what_is_computed_is_as_recorded(name):
    assert not PAPER.differences(name, EXPECTED[name]["computed"])


@pytest.mark.slow
def test_plain_python_computes_the_same():
    code = "import sys; sys.path.insert(0, sys.argv[1]); from golden_cases import PAPER; assert not PAPER.main([])"
    python(code, Path(__file__).parent, NUMBA_DISABLE_JIT="1", PYTHONWARNINGS="ignore")
