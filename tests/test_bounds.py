"""Nothing is ever read or written outside of an array."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_nothing_is_ever_out_of_bounds():
    """All agents, and files with crafted indices, as plain Python, which checks every access."""
    file = Path(__file__).parent / "contract" / "out_of_bounds.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += ["-W", "ignore::RuntimeWarning", str(file)]  # the random words overflow, as they should
    setting = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    found = subprocess.run(command, env=setting, capture_output=True, text=True, cwd=file.parents[2])
    assert found.returncode == 0, found.stdout[-6000:]
