"""A job: one computation, identified by what it computes."""

import ast
import hashlib
import json
import math
import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version as installed
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlsvi.core import files
from rlsvi.core.checks import positive, shown

Scalar = str | int | float | bool | None
Columns = dict[str, NDArray[Any]]
ABOVE = {"study", "paper", "theory", "shop", "cli", "html", "progress", "_lazy", "__init__", "__main__"}  # of jobs


@dataclass(frozen=True, eq=False)
class Job:
    """A function and its settings.

    function : "module:name" of a function that can be imported wherever the job may run. It takes the settings
        as keyword arguments and returns the columns of a table: arrays of one length, or single values.
    settings : names and plain values (text, numbers, booleans, None).
    cost : approximate duration in any unit; progress bars use it to estimate what is left.
    folder : where `checkpoint()` lets the function store its progress; set by the sweep.
    given : an object that the function takes before its settings, if not None. It travels as it is, and its pickle
        is part of the name.
    """

    function: str
    settings: Mapping[str, Scalar]
    cost: float = 1.0
    folder: str | None = None
    given: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.function, str):
            raise TypeError(f"function must be its name as module:function, got {shown(self.function)}")
        if not isinstance(self.settings, Mapping):
            raise TypeError(f"settings must be a dictionary of names and values, got {shown(self.settings)}")
        positive("cost", self.cost)
        object.__setattr__(self, "settings", dict(self.settings))  # a copy, since the settings determine the name
        module, _, function = self.function.partition(":")
        if module in ("", "__main__") or not function.isidentifier():
            raise ValueError(
                f"function {self.function:.200} cannot be found by other processes: define a function at the "
                "top level of a module of its own, and name it as module:function"
            )
        for name, value in self.settings.items():
            if not isinstance(name, str) or not isinstance(value, str | int | float | bool | None):
                raise TypeError(
                    f"settings must be plain values (text, number, bool, None), got {name}={shown(value)}"
                )
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"settings must be finite, got {name}={shown(value)}")
            if isinstance(value, int) and not -(2**63) <= value < 2**63:
                raise ValueError(f"settings must fit into 64 bits, got {name}={shown(value)}")

    @staticmethod
    def of(function: Callable[..., Mapping[str, Any]], cost: float = 1.0, **settings: Scalar) -> "Job":
        """Return the job of calling `function` with `settings`."""
        if not callable(function):
            raise TypeError(f"function must be a function at the top level of a module, got {shown(function)}")
        name = getattr(function, "__qualname__", repr(function))  # a partial does not have one
        return Job(f"{getattr(function, '__module__', '')}:{name}", settings, cost)

    @cached_property
    def version(self) -> str:
        """The version of the code that computes it: a digest of the sources."""
        return version(self.function.partition(":")[0])

    @cached_property
    def name(self) -> str:
        """A digest of function, version and settings: jobs with the same name have the same results."""
        what = {"function": self.function, "version": self.version, "settings": dict(self.settings)}
        if self.given is not None:
            what["given"] = hashlib.sha256(pickle.dumps(self.given)).hexdigest()
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:32]

    def __str__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        return f"{self.function.partition(':')[2]}({settings})"


@cache
def version(module: str) -> str:
    """Return a digest of everything that affects the functions of `module`, so that stale results are never used.

    It covers the versions of NumPy and numba, all of this package below its studies, the module's own file, and
    the files it imports from this package or from its own.
    """
    below = sorted({path.stem for path in files.PACKAGE.iterdir()} - ABOVE)
    digest = hashlib.sha256(f"{np.__version__} {installed('numba')} {files.source_digest(*below)}".encode())
    for name, path in sorted(imported_files(module, {"rlsvi", module.partition(".")[0]}).items()):
        digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def imported_files(module: str, packages: set[str], found: dict[str, Path] | None = None) -> dict[str, Path]:
    """Return the files of a module and of everything it imports from some packages, directly or not, by name."""
    found = {} if found is None else found
    spec = find_spec(module)
    if module in found or spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return found
    found[module] = Path(spec.origin)
    for name in _names_imported(found[module].read_bytes()):
        if name.partition(".")[0] in packages and name != "rlsvi" and _is_module(name):
            imported_files(name, packages, found)
    return found


@cache
def _names_imported(source: bytes) -> list[str]:
    """Return what a source file imports: modules, and names that may be modules. Cached, as jobs share sources."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


class Done(NamedTuple):
    """The results of a job, and the CPU seconds it took, independent of other load on the machine.

    If the job resumed from a checkpoint, the seconds are those of its last part.
    """

    columns: Columns
    seconds: float


class Failed(NamedTuple):
    """Why a job has no results."""

    reason: str
    details: str = ""


Outcomes = Iterator[tuple[Job, Done | Failed]]
