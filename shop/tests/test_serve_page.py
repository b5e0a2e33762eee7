"""The page of a shop in a browser, served over loopback: it shows the numbers, fits a phone, escapes texts.

Skipped where there is no Chromium.
"""

import json
import random
import re
import shutil
import socket
import subprocess
import threading
import time
from contextlib import contextmanager
from html import unescape

import httpx
import numpy as np
import pytest
import uvicorn
from fastapi.responses import HTMLResponse
from matplotlib import image
from stories import write
from test_serve_statistics import PRODUCTS, SLOTS, day, newest

import rlsvi_shop.service.app
from colours import contrast
from rlsvi_shop.events import Event, Events
from rlsvi_shop.recommender import Recommender
from rlsvi_shop.service.pages import watch_page

BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
in_browser = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no browser: neither Chromium nor Chrome is installed"),
]
QUIET = ["background-networking", "component-update", "sync", "gpu", "dev-shm-usage"]
FLAGS = [*(f"--disable-{it}" for it in QUIET), "--headless", "--no-sandbox", "--no-first-run"]
FLAGS += ["--force-prefers-reduced-motion", "--enable-logging=stderr", "--virtual-time-budget=20000"]
WINDOW, PHONE = (1280, 800), (390, 844)
EVIL = '<script>document.title = "other"</script><img src="x" onerror="document.title = \'other\'">'
LONG_NAME = "a-name-that-has-no-place-to-break-" * 5
REFERENCE = {"uniform": 2e6, EVIL: 5e6}
FRAME = """<!doctype html>
<iframe width="{width}" height="{height}" style="border: 0" src="/"></iframe><pre></pre>
<script>
const pause = (wait) => new Promise((done) => setTimeout(done, wait));
onload = async () => {{
  const found = [], frame = document.querySelector("iframe").contentWindow;
  await pause(500);
  for (const step of [{steps}]) {{
    found.push((await step(frame.document, frame)) ?? null);
    await pause(300);
  }}
  document.querySelector("pre").textContent = JSON.stringify(found);
}};
</script>"""


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    place = f"sqlite:///{tmp_path_factory.mktemp('shop')}/shop.db"
    with Events(place) as found:
        write(
            found,
            *[Event("added", "", product) for product in (*PRODUCTS, EVIL[:200], LONG_NAME)],
            Event("removed", "", "jazz-3"),
            *day(0, 120),
        )
        context = {"referrer": EVIL, "word": LONG_NAME}
        shown = [Event("recommended", EVIL[:200], EVIL[:200], 0, explored=True, features=context, at=time.time())]
        write(found, *shown, Event("recommended", EVIL[:200], LONG_NAME, 1, explored=False, at=time.time()))
    return place


@contextmanager
def application(url, token=None, reference=None):
    with Recommender(database=url, slots=SLOTS, reference=reference or REFERENCE, learning=False) as shop:
        shop.sample = newest(100, at=time.time())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rlsvi_shop.service.app, "PUBLIC", {*rlsvi_shop.service.app.PUBLIC, "/frame"})
            app = rlsvi_shop.service.app.create_app(shop, token=token)
        app.state.steps = ""

        @app.get("/frame")
        def frame(width: int, height: int) -> HTMLResponse:
            return HTMLResponse(FRAME.format(width=width, height=height, steps=app.state.steps))

        yield app


class Served:
    """The application on a free port of the loopback interface."""

    def __init__(self, app):
        self.app, self.socket = app, socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none"))
        self.thread = threading.Thread(target=self.server.run, args=([self.socket],))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.server.should_exit = True
        self.thread.join(60)
        assert not self.thread.is_alive()

    def get(self, path):
        return httpx.get(self.address + path, trust_env=False, timeout=60)

    def seen(self, profile, size, *steps, quiet=True):
        """What the functions `steps` return, one after the other, given the page's document and window.

        If it is to be `quiet`, the browser has nothing to say of the page on its console.
        """
        self.app.state.steps = ",".join(steps)
        address = f"{self.address}/frame?width={size[0]}&height={size[1]}"
        command = [BROWSER, *FLAGS, f"--user-data-dir={profile}", "--dump-dom", address]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300)
        trouble = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        found = re.search(r"<pre>(.+?)</pre>", done.stdout, re.DOTALL)
        assert found, (trouble, done.stdout[-2000:])
        assert trouble == [] or not quiet
        return json.loads(unescape(found[1]))


@pytest.fixture(scope="module")
def served(url):
    with application(url) as app, Served(app) as found:
        yield found


# ---- without a browser ------------------------------------------------------------------------------------


def test_the_page_loads_nothing_and_says_nothing_of_the_shop(served):
    answer = served.get("/")
    assert answer.status_code == 200
    assert answer.text == watch_page()
    assert "default-src 'none'" in watch_page()
    assert "connect-src 'self'" in watch_page()
    assert "unsafe" not in watch_page()
    assert not re.search(r"\b(src|href)\s*=\s*\"(?!#|data:,)", watch_page())
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", watch_page())
    assert "frame-ancestors 'self'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("query", ["by=reward", "count=0", "count=1001", "count=x", "count=²", "descending=maybe"])
def test_wrong_questions_are_refused(served, query):
    answer = served.get(f"/statistics?{query}")
    assert answer.status_code == 422
    assert answer.json()["error"].startswith(f"{query.partition('=')[0]} must be ")


def test_statistics_are_json_that_is_not_kept(served):
    answer = served.get("/statistics?by=product&descending=false&count=3")
    assert answer.headers["cache-control"] == "no-store"
    assert [row["product"] for row in answer.json()["products"]["rows"]] == sorted(
        [*PRODUCTS, EVIL[:200], LONG_NAME]
    )[:3]


def test_texts_can_be_read_in_light_and_dark():
    light, dark = re.findall(r":root \{(.*?)\}", watch_page(), re.DOTALL)
    for theme in (light, dark):
        colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", theme))
        for text in ("ink", "muted", "link", "good", "bad"):
            for paper in ("paper", "raised"):
                assert contrast(colours[text], colours[paper]) >= 4.5
        assert contrast(colours["good"], colours["good-paper"]) >= 4.5
        assert contrast(colours["bad"], colours["bad-paper"]) >= 4.5
        for mark in ("blue", "orange"):
            assert contrast(colours[mark], colours["paper"]) >= 3


# ---- in a browser -----------------------------------------------------------------------------------------

TEXT = "(d) => d.querySelector('{}').textContent"
TEXTS = "(d) => [...d.querySelectorAll('{}')].map((it) => it.textContent)"
WIDTH = "(d) => [d.documentElement.scrollWidth, d.documentElement.clientWidth]"


def marked(test):
    for mark in reversed(in_browser):
        test = mark(test)
    return test


@marked
def test_it_shows_the_numbers(served, tmp_path):
    numbers = served.get("/statistics?count=1000").json()
    steps = [TEXT.format(it) for it in ("#state", "#visits", "#explored", "#products-of")]
    steps += [
        TEXTS.format(it)
        for it in ("#products tbody td:nth-child(2)", "#points tbody td:first-child", "#latest li b")
    ]
    steps += ["(d) => [...d.querySelectorAll('figure svg')].map((it) => it.querySelectorAll('path').length)"]
    found = served.seen(tmp_path, WINDOW, *steps)
    state, visits, explored, products, shown, points, latest, paths = found
    assert state == "Live"
    assert visits.startswith(f"{numbers['visits']} visits ended; {numbers['recommended']} products shown")
    assert float(explored[:-1]) == pytest.approx(100 * numbers["lately"]["explored"], abs=0.06)
    assert products.startswith("13 offered, 1 removed.")
    assert list(map(int, shown)) == [row["shown"] for row in numbers["products"]["rows"]]
    assert list(map(int, points)) == [point["visits"] for point in numbers["points"]]
    assert latest == [it["visit"] for it in numbers["latest"]]
    assert paths == [2, 1]  # a band and a curve; a curve


@marked
@pytest.mark.parametrize("size", [WINDOW, PHONE], ids=["window", "phone"])
def test_it_fits_and_runs_no_text(served, tmp_path, size):
    unfold = "(d) => { d.querySelector('details').open = true; }"
    evil = "(d) => [d.title, d.querySelectorAll('body script').length, d.querySelectorAll('img').length]"
    texts = TEXTS.format("td:first-child, #latest li, .name")
    folded, _, unfolded, found, words = served.seen(tmp_path, size, WIDTH, unfold, WIDTH, evil, texts)
    assert folded[0] == folded[1] > size[0] - 20
    assert unfolded[0] == unfolded[1]
    assert found == ["The shop", 1, 0]
    assert sum(EVIL[:30] in text for text in words) >= 3  # as it was written: a product, a visit, a reference
    assert any(LONG_NAME in text for text in words)


@marked
def test_products_are_sorted_by_a_click(served, tmp_path):
    click = "async (d, w) => {{ d.querySelector('th[data-by={}] button').click(); await pause(400); }}"
    order = (
        "(d) => [...d.querySelectorAll('#products th[aria-sort]')].map((it) => [it.dataset.by, it.ariaSort])[0]"
    )
    names = TEXTS.format("#products tbody td:first-child")
    steps = [click.format("product"), names, order, click.format("product"), names, order]
    _, up, upward, _, down, downward = served.seen(tmp_path, WINDOW, *steps)
    assert up == sorted([*PRODUCTS, EVIL[:200], LONG_NAME])
    assert down == up[::-1]
    assert (upward, downward) == (["product", "ascending"], ["product", "descending"])


@marked
def test_it_is_live_and_says_when_it_has_lost_the_server(served, tmp_path):
    lose = "(d, w) => { w.kept = w.fetch; w.fetch = () => Promise.reject(new w.TypeError('gone')); }"
    find = "(d, w) => { w.fetch = w.kept; }"
    keep = (
        "(d, w) => { w.row = d.querySelector('#products tbody tr'); w.shape = d.querySelector('#rewards .band'); }"
    )
    same = "(d, w) => [w.row.isConnected, w.shape.isConnected]"
    wait = "() => pause(2500)"
    state = "(d) => [d.querySelector('#state').className, d.querySelector('#state').textContent]"
    steps = [state, keep, lose, wait, state, find, wait, state, same]
    found = served.seen(tmp_path, WINDOW, *steps)
    before, lost, after, kept = found[0], found[4], found[7], found[8]
    assert before[0] == after[0] == "live"
    assert lost[0] == "lost"
    assert lost[1].startswith("The server does not answer; this is how it was at ")
    assert kept == [True, True]  # what has not changed was not drawn again


@marked
def test_it_asks_for_the_token_once(url, tmp_path):
    state = "(d, w) => [d.querySelector('#shop').hidden, d.querySelector('#ask').hidden, w.sessionStorage.token]"
    give = """async (d) => {{
      d.getElementById("token").value = "{}";
      d.querySelector("#ask button").click();
      await pause(500);
      return d.getElementById("refused").textContent;
    }}"""
    steps = [
        state,
        give.format("wrong"),
        state,
        give.format("right"),
        state,
        "async (d, w) => w.location.reload()",
        "() => pause(1000)",
    ]
    last = "() => document.querySelector('iframe').contentDocument.querySelector('#shop').hidden"
    with application(url, token="right") as app, Served(app) as served:
        found = served.seen(tmp_path, PHONE, *steps, last, quiet=False)
    assert found[0] == [True, False, None]
    assert found[1] == "The server does not accept this token."
    assert found[2] == [True, False, None]
    assert found[4] == [False, True, "right"]
    assert found[7] is False  # and is remembered


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """A shop that has served for a while after an import, with one event that was not learned from yet."""
    place = f"sqlite:///{tmp_path_factory.mktemp('imported')}/shop.db"
    with Events(place) as found:
        names = ["a product with quite a long name that does not fit on a phone", *PRODUCTS]
        write(found, *[Event("added", "", product) for product in names])
        for visit in range(300):
            own = {} if visit < 200 else {"explored": False, "sample": 0}
            shown = Event("recommended", f"v{visit}", names[visit % 5], 0, **own)
            answer = Event("answered", shown.visit, shown.product, reward=visit % 3 + (visit >= 200))
            rows = [shown, answer, Event("closed", shown.visit)]
            write(found, *[row._replace(at=1.7e9 + 60 * visit) for row in rows])
        last = found.last()
    with application(place) as app, Served(app) as served:
        app.state.recommender.sample = newest(last - 1, at=time.time())
        yield served


PARTS = """(d) => [...d.querySelectorAll('.offscreen')].map((it) => {
  const { left, right, width, height } = it.getBoundingClientRect();
  const inside = left >= -2 && right <= d.documentElement.clientWidth + 2;
  return [getComputedStyle(it).clipPath !== 'none', inside, width, height];
})"""


@marked
@pytest.mark.parametrize("size", [WINDOW, (390, 844), (320, 640)], ids=["window", "phone", "small"])
def test_texts_for_screen_readers_are_printed_over_nothing(imported, tmp_path, size):
    hidden, width = imported.seen(tmp_path, size, PARTS, WIDTH)
    assert len(hidden) > 20
    assert all(clipped and inside and wide <= 1 and high <= 1 for clipped, inside, wide, high in hidden)
    assert width[0] == width[1]


@marked
def test_it_says_where_serving_began_and_what_was_before(imported, tmp_path):
    numbers = imported.get("/statistics").json()
    steps = [TEXT.format("#reward-of"), TEXTS.format("#rewards .name")]
    steps += ["(d) => [...d.querySelectorAll('figure svg')].map((it) => it.querySelectorAll('.began').length)"]
    reward, names, began = imported.seen(tmp_path, WINDOW, *steps)
    gain = numbers["lately"]["gain"]
    ends = f"{gain['low']:#.2g} to {gain['high']:#.2g}"
    assert f", {gain['mean']:#.2g} more than before serving began ({ends})" in reward
    assert "serving began" in names
    assert "before serving 0.995" in names
    assert numbers["before"]["number"] == 200
    assert began == [1, 1]


@marked
def test_an_empty_shop_is_shown_too(tmp_path):
    with application(f"sqlite:///{tmp_path}/shop.db") as app, Served(app) as served:
        steps = [TEXT.format("#state"), TEXT.format("#reward"), TEXT.format("#rewards svg"), WIDTH]
        state, reward, chart, width = served.seen(tmp_path, PHONE, *steps)
    assert state == "Live"
    assert reward == "–"
    assert "No visit has ended yet." in chart
    assert width[0] == width[1]


# ---- the sentences for the owner --------------------------------------------------------------------------

NAMES = ["Earl Grey, loose leaf, 250 g", "Rooibos with vanilla and a name that is much too long", "Sencha", "Mate"]
NAMES += ["Assam <b>strong</b>", "Chai", "Oolong & friends", "Darjeeling"]


@pytest.fixture(scope="module")
def owned(tmp_path_factory):
    """A shop with an import, that explores, whose first product rises and whose second one falls."""
    place = f"sqlite:///{tmp_path_factory.mktemp('owned')}/shop.db"
    chance = random.Random(1)
    with Events(place) as found:
        rows = [Event("added", "", product) for product in NAMES]
        for visit in range(1900):
            own, at = visit >= 300, time.time() - 60 * (1900 - visit)
            for slot, product in enumerate(chance.sample(NAMES, 3)):
                q, explored = chance.choice([0.25, 0.5, 0.75, 1.0]), chance.random() < 0.15
                choice = {"propensity": q, "explored": explored, "sample": 0} if own else {}
                context = {"country": "at", "age": 30 + visit % 40} if slot == 0 else None
                shown = Event("recommended", f"visit-{visit}", product, slot, features=context, at=at, **choice)
                like = (0.25 if visit < 300 else 0.4) - 0.2 * (own and explored)
                like += 0.35 * (visit > 1600) * ((product == NAMES[0]) - (product == NAMES[1]))
                answer = Event(
                    "answered", shown.visit, product, reward=float(chance.random() < like), at=at + slot
                )
                rows += [shown, *([answer] if visit < 1898 else [])]
            rows += [Event("closed", f"visit-{visit}", at=at + 3)] * (visit < 1898)
        write(found, *rows)
        found.note_learner()
        last = found.last()
    with application(place, reference={"best sellers": 0.9, "optimal": 1.8}) as app, Served(app) as served:
        app.state.recommender.sample = newest(last - 40, NAMES, at=time.time() - 75)
        yield served


@marked
def test_the_owner_is_told_in_sentences(owned, tmp_path):
    numbers = owned.get("/statistics").json()
    ids = ("#reward-of", "#explored-of", "#trends", "#trends-of", "#learner")
    found = owned.seen(tmp_path, PHONE, *(TEXT.format(it) for it in ids))
    earned, explored, trends, changes, learner = found
    lately = numbers["lately"]
    assert f"{lately['mean']:#.3g} each (95% sure: {lately['low']:#.3g} to {lately['high']:#.3g})" in earned
    assert f"{lately['gain']['mean']:#.2g} more than before serving began (" in earned
    assert earned.index("more than “best sellers” (") < earned.index("less than “optimal” (0.")
    cost = lately["cost"]
    assert lately["explored"] == pytest.approx(0.15, abs=0.03)
    assert 0 < cost["low"] < cost["mean"] < cost["high"] < 0.3
    assert f"{cost['mean']:#.2g} per visit ({cost['low']:#.2g} to {cost['high']:#.2g})" in explored
    assert trends == "1 rise, 1 fall"
    assert changes.index(NAMES[0]) < changes.index(NAMES[1][:31])
    assert learner == "alive"


def visits(rewards, **choice):
    """Events of closed visits that were shown one product each; a reward None is no answer."""
    rows, start = [Event("added", "", product) for product in NAMES], time.time() - 60 * len(rewards)
    for i, reward in enumerate(rewards):
        at, product = start + 60 * i, NAMES[i % len(NAMES)]
        rows.append(Event("recommended", f"v{i}", product, 0, at=at, **choice))
        rows += [Event("answered", f"v{i}", product, reward=reward, at=at + 1)] * (reward is not None)
        rows.append(Event("closed", f"v{i}", at=at + 2))
    return rows


def told(tmp_path, rows, *steps):
    """What the page says of a shop with these events, all of which were learned from."""
    place = f"sqlite:///{tmp_path}/shop.db"
    with Events(place) as found:
        write(found, *rows)
        found.note_learner()
        last = found.last()
    with application(place, reference={"my old list": 0.04}) as app, Served(app) as served:
        app.state.recommender.sample = newest(last, NAMES, at=time.time())
        found = served.seen(tmp_path, PHONE, *steps, WIDTH)
    *said, width = found
    assert width[0] == width[1]
    return said


MISSING = "(d) => [d.querySelector('#missing').hidden, d.querySelector('#missing').textContent]"


@marked
def test_a_shop_in_which_all_earned_nothing_claims_no_certainty(tmp_path):
    rows = visits([0.0] * 60, sample=0, propensity=1 / 65)  # without a best guess: all products are alike
    earned, missing = told(tmp_path, rows, TEXT.format("#reward-of"), MISSING)
    assert " earned 0.00 each, 0.040 less than “my old list”. " in earned
    assert "95% sure" not in earned
    assert missing == [True, ""]


@marked
def test_the_owner_is_told_of_products_without_an_answer(tmp_path):
    rows = visits([1.0, None, None] * 40, sample=0, propensity=1.0, explored=False)
    (hidden, words), value = told(
        tmp_path, rows, MISSING, "(d) => d.querySelector('#products .value').getBoundingClientRect().width"
    )
    assert not hidden
    number, shown = map(
        int, re.match(r"(\d+) of (\d+) products shown lately have no answer, and ", words).groups()
    )
    assert number == pytest.approx(2 / 3 * shown, abs=2)
    assert value > 10  # the number beside the line, on a phone too


@marked
@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("size", [(390, 3000), (1280, 1700)], ids=["phone", "window"])
def test_it_has_a_picture_in_both_widths_and_themes(owned, tmp_path, size, theme):
    picture = tmp_path / "page.png"
    address = f"{owned.address}/frame?width={size[0]}&height={size[1]}"
    owned.app.state.steps = ""
    flags = [f"--window-size={max(500, size[0] + 20)},{size[1] + 20}", "--hide-scrollbars"]
    flags += [f"--screenshot={picture}", f"--blink-settings=preferredColorScheme={0 if theme == 'dark' else 1}"]
    command = [BROWSER, *FLAGS, *flags, f"--user-data-dir={tmp_path}", address]
    subprocess.run(command, capture_output=True, timeout=300, check=True)
    pixels = image.imread(picture)[40 : size[1] - 40, 20 : size[0] - 10, :3]
    assert (np.median(pixels) < 0.2) == (theme == "dark")
    assert np.ptp(pixels[size[1] // 4 :], axis=(0, 2)).max() > 0.5  # something is drawn below the sentences
