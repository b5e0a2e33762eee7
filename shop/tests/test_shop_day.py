"""A day in the life of a shop: the how-to page as it is printed, and files of the version before."""

import shutil
import socket
import sqlite3
import time
from pathlib import Path

import pytest

from rlsvi_shop import Events, Recommender, ShopSettings
from rlsvi_shop.follower import Follower

PAGE = Path(__file__).parents[2] / "docs/how-to/shop-day.md"
FILES = Path(__file__).with_name("files")  # made by made_by.py there, with the version 0.2.0 of commit 1bf2c6d
MOVE = "## Move to PostgreSQL"
AFTER_IMPORT = """
```python
from rlsvi_shop import Events, ShopSettings

def events(file):
    settings = ShopSettings.from_toml(file)
    with Events(settings.database, create=False) as found:
        return found.since(0, 1000)

assert [event.product for event in events("shop.toml") if event.kind == "added"] == ["tea", "coffee", "cocoa"]
```

"""
AFTER_BACKUP = """
```bash
curl -f http://127.0.0.1:8000/recommend -d '{"visit": "after the backup"}'
```
"""
AFTER_SQL = """
```python
database = sqlite3.connect("day.db")
found = {product: (count, mean) for product, count, mean in database.execute(query)}
assert found == {"tea": (3, 1.0), "coffee": (2, 0.0), "cocoa": (1, 0.0)}, found
database.close()
rows = events("shop.toml")
catalogue = {event.product: (event.kind, event.features) for event in rows if not event.visit}
assert catalogue["mate"] == ("added", {"price": 6.0})
assert catalogue["tea"] == ("added", {"price": 3.5})
assert catalogue["coffee"] == ("added", {"price": 4.0})
assert catalogue["cocoa"][0] == "removed"
assert "after the backup" not in {event.visit for event in rows}
```
```bash
curl -f http://127.0.0.1:8000/recommend -d '{"visit": "bob", "slot": 0, "among": ["mate"]}'
```

"""
AFTER_MOVE = """
```bash
curl -f http://127.0.0.1:8000/feedback -d '{"visit": "bob", "product": "mate", "reward": 1}'
curl -f http://127.0.0.1:8000/recommend -d '{"visit": "bob", "slot": 0}' | grep mate
```
```python
moved, before = events("moved.toml"), events("shop.toml")
assert moved[: len(before)] == before
assert [(event.kind, event.visit) for event in moved[len(before):]] == [("answered", "bob")]
```
"""


@pytest.mark.slow
def test_the_page_runs_as_it_is_printed(tmp_path, monkeypatch, request):
    from test_pages import read  # which imports much of the library

    if shutil.which("curl") is None:
        pytest.skip("the page uses curl")
    text = PAGE.read_text()
    for heading, checks in (("## Serve", AFTER_IMPORT), ("To restore it,", AFTER_BACKUP), (MOVE, AFTER_SQL)):
        assert text.count(heading) == 1
        text = text.replace(heading, checks + heading)
    try:
        url = request.getfixturevalue("postgres_url")
    except pytest.skip.Exception:
        text, why = text[: text.index(MOVE)], "without PostgreSQL, the last section was left out"
    else:
        printed, why = "postgresql://shop@db.internal/shop", ""
        assert printed in text
        text = text.replace(printed, url) + AFTER_MOVE
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("PORT", str(port))
    monkeypatch.delenv("RLSVI_TOKEN", raising=False)
    text = text.replace("127.0.0.1:8000", f"127.0.0.1:{port}").replace("[serve]\n", f"[serve]\nport = {port}\n")
    code, output = read(text, tmp_path)
    assert code == 0, output
    assert "\nimported sales.csv: 4 rows, 2 visits, 3 products\n" in output
    if why:
        pytest.skip(why)


# ---- files of the version before ----------------------------------------------------------------------------


@pytest.fixture
def before(tmp_path):
    """The settings of the shop of the version before, in a folder that may be written."""
    for path in FILES.glob("shop.db*"):
        shutil.copy(path, tmp_path)
    return ShopSettings(
        database=f"sqlite:///{tmp_path}/shop.db",
        slots=3,
        product={"price": {"low": 0, "high": 10}},
        learning={"draws": 2, "history": 4},
    )


def events_of_file():
    """The events as SQLite itself reads them, without a copy of the package that could change them."""
    database = sqlite3.connect(f"file:{FILES}/shop.db?mode=ro&immutable=1", uri=True)
    try:
        return database.execute("SELECT id, kind, visit, product, reward FROM events ORDER BY id").fetchall()
    finally:
        database.close()


def test_files_of_the_version_before_are_served(before):
    stored = events_of_file()
    assert len(stored) > 60
    with Recommender(before) as shop:
        found = [(it.id, it.kind, it.visit, it.product, it.reward) for it in shop.events.since(0, 1000)]
        assert found == stored
        assert shop.products == ["tea", "coffee", "cocoa", "juice"]
        assert shop.recommend("open", slot=0) == "cocoa"  # the visit goes on
        shop.feedback("open", "cocoa", 0.0)
        assert shop.recommend("new") in shop.products
        assert shop._follower.learner.visits == 12
        assert shop.health()["learner"] == "ok"


def test_what_was_learned_before_is_what_is_learned_anew(before, tmp_path):
    """Whether the files of the learner are used or left out, the shop knows the same."""
    known = []
    for remove in (False, True):
        if remove:
            for kind in ("learner", "draws"):
                before.file(kind).unlink(missing_ok=True)
        with Follower(before) as follower:
            follower.learner.refresh()
            known.append([follower.last, follower.learner.visits, *follower.learner.header()["products"]])
    assert known[0] == known[1]


def test_a_shop_of_the_version_before_is_learned_by_a_service(before):
    """The learner of this version writes samples that those who serve can use."""
    with Events(before.database) as events, Follower(before, events) as follower:
        follower.step()
    with Recommender(before, learning=False) as shop:
        shop.renew()
        assert shop.recommend(f"later {time.time()}") in ("tea", "coffee", "cocoa", "juice")
        assert shop.sample.last == follower.last >= len(events_of_file())  # a visit that was open is idle by now
