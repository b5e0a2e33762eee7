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
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlsvi.core.checks import positive, shown

Scalar = str | int | float | bool | None
Columns = dict[str, NDArray[Any]]


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

    It covers the versions of NumPy and Numba, and the sources that the function reaches. In which files these are
    does not matter, nor do comments and docstrings.

    The name is module:function, or that of a module, for all in it.
    """
    found = sorted((place.partition(":")[2], source) for place, source in sources_of(function).items())
    return hashlib.sha256(f"{np.__version__} {installed('numba')} {found}".encode()).hexdigest()[:16]


# ---- What a function reaches --------------------------------------------------------------------------------
#
# A name stands for the statements at the top level of a module that define it, and reaches all the names in them:
# of a class, those in all its methods. Calls through an object are covered, since its class was named where it was
# made. What acts when a module is imported, such as registering an implementation, counts with anything else in
# the module. Names are followed through this package and that of the function, and through what packages export
# lazily; a module that is named without an attribute counts as a whole. Text that names one of our environments
# reaches all of them.


def sources_of(function: str) -> dict[str, str]:
    """Return digests of a function, module:function, and of all that it reaches, by place, module:name.

    A digest is that of the syntax tree without docstrings, and of what the names in it stand for; the names of the
    modules of the packages are no part of it. Of a module, without a function, everything is taken.
    """
    own = function.partition(":")[0]
    find_spec(own)  # an error if its package is not there
    packages, todo = {"rlsvi", own.partition(".")[0]}, [function if ":" in function else f"{function}:"]
    _source_of.cache_clear()
    trees: dict[str, str] = {}
    meanings: dict[str, set[tuple[str, str]]] = {}  # names, and the places they stand for
    while todo:
        place = todo.pop()
        module, _, name = place.partition(":")
        if place in trees or module.partition(".")[0] not in packages:
            continue
        source = _source_of(module)
        whole = name not in source.defines
        chosen = [it for it in source.statements if whole or it.acts or name in it.defines]
        trees[place] = _digest("".join(it.tree for it in chosen))
        found = {(used, _meaning(module, it, used, packages)) for it in chosen for used in it.uses}
        if whole or not source.is_package:
            found |= {(it, _found(*imported, packages)) for it, imported in source.unused.items()}
        meanings[place] = {(used, target) for used, target in found if target not in ("", place)}
        todo += [target for _, target in meanings[place]]
    return {
        place: _digest(tree + str(sorted((used, trees.get(target, target)) for used, target in meanings[place])))
        for place, tree in trees.items()
    }


Imports = dict[str, tuple[str, str]]  # by name, the module and the name in it, which is empty if it is the module


class _Statement(NamedTuple):
    """A statement at the top level of a module: the names it defines and uses, and what it imports itself.

    `tree` is a digest of its syntax tree, and `acts` says whether it does something when the module is imported,
    besides defining names.
    """

    tree: str
    defines: set[str]
    uses: set[str]
    imports: Imports
    acts: bool


class _Source(NamedTuple):
    """A module: its statements but imports, the names they define, and what it imports.

    `unused` is what it imports and only offers to others, or what acts; of `stars` everything is imported.
    """

    statements: list[_Statement]
    defines: set[str]
    imports: Imports
    unused: Imports
    stars: list[str]
    is_package: bool


@cache
def _source_of(module: str) -> _Source:
    path = _file_of(module)
    is_package = path is not None and path.name == "__init__.py"
    return _read(
        path.read_bytes() if path else b"", module if is_package else module.rpartition(".")[0], is_package
    )


@cache
def _read(text: bytes, package: str, is_package: bool) -> _Source:
    """Return what is in the text of a module. Cached, as jobs share sources."""
    imports: Imports = {}
    lazy: Imports = {}  # imports for type checkers, by which packages say what they export
    statements = []
    for node in ast.parse(text).body:
        test = ast.unparse(node.test) if isinstance(node, ast.If) else ""
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports |= _imports(node, package)
        elif test.endswith("TYPE_CHECKING"):
            lazy |= _imports(node, package)
        elif "__name__" not in test:  # what only a script does is no part of its functions
            statements.append(_statement(node, package))
    if is_package:
        imports = lazy | imports
    used = {name.partition(".")[0] for it in statements for name in it.uses}
    stars = [imports.pop(name)[0] for name in list(imports) if name.endswith("*")]
    unused = {name: it for name, it in imports.items() if name not in used}
    return _Source(
        statements, {name for it in statements for name in it.defines}, imports, unused, stars, is_package
    )


def _statement(node: ast.stmt, package: str) -> _Statement:
    imports, tree, uses = _imports(node, package), _digest(_tree(node)), _names_in(node)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        acts = any(name.endswith(".register") for it in node.decorator_list for name in _names_in(it))
        return _Statement(tree, {node.name}, uses, imports, acts)
    names = {it.id for it in ast.walk(node) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store)}
    sets = isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and bool(names)
    return _Statement(tree, names | set(imports), uses, imports, not (sets or _is_docstring(node)))


def _imports(node: ast.AST, package: str) -> Imports:
    """Return what is imported within a node of a module of a package."""
    found: Imports = {}
    for it in ast.walk(node):
        if isinstance(it, ast.Import):
            for alias in it.names:
                name = alias.asname or alias.name.partition(".")[0]
                found[name] = alias.name if alias.asname else name, ""
        elif isinstance(it, ast.ImportFrom):
            module = resolve_name("." * it.level + (it.module or ""), package)
            for alias in it.names:
                found[f"{module}.*" if alias.name == "*" else alias.asname or alias.name] = module, alias.name
    return found


def _meaning(module: str, statement: _Statement, name: str, packages: set[str]) -> str:
    """Return the place that a dotted name in a statement of a module stands for; empty if there is none."""
    source, (root, *attributes) = _source_of(module), name.split(".")
    if ":" in name:
        return name
    if root in statement.imports or (root in source.imports and root not in source.defines):
        return _found(*(statement.imports.get(root) or source.imports[root]), packages, *attributes)
    return _found(module, root, packages, *attributes)


def _found(module: str, name: str, packages: set[str], *attributes: str) -> str:
    """Return the place of what a module offers by a name, and if that is a module, of its attribute."""
    if name.startswith("__"):
        return ""
    if module.partition(".")[0] not in packages:
        return f"{module}:{name}"
    if not name:
        return _found(module, attributes[0], packages, *attributes[1:]) if attributes else f"{module}:"
    source = _source_of(module)
    if name in source.defines:
        return f"{module}:{name}"
    if (imported := source.imports.get(name)) and imported != (module, name):
        return _found(*imported, packages, *attributes)
    if source.is_package and _file_of(f"{module}.{name}"):
        return _found(f"{module}.{name}", "", packages, *attributes)
    return next((place for it in source.stars if (place := _found(it, name, packages, *attributes))), "")


def _names_in(node: ast.AST) -> set[str]:
    """Return the dotted names in a node: a.b.c once, and not also a.b and a."""
    found: set[str] = set()
    todo = [node]
    while todo:
        root = node = todo.pop()
        attributes = ""
        while isinstance(root, ast.Attribute):
            attributes = f".{root.attr}{attributes}"
            root = root.value
        if isinstance(root, ast.Name):
            found.add(root.id + attributes)
        elif isinstance(node, ast.Constant) and str(node.value).startswith("rlsvi/"):
            found.add("rlsvi.envs:")
        else:
            todo += ast.iter_child_nodes(node)
    return found


def _tree(value: Any) -> str:
    """Return a syntax tree as text, without docstrings: the same text in every version of Python."""
    if isinstance(value, list):
        return f"[{','.join(_tree(it) for it in value if not _is_docstring(it))}]"
    if not isinstance(value, ast.AST):
        return repr(value)
    fields = [(name, getattr(value, name, None)) for name in value._fields if name != "ctx"]
    told = [f"{name}={_tree(it)}" for name, it in fields if it is not None and it != []]
    return f"{type(value).__name__}({','.join(told)})"


def _is_docstring(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _file_of(module: str) -> Path | None:
    """Return the Python file of a module; None if there is none. Nothing is imported."""
    package, *names = module.split(".")
    spec = find_spec(package)
    if spec and not names:
        return Path(spec.origin) if spec.origin and spec.origin.endswith(".py") else None
    for folder in (spec and spec.submodule_search_locations) or ():
        for path in (Path(folder, *names, "__init__.py"), Path(folder, *names[:-1], f"{names[-1]}.py")):
            if path.is_file():
                return path
    return None


class Done(NamedTuple):
    """The results of a job, and the CPU seconds it took, independent of other load on the machine."""

    columns: Columns
    seconds: float


class Failed(NamedTuple):
    """Why a job has no results."""

    reason: str
    details: str = ""


Outcomes = Iterator[tuple[Job, Done | Failed]]
