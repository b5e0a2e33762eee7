"""Digests of what the library computes, to compare a changed library with what it computed before the change.

`tests/golden.json` holds the digests of every case as they were when they were last recorded:

    python -m tests.golden             compare all of them, whatever the machine, and list those that differ
    python -m tests.golden --record    write them anew

Recording anew is legitimate only after a deliberate change of behaviour: another random number drawn, another
formula, another default. The commit that does it says which cases changed and why. Moving, renaming or speeding up
code is no such change. Where a move changes what the library's modules are called, adapt `library.py`; where it
changes how what was learned is held in memory, adapt `learned.py`.

The cases in EXACT are made of whole numbers, and hold on every machine. Those in COMPILED contain rounded numbers.
They depend on the processor, which decides how loops are vectorised, and on the libraries, so they are compared
only where `here()` is what it was when they were recorded.
"""

import json
import platform
from pathlib import Path

import gymnasium
import llvmlite.binding
import numba
import numpy as np
import scipy
from threadpoolctl import threadpool_limits

from .compiled import COMPILED
from .exact import EXACT

FILE = Path(__file__).parent.with_suffix(".json")
CASES = EXACT | COMPILED


def here():
    """The machine and the libraries that decide how numbers are rounded."""
    return {
        "machine": platform.machine(),
        "processor": llvmlite.binding.get_host_cpu_name(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "gymnasium": gymnasium.__version__,
    }


def compute(name):
    """The digests of a case, with one thread for linear algebra."""
    with threadpool_limits(1):
        return CASES[name]()


def recorded():
    """Where the digests were recorded, and the digests of all cases."""
    found = json.loads(FILE.read_text(encoding="utf-8"))
    return found["recorded on"], found["digests"]


def record():
    """Write the digests of all cases."""
    found = {"recorded on": here(), "digests": {name: compute(name) for name in sorted(CASES)}}
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def differences(name, expected):
    """The quantities of a case that are not as expected."""
    found = compute(name)
    return sorted(part for part in found.keys() | expected.keys() if found.get(part) != expected.get(part))
