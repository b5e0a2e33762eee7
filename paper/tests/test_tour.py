"""The stops of the tour on Tetris and on the paper's claims: what they say, and that the tour survives them."""

import io
import re
from types import SimpleNamespace

import pytest
from rich.console import Console
from typer.testing import CliRunner

from rlsvi.cli import tour as of_library
from rlsvi.cli.app import app
from rlsvi.cli.tour import Guide
from rlsvi_paper import tour


@pytest.fixture
def small(monkeypatch):
    """Only the stops of this package, of seconds."""
    monkeypatch.setattr(of_library, "STOPS", {})
    for name, value in {"PLACEMENTS": 3, "GAMES": 20, "FIGURES": ("chain-length",)}.items():
        monkeypatch.setattr(tour, name, value)


def test_the_lines_on_tetris_can_be_typed():
    assert len(tour.TETRIS.splitlines()) == 5
    compile(tour.TETRIS, "tetris", "exec")


def test_claims_are_told_with_their_verdicts(monkeypatch):
    about = {"words": "It learns <fast>", "where": "section 6"}
    claims = [SimpleNamespace(**about, outcome="inconclusive", why="scale")]
    claims.append(SimpleNamespace(**about, outcome="reproduced", why=""))
    guide = Guide(Console(file=io.StringIO()), {})
    monkeypatch.setattr(tour, "headline_claims", lambda judging: (claims, ""))
    text = tour.show_claims(guide, None)
    assert "inconclusive (too few runs here)" in text
    assert "It learns &lt;fast&gt;" in text
    assert "1 of the 2 headline claims" in guide.console.file.getvalue()
    monkeypatch.setattr(tour, "headline_claims", lambda judging: ([], "the disk is <full>"))
    assert "Not judged in this run: the disk is &lt;full&gt;." in tour.show_claims(guide, None)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_the_tour_shows_tetris_and_claims(tmp_path):
    """Beside results of an older version."""
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "old.json").write_text('{"format": 1}')
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "index.html").read_text()
    assert re.findall(r'<section id="(.*?)">', text) == ["tetris", "claims"]
    assert "data:image/gif" in text
    assert "headline claims judged here are reproduced" in result.output


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_claims_that_cannot_be_judged_do_not_end_the_tour(tmp_path, monkeypatch):
    monkeypatch.setattr(tour, "FIGURES", ("nothing",))
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "unknown figure" in (tmp_path / "index.html").read_text()
