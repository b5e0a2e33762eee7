"""The code of docs/how-to/callbacks.md and docs/how-to/wandb-and-optuna.md runs."""

import shlex
from importlib.util import find_spec

import pytest
from typer.testing import CliRunner

import rlsvi
from pages import blocks, commands
from rlsvi.cli import app

CALLBACKS, OTHERS = "docs/how-to/callbacks.md", "docs/how-to/wandb-and-optuna.md"


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def execute(codes, page):
    names = {"rlsvi": rlsvi}
    for code in codes:
        exec(compile(code, page, "exec"), names)
    return names


@pytest.mark.slow
def test_callbacks(tmp_path, capsys):
    codes = [code for code in blocks(CALLBACKS) if "TensorBoard" not in code or find_spec("tensorboard")]
    names = execute(codes, CALLBACKS)
    assert names["agent"].episodes <= 30
    assert rlsvi.load("agent.rlsvi").episodes == 15
    assert [row["episodes"] for row in names["evaluation"].results] == [10, 20]
    assert "the best evaluation is" in capsys.readouterr().out
    assert len(codes) < 8 or list((tmp_path / "runs" / "second").iterdir())


@pytest.mark.slow
def test_the_commands_of_callbacks(tmp_path):
    for command in commands(CALLBACKS):
        result = CliRunner().invoke(app, [*shlex.split(command), "--quiet", "--evaluate", "2"])
        assert result.exit_code == 0, f"rlsvi {command}\n{result.output}"
    assert len((tmp_path / "log.csv").read_text().splitlines()) == 31


@pytest.mark.filterwarnings("default")  # of other libraries
@pytest.mark.slow
@pytest.mark.parametrize("library", ["wandb", "optuna"])
def test_other_libraries(library, tmp_path, monkeypatch):
    pytest.importorskip(library, exc_type=ImportError)
    monkeypatch.setenv("WANDB_MODE", "offline")
    code = next(code for code in blocks(OTHERS) if f"import {library}" in code)
    names = execute([code], OTHERS)
    if library == "wandb":
        assert names["agent"].episodes == 10
        assert list((tmp_path / "wandb").glob("offline-run-*"))
    else:
        assert len(names["study"].trials) == 6
        assert set(names["study"].best_params) == {"gamma", "trace"}


def test_parameters(capsys):
    execute(blocks(OTHERS)[-1:], OTHERS)
    assert capsys.readouterr().out.startswith("0.5\nRLSVI(lam=2.0")
