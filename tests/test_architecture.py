"""The plan of the house: imports run downward, importing is cheap, compiled code is dated, and is Python's."""

import ast
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import rlsvi
from rlsvi._lazy import exports_of

SOURCE = Path(rlsvi.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
INSIDE = [path for path in FILES if path != SOURCE / "__init__.py"]  # the front door opens on every floor
FLOORS = (  # from the ground up: a folder imports only from the floors below its own, and from itself
    ("core", "html", "_lazy"),
    ("progress", "ray_cluster", "axes"),
    ("mdp", "tetris"),
    ("bases",),
    ("envs", "problems"),
    ("offline",),
    ("agents",),
    ("callbacks", "simulate"),
    ("study",),
    ("paper",),
    ("shop", "theory"),
    ("cli",),
    ("__main__",),
)
FLOOR = {name: floor for floor, names in enumerate(FLOORS) for name in names}
HOME = {name: home.removeprefix("rlsvi").strip(".") for name, home in exports_of("rlsvi").items()}
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


# ---- floors -----------------------------------------------------------------------------------------------


def part(path):
    """The folder or file directly under rlsvi that a source file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def without_typing(tree):
    """All nodes but those under `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            node = ast.Module(node.orelse, [])
        yield node
        yield from without_typing(node)


def imported(tree):
    """The dotted names, of modules or of what is in them, that a file imports of rlsvi, also inside functions."""
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
            words = name.split(".")
            if words[0] == "rlsvi" and len(words) > 1 and not words[1].startswith("__"):
                home = HOME.get(words[1])
                yield ".".join([home, *words[1:]] if home else words[1:])


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
    found = ["mdp.chain", "problems", f"{HOME['RLSVI']}.RLSVI", "paper.report", "core.random.stream"]
    assert list(imported(ast.parse(code))) == [*found, f"{HOME['compare']}.compare"]


@pytest.mark.parametrize("path", INSIDE, ids=lambda p: p.relative_to(SOURCE).as_posix())
def test_imports_run_downward(path):
    """Imports at the top of a file and inside functions alike, so that folders never import in a circle."""
    own, folders = part(path), {name.split(".")[0] for name in imported(ast.parse(path.read_text()))}
    upward = {folder for folder in folders - {own} if FLOOR[folder] >= FLOOR[own]}
    assert not upward, f"{path.name} is in {own} and imports {upward}"


def module(path):
    """agents/rlsvi.py as agents.rlsvi; the __init__.py of a folder has the folder's name."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def graph(sources):
    """Which modules each module imports, of sources by the names of their modules."""
    edges = {}
    for name, source in sources.items():
        found = set()
        for target in imported(ast.parse(source)):
            parts = target.split(".")
            modules = (".".join(parts[:i]) for i in range(len(parts), 0, -1))
            found.add(next((each for each in modules if each in sources), None))
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
        "a": "from rlsvi.b import f",
        "b": "def f():\n    from rlsvi.c.d import g",
        "c": "from rlsvi.c.d import g",
        "c.d": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import rlsvi.a",
    }
    assert cycles(graph(sources)) == []
    assert cycles(graph({**sources, "c.d": "import rlsvi.a"})) == [["a", "b", "c.d"]]
    assert cycles(graph({**sources, "c.d": "from rlsvi.c import g"})) == [["c", "c.d"]]


# ---- cycles and names --------------------------------------------------------------------------------------


def test_no_files_import_one_another():
    """Imports at the top of a file and inside functions alike; those for the type checker do not count."""
    assert not cycles(graph({module(path): path.read_text() for path in INSIDE}))


def test_no_two_classes_have_one_name():
    """Private ones too: a name means one thing in the whole package."""
    nodes = ((path, node) for path in FILES for node in ast.walk(ast.parse(path.read_text())))
    places = Counter(node.name for _, node in nodes if isinstance(node, ast.ClassDef))
    assert not {name for name, many in places.items() if many > 1}


def test_files_were_found():
    assert {"core", "mdp", "bases", "agents", "envs", "study"} <= {part(path) for path in INSIDE}


# ---- imports ----------------------------------------------------------------------------------------------


def test_importing_rlsvi_is_light():
    loaded = json.loads(python("import rlsvi, sys, json; print(json.dumps(sorted(sys.modules)))"))
    assert "rlsvi" in loaded
    assert not set(HEAVY) & set(loaded)


@pytest.mark.parametrize(
    "name", ["agents.agent", "offline.log", "offline.recorder", "offline.stream", "offline.value", "callbacks"]
)
def test_a_module_can_be_imported_first(name):
    """Logs know of tasks, and agents of offline."""
    python(f"import rlsvi.{name}")


def test_help_works_and_is_light():
    code = "import sys, atexit; from rlsvi.cli import app; atexit.register(lambda: print(*sys.modules)); app()"
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


COMPILED = ("core", "mdp", "tetris", "bases", "agents", "shop")


def compiled_files():
    return sorted(path for path in FILES if part(path) in COMPILED or part(path).startswith("simulate"))


def test_compiled_functions_are_in_the_folders_of_compiled_code():
    using = [path for path in FILES if "@compiled" in path.read_text()]
    assert len(using) >= 8
    assert set(using) <= set(compiled_files())


def test_every_function_is_compiled_the_one_way():
    for path in FILES:
        tree = ast.parse(path.read_text())
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        allowed = path in [
            SOURCE / "simulate" / "tetris_kernel.py",  # a kernel needs numba.cuda
            SOURCE / "cli" / "doctor.py",  # asks whether Numba itself works
            *(
                SOURCE / "core" / f"{name}.py"
                for name in ("compile", "cache", "callee", "dispatch", "card", "card_kernels")
            ),
        ]
        assert allowed or not any((n or "").startswith("numba") for n in names)


def test_nothing_is_compiled_with_fast_math():
    assert not [path for path in FILES if "fastmath" in path.read_text()]


LIBM = {"cos", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "pow", "power", "sin", "tan", "tanh"}


def test_compiled_code_calls_no_function_that_processors_round_differently():
    """Exponentials, logarithms, cosines and powers come from core/elementary.py instead."""
    found = []
    for path in compiled_files():
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef) and function.decorator_list:
                names = [ast.unparse(each).split("(")[0] for each in function.decorator_list]
                if any(name in ("compiled", "kernel") or name.endswith(".register") for name in names):
                    found += [f"{path.name}: {use}" for use in _rounded_by_a_library(function)]
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


PLAY = """
import sys, numpy as np, rlsvi
from rlsvi.simulate.finite import simulate
from rlsvi.simulate.endless import simulate_continual as live
problem, arrays = rlsvi.problems.chain(6, 4, seed=3), {}
agents = {
    "rlsvi": rlsvi.RLSVI(seed=1),
    "table": rlsvi.RLSVI(seed=2, basis=rlsvi.bases.Tabular(), sigma=0.5),
    "boltzmann": rlsvi.LSVI(seed=3, explore=rlsvi.Boltzmann(0.3)),
    "epsilon": rlsvi.LSVI(seed=4, explore=rlsvi.EpsilonGreedy(0.3)),
}
counting = {
    "psrl": rlsvi.PSRL(seed=5, alpha_P=0.5),
    "gaussian psrl": rlsvi_paper.agents.GaussianPSRL(seed=6),
    "ucrl2": rlsvi.UCRL2(seed=7, scale=0.1),
    "ucbvi": rlsvi.UCBVI(seed=8, scale=0.1, bonus="bernstein"),
    "lsvi-ucb": rlsvi.LSVIUCB(seed=9, scale=0.01, basis=rlsvi.bases.Tabular()),
}
for name, agent in counting.items():
    history = simulate(agent, problem, 10)
    arrays[f"{name} regret"], arrays[f"{name} Q"] = history.regret, agent._learner.mind.plan.Q
for name, agent in agents.items():
    history = simulate(agent, problem, 15, trace=True)
    for field in ("reward", "regret", "realised"):
        arrays[f"{name} {field}"] = getattr(history, field)
    for field in history.trace._fields:
        arrays[f"{name} {field}"] = getattr(history.trace, field)
    mind = agent._learner.mind
    arrays[f"{name} factor"], arrays[f"{name} theta"] = mind.factor.U, mind.values.theta
shop = rlsvi.problems.recommendation(4, 2, seed=1)
others = {
    "bandit": rlsvi.ContextualBandit(seed=1),
    "pooled": rlsvi.ContextualBandit(seed=2, pooled=True),
    "thompson": rlsvi.ThompsonSampling(seed=3),
    "myopic": rlsvi.OptimalPolicy(seed=4, myopic=True),
    "shop": rlsvi.RLSVI(seed=5),
}
for name, agent in others.items():
    history = simulate(agent, shop, 10, trace=True)
    for field in ("reward", "regret", "path_regret"):
        arrays[f"{name} {field}"] = getattr(history, field)
    arrays[f"{name} actions"], arrays[f"{name} streams"] = history.trace.actions, agent._streams
stationary = rlsvi.StationaryRLSVI(seed=5, gamma=0.9, memory=40, sigma=rlsvi.InverseGamma(), regressions=2)
stationary.learn(rlsvi.envs.FiniteMDPEnv(rlsvi.mdp.chain(6)), episodes=15)
arrays["stationary theta"], arrays["stationary streams"] = stationary._learner.mind.theta, stationary._streams
tetris = rlsvi.StationaryRLSVI(seed=6, basis=rlsvi_paper.tetris.Tetris(), form="afterstate", memory=40)
games = rlsvi_paper.tetris.loop.simulate_tetris(tetris, rlsvi_paper.tetris.rules(6, 4), 6)
for name, array in zip(games._fields, games):
    arrays[f"tetris {name}"] = array
arrays["tetris theta"], arrays["tetris next"] = tetris._learner.mind.theta, tetris._learner.mind.ring.next_x
incremental = rlsvi.IncrementalRLSVI(seed=7, nu=0.1, sigma=rlsvi.InverseGamma())
arrays["incremental"] = simulate(incremental, problem, 15).reward
arrays["incremental theta"] = incremental._learner.mind.values.theta
arrays["incremental factor"] = incremental._learner.mind.factor.U
for perturb in ("targets", "weights"):
    ensemble = rlsvi.EnsembleRLSVI(seed=8, members=3, perturb=perturb)
    arrays[perturb] = simulate(ensemble, shop, 10).reward
    arrays[f"{perturb} theta"] = ensemble._learner.mind.values.theta
blocks = rlsvi.IncrementalRLSVI(seed=9, nu=0.1)
arrays["blocks"], arrays["blocks factor"] = simulate(blocks, shop, 10).reward, blocks._learner.mind.factor.U
for noise in ("paper", "whitened"):
    continual = rlsvi.ContinualRLSVI(seed=8, noise=noise)
    arrays[f"{noise} rewards"] = live(continual, rlsvi.mdp.river_swim(4), 60)
    arrays[f"{noise} theta"] = continual._learner.mind.values.theta
from rlsvi.core.random import bits
arrays["compiled"] = np.array(hasattr(bits, "py_func"))
np.savez(sys.argv[1], **arrays)
"""


@pytest.mark.slow
def test_compiled_loops_and_plain_python_give_the_same_bits(tmp_path):
    """The same seeds with and without compilation: every state, action, reward, regret, weight and factor."""
    # A word of 64 bits that wraps around is a warning in Python.
    python(PLAY, str(tmp_path / "compiled.npz"), NUMBA_DISABLE_JIT="0")
    python(PLAY, str(tmp_path / "python.npz"), NUMBA_DISABLE_JIT="1", PYTHONWARNINGS="ignore")
    with np.load(tmp_path / "compiled.npz") as compiled, np.load(tmp_path / "python.npz") as plain:
        assert compiled["compiled"]
        assert not plain["compiled"]
        assert set(compiled) == set(plain)
        different = [name for name in compiled if compiled[name].tobytes() != plain[name].tobytes()]
        assert different == ["compiled"]
        assert np.isfinite(compiled["rlsvi regret"]).all()
        assert len(set(compiled["rlsvi states"].ravel().tolist())) > 2  # it went somewhere
