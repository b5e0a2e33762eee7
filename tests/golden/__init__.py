"""Digests of what the library computes, to compare a changed library with what it computed before the change.

`tests/golden.json` says of every case where it was recorded, how it is compared, and what was computed:

    python -m tests.golden                    compare all cases, and list those that differ
    python -m tests.golden --record           write all of them anew
    python -m tests.golden --record NAME ..   write these anew

Recording anew is legitimate only after a deliberate change of behaviour: another random number drawn, another
formula, another default. The commit that does it says which cases changed and why. Moving, renaming or speeding up
code is no such change. Where it changes how what was learned is held in memory, adapt `learned.py`. The cases of
the reproduction are in `paper/tests/golden_cases.py`.

Compiled code has the bits of plain Python on every processor: it adds and multiplies in the order written, fuses
nothing, and has its own exponentials, logarithms and cosines. Such cases are compared exactly, everywhere.
`NUMBA_DISABLE_JIT=1 python -m tests.golden` computes them without compiling anything. The cases in ROUNDED also
use other libraries, whose last bits depend on the processor; of these, fractions are compared with a tolerance.
"""

import json
import platform
from pathlib import Path
from typing import NamedTuple

import llvmlite.binding
import numba
import numpy as np
from threadpoolctl import threadpool_limits

from .compiled import COMPILED, ROUNDED
from .digests import agree, recorded_form
from .whole import WHOLE


def here():
    """The processor and the versions with which a case is recorded."""
    processor = f"{platform.machine()} {llvmlite.binding.get_host_cpu_name()}"
    return f"{processor}, Numba {numba.__version__}, NumPy {np.__version__}"


class Golden(NamedTuple):
    """Cases by name, those of them that are compared with a tolerance, and the file of what was recorded."""

    cases: dict
    rounded: set
    file: Path

    def compute(self, name):
        """What is recorded of a case, computed with one thread for linear algebra."""
        with threadpool_limits(1):
            return {part: recorded_form(value, name in self.rounded) for part, value in self.cases[name]().items()}

    def recorded(self):
        """All recorded cases by name."""
        return json.loads(self.file.read_text(encoding="utf-8"))

    def record(self, names=()):
        """Write the cases of these names anew, or all of them."""
        found = {name: case for name, case in self.recorded().items() if name in self.cases} if names else {}
        for name in names or self.cases:
            compared = "fractions with a tolerance" if name in self.rounded else "exactly, on every processor"
            found[name] = {"recorded on": here(), "compared": compared, "computed": self.compute(name)}
        self.file.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n", encoding="utf-8")

    def differences(self, name, expected):
        """The quantities of a case that are not as expected."""
        found = self.compute(name)
        parts = found.keys() | expected.keys()
        return sorted(part for part in parts if not agree(found.get(part), expected.get(part)))

    def main(self, arguments):
        """Compare all cases with what is recorded of them, or record them anew; return the exit status."""
        if arguments[:1] == ["--record"] and set(arguments[1:]) <= self.cases.keys():
            return self.record(arguments[1:])
        if arguments:
            return "usage: [--record [NAME ..]]"
        expected, different = self.recorded(), 0
        print(f"compared on {here()}")
        for name in sorted(self.cases):
            case = expected.get(name, {"recorded on": "no machine", "computed": {}})
            if parts := self.differences(name, case["computed"]):
                different += 1
                print(f"{name}, recorded on {case['recorded on']}: {', '.join(parts)}")
        print(f"{different} of {len(self.cases)} cases differ")
        return bool(different) or expected.keys() != self.cases.keys()


LIBRARY = Golden(WHOLE | COMPILED, ROUNDED, Path(__file__).parent.with_suffix(".json"))
