"""The plan of the three packages: imports run downward, importing is cheap, compiled code is Python's."""

import ast
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import rlsvi
from rlsvi._lazy import exports_of

SOURCE = Path(rlsvi.__file__).parent
ROOT = SOURCE.parents[1]
PACKAGES = {
    "rlsvi": SOURCE,
    "rlsvi_paper": ROOT / "paper/src/rlsvi_paper",
    "rlsvi_shop": ROOT / "shop/src/rlsvi_shop",
}
FILES = {
    ".".join((package, *path.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__"): path
    for package, folder in PACKAGES.items()
    for path in sorted(folder.rglob("*.py"))
}
INSIDE = [name for name in FILES if name.startswith("rlsvi.")]  # the front door opens on every floor
FLOORS = (  # from the ground up: a folder imports only from the floors below its own, and from itself
    ("core", "html", "_lazy"),
    ("progress", "ray_cluster", "axes"),
    ("mdp",),
    ("bases",),
    ("envs", "problems"),
    ("offline",),
    ("agents",),
    ("callbacks", "simulate"),
    ("study", "testing"),
    ("cli",),
    ("__main__",),
)
FLOOR = {name: floor for floor, names in enumerate(FLOORS) for name in names}
HOME = exports_of("rlsvi")
HEAVY = ("numba", "polars", "matplotlib", "scipy", "sklearn")


def python(code, *arguments, **environment):
    """Run code in a new Python; stdout and stderr."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def tree_of(name):
    """The syntax tree of a file."""
    return ast.parse(FILES[name].read_text())


# ---- floors -----------------------------------------------------------------------------------------------


def without_typing(tree):
    """All nodes but those under `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            node = ast.Module(node.orelse, [])
        yield node
        yield from without_typing(node)


def imported(tree):
    """The dotted names, of modules or of things in them, that a file imports of our packages."""
    for node in without_typing(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "rlsvi":
            names = [f"rlsvi.{node.attr}"]
        else:
            continue
        for name in names:
            package, *words = name.split(".")
            if package in PACKAGES and words and not words[0].startswith("__"):
                home = HOME.get(words[0], package) if package == "rlsvi" else package
                yield ".".join([home, *words])


def test_the_reader_of_imports_sees_them_all():
    code = """
from typing import TYPE_CHECKING
import numpy, rlsvi.mdp.chain
from rlsvi import problems, RLSVI, __version__
if TYPE_CHECKING:
    from rlsvi.cli import app
else:
    import rlsvi_paper.report
def f():
    from rlsvi.core.random import stream
    import rlsvi
    return rlsvi.compare, rlsvi.__version__
"""
    found = ["rlsvi.mdp.chain", "rlsvi.problems", f"{HOME['RLSVI']}.RLSVI", "rlsvi_paper.report"]
    assert list(imported(ast.parse(code))) == [*found, "rlsvi.core.random.stream", f"{HOME['compare']}.compare"]


@pytest.mark.parametrize("name", INSIDE)
def test_imports_run_downward(name):
    """Imports at the top of a file and inside functions alike, so that folders never import in a circle."""
    own = name.split(".")[1]
    folders = {it.split(".")[1] for it in imported(tree_of(name)) if it.startswith("rlsvi.")}
    upward = {folder for folder in folders - {own} if FLOOR[folder] >= FLOOR[own]}
    assert not upward, f"{name} imports {upward}"


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_itself_and_the_library_alone(package):
    trees = [tree_of(name) for name in FILES if name.partition(".")[0] == package]
    assert {it.partition(".")[0] for tree in trees for it in imported(tree)} <= {"rlsvi", package}


def graph(trees):
    """Which modules each module imports, of syntax trees by the names of their modules."""
    edges = {}
    for name, tree in trees.items():
        found = set()
        for target in imported(tree):
            parts = target.split(".")
            modules = (".".join(parts[:i]) for i in range(len(parts), 0, -1))
            found.add(next((each for each in modules if each in trees), None))
        edges[name] = found - {None}
    return edges


def cycles(edges):
    """The groups of modules that import one another, directly or not."""

    def reached(start):
        found, todo = set(), [start]
        while todo:
            for target in edges[todo.pop()] - found:
                found.add(target)
                todo.append(target)
        return found

    below = {name: reached(name) for name in edges}
    groups = {
        frozenset({name} | {o for o in below[name] if name in below[o]}) for name in edges if name in below[name]
    }
    return sorted(sorted(group) for group in groups)


def test_the_reader_of_cycles_finds_them():
    sources = {
        "rlsvi.a": "from rlsvi.b import f",
        "rlsvi.b": "def f():\n    from rlsvi.c.d import g",
        "rlsvi.c": "from rlsvi.c.d import g",
        "rlsvi.c.d": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import rlsvi.a",
    }
    for last, found in (
        (sources["rlsvi.c.d"], []),
        ("import rlsvi.a", [["rlsvi.a", "rlsvi.b", "rlsvi.c.d"]]),
        ("from rlsvi.c import g", [["rlsvi.c", "rlsvi.c.d"]]),
    ):
        trees = {name: ast.parse(code) for name, code in {**sources, "rlsvi.c.d": last}.items()}
        assert cycles(graph(trees)) == found


# ---- cycles --------------------------------------------------------------------------------------


def test_no_files_import_one_another():
    """Imports at the top of a file and inside functions alike; those for the type checker do not count."""
    assert not cycles(graph({name: tree_of(name) for name in FILES if name != "rlsvi"}))


# ---- imports ----------------------------------------------------------------------------------------------


def test_importing_rlsvi_is_light():
    loaded = json.loads(python("import rlsvi, sys, json; print(json.dumps(sorted(sys.modules)))"))
    assert "rlsvi" in loaded
    assert not set(HEAVY) & set(loaded)


def test_help_works_and_is_light():
    code = "import sys, atexit; from rlsvi.cli.app import app; atexit.register(lambda: print(*sys.modules)); app()"
    out = python(code, "--help")
    assert "compare" in out
    assert "list" in out
    assert not set(HEAVY) & set(out.split())


def test_public_names_resolve():
    for name in rlsvi.__all__:
        assert getattr(rlsvi, name) is not None
    assert len(rlsvi.__all__) == len(set(rlsvi.__all__)) > 50
    assert set(rlsvi.__all__) <= set(dir(rlsvi))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        rlsvi.nothing  # noqa: B018


# ---- compiled code ----------------------------------------------------------------------------------------


USING_NUMBA = {  # compiled functions of all others come from rlsvi.core.compile
    *(f"rlsvi.core.{name}" for name in ("compile", "cache", "callee", "dispatch", "card", "card_kernels")),
    "rlsvi.cli.doctor",  # asks whether Numba itself works
    "rlsvi_paper.tetris.kernel",  # a kernel needs numba.cuda
}


def test_every_function_is_compiled_the_one_way():
    for name in FILES:
        tree = tree_of(name)
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert name in USING_NUMBA or not any(it.startswith("numba") for it in names), name


def test_nothing_is_compiled_with_fast_math():
    assert not [path for path in FILES.values() if "fastmath" in path.read_text()]


LIBM = {"cos", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "pow", "power", "sin", "tan", "tanh"}


def test_compiled_code_calls_no_function_that_processors_round_differently():
    """Exponentials, logarithms, cosines and powers come from core/elementary.py instead."""
    found = []
    for name in FILES:
        for function in ast.walk(tree_of(name)):
            if isinstance(function, ast.FunctionDef) and function.decorator_list:
                names = [ast.unparse(each).split("(")[0] for each in function.decorator_list]
                if any(name in ("compiled", "kernel") or name.endswith(".register") for name in names):
                    found += [f"{name}: {use}" for use in _rounded_by_a_library(function)]
    assert not found


def _rounded_by_a_library(function):
    """Calls of functions of `math` and `np`, matrix products, and powers that are not whole constants."""
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("math", "np") and node.attr in LIBM:
            yield ast.unparse(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult | ast.Pow):
            constant = isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant)
            if not (constant and isinstance(node.right.value, int)):
                yield ast.unparse(node)
