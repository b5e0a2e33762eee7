"""The notebooks under examples/: their code runs without Jupyter, and what they show is stored in them."""

import json
import re

import matplotlib
import pytest
from threadpoolctl import threadpool_limits

from pages import HOUSE

NOTEBOOKS = sorted((HOUSE / "examples").glob("*.ipynb"))
MACHINE = re.compile(r"/(home|root|tmp|usr|work|Users|private|var)/|[A-Z]:\\\\|0x[0-9a-f]{6}")
TIME = re.compile(r"\d{1,2}:\d\d|\b20\d\d-\d\d|\b\d+(\.\d+)? ?(ms|s|seconds|minutes)\b")


def cells(path, kind):
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == kind]


def outputs(path):
    return [output for cell in cells(path, "code") for output in cell["outputs"]]


def text_of(output):
    """Everything in an output that is not a picture."""
    data = {kind: text for kind, text in output.get("data", {}).items() if not kind.startswith("image/")}
    return "".join("".join(text) for text in [output.get("text", []), *data.values()])


def test_the_notebooks_were_found():
    assert {path.stem for path in NOTEBOOKS} >= {
        "first_agent",
        "deep_exploration",
        "own_agent_and_log",
        "recommendations",
        "shop",
    }


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_code_runs(path, tmp_path, monkeypatch):
    from matplotlib import pyplot

    monkeypatch.chdir(tmp_path)
    names = {}
    try:
        with matplotlib.rc_context({"backend": "agg"}), threadpool_limits(1):
            for cell in cells(path, "code"):
                exec(compile("".join(cell["source"]), f"{path.name}, {cell['id']}", "exec"), names)
        if path.stem == "first_agent":
            assert max(names["returns"][10:]) > 200  # a policy that does nothing gets 10, the most is 500
        elif path.stem == "shop":
            assert names["np"].mean(names["liked"]) > 2.4  # products at random bring 2
        else:
            regret = {row["agent"]: row["regret"] for row in names["runs"].summary().to_dicts()}
            assert min(regret, key=regret.get) == "RLSVI"
            assert names["axes"].lines
        if path.stem == "own_agent_and_log":
            assert names["evaluation"].mean > names["optimum"] - 0.15  # a random policy gets 0.014
    finally:
        pyplot.close("all")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_stored_and_tell_nothing_of_a_machine(path):
    code, found = cells(path, "code"), outputs(path)
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))  # run once, in order
    assert all(cell["outputs"] for cell in code)
    assert any("image/png" in output.get("data", {}) for output in found)
    for output in found:
        assert output["output_type"] in ("stream", "display_data", "execute_result")
        assert output.get("name") != "stderr"
        assert not TIME.search(text_of(output))
    whole = json.loads(path.read_text())
    assert not MACHINE.search("".join(map(text_of, found)) + "".join("".join(c["source"]) for c in whole["cells"]))
    assert whole["metadata"] == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }


def test_paths_and_times_are_seen():
    for text in ("/home/ann/x.py", "C:\\\\Users", "<object at 0x7f12ab34cd>"):
        assert MACHINE.search(text)
    for text in ("0:00:03 left", "took 3.2 s", "2026-11-16"):
        assert TIME.search(text)
    assert not TIME.search("1500 episodes, 10 seeds, 0.7224672001371107")
