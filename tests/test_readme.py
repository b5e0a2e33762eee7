"""What the README says one can type does work."""

import json
import re
import shlex
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rlsvi.cli import app
from rlsvi.shop import Recommender

HOUSE = Path(__file__).parents[1]
README = (HOUSE / "README.md").read_text()
STUDIES = (HOUSE / "docs" / "studies.md").read_text()
SHOP = (HOUSE / "docs" / "shop.md").read_text()


@pytest.mark.slow
def test_the_python_of_the_readme_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL):
        exec(compile(block, "README.md", "exec"), {})
    said = capsys.readouterr().out
    assert "RLSVI" in said
    assert "(game over: top row)" in said
    assert (tmp_path / "regret.png").stat().st_size > 10_000
    assert (tmp_path / "chain.rlsvi").exists()
    assert (tmp_path / "tetris.rlsvi").exists()


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


@pytest.mark.slow
def test_the_python_of_the_page_on_shops_runs_as_it_stands(tmp_path):
    """The two calls; then the service, asked over HTTP, stopped and started again."""
    calls, service = re.findall(r"```python\n(.*?)```", SHOP, flags=re.DOTALL)
    (tmp_path / "calls.py").write_text(calls)
    (tmp_path / "service.py").write_text(service)
    subprocess.run([sys.executable, "calls.py"], cwd=tmp_path, check=True, timeout=300)
    (tmp_path / "shop.rlsvi").unlink()

    def ask(port, path, **what):
        request = urllib.request.Request(f"http://127.0.0.1:{port}/{path}", json.dumps(what).encode())
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def run(talk):
        command = [sys.executable, "service.py", "0", "8", "3"]
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
            try:
                talk(int(process.stdout.readline().split()[-1]))
            finally:
                process.send_signal(signal.SIGTERM)
                code = process.wait(timeout=60)
        assert code == 0

    shown = []

    def first(port):
        code, told = ask(port, "recommend", customer="ann")
        assert code == 200
        shown.append(told["product"])
        assert ask(port, "feedback", customer="ann", product=shown[0], liked=True) == (200, {})
        assert ask(port, "feedback", customer="ann", product=shown[0], liked=True)[0] == 400
        assert ask(port, "feedback", customer="bob", product=0, liked=True)[0] == 404
        assert ask(port, "recommend", customer="bob", context=[None] * 8)[0] == 400
        assert ask(port, "somewhere", customer="bob")[0] == 400

    def second(port):
        code, told = ask(port, "recommend", customer="ann")
        assert code == 200
        assert told["product"] != shown[0]
        assert ask(port, "close", customer="ann") == (200, {})
        assert ask(port, "close", customer="ann")[0] == 404

    run(first)
    run(second)
    assert Recommender.load(tmp_path / "shop.rlsvi").customers == 1
