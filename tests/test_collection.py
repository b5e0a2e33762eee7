"""The names of the tests are the same in every process: two that collect different names cannot share the work."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COLLECT = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")


def collecting(*arguments, seed="0", root=ROOT):
    return subprocess.Popen(
        [*COLLECT, *arguments],
        cwd=root,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTEST_ADDOPTS": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def names(process):
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0, out
    return [line for line in out.splitlines() if "::" in line]


@pytest.mark.slow
def test_another_process_collects_the_same_names(request):
    """Addresses differ by themselves from process to process; the order of sets and texts is made to."""
    suite = ["--thorough"] if request.config.getoption("thorough") else []
    used = {f"{item.nodeid.partition('tests/')[0]}tests" for item in request.session.items}
    folders = [folder for folder in request.config.getini("testpaths") if folder in used]  # in one order
    others = names(collecting(*folders, *suite, seed="1" if os.environ.get("PYTHONHASHSEED") == "2" else "2"))
    assert len(others) > 500
    ours = {item.nodeid for item in request.session.items}  # of all tests, or of those that were asked for
    assert [name for name in others if name in ours] == [item.nodeid for item in request.session.items]


def test_a_name_that_holds_an_address_is_refused(tmp_path):
    (tmp_path / "conftest.py").write_text((ROOT / "conftest.py").read_text())
    (tmp_path / "test_it.py").write_text(
        "import pytest\n@pytest.mark.parametrize('f', [lambda: 1], ids=repr)\ndef test_it(f):\n    pass\n"
    )
    out, _ = (process := collecting(root=tmp_path)).communicate(timeout=300)
    assert process.returncode == 4
    assert "give the parameter a plain id" in out
