"""What the README says one can type does work."""

import json
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from typer.testing import CliRunner

from pages import HOUSE, blocks, commands
from rlsvi.cli import app
from rlsvi.shop import Recommender


@pytest.mark.slow
def test_the_python_of_the_readme_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for block in blocks("README.md"):
        exec(compile(block, "README.md", "exec"), {})
    said = capsys.readouterr().out
    assert re.search(r"mean return [\d.]+ of 10 fresh episodes", said)
    assert re.search(r"│ RLSVI +┆ 20 +┆", said)
    assert (tmp_path / "regret.png").stat().st_size > 10_000
    for name in ("cartpole", "shop"):
        assert (tmp_path / f"{name}.rlsvi").exists()


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


@pytest.mark.slow
def test_the_python_of_the_page_on_shops_runs_as_it_stands(tmp_path):
    """The two calls; then the service, asked over HTTP, killed, started again, failing to save, and stopped."""
    calls, service = blocks("docs/how-to/recommendation-service.md")
    (tmp_path / "calls.py").write_text(calls)
    (tmp_path / "service.py").write_text(service)
    file = tmp_path / "shop.rlsvi"
    subprocess.run([sys.executable, "calls.py"], cwd=tmp_path, check=True, timeout=300)
    file.unlink()

    def ask(port, path, **what):
        request = urllib.request.Request(f"http://127.0.0.1:{port}/{path}", json.dumps(what).encode())
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def run(talk, idle, end):
        """The service, saving every second, until it is sent a signal; its exit code and log."""
        command = [sys.executable, "service.py", "0", "8", "3", str(idle), "1"]
        log = tmp_path / "log"
        with (
            open(log, "w") as errors,
            subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
        ):
            try:
                talk(int(process.stdout.readline().split()[-1]), log)
            finally:
                process.send_signal(end)
                process.wait(timeout=60)
        return process.returncode

    def until(true):
        for _ in range(600):
            if true():
                return
            time.sleep(0.1)
        raise AssertionError("it did not happen in a minute")

    shown = []

    def first(port, _):
        code, told = ask(port, "recommend", customer="ann", among=[2, 5])
        assert code == 200
        shown.append(told["product"])
        assert shown[0] in (2, 5)
        assert ask(port, "feedback", customer="ann", product=shown[0], liked=True) == (200, {})
        assert ask(port, "feedback", customer="ann", product=shown[0], liked=True)[0] == 400
        assert ask(port, "feedback", customer="bob", product=0, liked=True)[0] == 404
        assert ask(port, "recommend", customer="bob", context=[None] * 8)[0] == 400
        assert ask(port, "somewhere", customer="bob")[0] == 400

    def second(port, _):
        assert ask(port, "feedback", customer="ann", product=shown[0], liked=True)[0] == 400  # it is known
        code, told = ask(port, "recommend", customer="ann")
        assert code == 200
        assert told["product"] != shown[0]
        assert ask(port, "close", customer="ann") == (200, {})
        assert ask(port, "close", customer="ann")[0] == 404
        until(lambda: Recommender.load(file)._mind.weight.any())  # it learned

    def third(port, log):
        assert ask(port, "recommend", customer="cat")[0] == 200
        until(lambda: ask(port, "close", customer="cat")[0] == 404)  # she fell silent
        saved = tmp_path / "saved"
        file.rename(saved)
        file.mkdir()
        until(lambda: "cannot save to shop.rlsvi: it is a folder" in log.read_text())
        assert ask(port, "recommend", customer="dan")[0] == 200  # and customers are served on
        file.rmdir()
        saved.rename(file)

    assert run(first, 3600, signal.SIGKILL) == -signal.SIGKILL
    assert run(second, 3600, signal.SIGKILL) == -signal.SIGKILL
    assert run(third, 1, signal.SIGTERM) == 0
    again = Recommender.load(file)
    assert again.customers + len(again.open) == 3
    assert again.customers >= 2
