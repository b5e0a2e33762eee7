"""What goes wrong with a shop's database: clear errors, nothing written, and the next call works again."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from postgres_server import LocalServer, binaries
from stories import write

from rlsvi_shop.events import CATALOGUE, Event, Events, InDoubt, StoreError, _select_visits

slow = pytest.mark.slow
MANY_EVENTS = [Event("recommended", f"v{i}", "p" * 200) for i in range(2000)]


# ---- SQLite -----------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    return tmp_path / "shop.db"


@pytest.fixture
def events(path):
    with Events(f"sqlite:///{path}") as opened:
        yield opened


@pytest.mark.parametrize(("sync", "level"), [(False, 1), (True, 2)])
def test_the_file_is_in_wal_mode(path, sync, level):
    with Events(f"sqlite:///{path}", sync=sync) as events:
        assert events._rows("PRAGMA journal_mode", {}) == [("wal",)]
        assert events._rows("PRAGMA synchronous", {}) == [(level,)]


@pytest.mark.parametrize("statement", [_select_visits(2), CATALOGUE], ids=["visits", "catalogue"])
def test_an_index_finds_visits_and_products(events, statement):
    asked = {"v0": "a", "v1": "b", "id": 0}
    plan = " ".join(row[3] for row in events._rows(f"EXPLAIN QUERY PLAN {statement}", asked))
    assert "USING INDEX events_" in plan


def test_the_disk_is_full_and_has_space_again(events):
    write(events, Event("closed", "first"))
    (pages,) = events._rows("PRAGMA page_count", {})[0]
    events._rows(f"PRAGMA max_page_count = {pages + 3}", {})  # fails as a full disk does
    for _ in range(2):
        with pytest.raises(StoreError, match="could not write: the disk is full: free some space"):
            write(events, *MANY_EVENTS)
        assert [event.visit for event in events.since(0, 9)] == ["first"]
    events._rows("PRAGMA max_page_count = 1000000", {})
    assert write(events, *MANY_EVENTS) == list(range(2, 2002))


@pytest.fixture
def small_disk(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    folder = tmp_path / "small"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "none", folder], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"cannot mount a small file system: {done.stderr.decode()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_small_disk_is_full(small_disk):
    with Events(f"sqlite:///{small_disk}/shop.db") as events:
        stored = 0
        with pytest.raises(StoreError, match="could not write: the disk is full"):  # noqa: PT012
            for i in range(1000):
                write(events, *[Event("recommended", f"{i}", str(j) * 50) for j in range(20)])
                stored = i + 1
        assert stored > 0
        assert len(events.since(0, 10**6)) == 20 * stored
        (small_disk / "more").unlink(missing_ok=True)
        subprocess.run(["mount", "-o", "remount,size=4m", small_disk], check=True)
        write(events, *[Event("recommended", "again", str(j) * 50) for j in range(20)])
        assert len(events.since(0, 10**6)) == 20 * (stored + 1)


AS_USER = """
import os, pwd, sys
from rlsvi_shop.events import Event
from rlsvi_shop.events import Events, StoreError
if os.geteuid() == 0:
    nobody = pwd.getpwnam("nobody")
    Events(sys.argv[2]).close()  # loads the rest, which the user may not be able to read
    os.setgroups([]), os.setgid(nobody.pw_gid), os.setuid(nobody.pw_uid)
try:
    with Events(sys.argv[1]) as events, events.writing() as writer:
        writer.append([Event("closed", "v")])
    print("written")
except StoreError as error:
    print(error)
"""


def as_user(url, other):
    """What a process that is not root says."""
    command = [sys.executable, "-c", AS_USER, url, other]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def others():
    """A folder that other users reach; pytest's own are closed to them."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "what", ["folder", *(pytest.param(it, marks=slow) for it in ("file", "hidden", "nothing"))]
)
def test_a_read_only_folder_or_file(others, what, tmp_path):
    url = f"sqlite:///{others}/shop.db"
    Events(url).close()
    others.chmod({"folder": 0o555, "hidden": 0o700}.get(what, 0o777))
    for file in others.iterdir():
        file.chmod(0o444 if what == "file" else 0o666)
    words = as_user(url, f"sqlite:///{tmp_path}/shop.db")
    others.chmod(0o755)
    assert ("written\n" if what == "nothing" else "let this user write") in words
    assert ("written" in words.splitlines()) is (what == "nothing")


def test_there_is_no_folder(tmp_path):
    with pytest.raises(StoreError, match=r"there is no folder .*/no that this user can open"):
        Events(f"sqlite:///{tmp_path}/no/shop.db")


def test_a_file_that_is_no_database(path):
    path.write_bytes(b"product,price\n" * 1000)
    with pytest.raises(StoreError, match="could not open: it is not a SQLite database: name another file"):
        Events(f"sqlite:///{path}")
    assert path.read_bytes() == b"product,price\n" * 1000


def test_a_folder_instead_of_a_file(tmp_path):
    with pytest.raises(StoreError, match="it cannot be opened"):
        Events(f"sqlite:///{tmp_path}")


def test_a_damaged_database(path):
    with Events(f"sqlite:///{path}") as events:
        write(events, *MANY_EVENTS)
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 8192))
    with pytest.raises(StoreError, match="restore a copy"), Events(f"sqlite:///{path}") as events:
        events.since(0, 10**6)


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_file_that_is_gone(events, path, how):
    write(events, Event("closed", "v"))
    path.unlink()
    if how == "replaced":
        sqlite3.connect(path).close()
        path.touch()
    with pytest.raises(StoreError, match="was removed or replaced: start the service again"):
        write(events, Event("closed", "w"))


def test_another_program_keeps_the_file_locked(events, path):
    write(events, Event("closed", "v"))
    events._rows("PRAGMA busy_timeout = 50", {})
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="another program keeps it locked"):
        write(events, Event("closed", "w"))
    assert events.last() == 1  # readers are not disturbed
    other.execute("ROLLBACK")
    other.close()
    assert write(events, Event("closed", "w")) == [2]


def test_a_writer_that_keeps_its_turn(events, path, monkeypatch):
    fcntl = pytest.importorskip("fcntl", reason="there are no such locks here")
    write(events, Event("closed", "v"))
    monkeypatch.setattr("rlsvi_shop.events.PATIENCE", 0.05)
    with open(f"{path}.writing", "rb") as queue:
        fcntl.flock(queue, fcntl.LOCK_EX)
        for call in (lambda: write(events, Event("closed", "w")), lambda: Events(f"sqlite:///{path}")):
            with pytest.raises(StoreError, match=r"kept its turn to write for 0.05 seconds: look for .*\.writing"):
                call()
        assert events.last() == 1  # readers are not disturbed
    assert write(events, Event("closed", "w")) == [2]


# ---- PostgreSQL -------------------------------------------------------------------------------------------


@pytest.fixture
def own_server():
    """A server that a test may kill."""
    pytest.importorskip("psycopg", reason='needs pip install "./shop[postgres]"')
    if binaries() is None:
        pytest.skip("PostgreSQL is not installed: on Debian, apt-get install postgresql")
    server = LocalServer()
    try:
        yield server.start()
    finally:
        server.remove()


def test_a_server_that_is_killed_and_started_again(own_server):
    with Events(own_server.new_url()) as events:
        write(events, Event("closed", "before"))
        for how in (signal.SIGKILL, signal.SIGINT):
            with events.learner_lock() as held:
                own_server.stop(how)
                for call in (events.last, lambda: write(events, Event("closed", "w"))):
                    with pytest.raises(StoreError, match=r"check that it runs|try again soon") as caught:
                        call()
                    assert "secret" not in str(caught.value)
                for _ in range(2):
                    with pytest.raises(StoreError, match=r"could not lock: .*check that it runs"):
                        held()
                own_server.start()
                if how == signal.SIGKILL:  # the server has forgotten the lock: it is taken again
                    assert held()
                    with pytest.raises(StoreError, match="another learner"), events.learner_lock():
                        pass
                else:
                    with events.learner_lock():  # another learner was faster
                        assert not held()
            assert events.since(0, 9)[0].visit == "before"  # the next call works
            write(events, Event("closed", f"after {how}"))
        assert [event.visit for event in events.since(0, 9)] == ["before", "after 9", "after 2"]


@pytest.mark.parametrize("first", ["read", "write"])
def test_connections_that_are_lost_while_idle(postgres_url, postgres, first):
    with Events(postgres_url) as events:
        with events.writing() as writer:
            events.last()  # two connections
            writer.append([Event("closed", "v")])
        end_connections(postgres)
        if first == "write":
            write(events, Event("closed", "w"))
        assert events.last() == (1 if first == "read" else 2)
        write(events, Event("closed", "x"))


def end_connections(server):
    with server.connection() as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        while (
            connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
            ).fetchone()[0]
            > 1
        ):
            time.sleep(0.01)


def test_a_connection_that_is_lost_in_a_transaction(postgres_url, postgres):
    with Events(postgres_url) as events:
        with pytest.raises(StoreError, match="could not write"), events.writing() as writer:  # noqa: PT012
            writer.append([Event("closed", "v")])
            end_connections(postgres)
            writer.append([Event("closed", "w")])
        assert events.last() == 0
        write(events, Event("closed", "v"))


def test_a_connection_that_is_lost_in_the_end(postgres_url, postgres):
    with Events(postgres_url) as events:
        with pytest.raises(InDoubt, match="not known whether the events were"), events.writing() as writer:  # noqa: PT012
            writer.append([Event("closed", "v")])
            end_connections(postgres)
        write(events, Event("closed", "w"))
    assert "may have been stored; send it again" in InDoubt.for_client


def test_a_transaction_that_the_server_has_given_up(postgres_url):
    with Events(postgres_url) as events:
        with pytest.raises(StoreError, match="has rolled back the transaction"), events.writing() as writer:  # noqa: PT012
            writer.append([Event("closed", "v")])
            with pytest.raises(Exception, match="division by zero"):
                writer._cursor.execute("SELECT 1 / 0")
        assert events.last() == 0


def test_a_writer_that_keeps_its_turn_too_long(postgres_url, monkeypatch):
    monkeypatch.setattr("rlsvi_shop.events.PATIENCE", 1.0)
    with Events(postgres_url) as events, Events(postgres_url) as other:
        with events.writing() as writer:
            writer.append([Event("closed", "v")])
            with pytest.raises(StoreError, match="another process kept its turn to write for too long"):
                write(other, Event("closed", "w"))
        write(other, Event("closed", "w"))


def test_a_server_that_is_read_only(postgres_url, postgres):
    with Events(postgres_url) as events:
        write(events, Event("closed", "v"))
    read_only = postgres_url.replace("options=", "options=-cdefault_transaction_read_only%3Don%20")
    with Events(read_only) as events:
        assert events.last() == 1
        with pytest.raises(StoreError, match="the server is read-only: connect to the primary server"):
            write(events, Event("closed", "w"))


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("@/nowhere?host={}", "no such database or user: use createdb"),
        ("@/postgres?host={}/no", "check that it runs"),
    ],
)
def test_a_server_or_database_that_is_not_there(postgres, address, words):
    with pytest.raises(StoreError, match=words) as caught:
        Events("postgresql://shop:secret" + address.format(postgres.folder))
    assert "secret" not in str(caught.value)


def test_text_that_postgresql_cannot_hold(postgres_url):
    with Events(postgres_url) as events:
        with pytest.raises((StoreError, ValueError)):
            write(events, Event("closed", "a\x00b"))
        assert events.last() == 0


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (InDoubt("in doubt"), "the request may have been stored; send it again, which is safe"),
        (StoreError("away"), "nothing was stored"),
    ],
    ids=["in doubt", "away"],
)
def test_a_client_is_told_what_became_of_its_request(path, monkeypatch, error, words):
    from serving import serving

    from rlsvi_shop import Recommender

    def lost(cursor):
        raise error

    with Recommender(database=f"sqlite:///{path}", learning=False) as shop, serving(shop) as ask:
        monkeypatch.setattr(shop.events._database, "commit", lost)
        answer = ask("POST", "/close", {"visit": "ann"})
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert words in answer.json["error"]
