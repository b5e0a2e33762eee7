"""The reference: each class and function has an example that prints what it says."""

import doctest
import inspect
import re
from importlib.util import find_spec

import pytest

from test_docs import ENTRIES, described

OBJECTS = {name: described(name) for name in ENTRIES}
OBJECTS = {name: value for name, value in OBJECTS.items() if callable(value)}
NEEDS = {"rlsvi.callbacks.TensorBoard": "tensorboard"}
SLOW = {  # much to compile, which no other test of the first suite needs
    "rlsvi.BootstrapRLSVI",
    "rlsvi_paper.agents.BoundedTargetRLSVI",
    "rlsvi.ContextualBandit",
    "rlsvi.ContinualLSVI",
    "rlsvi.ContinualRLSVI",
    "rlsvi_paper.agents.GaussianPSRL",
    "rlsvi_paper.agents.HomogeneousRLSVI",
    "rlsvi.IncrementalRLSVI",
    "rlsvi.LSVIUCB",
    "rlsvi.UCBVI",
    "rlsvi.UCRL2",
    "rlsvi_paper.agents.WorstCaseRLSVI",
    "rlsvi_paper.tetris.Tetris",
    "rlsvi.evidence",
    "rlsvi_paper.agents.learn_concurrently",
    "rlsvi_shop.judge",
    "rlsvi_paper.loops.concurrent.simulate_concurrent",
    "rlsvi.simulate.simulate_continual",
    "rlsvi_paper.tetris.simulate_tetris",
    "rlsvi_paper.tetris.Games",
    "rlsvi_paper.tetris.Policies",
    "rlsvi_paper.tetris.play.play",
    "rlsvi_paper.tetris.policy_iteration.policy_iteration",
}


def sections(name):
    """The sections of a docstring, by heading."""
    _, *parts = re.split(r"^(\w+)\n-{3,}\n", inspect.cleandoc(OBJECTS[name].__doc__), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("name", [pytest.param(it, marks=[pytest.mark.slow] * (it in SLOW)) for it in OBJECTS])
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
