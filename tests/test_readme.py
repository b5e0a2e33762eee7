"""What the README says one can type does work."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rlsvi.cli import app

README = (Path(__file__).parents[1] / "README.md").read_text()


@pytest.mark.slow
def test_the_python_of_the_readme_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL):
        exec(compile(block, "README.md", "exec"), {})
    assert "RLSVI" in capsys.readouterr().out
    assert (tmp_path / "regret.png").stat().st_size > 10_000
    assert (tmp_path / "chain.rlsvi").exists()


@pytest.mark.slow
def test_the_commands_of_the_readme_run_as_they_stand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^rlsvi (.*)$", README, flags=re.MULTILINE)
    assert len(commands) >= 4
    for command in commands:
        result = CliRunner().invoke(app, shlex.split(command))
        assert result.exit_code == 0, f"rlsvi {command}\n{result.output}"
    assert (tmp_path / "out" / "regret.png").exists()


def test_nothing_in_the_readme_is_left_to_fill_in():
    assert not re.findall(r"[A-Z]+_[A-Z]+|TODO|XXX", README)
