"""`rlsvi doctor`: what works and what is broken, with the remedy and the exit code."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import rlsvi
from rlsvi.cli import doctor
from rlsvi.cli.app import app
from rlsvi.core import card, random
from rlsvi.core.card import NoCard

COMPILES = ("compiler", "compiled code", "compiled loop", "default agent", "environments", "card", "other agents")


def run(*arguments):
    return CliRunner().invoke(app, ["doctor", *arguments])


@pytest.fixture
def only(monkeypatch):
    """Leave all checks out but one."""

    def leave(name):
        monkeypatch.setattr(doctor, "CHECKS", {name: doctor.CHECKS[name]})

    return leave


def test_a_working_installation_is_called_so():
    result = run()
    assert result.exit_code == 0, result.stdout
    about, checks, end = (part.splitlines() for part in result.stdout.rstrip().split("\n\n"))
    values = {line[:16].strip(): line[17:] for line in about}
    assert values["rlsvi"] == f"{rlsvi.__version__} in {Path(rlsvi.__file__).parent}"
    assert values["numpy"] == np.__version__
    assert {"python", "numba", "system", "cores", "memory", "torch"} < set(values)
    assert [line[:16].strip() for line in checks] == list(COMPILES)
    assert all(line[17:].startswith("OK: ") for line in checks)
    assert end == ["everything works"]


def test_what_is_shown_is_also_there_as_json(only):
    only("compiler")
    found = json.loads(run("--json").stdout)
    assert found["numpy"] == np.__version__
    assert found["checks"]["compiler"]["works"] is True


def test_a_compiler_that_is_wrong_is_found_out(only, monkeypatch):
    only("compiler")
    monkeypatch.setattr("numba.njit", lambda function: lambda n: 54)
    result = run()
    assert result.exit_code == 1
    assert "BROKEN: RuntimeError: a compiled function gives a wrong result\n  remedy: " in result.stdout
    assert result.stdout.endswith("\nbroken: compiler\n")
    assert json.loads(run("--json").stdout)["checks"]["compiler"]["works"] is False
    assert run("--json").exit_code == 1


def test_a_folder_of_compiled_code_that_cannot_be_written_is_found_out(only, monkeypatch, tmp_path):
    only("compiled code")
    (tmp_path / "file").write_text("")

    class Cache:
        cache_path = str(tmp_path / "file" / "folder")

    monkeypatch.setattr(random.bits, "_cache", Cache())
    result = run()
    assert result.exit_code == 1
    assert "BROKEN: NotADirectoryError" in result.stdout
    assert "remedy: set NUMBA_CACHE_DIR to a folder that you can write to" in result.stdout
    monkeypatch.setattr(random.bits, "_cache", None)
    assert "BROKEN: RuntimeError: compiled code is not kept" in run().stdout


def test_a_loop_that_differs_from_single_steps_is_found_out(only, monkeypatch):
    only("compiled loop")
    fused = rlsvi.simulate.simulate
    monkeypatch.setattr(rlsvi.simulate, "simulate", lambda agent, problem, n: fused(agent, problem, n - 1))
    result = run()
    assert result.exit_code == 1
    assert "BROKEN: RuntimeError: the compiled loop and single steps give different values" in result.stdout


def test_a_default_agent_that_fails_is_found_out(only, monkeypatch):
    only("default agent")
    monkeypatch.setattr(rlsvi, "agent_for", lambda env, seed: 1 / 0, raising=False)
    result = run()
    assert result.exit_code == 1
    assert "BROKEN: ZeroDivisionError: division by zero\n  remedy: install NumPy and SciPy again" in result.stdout


def test_environments_that_are_not_registered_are_found_out(only, monkeypatch):
    import gymnasium

    only("environments")
    monkeypatch.delitem(gymnasium.registry, "rlsvi/DeepSea-v0")
    result = run()
    assert result.exit_code == 1
    assert "remedy: install Gymnasium again" in result.stdout


def test_no_card_is_no_fault_and_a_card_that_fails_is_one(only, monkeypatch):
    only("card")

    def none():
        raise NoCard("there is none")

    class Broken:
        name = "a card"

        def get_current_device(self):
            return self

    monkeypatch.setattr(card, "cuda", none)
    assert "OK: none, and none is needed (there is none)" in run().stdout
    monkeypatch.setattr(card, "cuda", Broken)
    result = run()
    assert result.exit_code == 1
    assert "remedy: update the driver and numba-cuda" in result.stdout
