"""Digests of what the library computes, to compare a changed library with what it computed before the change.

`tests/golden.json` says of every case where it was recorded, how it is compared, and what was computed:

    python -m tests.golden                    compare all cases, and list those that differ
    python -m tests.golden --record           write all of them anew
    python -m tests.golden --record NAME ..   write these anew

Recording anew is legitimate only after a deliberate change of behaviour: another random number drawn, another
formula, another default. The commit that does it says which cases changed and why. Moving, renaming or speeding up
code is no such change. Where a move changes what the library's modules are called, adapt `library.py`; where it
changes how what was learned is held in memory, adapt `learned.py`.

Compiled code has the bits of plain Python on every processor: it adds and multiplies in the order written, fuses
nothing, and has its own exponentials, logarithms and cosines. Such cases are compared exactly, everywhere.
`NUMBA_DISABLE_JIT=1 python -m tests.golden` computes them without compiling anything. The cases in ROUNDED also
use other libraries, whose last bits depend on the processor; of these, fractions are compared with a tolerance.
"""

import json
import platform
from pathlib import Path

import llvmlite.binding
import numba
import numpy as np
from threadpoolctl import threadpool_limits

from .compiled import COMPILED, ROUNDED
from .digests import agree, recorded_form
from .whole import WHOLE

FILE = Path(__file__).parent.with_suffix(".json")
CASES = WHOLE | COMPILED


def here():
    """The processor and the versions with which a case is recorded."""
    processor = f"{platform.machine()} {llvmlite.binding.get_host_cpu_name()}"
    return f"{processor}, Numba {numba.__version__}, NumPy {np.__version__}"


def compute(name):
    """What is recorded of a case, computed with one thread for linear algebra."""
    with threadpool_limits(1):
        return {part: recorded_form(value, name in ROUNDED) for part, value in CASES[name]().items()}


def recorded():
    """All recorded cases by name."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def record(names=()):
    """Write the cases of these names anew, or all of them."""
    found = {name: case for name, case in recorded().items() if name in CASES} if names else {}
    for name in names or CASES:
        compared = "fractions with a tolerance" if name in ROUNDED else "exactly, on every processor"
        found[name] = {"recorded on": here(), "compared": compared, "computed": compute(name)}
    FILE.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n", encoding="utf-8")


def differences(name, expected):
    """The quantities of a case that are not as expected."""
    found = compute(name)
    parts = found.keys() | expected.keys()
    return sorted(part for part in parts if not agree(found.get(part), expected.get(part)))
