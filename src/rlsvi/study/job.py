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

    Parameters
    ----------
    function
        "module:name" of a function that can be imported wherever the job may run. It takes the settings as keyword
        arguments and returns the columns of a table: arrays of one length, or single values.
    settings
        Names and plain values (text, numbers, booleans, None).
    cost
        Approximate duration in any unit; progress bars use it to estimate what is left.
    folder
        Where `checkpoint()` lets the function store its progress; set by the sweep.
    given
        An object that the function takes before its settings, if not None. It travels as it is, and its pickle is
        part of the name.

    Examples
    --------
    >>> import rlsvi
    >>> print(rlsvi.Job("mine:area", {"side": 2}))
    area(side=2)
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
        """Return the job of calling `function` with `settings`.

        Parameters
        ----------
        function
            A function at the top level of a module.
        cost
            As for `Job`.
        **settings
            The settings.

        Returns
        -------
        Job
            The job.
        """
        if not callable(function):
            raise TypeError(f"function must be a function at the top level of a module, got {shown(function)}")
        name = getattr(function, "__qualname__", repr(function))  # a partial does not have one
        return Job(f"{getattr(function, '__module__', '')}:{name}", settings, cost)

    @cached_property
    def version(self) -> str:
        """The version of the code that computes it: a digest of the sources."""
        return version(self.function)

    @cached_property
    def name(self) -> str:
        """A digest of function, version and settings: jobs with the same name have the same results."""
        what = {"function": self.function, "version": self.version, "settings": dict(self.settings)}
        if self.given is not None:
            try:
                given = pickle.dumps(self.given)
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                raise TypeError(f"given must be an object that pickle can store: {error!s:.200}") from None
            what["given"] = hashlib.sha256(given).hexdigest()
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:32]

    def __str__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        return f"{self.function.partition(':')[2]}({settings})"


@cache
def version(function: str) -> str:
    """Return a digest of everything that affects a function, so that stale results are never used.

    It covers the versions of NumPy and numba, all of this package below its studies, and the sources that the
    function reaches: other claims and plots in the file of a figure change nothing.

    function : its name as module:function, or that of a module, for all in it.
    """
    below = sorted({path.stem for path in files.PACKAGE.iterdir()} - ABOVE)
    digest = hashlib.sha256(f"{np.__version__} {installed('numba')} {files.source_digest(*below)}".encode())
    for name, source in sorted(sources_of(function).items()):
        digest.update(name.encode() + b"\0" + source)
    return digest.hexdigest()[:16]


def sources_of(function: str) -> dict[str, bytes]:
    """Return the source of a function, module:function, and of all that it refers to, by place.

    Of modules of other packages, and of those that are referred to as a whole, everything is taken; this package
    below its studies is left out.
    """
    own = function.partition(":")[0]
    find_spec(own)  # an error if its package is not there
    found: dict[str, bytes] = {}
    packages, todo = {"rlsvi", own.partition(".")[0]}, [function]
    while todo:
        module, _, name = todo.pop().partition(":")
        package, _, rest = module.partition(".")
        ours = package == "rlsvi"
        place = f"{module}:{name if ours else ''}"
        if place in found or package not in packages or (ours and rest.partition(".")[0] not in ABOVE):
            continue
        path = _file_of(module)
        statements = _statements(path.read_bytes()) if path else []
        defined = {each for it in statements for each in it.defines}
        whole = not ours or name not in defined
        chosen = [it for it in statements if whole or name in it.defines or it.acts]
        found[place] = b"".join(it.text for it in chosen)
        for it in chosen:
            todo += [f"{module}:{used}" for used in it.uses & defined]
            for source, imported in it.imports.values():
                is_module = source.partition(".")[0] in packages and _file_of(f"{source}.{imported}") is not None
                todo.append(f"{source}.{imported}" if is_module else f"{source}:{imported}")
    return found


class _Statement(NamedTuple):
    """A statement of a module: its lines, the names it defines and uses, and module and name of what it imports.

    acts : whether it does something, though it defines nothing.
    """

    text: bytes
    defines: set[str]
    uses: set[str]
    imports: dict[str, tuple[str, str]]
    acts: bool = False


@cache
def _statements(source: bytes) -> list[_Statement]:
    """Return the statements of a module, one for each name that is imported. Cached, as jobs share sources."""
    lines, found = source.splitlines(keepends=True), []
    for statement in ast.parse(source).body:
        nodes = list(ast.walk(statement))
        imports = {name: it for node in nodes for name, it in _imports(node)}
        if isinstance(statement, ast.Import | ast.ImportFrom):
            found += [
                _Statement(f"{name} is {it}\n".encode(), {name}, set(), {name: it}) for name, it in imports.items()
            ]
            continue
        names = [node for node in nodes if isinstance(node, ast.Name)]
        first, defines = statement.lineno, {node.id for node in names if isinstance(node.ctx, ast.Store)}
        defines |= set(imports)
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first, defines = min([first, *(it.lineno for it in statement.decorator_list)]), {statement.name}
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        own = b"".join(lines[first - 1 : statement.end_lineno])
        uses, acts = {node.id for node in names}, not defines and not docstring
        found.append(_Statement(own, defines, uses, imports, acts))
    return found


def _imports(node: ast.AST) -> Iterator[tuple[str, tuple[str, str]]]:
    """Return the names that a node imports, each with the module, and with the name in it if there is one."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0], (alias.name, "")
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        for alias in node.names:
            yield alias.asname or alias.name, (node.module, alias.name)


def _file_of(module: str) -> Path | None:
    """Return the Python file of a module; None if there is no such module, or it is compiled."""
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:
        return None
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


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
