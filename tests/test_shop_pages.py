"""The code of docs/shop.md, docs/shop-operate.md and docs/how-to/clicks-to-service.md runs.

What is served over HTTP is tested in test_serve_*.py.
"""

import re
import shlex
import warnings

import pytest
from typer.testing import CliRunner

from pages import HOUSE, blocks, commands
from rlsvi.cli import app
from rlsvi.cli.simulate_shop import NEW

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
    (tmp_path / "music.toml").write_text(blocks(START, "toml")[0])
    exec(compile(second, START, "exec"), names)
    assert names["shop"].products == ["kind of blue", "harvest"]  # and none of the first shop
    names["shop"].stop()


def test_every_example_has_a_database_of_its_own():
    """What is tried in one folder, page after page, does not meet the products of another page."""
    pages = [HOUSE / "README.md", *sorted((HOUSE / "docs").rglob("*.md"))]
    code = [block for page in pages for kind in ("python", "toml") for block in blocks(page, kind)]
    found = re.findall(r'"sqlite:///(\S+?)"', "\n".join([*code, NEW]))
    assert len(found) > 4
    assert len(set(found)) == len(found), found


def test_a_new_shop_is_set_up(tmp_path):
    new = next(command for command in commands(START) if "--new" in command)
    run(new.replace("50", "5 --slots 2"))
    assert (tmp_path / "shop.toml").exists()


def test_clicks_are_imported_judged_and_exported(tmp_path, capsys):
    clicks, judged = blocks(CLICKS)
    (tmp_path / "shop.toml").write_text(blocks(CLICKS, "toml")[0])
    exec(compile(clicks.replace("range(500)", "range(40)"), CLICKS, "exec"), {})
    imported, judge, _ = commands(CLICKS)
    assert run(imported) == "imported clicks.csv: 160 rows, 40 visits, 8 products\n"
    said = run(judge)
    assert "the policy of the log" in said
    assert "doubly robust" in said
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(judged, CLICKS, "exec"), {})
    assert capsys.readouterr().out == said
    run(next(command for command in commands(OPERATE) if command.startswith("export-events")))
    exec(compile(blocks(OPERATE)[0], OPERATE, "exec"), {})
