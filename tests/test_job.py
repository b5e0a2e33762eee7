"""Jobs: named by all that decides what they bring, and computed without surprises."""

import os
import pickle
import re
import shutil
import sys
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import invalidate_caches
from pathlib import Path

import numpy as np
import pytest

import jobs
import rlsvi
from rlsvi.core import files
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
def sources(tmp_path, monkeypatch):
    """A copy of the package whose sources are what `version` digests."""
    copy = tmp_path / "rlsvi"
    shutil.copytree(Path(rlsvi.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(files, "PACKAGE", copy)
    return copy


def test_a_version_is_that_of_the_sources(sources):
    before = module.version.__wrapped__("jobs")
    assert before == module.version("jobs")
    (sources / "study" / "plot.py").write_text("nothing of this is computed\n")
    assert module.version.__wrapped__("jobs") == before


ABOVE = ("study", "paper", "theory.py", "cli", "shop", "html.py", "colours.css")
ABOVE += ("_lazy.py", "progress.py", "__init__.py", "__main__.py", "__pycache__", "py.typed")
BELOW = sorted(path.name for path in Path(rlsvi.__file__).parent.iterdir() if path.name not in ABOVE)


@pytest.mark.parametrize("part", BELOW)
def test_a_version_changes_with_every_source_below_the_studies(sources, part):
    before = module.version.__wrapped__("jobs")
    last = sorted((sources / part).rglob("*.py"))[-1:] or [sources / part]
    (path,) = last
    path.write_text(path.read_text() + "\n")
    after = module.version.__wrapped__("jobs")
    assert after != before
    if (sources / part).is_dir():
        path.rename(path.with_name("renamed.py"))
        assert module.version.__wrapped__("jobs") not in (before, after)


def test_a_version_changes_with_sources_in_folders_of_folders(sources):
    before, found = module.version.__wrapped__("jobs"), set()
    for folder in ("agents/finite", "simulate", "mdp/files"):
        (sources / folder).mkdir(parents=True, exist_ok=True)
        (sources / folder / "new.py").write_text("")
        found.add(module.version.__wrapped__("jobs"))
    assert len(found - {before}) == 3


def test_a_version_is_that_of_the_functions_own_file_and_of_what_it_imports(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "own_package_of_a_test"
    package.mkdir()
    for name, text in (("__init__", ""), ("part", "A = 1\n"), ("other", "B = 1\n")):
        (package / f"{name}.py").write_text(text)
    (package / "study.py").write_text("import json\nfrom own_package_of_a_test import part\n")
    invalidate_caches()
    versions = [module.version.__wrapped__("own_package_of_a_test.study")]
    for name, changes in (("study", True), ("part", True), ("other", False)):
        path = package / f"{name}.py"
        path.write_text(path.read_text() + "C = 2\n")
        versions.append(module.version.__wrapped__("own_package_of_a_test.study"))
        assert (versions[-1] != versions[-2]) is changes
    for name in [name for name in sys.modules if name.startswith("own_package_of_a_test")]:
        monkeypatch.delitem(sys.modules, name)


def test_the_jobs_of_the_paper_are_dated_by_what_they_reach():
    found = module.sources_of("rlsvi_paper.chain.learning:learning_time")
    assert {
        "rlsvi_paper.chain.learning:until_learned",
        "rlsvi_paper.chain.learning:CHUNK",
        "rlsvi_paper.results:unexplained",
        "rlsvi.study.experiment:Course",
    } <= set(found)
    assert "rlsvi_paper.chain.learning:first_reward" not in found
    assert {name.partition(":")[0] for name in found} == {
        "rlsvi_paper.chain.learning",
        "rlsvi_paper.results",
        "rlsvi.study.experiment",
    }


FIGURE_FILE = '''"""A figure."""
import json
from rlsvi_paper.shared import HALF, unused, sized as size_of
from matplotlib.axes import Axes

TIMES = 2
TIMES += 1
CLAIMED = 5

register(TIMES)


@decorated
def job(*, seed: int) -> dict:
    """A run."""
    return {"x": TIMES * helper(seed)}


def helper(x):
    return HALF * x + size_of(x)


def claim(frame) -> Axes:
    return CLAIMED + unused(frame)
'''
SHARED = "HALF = 0.5\nOTHER = 1\ndef unused(x): return OTHER\ndef sized(x): return len(json.dumps(x))\n"


@pytest.mark.parametrize(
    ("file", "before", "after", "changes"),
    [
        ("figure", "A figure.", "Another.", False),
        ("figure", "CLAIMED = 5", "CLAIMED = 6", False),
        ("figure", "return CLAIMED", "# as the paper has it\n    return 1 + CLAIMED", False),
        ("figure", "TIMES += 1", "TIMES += 2", True),
        ("figure", "register(TIMES)", "register()", True),
        ("figure", "@decorated", "@experiment", True),
        ("figure", "return HALF", "return 2 * HALF", True),
        ("figure", "sized as size_of", "other as size_of", True),
        ("shared", "HALF = 0.5", "HALF = 0.25", True),
        ("shared", "len(", "2 * len(", True),
        ("shared", "OTHER = 1", "OTHER = 2", False),
    ],
)
def test_a_job_of_this_package_is_dated_by_the_definitions_it_reaches(
    tmp_path, monkeypatch, file, before, after, changes
):
    texts = {"figure": FIGURE_FILE, "shared": SHARED}
    paths = {f"rlsvi_paper.{name}": tmp_path / f"{name}.py" for name in texts}
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(module, "_file_of", paths.get)
    first = module.version.__wrapped__("rlsvi_paper.figure:job")
    assert before in texts[file]
    (tmp_path / f"{file}.py").write_text(texts[file].replace(before, after))
    assert (module.version.__wrapped__("rlsvi_paper.figure:job") != first) is changes


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
    version = module.version("jobs")
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
