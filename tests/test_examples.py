"""The reference: each class and function describes its parameters, and has an example that prints what it says."""

import doctest
import inspect
import re
from importlib.util import find_spec

import pytest

from test_docs import ENTRIES, REFERENCE, described

NAMES = [name for name in ENTRIES if callable(described(name))]
MEMBERS = re.findall(r"^::: (\S+)\n    options:\n      members: \[(.*)\]$", REFERENCE, flags=re.MULTILINE)
METHODS = [f"{name}.{it}" for name, members in MEMBERS for it in members.split(", ")]
METHODS = [name for name in METHODS if inspect.isroutine(described(name))]
AGENTS = "BoundedTarget Incremental Bootstrap Continual Homogeneous WorstCase".split()
SLOW = {  # much to compile, which no other test of the first suite needs
    *(f"rlsvi.{name}RLSVI" for name in AGENTS),
    *(
        f"rlsvi.{name}"
        for name in ("ContinualLSVI", "UCRL2", "UCBVI", "LSVIUCB", "OptimisticPSRL", "GaussianPSRL")
    ),
    *("rlsvi.ContextualBandit", "rlsvi.evidence", "rlsvi.learn_concurrently", "rlsvi.bases.Tetris"),
    *(
        f"rlsvi.simulate.{name}"
        for name in ("simulate_concurrent", "simulate_continual", "simulate_tetris", "play_mean")
    ),
    *("rlsvi.tetris.play.play", "rlsvi.tetris.policy_iteration.policy_iteration", "rlsvi.tetris.Policies"),
    "rlsvi.shop.judge",
}
NEEDS = {"rlsvi.callbacks.TensorBoard": "tensorboard"}
HEADING = re.compile(r"^(\w+)\n-{3,}\n", re.MULTILINE)


def sections(name):
    """The sections of a docstring, by heading."""
    _, *parts = HEADING.split(inspect.cleandoc(described(name).__doc__))
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("name", [pytest.param(it, marks=[pytest.mark.slow] * (it in SLOW)) for it in NAMES])
def test_the_example_prints_what_it_says(name, tmp_path, monkeypatch):
    if name in NEEDS and find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    example = doctest.DocTestParser().get_doctest(sections(name).get("Examples", ""), {}, name, name, 0)
    assert example.examples, f"{name} has no example"
    failures = []
    doctest.DocTestRunner(verbose=False).run(example, out=failures.append)
    assert not failures, "".join(failures)


@pytest.mark.parametrize("name", [*NAMES, *METHODS])
def test_parameters_and_results_are_described(name):
    found, value = sections(name), described(name)
    entries = re.findall(r"^\S.*$", found.get("Parameters", "") + found.get("Attributes", ""), flags=re.MULTILINE)
    known = {part.strip("* ") for entry in entries for part in entry.split(",")}
    signature = inspect.signature(value)
    missing = signature.parameters.keys() - known - {"self", "args", "kwargs"}
    assert not missing, f"{name} does not describe {sorted(missing)}"
    assert inspect.isclass(value) or signature.return_annotation in (None, "None") or "Returns" in found


@pytest.mark.parametrize("name", [*NAMES, *METHODS])
def test_formulas_are_code(name):
    text = inspect.cleandoc(described(name).__doc__).partition("\nExamples\n---")[0]
    text = re.sub(r"`[^`]*`|^\*\*\w+$", "", text, flags=re.MULTILINE)
    assert "*" not in text, "Markdown would read * as emphasis: write `V*`"
