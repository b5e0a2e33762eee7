"""Jobs: named by all that decides what they bring, and computed without surprises."""

import os
import pickle
import re
import sys
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import invalidate_caches

import numpy as np
import pytest

import jobs
from rlsvi.study import job as module
from rlsvi.study.executors import LIBRARIES, environment, run_job
from rlsvi.study.job import Done, Failed, Job
from watch import python


def fixed(monkeypatch, value="0123456789abcdef"):
    monkeypatch.setattr(module, "version", lambda name: value)


# ---- names ------------------------------------------------------------------------------------------------


def test_a_name_is_stable_and_independent_of_the_order_of_settings(monkeypatch):
    fixed(monkeypatch)
    name = "077e8c6479034f9f3bf8acbc53fcab44"
    assert Job("a.b:f", {"seed": 3, "lam": 0.1, "basis": "coherent", "features": None}).name == name
    assert Job("a.b:f", {"features": None, "lam": 0.1, "basis": "coherent", "seed": 3}, cost=7.0).name == name


def test_names_differ_by_every_setting_and_its_type(monkeypatch):
    fixed(monkeypatch)
    values = [1, 1.0, True, "1", None, "None", 0, 0.0, -0.0, False, "", 2, 1.0 + 2**-52, "true", 2**53, 2.0**53]
    settings = [{"a": value} for value in values] + [{}, {"b": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 2}]
    assert len({Job("m:f", one).name for one in settings}) == len(settings)


def test_names_differ_by_function_and_by_version(monkeypatch):
    fixed(monkeypatch)
    names = [Job(function, {"a": 1}).name for function in ("m:f", "m:g", "n:f")]
    fixed(monkeypatch, "another")
    names.append(Job("m:f", {"a": 1}).name)
    assert len(set(names)) == 4


def test_what_names_a_job_does_not_change():
    settings = {"i": 1, "bad": 2}
    job = Job("jobs:picky", settings)
    settings["i"] = 2
    assert job.settings == {"i": 1, "bad": 2}
    assert job.name == Job.of(jobs.picky, i=1, bad=2).name == pickle.loads(pickle.dumps(job)).name


def test_a_job_is_named_by_the_object_that_it_carries():
    """Its function takes the object before the settings; results of other objects are not mistaken for its own."""
    plain, one, same, other = (Job.of(jobs.length, i=1), *(_carrying(given) for given in ("ab", "ab", "abc")))
    assert one.name == same.name
    assert len({plain.name, one.name, other.name}) == 3
    for job, length in ((one, 2), (other, 3)):
        assert run_job(job, job.version).columns["length"].tolist() == [length]


def _carrying(given):
    return replace(Job.of(jobs.length, i=1), given=given)


def test_a_job_tells_what_it_is():
    assert str(Job.of(jobs.picky, i=1, bad=None)) == "picky(i=1, bad=None)"


# ---- versions ---------------------------------------------------------------------------------------------


@pytest.fixture
def own_package(tmp_path, monkeypatch):
    """Write the modules of a package, and return the function that edits one."""
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "own_package_of_a_test"
    folder.mkdir()
    for name, text in MODULES.items():
        (folder / f"{name}.py").write_text(text)
    invalidate_caches()

    def edit(name, before, after):
        text = (folder / f"{name}.py").read_text()
        assert before in text
        (folder / f"{name}.py").write_text(text.replace(before, after))

    yield edit
    for name in [name for name in sys.modules if name.startswith("own_package_of_a_test")]:
        del sys.modules[name]


MODULES = {
    "study": '''"""A figure."""
import json
from own_package_of_a_test import shapes, things
from own_package_of_a_test.shared import HALF, unused, sized as size_of
from matplotlib.axes import Axes
from math import floor as rounded

TIMES = 2
TIMES += 1
CLAIMED = 5

register(TIMES)


@decorated
def job(*, seed: int) -> dict:
    """A run."""
    return {"x": TIMES * helper(seed), "area": shapes.Square(seed).area(), "thing": things.Thing}


def helper(x):
    return HALF * x + size_of(x) + rounded(x)


def claim(frame) -> Axes:
    return CLAIMED + unused(frame)


if __name__ == "__main__":
    print(claim(job(seed=0)))
''',
    "__init__": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .deep import Thing\n",
    "shared": "HALF = 0.5\nOTHER = 1\ndef unused(x): return OTHER\ndef sized(x): return len(json.dumps(x))\n",
    "shapes": """
from .shared import sized

class Square:
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side**2 + volume.of(self)

@generic
def volume(shape):
    ...

@volume.register(Square)
def nothing(shape):
    return 0

def perimeter(shape):
    return 4 * shape.side
""",
    "things": "from own_package_of_a_test import Thing\n",
    "deep": "class Thing:\n    size = 1\n",
}


@pytest.mark.parametrize(
    ("file", "before", "after", "changes"),
    [
        ("study", "A figure.", "Another.", False),
        ("study", "A run.", "One run.", False),
        ("study", "TIMES = 2", "# two\nTIMES = (2)", False),
        ("study", "CLAIMED = 5", "CLAIMED = 6", False),
        ("study", "return CLAIMED", "# as the paper has it\n    return 1 + CLAIMED", False),
        ("study", "print(", "show(", False),
        ("study", "TIMES += 1", "TIMES += 2", True),
        ("study", "register(TIMES)", "register()", True),
        ("study", "@decorated", "@experiment", True),
        ("study", "return HALF", "return 2 * HALF", True),
        ("study", "HALF, unused, sized as size_of", "sized as HALF, unused, HALF as size_of", True),
        ("study", "from math import floor", "from math import ceil", True),
        ("shared", "HALF = 0.5", "HALF = 0.25", True),
        ("shared", "len(", "2 * len(", True),
        ("shared", "OTHER = 1", "OTHER = 2", False),
        ("shapes", "self.side**2", "self.side**3", True),
        ("shapes", "return 0", "return 1", True),
        ("shapes", "4 * shape", "3 * shape", False),
        ("deep", "size = 1", "size = 2", True),
    ],
)
def test_a_job_is_dated_by_the_definitions_it_reaches(own_package, file, before, after, changes):
    first = module.version.__wrapped__("own_package_of_a_test.study:job")
    own_package(file, before, after)
    assert (module.version.__wrapped__("own_package_of_a_test.study:job") != first) is changes


def test_a_version_is_the_same_wherever_the_definitions_are(own_package, tmp_path):
    first = module.version.__wrapped__("own_package_of_a_test.study:job")
    (tmp_path / "own_package_of_a_test" / "shared.py").rename(tmp_path / "own_package_of_a_test" / "other.py")
    for file, dots in (("study", "own_package_of_a_test."), ("shapes", ".")):
        own_package(file, f"from {dots}shared", f"from {dots}other")
    assert module.version.__wrapped__("own_package_of_a_test.study:job") == first


def test_all_of_a_module_counts_where_no_function_is_named(own_package):
    first = module.version.__wrapped__("own_package_of_a_test.study")
    own_package("shared", "OTHER = 1", "OTHER = 2")
    assert module.version.__wrapped__("own_package_of_a_test.study") != first


def test_a_job_reaches_what_the_library_exports_lazily_and_registers():
    found = module.sources_of("jobs:learn")
    assert {
        "jobs:learn",
        "rlsvi.agents.finite.rlsvi:RLSVI",
        "rlsvi.agents.finite.rlsvi:value_iteration",
        "rlsvi.agents.agent:Agent",
        "rlsvi.core.random:bits",
        "rlsvi.mdp.examples:chain",
        "rlsvi.problems:chain",
        "rlsvi.simulate.finite:simulate",
    } <= found.keys()
    assert not {"jobs:picky", "rlsvi.agents.tabular.psrl:PSRL", "rlsvi.problems:river_swim"} & found.keys()
    assert not {place for place in found if place.startswith(("rlsvi.cli", "rlsvi.study.compare", "rlsvi:"))}


def test_text_that_names_an_environment_reaches_it():
    assert "rlsvi.envs.finite:DeepSeaEnv" in module.sources_of("jobs:dive")


def test_a_version_is_that_of_the_libraries(monkeypatch):
    before = module.version.__wrapped__("jobs")
    monkeypatch.setattr(np, "__version__", "9.9")
    assert module.version.__wrapped__("jobs") != before


# ---- bad jobs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [[1], (1,), {"a": 1}, np.int64(1), np.zeros(2), 1j, b"1", object()])
def test_settings_are_plain_values(value):
    with pytest.raises(TypeError, match=r"plain values.* got a="):
        Job("m:f", {"a": value})
    with pytest.raises(TypeError, match="plain values"):
        Job("m:f", {1: "a"})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 2**63, -(2**63) - 1])
def test_settings_are_numbers_a_file_can_hold(value):
    with pytest.raises(ValueError, match=r"settings must (be finite|fit into 64 bits), got a="):
        Job("m:f", {"a": value})


def from_main():
    return {}


from_main.__module__ = "__main__"


@pytest.mark.parametrize("function", [lambda: {}, partial(jobs.learn, 3), Job.name.func, from_main])
def test_functions_are_those_other_processes_can_find(function):
    with pytest.raises(ValueError, match="cannot be found by other processes: define a function at the top level"):
        Job.of(function)


def test_functions_inside_others_are_refused():
    def inner():
        return {}

    with pytest.raises(ValueError, match=r"inner cannot be found"):
        Job.of(inner)


@pytest.mark.parametrize("name", ["jobs", "jobs:", ":learn", "jobs.learn", "__main__:f", ""])
def test_functions_are_named_by_module_and_name(name):
    with pytest.raises(ValueError, match="name it as module:function"):
        Job(name, {})


# ---- running -----------------------------------------------------------------------------------------------


def tried(what):
    job = Job.of(jobs.returned, what=what)
    return run_job(job, job.version)


def test_a_job_brings_columns_of_one_length():
    columns, seconds = tried("mixed")
    assert seconds > 0
    assert {name: values.tolist() for name, values in columns.items()} == {
        "a": [0, 1],
        "b": [True, True],
        "c": ["x", "y"],
        "d": [0.5, 0.5],
    }
    assert columns["d"].dtype == np.float32
    assert {name: len(values) for name, values in tried("no rows").columns.items()} == {"a": 0, "b": 0}


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("nothing", "by their names, got None"),
        ("empty", "by their names, got {}"),
        ("list", r"by their names, got \[1, 2\]"),
        ("numbered", "by their names, got {1: 2.0}"),
        ("ragged", r"columns of one length, got a \(2,\), b \(3,\)"),
        ("square", r"columns of one length, got a \(2, 2\)"),
        ("complex", "numbers, booleans or text, got a of complex128"),
        ("long", "numbers, booleans or text, got a of"),
        ("objects", "numbers, booleans or text, got a of object"),
        ("named as a setting", "columns named as its settings: what"),
    ],
)
def test_other_results_are_refused_with_a_reason(what, reason):
    assert re.match(f"TypeError: jobs:returned .*{reason}", tried(what).reason)


def test_what_goes_wrong_is_returned():
    job = Job.of(jobs.picky, i=3, bad=3)
    reason, details = run_job(job, job.version)
    assert reason == "ArithmeticError: 3 is not liked"
    assert "in picky" in details
    assert "is not liked" in details


@pytest.mark.parametrize(
    ("name", "reason"), [("jobs:absent", "AttributeError"), ("no.module:f", "ModuleNotFound")]
)
def test_a_function_that_is_not_there_is_a_failure(name, reason):
    version = module.version("jobs:absent")
    assert isinstance(run_job(Job(name, {}), version), Failed)
    assert run_job(Job(name, {}), version).reason.startswith(reason)


def test_a_worker_with_other_sources_refuses(monkeypatch):
    job = Job.of(jobs.picky, i=3, bad=None)
    assert isinstance(run_job(job, job.version), Done)
    assert "other sources" in run_job(job, "other").reason
    travelled, version = pickle.loads(pickle.dumps((job, job.version)))
    fixed(monkeypatch)
    assert "other sources" in run_job(travelled, version).reason


def test_a_job_has_one_thread_of_linear_algebra():
    code = """
import os
import jobs
from rlsvi.study.executors import run_job
from rlsvi.study.job import Job
from threadpoolctl import threadpool_info
count = lambda: {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}
before, variables = count(), dict(os.environ)
job = Job.of(jobs.threads)
inside = run_job(job, job.version).columns["threads"].tolist()
assert len(inside) > len(before) and set(inside) == {1}, inside
assert count().items() >= before.items() and dict(os.environ) == variables
"""
    python(code, **{f"{name}_NUM_THREADS": "2" for name in LIBRARIES})


def test_environment_variables_come_back(monkeypatch):
    monkeypatch.setenv("RLSVI_TEST_A", "old")
    monkeypatch.delenv("RLSVI_TEST_B", raising=False)
    with suppress(KeyError), environment({"RLSVI_TEST_A": "new", "RLSVI_TEST_B": "new"}):
        assert os.environ["RLSVI_TEST_A"] == os.environ["RLSVI_TEST_B"] == "new"
        raise KeyError
    assert os.environ["RLSVI_TEST_A"] == "old"
    assert "RLSVI_TEST_B" not in os.environ
