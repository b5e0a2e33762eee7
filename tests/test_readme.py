"""What the README says one can type does work."""

import re
import shlex
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from pages import HOUSE, blocks, commands
from rlsvi.cli import app


@pytest.mark.slow
def test_the_python_of_the_readme_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for block in blocks("README.md"):
        exec(compile(block, "README.md", "exec"), {})
    said = capsys.readouterr().out
    assert re.search(r"mean return [\d.]+ of 10 fresh episodes", said)
    assert re.search(r"│ RLSVI +┆ 20 +┆", said)
    assert (tmp_path / "regret.png").stat().st_size > 10_000
    assert (tmp_path / "cartpole.rlsvi").exists()
    assert (tmp_path / "shop.db").exists()


@pytest.mark.slow
def test_the_commands_of_the_readme_run_as_they_stand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(commands("README.md")) == 5
    for command in commands("README.md"):
        result = CliRunner().invoke(app, shlex.split(command))
        assert result.exit_code == 0, f"rlsvi {command}\n{result.output}"
    assert (tmp_path / "cartpole.png").exists()
    assert (tmp_path / "out" / "paper" / "report.html").exists()


def test_nothing_in_the_readme_is_left_to_fill_in():
    assert not re.findall(r"[A-Z]+_[A-Z]+|TODO|XXX", (HOUSE / "README.md").read_text())


@pytest.mark.slow
def test_the_study_of_the_page_on_studies_runs_as_it_stands(tmp_path):
    module, script = blocks("docs/studies.md")
    (tmp_path / "learning.py").write_text(module)
    (tmp_path / "study.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "study.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["5", "10"]
    assert len(list((tmp_path / "results").glob("*.parquet"))) == 20
