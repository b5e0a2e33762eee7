"""The code of docs/shop.md, docs/shop-operate.md and docs/how-to/clicks-to-service.md runs.

What is served over HTTP is tested in test_serve_*.py.
"""

import shlex
import warnings

import pytest
from typer.testing import CliRunner

from pages import blocks, commands
from rlsvi.cli import app

START, OPERATE, CLICKS = "docs/shop.md", "docs/shop-operate.md", "docs/how-to/clicks-to-service.md"
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(command):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few effective visits
        result = CliRunner().invoke(app, shlex.split(command, comments=True))
    assert result.exit_code == 0, f"rlsvi {command}\n{result.output}"
    return result.output


def test_the_first_page(tmp_path):
    first, second = blocks(START)
    names = {}
    exec(compile(first, START, "exec"), names)
    assert names["following"] != names["product"]
    (tmp_path / "shop.db").unlink()  # another shop follows
    (tmp_path / "shop.toml").write_text(blocks(START, "toml")[0])
    exec(compile(second, START, "exec"), names)
    names["shop"].stop()


def test_a_new_shop_is_set_up(tmp_path):
    new = next(command for command in commands(START) if "--new" in command)
    run(new.replace("50", "5 --slots 2"))
    assert (tmp_path / "shop.toml").exists()


def test_clicks_are_imported_judged_and_exported(tmp_path, capsys):
    clicks, judged = blocks(CLICKS)
    (tmp_path / "shop.toml").write_text(blocks(CLICKS, "toml")[0])
    exec(compile(clicks.replace("range(500)", "range(40)"), CLICKS, "exec"), {})
    imported, judge, _ = commands(CLICKS)
    run(imported)
    said = run(judge)
    assert "the policy of the log" in said
    assert "doubly robust" in said
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(judged, CLICKS, "exec"), {})
    assert capsys.readouterr().out == said
    run(next(command for command in commands(OPERATE) if command.startswith("export-events")))
    exec(compile(blocks(OPERATE)[0], OPERATE, "exec"), {})
