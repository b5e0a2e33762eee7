"""The tour: what it shows, what it says on the way, and that it ends with its page whatever the terminal."""

import io
import re
import subprocess
import time
from contextlib import contextmanager

import pytest
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

from browser import BROWSER, FLAGS, PHONE, SIZE, WINDOW, seen
from rlsvi.cli import tour
from rlsvi.cli.app import app
from rlsvi.cli.tour import AtRandom, Guide, Stop, page


def quiet(expected=None):
    """A guide that speaks into a string of 40 columns, which is no terminal."""
    return Guide(Console(file=io.StringIO(), width=40), expected or {"a": 2.0, "b": 3.0})


@pytest.fixture
def small(monkeypatch):
    """The tour of the library, of seconds."""
    for name, value in {"EPISODES": 2, "SEEDS": 3, "STEPS": 6, "offered": lambda group, kind: {}}.items():
        monkeypatch.setattr(tour, name, value)
    for name in ("chain", "recommendation"):
        code = re.sub(r"episodes=\d+, seeds=\d+", "episodes=30, seeds=2", tour.CODE[name])
        monkeypatch.setitem(tour.CODE, name, code)
    monkeypatch.setenv("MPLBACKEND", "module://of_another_environment")


# ---- the guide --------------------------------------------------------------------------------------------


def test_the_time_left_follows_what_the_stops_have_taken(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    it = quiet({"a": 10.0, "b": 10.0, "c": 10.0})
    with it.stop("a", "A"):
        assert it.left() == 30.0
        now[0] += 4.0
        assert it.left() == 26.0
        now[0] += 16.0
        assert it.left() == 22.0  # it should be over; nobody knows when it will be
    with it.stop("b", "B"):  # twice as long as expected, with a little doubt
        assert it.left() == pytest.approx(20.0 * 28 / 18)


def test_where_nothing_can_move_a_line_is_written_for_each_stop(monkeypatch):
    monkeypatch.setattr(tour, "SECONDS_BETWEEN_UPDATES", 0.01)
    it = quiet()
    with it.stop("a", "A long stop"):
        time.sleep(0.1)
    said = it.console.file.getvalue()
    assert said.count("seconds left") == 1
    assert max(map(len, said.splitlines())) <= 40


# ---- the page ---------------------------------------------------------------------------------------------


def section(sentence="It learns.", code="x = 1", picture=b"GIF89a"):
    return f"<section><h2>A title</h2>{quiet().exhibit(sentence, code, picture)}</section>"


def test_the_page_needs_nothing_else_and_runs_nothing():
    text = page([section("It & that.", "x = 1 < 2")] * 4)
    assert text.count('src="data:image/gif;base64,') == 4
    assert not re.findall(r'(?:src|href)="(?!data:|https://arxiv\.org)', text)
    assert "<script" not in text
    assert "It &amp; that." in text
    assert "x = 1 &lt; 2" in text


@pytest.mark.skipif(BROWSER is None, reason="no browser: neither Chromium nor Chrome is installed")
@pytest.mark.parametrize("size", [WINDOW, PHONE], ids=["window", "phone"])
def test_the_page_fits_and_its_first_picture_is_on_the_first_screen(tmp_path, size):
    sketch = b'<svg xmlns="http://www.w3.org/2000/svg" width="518" height="302" viewBox="0 0 518 302"/>'
    code = "agents = {" + ", ".join(f'"agent number {i}": rlsvi.RLSVI(sigma={i})' for i in range(9)) + "}"
    (tmp_path / "index.html").write_text(page([section(code=code, picture=sketch)] * 4))
    picture = "(d) => d.querySelector('img').getBoundingClientRect().bottom"
    (wide, fits, _), bottom = seen(tmp_path / "index.html", tmp_path, size, [SIZE, picture])
    assert wide == fits
    assert bottom < size[1]


@pytest.mark.skipif(BROWSER is None, reason="no browser: neither Chromium nor Chrome is installed")
def test_pictures_are_dark_in_the_dark_theme(tmp_path):
    paper = b'<rect width="400" height="300" fill="#fff"/>'
    sketch = b'<svg xmlns="http://www.w3.org/2000/svg" width="400" height="300">%s</svg>' % paper
    (tmp_path / "index.html").write_text(page([section(picture=sketch)]))
    flags = ["--blink-settings=preferredColorScheme=0", f"--screenshot={tmp_path / 'dark.png'}"]
    command = [BROWSER, *FLAGS, *flags, f"--user-data-dir={tmp_path}", (tmp_path / "index.html").as_uri()]
    subprocess.run(command, capture_output=True, timeout=300, check=True)
    with Image.open(tmp_path / "dark.png") as picture:
        assert sum(picture.convert("L").histogram()[128:]) < 0.1 * picture.width * picture.height  # texts alone


# ---- the stops --------------------------------------------------------------------------------------------


def test_a_player_at_random_takes_legal_actions():
    player = AtRandom(4)
    assert {player.predict(None, action_mask=[0, 1, 0, 1])[0] for _ in range(50)} == {1, 3}
    assert {player.predict(None)[0] for _ in range(100)} == {0, 1, 2, 3}


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_the_tour_ends_with_its_page(tmp_path, monkeypatch):
    """In 40 columns without colour, and with a stop of another package, which has something running meanwhile."""
    happened = []

    @contextmanager
    def begin(out):
        happened.append(out)
        yield "begun"
        happened.append("closed")

    def show(guide, begun):
        happened.append(begun)
        return "<p>It was shown.</p>"

    stops = {"mine": Stop("Mine & yours", show, lambda out: 1.0, begin)}
    monkeypatch.setattr(tour, "offered", lambda group, kind: {"a package": stops} if group == "rlsvi.demo" else {})
    plain = {"COLUMNS": "40", "NO_COLOR": "1", "TERM": "dumb"}
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)], env=plain)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == str(tmp_path / "index.html")
    assert "4. Mine & yours" in result.output
    assert happened == [tmp_path, "begun", "closed"]
    text = (tmp_path / "index.html").read_text()
    assert re.findall(r'<section id="(.*?)">', text) == ["cart-pole", "chain", "recommendation", "mine"]
    assert "<h2>Mine &amp; yours</h2>\n<p>It was shown.</p>" in text
    assert (text.count("data:image/gif"), text.count("data:image/svg+xml")) == (1, 2)
    assert "episode  2: the pole stood for" in result.output
    found = sorted(int(n) for n in re.findall(r"Seed \d, ten fresh episodes.*?: (\d+)", result.output, flags=re.S))
    assert len(found) == 3
    assert f"the median of 3 seeds, of which the worst has {found[0]}." in text
    assert f"balances the pole for {found[1]} of 500 steps" in text


def test_a_folder_that_cannot_be_written_is_told_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "file" / "demo")])
    assert result.exit_code == 2
    assert "error:" in result.output
