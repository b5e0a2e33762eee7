"""The events of a shop in SQLite and in PostgreSQL: transactions, order, many processes, crashes."""

import contextlib
import math
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from stories import write

from rlsvi_shop.events import VERSION, Event, Events, StoreError
from rlsvi_shop.settings import database_url

OF_LEARNER = ("failures", "failure", "written_at")  # columns
WRITERS = Path(__file__).with_name("event_writers.py")
SHOWN = Event("recommended", "v", "p", 0, None, 0.25, True, 7, {"age": 3.5, "word": "ä\x00"}, 5.0)


@contextlib.contextmanager
def process(url, role, name="a"):
    """A process that writes events. It is killed in the end."""
    command = [sys.executable, WRITERS, url, role, name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ}) as running:
        try:
            yield running
        finally:
            running.kill()


def kill(running):
    running.send_signal(signal.SIGKILL)
    assert running.wait(60) == -signal.SIGKILL


def shown(visit, *products):
    return [Event("recommended", visit, product, slot) for slot, product in enumerate(products)]


# ---- what is written is read ------------------------------------------------------------------------------


def test_events_come_back_as_they_were(events):
    written = [
        Event("added", product="p", features={"price": 3.0, "genre": "jazz"}, at=1.5),
        SHOWN,
        Event("answered", "v", "p", reward=-1e-300, at=2.5),
        Event("closed", "v", at=3.5),
        Event("removed", product="p", at=4.5),
    ]
    with events.writing() as writer:
        numbers = writer.append(written)
        assert writer.last() == numbers[-1]
    assert numbers == sorted(set(numbers))
    assert events.since(0, 100) == [event._replace(id=n) for event, n in zip(written, numbers, strict=True)]
    assert events.since(numbers[1], 2) == events.since(0, 100)[2:4]
    assert events.since(numbers[-1], 5) == []
    assert events.last() == numbers[-1]


def test_the_numbers_of_numpy_are_numbers(events):
    given = SHOWN._replace(slot=np.int64(0), propensity=np.float32(0.25), explored=np.bool_(1), sample=np.int64(7))
    write(events, given)
    (found,) = events.since(0, 1)
    assert found == SHOWN._replace(id=found.id)
    assert [type(x) for x in found[3:8]] == [int, type(None), float, bool, int]


def test_an_event_without_a_time_happens_now(events):
    write(events, Event("closed", "v"))
    assert events.since(0, 1)[0].at > 1.7e9


@pytest.mark.parametrize("many", [1, 3, 600])
def test_many_visits_are_read_at_once(events, many):
    names = [f"v{i}" for i in range(many)]
    with events.writing() as writer:
        writer.append([event for name in names for event in shown(name, "a", "b")])
        writer.append(shown("other", "a"))
        found = writer.visits([*names, "nobody", names[0]])
    assert list(found) == [*names, "nobody"]
    assert found.pop("nobody") == []
    assert all([event.product for event in found[name]] == ["a", "b"] for name in names)
    assert all(event.visit == name for name in names for event in found[name])


def test_the_catalogue_holds_the_last_word_on_every_product(events):
    steps = [("added", "b", 1), ("added", "a", 2), ("removed", "b", None), ("added", "c", 3), ("added", "b", 4)]
    for kind, product, price in [*steps, ("removed", "a", None)]:
        write(events, Event(kind, product=product, features=price and {"price": price}))
    found = events.catalogue()
    assert [(name, event.kind, event.features) for name, event in found.items()] == [
        ("b", "added", {"price": 4}),
        ("a", "removed", None),
        ("c", "added", {"price": 3}),
    ]
    with events.writing() as writer:
        assert writer.catalogue() == found


def test_the_catalogue_is_read_once_and_then_only_what_is_new(events, monkeypatch):
    write(events, *[Event("added", product=name) for name in "abc"])
    read, rows = [], events._rows
    monkeypatch.setattr(events, "_rows", lambda *asked: read.append(rows(*asked)) or read[-1])
    assert list(events.catalogue()) == ["a", "b", "c"]
    assert list(events.catalogue()) == ["a", "b", "c"]
    write(events, Event("removed", product="a"))
    assert events.catalogue()["a"].kind == "removed"
    assert [len(each) for each in read] == [3, 0, 1]
    events.catalogue().clear()  # a copy
    assert list(events.catalogue()) == ["a", "b", "c"]


def test_a_catalogue_that_is_rolled_back_is_not_remembered(events):
    with contextlib.suppress(KeyError), events.writing() as writer:
        writer.append([Event("added", product="a")])
        assert list(writer.catalogue()) == ["a"]
        raise KeyError
    assert events.catalogue() == {}
    with events.writing() as writer:
        assert writer.catalogue() == {}
        writer.append([Event("added", product="b")])
    assert list(events.catalogue()) == ["b"]


def test_tables_of_an_earlier_version_get_the_new_columns(tmp_path):
    url = f"sqlite:///{tmp_path}/shop.db"
    with Events(url) as events:
        shop = events.shop
        for column in (
            "events DROP COLUMN among",
            "events DROP COLUMN agreeing",
            *(f"shop_identity DROP COLUMN {name}" for name in OF_LEARNER),
        ):
            events._rows(f"ALTER TABLE {column}", {})
    with Events(url) as events:
        assert (events.shop, events.learner_state()) == (shop, (None, 0, ""))
        events.note_failure("OSError")
        assert events.learner_state() == (None, 1, "OSError")
        with events.writing() as writer:
            writer.append([Event("recommended", "v", "a", 0, among=["a", "ä"], agreeing=[1.0, 0.5])])
            assert writer.visits(["v"])["v"][0][-3:] == (["a", "ä"], 0, [1.0, 0.5])


def test_a_database_has_a_name_of_its_own(events, url, tmp_path):
    with Events(url) as again, Events(f"sqlite:///{tmp_path}/other.db") as other:
        assert len({events.shop, again.shop, other.shop}) == 2
    with events.reading() as connection:
        connection.execute(sa.text("DROP TABLE shop_identity"))  # as in databases that had none
    with Events(url) as again, Events(url) as another:
        assert again.shop == another.shop != events.shop
        assert again.learner_state()[0] is None
        again.note_learner()
        assert another.learner_state()[0] > 1.7e9


def test_draws_travel_through_the_table(events):
    assert events.newest_draws(0) is None
    for number in range(1, 8):
        events.put_draws(bytes([number]) * 100)
    events.put_draws(b"again\x00")
    for known in (0, 7, 99):  # 99: of a database that was replaced by an older copy
        assert events.newest_draws(known) == (8, b"again\x00")
    assert events.newest_draws(8) is None
    assert len(events._rows("SELECT id FROM draws", {})) == 3


# ---- all or nothing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        Event("recommended", "", "p"),
        Event("recommended", "v", ""),
        Event("closed", "v", "p"),
        Event("added", "v", "p"),
        Event("answered", "v", "p"),
        Event("answered", "v", "p", reward=math.nan),
        Event("recommended", "v", "p", reward=1.0),
        Event("closed", "v", features={"x": math.inf}),
        Event("recommended", "v", "p", agreeing=[1.0, math.nan]),
        Event("recommended", "v", "p", agreeing=[1.0, "1"]),
    ],
    ids=range(10),
)
def test_wrong_events_are_refused(events, wrong):
    write(events, Event("closed", "first"))
    with pytest.raises(ValueError), events.writing() as writer:
        writer.append([Event("closed", "second"), wrong])
    assert [event.visit for event in events.since(0, 9)] == ["first"]


def test_an_unknown_kind_is_refused_by_the_database_too(events):
    with pytest.raises(ValueError, match="kind of an event must be one of added, "), events.writing() as writer:
        writer.append([Event("sold", "v", "p")])
    with pytest.raises(StoreError), events.writing() as writer:
        writer._rows("INSERT INTO events (kind, visit, product, at) VALUES ('sold', 'v', 'p', 1)", {})
    assert events.last() == 0


@pytest.mark.parametrize("again", [SHOWN, Event("answered", "v", "p", reward=2.0), Event("closed", "v")])
def test_nothing_happens_twice(events, again):
    write(events, SHOWN, Event("answered", "v", "p", reward=1.0), Event("closed", "v"))
    words = "already has an event of this kind, visit and product"
    with pytest.raises(StoreError, match=words), events.writing() as writer:  # noqa: PT012
        writer.append(shown("other", "p"))
        writer.append([again])
    assert len(events.since(0, 9)) == 3
    with events.writing() as writer:
        assert writer.visits(["other"]) == {"other": []}
        writer.append([Event("closed", "other")])
    assert len(events.since(0, 9)) == 4


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, GeneratorExit], ids=lambda e: e.__name__)
def test_an_error_rolls_back(events, error):
    with pytest.raises(error), events.writing() as writer:  # noqa: PT012
        writer.append(shown("v", "a", "b"))
        raise error
    assert events.last() == 0
    with events.writing() as writer:
        assert writer.visits(["v"]) == {"v": []}
        writer.append(shown("v", "a", "b"))
    assert len(events.since(0, 9)) == 2


@pytest.mark.parametrize("more", [[], [Event("closed", "x")]], ids=["nothing more", "more"])
def test_an_error_of_the_database_ends_the_transaction_also_if_it_is_caught(events, more):
    with pytest.raises(StoreError, match="a statement of this transaction has failed"):  # noqa: PT012, SIM117
        with events.writing() as writer:
            with pytest.raises(Exception, match=r"(?i)unique"):
                writer.append([Event("closed", "v"), Event("closed", "w"), Event("closed", "w")])
            if more:
                writer.append(more)
    assert events.last() == 0


def test_a_transaction_sees_what_it_wrote_and_others_do_not(events):
    with events.writing() as writer:
        writer.append(shown("v", "a"))
        assert [event.product for event in writer.visits(["v"])["v"]] == ["a"]
        assert events.since(0, 9) == []
    assert len(events.since(0, 9)) == 1


# ---- many threads and processes ---------------------------------------------------------------------------


def test_threads_write_in_turn(events):

    def write(_):
        for _ in range(20):
            with events.writing() as writer:
                many = len(writer.visits(["shared"])["shared"])
                writer.append([Event("recommended", "shared", str(many))])
            events.last()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert [event.product for event in events.since(0, 99)] == [str(i) for i in range(80)]


def test_processes_write_in_turn_and_numbers_become_visible_in_order(events, url):
    """Writers read a visit and append to it; a reader that follows the numbers misses none."""
    seen, last = [], 0
    with contextlib.ExitStack() as stack:
        writers = [stack.enter_context(process(url, "count", name)) for name in "ab"]
        while any(writer.poll() is None for writer in writers):
            new = events.since(last, 7)
            last = new[-1].id if new else last
            seen += new
            threading.Event().wait(0 if new else 0.01)
        outputs = [writer.communicate()[0].split() for writer in writers]
        assert [writer.returncode for writer in writers] == [0, 0]
    seen += events.since(last, 1000)
    assert seen == events.since(0, 1000)
    assert len(seen) == 2 * 40 * 2
    acknowledged = sorted(int(number) for output in outputs for number in output)
    assert [event.id for event in seen] == acknowledged
    assert [event.product for event in seen if event.visit == "shared"] == [str(i) for i in range(80)]


def test_a_writer_killed_in_the_middle_leaves_nothing(events, url):
    with process(url, "hang", "gone") as writer:
        assert writer.stdout.readline() == "appended\n"
        assert events.last() == 0
        kill(writer)
    with events.writing() as after:
        assert after.visits(["gone"]) == {"gone": []}
        after.append(shown("v", "a"))
    assert [event.visit for event in events.since(0, 9)] == ["v"]
    with Events(url) as again:
        assert len(again.since(0, 9)) == 1


def test_there_is_one_learner(events, url):
    with process(url, "learn") as first:
        assert first.stdout.readline() == "learning\n"
        with pytest.raises(StoreError, match="another learner already works for"), events.learner_lock():
            pass
        kill(first)
    for _ in range(100):  # the server of PostgreSQL may take a moment to see that the process is gone
        with contextlib.suppress(StoreError), events.learner_lock() as held:
            assert held()
            break
        threading.Event().wait(0.1)
    else:
        pytest.fail("the lock of a killed learner stayed")
    with events.learner_lock() as held, Events(url) as other:
        assert held()
        with pytest.raises(StoreError, match="another learner"), other.learner_lock():
            pass


FORKED = """
import os, sys
from rlsvi_shop.events import Events, StoreError
with Events(sys.argv[1]) as events:
    child = os.fork()
    if child == 0:
        try:
            events.last()
        except StoreError as error:
            print(error, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    print(events.last())
"""


def test_a_fork_must_open_its_own(url):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED, url], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "the process has forked since Events was opened: open it in the process that uses it",
        "0",
    ]


# ---- other tables -----------------------------------------------------------------------------------------


@pytest.fixture
def engine(url):
    engine = sa.create_engine(database_url(url))
    yield engine
    engine.dispose()


def test_tables_of_a_later_version_are_refused(url, engine):
    Events(url).close()
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE shop_schema SET version = 99"))
    with pytest.raises(StoreError, match=f"have version 99, and this rlsvi knows version {VERSION}: install"):
        Events(url)


def test_tables_of_another_program_are_refused(url, engine):
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE events (what TEXT)"))
    with pytest.raises(StoreError, match="has tables of another program: use another database"):
        Events(url)


def test_tables_that_were_removed(events, engine):
    with engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE events"))
    with pytest.raises(StoreError, match="could not read: its tables have been removed"):
        events.last()


def test_many_open_a_new_database_at_once(url):
    def last(_):
        with Events(url) as events:
            return events.last()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(last, range(4))) == [0] * 4
