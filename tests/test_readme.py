"""What the README says one can type does work."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rlsvi.cli import app

HOUSE = Path(__file__).parents[1]
README = (HOUSE / "README.md").read_text()
STUDIES = (HOUSE / "docs" / "studies.md").read_text()


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


@pytest.mark.slow
def test_the_study_of_the_page_on_studies_runs_as_it_stands(tmp_path):
    module, script = re.findall(r"```python\n(.*?)```", STUDIES, flags=re.DOTALL)
    (tmp_path / "learning.py").write_text(module)
    (tmp_path / "study.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "study.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["5", "10"]
    assert len(list((tmp_path / "results").glob("*.parquet"))) == 20
