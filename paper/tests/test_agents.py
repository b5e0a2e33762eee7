"""The agents of the reproduction keep the promises of the library's; see tests/test_contract.py."""

import inspect

import pytest
from agent_cases import CASES

import test_contract
from contract.cases import BY_NAME
from rlsvi.testing import check_agent

PROMISES = [
    test
    for name, test in vars(test_contract).items()
    if name.startswith("test_") and set(inspect.signature(test).parameters) in ({"name"}, {"name", "tmp_path"})
]


@pytest.mark.parametrize(
    "case",
    [pytest.param(it, marks=pytest.mark.slow if it.name.endswith("vector") else ()) for it in CASES],
    ids=lambda case: case.name,
)
def test_an_agent_passes_the_public_check(case):
    check_agent(case.make, case.env, basis=case.code)


@pytest.mark.slow
@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__.removeprefix("test_"))
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.usefixtures("quick_disk")
def test_an_agent_keeps_the_promise(case, promise, tmp_path, monkeypatch):
    monkeypatch.setitem(BY_NAME, case.name, case)
    given = {"name": case.name, "tmp_path": tmp_path}
    promise(**{it: given[it] for it in inspect.signature(promise).parameters})
