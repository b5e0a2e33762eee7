"""Two suites: `pytest` runs the quick tests (make test), `pytest --thorough` the others (make test-all).

A test that is marked slow belongs to the second suite. One that uses the fixture `thorough` belongs to both, and
tries more in the second. A test that is named (`pytest tests/test_x.py::test_y`) runs in any case.

Ctrl-C is tested, so it has to work, and no test fails for being slow: others may run beside it.
Programs that run in the background, as the processes of `make test`, often have Ctrl-C ignored.

The first file compiles the loops that most others load from disk; those that come beside it need little of them.
Then come long ones, so that none is left to one process in the end.
"""

import os
import re
import signal

import pytest
from hypothesis import settings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded, here and in other processes
signal.signal(signal.SIGINT, signal.default_int_handler)
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

BESIDE = ("claims", "store", "study_statistics", "means", "report", "sweep")
FIRST_FILES = ("architecture", *BESIDE, "figures", "statistics", "pages", "value_iteration", "cli_paper")
LONG_FILES = ("contract", "bounds", "contract_files")


ADDRESS = re.compile(r" at 0x|<function |<bound method |<.* object( at|>)")


def pytest_addoption(parser):
    """Let the second suite be asked for."""
    parser.addoption("--thorough", action="store_true", help="run the tests that are marked slow instead")


def pytest_collection_modifyitems(config, items):
    """Choose the suite, refuse names that differ from process to process, and put the files in order."""
    if changing := [item.nodeid for item in items if ADDRESS.search(item.nodeid)]:
        raise pytest.UsageError(f"give the parameter a plain id, this one holds an address: {changing[0]}")
    if not any("::" in argument for argument in config.args) and not config.getoption("markexpr"):
        chosen = [item for item in items if belongs(item, config.getoption("thorough"))]
        kept = set(chosen)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = chosen
    rank = {f"test_{name}.py": i for i, name in enumerate((*FIRST_FILES, *LONG_FILES))}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))


def belongs(item, thorough):
    """Whether a test belongs to the suite. The first tests one learner of each kind in what holds for all."""
    slow = item.get_closest_marker("slow") is not None
    if name := getattr(item, "callspec", None) and item.callspec.params.get("name"):
        from contract.cases import BY_NAME, KINDS  # needs packages that a smoke test does without

        slow = slow or name in BY_NAME.keys() - KINDS
    return slow or "thorough" in item.fixturenames if thorough else not slow


@pytest.fixture
def thorough(request):
    """Whether to try all there is to try, or some of it."""
    return request.config.getoption("thorough")


@pytest.fixture
def quick_disk(monkeypatch):
    """For tests that write thousands of files, of which none has to survive a power cut."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
