"""Where Numba's insides have changed, functions are compiled in Numba's own way, with the same results."""

import os
import subprocess
import sys

import pytest

CODE = """
import sys
from numba.core import codegen
if sys.argv[1] == "changed":
    del codegen.JITCodeLibrary
from rlsvi.core.compile import AVAILABLE
from rlsvi.core.random import bits, normal, stream
assert AVAILABLE == (sys.argv[1] == "as it is")
words = stream(3)
print([normal(words) for _ in range(3)], bits(words))
"""


@pytest.mark.slow
def test_a_numba_that_has_changed_gives_the_same_numbers(tmp_path):
    said = []
    for numba in ("as it is", "changed"):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / numba)}
        done = subprocess.run(
            [sys.executable, "-c", CODE, numba], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0] == said[1]
    assert said[0]
