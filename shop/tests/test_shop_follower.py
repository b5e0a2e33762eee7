"""The learner of a shop: what it follows, when it draws samples, what it survives, and which files it trusts."""

import contextlib
import logging
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from serving import PRODUCTS, SCHEMA, new_shop, serving
from stories import visit, write
from typer.testing import CliRunner

from contract.interrupts import Lines, interrupted, some
from rlsvi.cli.app import app
from rlsvi.core.regression import FactorError
from rlsvi_shop import Event, Events, Recommender, StoreError, follower
from rlsvi_shop.exchange import export_events
from rlsvi_shop.follower import Follower, LearnerReplaced
from rlsvi_shop.model.learner import ShopLearner
from rlsvi_shop.requests import NotReady
from rlsvi_shop.service import processes
from rlsvi_shop.service.processes import log_as
from rlsvi_shop.settings import ShopSettings

QUICK = {"draws": 3, "history": 4}


@pytest.fixture(autouse=True)
def _look_at_health_at_every_request(monkeypatch):
    monkeypatch.setattr("rlsvi_shop.service.app.HEALTH", 0.0)


@pytest.fixture
def clock(monkeypatch):
    """Two clocks that stand still until a test moves them: [wall, monotonic]."""
    now = [2e9, 1e6]
    monkeypatch.setattr(time, "time", lambda: now[0])
    monkeypatch.setattr(time, "monotonic", lambda: now[1])
    return now


def settings(folder, **options):
    return ShopSettings(**{"database": f"sqlite:///{folder}/shop.db", "slots": 3, "learning": QUICK, **options})


def catalogue(*products):
    return [Event("added", product=product) for product in products]


def kinds(events, name):
    return [event.kind for event in events.since(0, 10**6) if event.visit == name]


# ---- files of the learner -----------------------------------------------------------------------------------


def taught(where, visits=5):
    """Settings of a shop of which samples and a snapshot lie in their files."""
    with Follower(where) as follower:
        write(follower.events, *catalogue("tea", "coffee"))
        for n in range(visits):
            write(follower.events, *visit(f"v{n}", tea=1.0))
        follower.catch_up()
        follower.publish()
        follower.stop()
    return where


def test_only_the_owner_may_read_the_files_of_a_shop(tmp_path):
    before, shared = os.umask(0), settings(tmp_path / "fetched", share_draws=True)
    (tmp_path / "fetched").mkdir()
    try:
        taught(settings(tmp_path))
        taught(shared).file("draws").unlink()
        with Recommender(shared, learning=False) as shop:
            assert shop.renew()
            export_events(shop.events, tmp_path / "events.csv")
            made = ["simulate-shop", str(tmp_path / "shop.toml"), "--new", "--products", "3", "--slots", "2"]
            assert CliRunner().invoke(app, made).exit_code == 0
            modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*") if path.is_file()}
    finally:
        os.umask(before)
    beside = ("", "-wal", "-shm", ".writing", ".learner", ".draws.rlsvi", ".learner.rlsvi")
    assert {f"shop.db{end}" for end in beside} | {"events.csv", "shop.toml", "products.csv"} == set(modes)
    assert set(modes.values()) == {0o600}, modes


def test_two_shops_share_a_folder(tmp_path):
    one = taught(settings(tmp_path), 5)
    two = taught(settings(tmp_path, database=f"sqlite:///{tmp_path}/other.db"), 2)
    for where, visits in ((one, 5), (two, 2)):
        with Recommender(where) as shop, Recommender(where, learning=False) as server:
            assert shop._follower.learner.visits == visits
            assert server.renew()
    files = {path.name for path in tmp_path.glob("*.rlsvi")}
    assert files == {f"{name}.db.{kind}.rlsvi" for name in ("shop", "other") for kind in ("draws", "learner")}


def test_files_of_another_database_are_left_out(tmp_path, caplog):
    one, two = taught(settings(tmp_path)), settings(tmp_path, database=f"sqlite:///{tmp_path}/other.db")
    for kind in ("draws", "learner"):
        shutil.copy(one.file(kind), two.file(kind))
    with Events(one.database) as events, Events(two.database) as others:
        write(others, *events.since(0, 1000))  # it has the same events, and more
        write(others, Event("added", product="cocoa"))
    with Recommender(two, learning=False) as server:
        assert not server.renew()
        with pytest.raises(NotReady, match="belong to another database"):
            server.recommend("ann")
        with Follower(two, server.events) as follower:
            assert follower.learner.visits == 5
            assert follower.learner.refreshed_at == 0  # nothing is of the snapshot
            follower.publish()
        assert server.renew()
        assert server.recommend("ann") in ("tea", "coffee", "cocoa")
    assert {"samples left out", "snapshot left out, all events are learned anew"} <= set(caplog.messages)


def test_a_snapshot_is_left_out_after_an_older_copy_of_the_database_went_on(tmp_path):
    where = taught(settings(tmp_path))
    with contextlib.closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        database.execute(f"VACUUM INTO '{tmp_path}/copy.db'")
    with Follower(where) as follower:
        write(follower.events, *visit("later", coffee=1.0))
        follower.catch_up()
        follower.stop()
    for path in tmp_path.glob("shop.db*"):
        if not path.name.endswith("rlsvi"):
            path.unlink()
    (tmp_path / "copy.db").rename(tmp_path / "shop.db")
    with Events(where.database) as events:
        write(events, *visit("other", tea=1.0), *visit("another", tea=1.0))
    with Follower(where) as follower:
        assert follower.learner.visits == 7
        assert follower.learner.chains.products.shown[:2].tolist() == [7, 0]


def test_samples_that_came_while_the_database_was_away_are_used_later(tmp_path, monkeypatch):
    where = taught(settings(tmp_path))
    with Recommender(where, learning=False) as server:
        with monkeypatch.context() as away:
            away.setattr(server.events, "catalogue", lambda: (_ for _ in ()).throw(StoreError("away")))
            with pytest.raises(StoreError):
                server.renew()
        assert server.renew()
        assert server.recommend("ann") in ("tea", "coffee")


@pytest.mark.parametrize(
    "changed",
    [
        {"customer": {}},
        {"customer": {"age": {"low": 0, "high": 50}}},
        {"customer": {"age": {"low": 0, "high": 100}, "size": {"low": 0, "high": 1}}},
        {"product": {"price": {"low": 0, "high": 10}, "genre": {"values": ["jazz", "rock"]}}},
    ],
)
def test_samples_for_other_features_are_503_and_learned_anew(tmp_path, changed):
    with new_shop(tmp_path) as shop:
        shop.recommend("ann", {"age": 30})
        shop.close("ann")
        shop._follower.catch_up()
        shop._follower.publish()
        before = shop.settings
    after = ShopSettings(**{"database": before.database, "slots": 3, **SCHEMA, **changed})
    with Recommender(before, learning=False) as old, Recommender(after, learning=False) as new:
        assert old.renew()
        assert not new.renew()
        with serving(new) as ask:
            for path, body in (("/recommend", {"visit": "bob"}), ("/health", b"")):
                refused = ask("POST" if body else "GET", path, body)
                assert refused.status == 503
                assert refused.headers["retry-after"] == "1"
                assert "start all processes with the same settings" in refused.json["error"]
        with Follower(after, new.events) as follower:
            assert follower.learner.visits == 1
            follower.publish()
        assert new.renew()
        assert new.recommend("bob") in PRODUCTS
        assert not old.renew()  # it goes on with what fits it
        assert old.recommend("cid", {"age": 30}) in PRODUCTS


def test_the_order_of_features_matters(tmp_path):
    scaled = {"low": 0, "high": 1}
    where = taught(settings(tmp_path, customer={"age": scaled, "size": scaled}))
    with Follower(settings(tmp_path, customer={"size": scaled, "age": scaled})) as follower:
        assert follower.learner.refreshed_at == 0  # nothing of the snapshot
    with Recommender(settings(tmp_path, customer={"size": scaled, "age": scaled}), learning=False) as server:
        assert not server.renew()
    assert where.file("learner").exists()


# ---- one learner --------------------------------------------------------------------------------------------


def test_a_learner_that_was_replaced_writes_nothing_more(tmp_path, caplog):
    where = taught(settings(tmp_path))
    with Follower(where) as follower:
        before = {kind: where.file(kind).read_bytes() for kind in ("draws", "learner")}
        (tmp_path / "shop.db.learner").unlink()
        with Follower(where):  # of another process, say
            for call in (follower.publish, follower.save, follower.step):
                with pytest.raises(LearnerReplaced, match="another process has become the learner"):
                    call()
            follower.stop()
        assert {kind: where.file(kind).read_bytes() for kind in before} == before
    assert "snapshot not written" in caplog.messages


def test_stopping_twice_is_harmless(tmp_path, caplog):
    shop = new_shop(tmp_path)
    shop.recommend("ann")
    shop.stop()
    with open(tmp_path / "else", "wb") as file:  # it gets the number of a file that the shop has closed
        shop.stop()
        shop.events.close()
        file.write(b"still open")
    assert (tmp_path / "else").read_bytes() == b"still open"
    with Follower(shop.settings) as follower:
        follower.stop()
        shop.settings.file("learner").unlink()
        follower.stop()  # another process may be the learner now
        assert not shop.settings.file("learner").exists()
    assert not caplog.messages


def test_two_signals_end_a_learner_once(tmp_path, monkeypatch):
    (tmp_path / "shop.toml").write_text('database = "sqlite:///shop.db"\n[learning]\ndraws = 3\n')
    monkeypatch.setattr(sys, "argv", ["processes", "learner", str(tmp_path / "shop.toml"), str(os.getppid())])
    monkeypatch.setattr(processes, "yield_to_others", lambda: None)  # the tests go on afterwards
    monkeypatch.setattr(processes, "log_as", lambda role: None)
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    step = Follower.step

    def twice(follower):
        step(follower)
        for _ in range(2):
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(Follower, "step", twice)
    try:
        processes.main()
    finally:
        for number, handler in zip((signal.SIGTERM, signal.SIGINT), before, strict=True):
            signal.signal(number, handler)
    assert (tmp_path / "shop.db.learner.rlsvi").exists()


# ---- when samples are drawn ---------------------------------------------------------------------------------


def test_samples_are_due_by_the_visits_that_are_remembered_and_by_time(tmp_path, clock):
    with Follower(settings(tmp_path, learning={**QUICK, "remember": 100, "refresh": 60})) as follower:
        write(follower.events, *catalogue(*PRODUCTS))
        follower.catch_up()
        follower.refresh()
        learner = follower.learner
        learner.chains.statistics.visits = learner.refreshed_at = 10**6  # an old shop
        assert not follower.due
        clock[1] += 1000
        assert not follower.due  # there is nothing new
        clock[1] -= 1000
        for n in range(4):
            assert not follower.due
            write(follower.events, *visit(f"v{n}", tea=1.0))
            follower.catch_up()
        assert follower.due  # more than 3% of 100
        follower.refresh()
        write(follower.events, *visit("one", tea=1.0))
        follower.catch_up()
        clock[1] += 59
        assert not follower.due
        clock[1] += 1
        assert follower.due
        follower.refresh()
        assert not follower.due


def test_idle_visits_are_closed_some_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr("rlsvi_shop.follower.CLOSED", 3)
    with Follower(settings(tmp_path)) as follower:
        events = follower.events
        write(events, *catalogue("tea"), *(Event("recommended", f"v{n}", "tea", 0, at=10.0) for n in range(8)))
        follower.catch_up()
        sizes, writing = [], events.writing

        @contextlib.contextmanager
        def counted():
            with writing() as writer:
                before = writer.last()
                yield writer
                sizes.append(writer.last() - before)

        monkeypatch.setattr(events, "writing", counted)
        follower.close_idle(1e6)
        assert sizes == [3, 3, 2]
        follower.catch_up()
        assert follower.learner.visits == 8


# ---- what a learner survives --------------------------------------------------------------------------------


class Waits:
    """A `stop` that notes how long the learner waits, and is set after some waits."""

    def __init__(self, most):
        self.seconds, self.most = [], most

    def is_set(self):
        return len(self.seconds) >= self.most

    def wait(self, seconds):
        self.seconds.append(seconds)


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), FactorError("no number")])
def test_a_step_that_fails_is_tried_again_after_longer_pauses(tmp_path, monkeypatch, caplog, failure):
    where, clock = taught(settings(tmp_path)), [0.0]
    before = where.file("draws").read_bytes()
    with Events(where.database) as events:
        write(events, *visit("new", tea=1.0))
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    owner, name = (follower, "write_draws") if isinstance(failure, OSError) else (ShopLearner, "refresh")
    works, tries = getattr(owner, name), []

    def fails(*arguments):
        tries.append(1)
        if len(tries) <= 8:
            assert where.file("draws").read_bytes() == before
            raise failure
        return works(*arguments)

    monkeypatch.setattr(owner, name, fails)
    stop = Waits(10)
    with caplog.at_level(logging.INFO):
        follower.learn(where, stop)
    assert stop.seconds == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 0.5, 0.5]
    assert len(tries) == 9
    assert where.file("draws").read_bytes() != before
    failed = [record for record in caplog.records if record.message == "a step failed"]
    assert len(failed) == 8
    assert str(failure) in failed[0].why
    assert caplog.messages[-1] == "ended"


@pytest.mark.parametrize("most", [25, pytest.param(10**6, marks=pytest.mark.slow)], ids=["some", "all"])
def test_ctrl_c_at_any_line_of_the_learner_loses_nothing(tmp_path, quick_disk, most):
    where = settings(tmp_path, learning={**QUICK, "remember": 3}, product={"price": {"low": 0, "high": 1}})
    with Follower(where) as follower:
        write(follower.events, *catalogue("tea", "coffee"))
        follower.catch_up()

        def happen(n):
            """A visit that ends with its last answer, one that is closed, one that goes on, and a new price."""
            tea, open_visit = visit(f"tea{n}", tea=1.0), [Event("recommended", f"open{n}", "tea", 0)]
            complete = visit(f"both{n}", closed=False, tea=1.0, coffee=1.0)
            price = Event("added", product="tea", features={"price": 0.5 * (n % 3)})
            write(follower.events, *tea, *complete, *open_visit, price)

        def work():
            follower.catch_up()
            follower.refresh()

        for n in range(4):  # enough to forget some
            happen(n)
            work()
        happen(4)
        with Lines() as lines:
            work()
        ours = ("/shop/follower.py", "/shop/model/learner.py", "/shop/model/targets.py")
        places = {place: at for at, place in enumerate(lines.seen) if place[0].endswith(ours)}
        twin = ShopLearner(where)
        for n, at in enumerate(some(sorted(places.values()), most), 5):
            happen(n)
            assert interrupted(work, at)
            follower.save()  # which leaves out what is half changed
            work()
            for event in follower.events.since(twin.last, 1000):
                twin.take(event)
            twin.refresh()
            assert known(follower.learner) == known(twin), lines.seen[at]
            follower.save()


def known(learner):
    """What was learned, as whole numbers and their sums, which do not depend on when samples were drawn."""
    chains, products = learner.chains, learner.chains.products.part(learner.chains.count)
    remembered = chains.statistics.sum_up(chains.visits.arrays())
    answers = chains.forgotten[0].sum() + np.count_nonzero(remembered.x)
    assert products.mass[:, :, 0].sum() == chains.forgotten[0].sum()
    assert answers == chains.statistics.answers
    return (
        *(learner.last, learner.products, learner.visits, learner.ignored),
        {name: vars(visit) for name, visit in learner.open.items()},
        *(products.shown.tolist(), products.answers.tolist(), products.z.tolist()),
        products.gram[:, :5, :5].tolist(),  # without prices: forgotten visits keep those of their time
        *(*chains.statistics.sums, chains.statistics.recent[:, 0].tobytes()),
    )


def test_an_error_that_ends_a_process_and_warnings_are_lines_of_json(logged):
    log_as("learner")
    try:
        raise StoreError("another learner already works")
    except StoreError as error:
        sys.excepthook(type(error), error, error.__traceback__)
    logging.getLogger("py.warnings").warning("odd")
    failed, odd = logged()
    assert failed["event"] == "failed"
    assert failed["why"] == "StoreError: another learner already works"
    assert "Traceback" in failed["traceback"]
    assert odd["event"] == "odd"


def test_the_service_tells_whether_the_learner_works(tmp_path, clock):
    where = taught(settings(tmp_path))
    with Recommender(where, learning=False) as server, Follower(where) as follower, serving(server) as ask:
        server.renew()
        assert ask("GET", "/health").json["learner"] == "late"  # nobody ever worked as a process
        follower.step()
        assert (ask("GET", "/health").json["learner"], ask("GET", "/health").json["learner_age"]) == ("ok", 0.0)
        first = server.events.learner_state()[0]
        clock[0], clock[1] = clock[0] + 4, clock[1] + 4
        follower.step()
        assert server.events.learner_state()[0] == first  # it is noted every few seconds
        clock[0], clock[1] = clock[0] + 4, clock[1] + 4
        follower.step()
        assert server.events.learner_state()[0] == first + 8
        clock[0] += 1000
        late = ask("GET", "/health")
        assert late.status == 200
        assert (late.json["status"], late.json["learner"], late.json["learner_age"]) == ("ok", "late", 1000.0)
        clock[0] -= 5000
        assert ask("GET", "/health").json["learner_age"] == 0.0
        ask.app.state.metrics.learner.set(server.events.learner_state()[0])
        lines = ask("GET", "/metrics").body.decode().splitlines()
        (line,) = [line for line in lines if line.startswith("rlsvi_learner_time_seconds ")]
        assert float(line.split()[1]) == first + 8


@pytest.mark.slow
def test_a_learner_yields_to_others():
    """In a process and a session of its own, as the learner has."""
    told = (
        "import os; print(os.nice(0), open(f).read() if os.path.exists(f := '/proc/self/autogroup') else 'none')"
    )
    code = f"from rlsvi_shop.service.processes import yield_to_others; {told}; yield_to_others(); {told}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, start_new_session=True, check=True
    )
    (before, *_), (after, *session) = (line.split() for line in done.stdout.splitlines() if line)
    assert int(after) == min(int(before) + processes.YIELDING, 19)
    assert session in ([], ["none"]) or session[-1] == str(processes.YIELDING)


def test_past_visits_that_are_imported_do_not_mean_that_learning_falls_behind(tmp_path, clock):
    where = taught(settings(tmp_path))
    for kind in ("learner", "draws"):
        where.file(kind).unlink()  # all is learned anew
    clock[0] += 10_000.0
    with Follower(where) as follower:
        assert follower.learner.fresh
        assert follower.publish() == 0.0
        clock[0] += 20.0
        write(follower.events, *(event._replace(at=1.0) for event in visit("old", tea=1.0)))
        follower.catch_up()
        assert min(event.at for event in follower.events.since(0, 100)) == 1.0
        assert follower.publish() == 20.0


def test_the_service_tells_whether_learning_falls_behind(tmp_path, clock, caplog):
    where = taught(settings(tmp_path))
    with Recommender(where, learning=False) as server, Follower(where) as follower, serving(server) as ask:
        follower.step()
        for seconds, told in ((30.0, "ok"), (500.0, "behind"), (30.0, "ok")):
            write(follower.events, *visit(f"of {clock[0]}", tea=1.0))
            clock[0], clock[1] = clock[0] + seconds, clock[1] + 500.0
            caplog.clear()
            with caplog.at_level(logging.INFO, "rlsvi_shop"):
                follower.step()
            server.renew()
            assert server.sample.behind == pytest.approx(seconds)
            assert ask("GET", "/health").json["learner"] == told
            assert ("learning falls behind" in caplog.messages) == (told == "behind")


@pytest.mark.parametrize("error", [IndexError("secret"), MemoryError(), OSError("secret")], ids=repr)
def test_a_learner_that_fails_again_and_again_is_told_until_it_works(tmp_path, monkeypatch, error):
    where, stop = taught(settings(tmp_path)), threading.Event()
    monkeypatch.setattr(follower, "LEAST_PAUSE", 0.01)
    with Recommender(where, learning=False) as server, serving(server) as ask:
        server.renew()
        assert ask("GET", "/health").status == 200

        def fail(*_):
            if server.events.learner_state()[1] >= 3:
                stop.set()  # a failure that it can wait for is tried again
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(Follower, "step", fail)
            for _ in range(3):
                assert ask("GET", "/health").status == 200
                with contextlib.suppress(type(error)):
                    follower.learn(where, stop)
                if stop.is_set():
                    break
        found = ask("GET", "/health")
        assert found.status == 503
        words = rf"the learner has failed [34] times in a row \({type(error).__name__}\), and its log says why: .*"
        assert re.fullmatch(words, found.json["error"])
        monkeypatch.setattr("rlsvi_shop.follower.NOTED", 0.0)
        with Follower(where) as working:
            working.step()
        assert (ask("GET", "/health").status, ask("GET", "/health").json["learner"]) == (200, "ok")


def test_a_learner_that_cannot_even_start_is_told(tmp_path, monkeypatch):
    where = taught(settings(tmp_path))

    def catch_up(follower):
        raise IndexError("index 1 is out of bounds")

    with Recommender(where, learning=False) as server, serving(server) as ask:
        server.renew()
        monkeypatch.setattr(Follower, "catch_up", catch_up)
        for _ in range(3):
            with pytest.raises(IndexError):
                follower.learn(where, threading.Event())
        assert "3 times in a row (IndexError)" in ask("GET", "/health").json["error"]
        for _ in range(9):  # this one is refused: another learner works, and has not failed
            with server.events.learner_lock(), pytest.raises(StoreError, match="another learner already works"):
                follower.learn(where, threading.Event())
        assert server.events.learner_state()[1] == 3


# ---- the clock moves ----------------------------------------------------------------------------------------


def test_a_clock_that_jumps_loses_nothing_and_closes_no_visit_that_goes_on(tmp_path, clock):
    with new_shop(tmp_path, idle=60.0) as shop:
        follower = shop._follower

        def step():
            follower.close_idle(time.time())
            follower.catch_up()

        first = shop.recommend("ann")
        step()
        clock[0] -= 7200  # back by two hours
        shop.feedback("ann", first, 1.0)
        shop.recommend("bob")
        step()
        assert [kinds(shop.events, name)[-1] for name in ("ann", "bob")] == ["answered", "recommended"]
        clock[0] += 30
        second = shop.recommend("ann")
        step()
        clock[0] += 7200  # and to where it was: what was written meanwhile looks old
        step()
        assert "closed" not in kinds(shop.events, "ann")
        shop.feedback("ann", second, 0.0)
        shop.recommend("cid")
        clock[0] += 61
        step()
        shop.close("bob")  # was closed early, since all its events look old; this may be repeated
        step()
        assert all(kinds(shop.events, name)[-1] == "closed" for name in ("ann", "bob", "cid"))
        events = shop.events.since(0, 100)
        assert [event.id for event in events] == list(range(1, len(events) + 1))
        assert sorted(event.at for event in events) != [event.at for event in events]
        assert follower.learner.last == events[-1].id
        assert (follower.learner.visits, follower.learner.ignored) == (3, 0)
        clock[0] -= 10**6
        with serving(shop) as ask:
            assert ask("GET", "/health").json["learner_age"] == 0.0
            assert ask("GET", "/statistics").json["learner"]["age"] == 0.0
        shop.learn()
        again = ShopLearner(shop.settings)  # a replay gives the same
        for event in events:
            again.take(event)
        assert np.array_equal(again.refresh().shown, shop.sample.draws.shown)
