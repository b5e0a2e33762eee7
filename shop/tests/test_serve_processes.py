"""A shop as processes: a parent, workers and a learner, over a real socket."""

import contextlib
import http.client
import json
import logging
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from benchmarks.shop_faults import FaultClient, Shop, compared, faults
from scipy.stats import kstest
from serving import until
from typer.testing import CliRunner

from rlsvi.cli.app import app
from rlsvi_shop import Events, ShopSettings
from rlsvi_shop.service import processes
from rlsvi_shop.service.customers import Customers, ShopClient, named_taste, references, summary
from rlsvi_shop.service.processes import Child, bound_socket, url_of

slow = pytest.mark.slow


def rlsvi(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@contextlib.contextmanager
def served(folder, url="sqlite:///shop.db"):
    shop = Shop(folder, url)
    try:
        shop.wait()
        yield shop
    finally:
        if shop.process.poll() is None:
            assert shop.end() == 0, (folder / "log").read_text()


def ask(port, path, body, token=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with contextlib.closing(connection):
        connection.request("POST" if body is not None else "GET", path, body and json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()


# ---- from the command line ----------------------------------------------------------------------------------


@slow
def test_a_new_shop_is_served_visited_and_exported(tmp_path, monkeypatch):
    file = tmp_path / "shop.toml"
    assert rlsvi("simulate-shop", file, "--new", "--products", 8, "--slots", 4).exit_code == 0
    assert rlsvi("simulate-shop", file, "--new").exit_code == 2  # it is there
    free = bound_socket("127.0.0.1", 0)
    port = free.getsockname()[1]
    free.close()
    file.write_text(file.read_text().replace("8000", str(port)))
    monkeypatch.setenv("RLSVI_TOKEN", "sesame")
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    with open(tmp_path / "log", "wb") as log:
        command = [sys.executable, "-m", "rlsvi", "serve", str(file), "--workers", "2"]
        process = subprocess.Popen(command, stderr=log)
    try:
        until(lambda: _healthy(port))
        assert ask(port, "/recommend", {"visit": "a"})[0] == 401
        assert ask(port, "/recommend", {"visit": "a"}, "sesame")[0] == 200
        done = rlsvi("simulate-shop", file, "--visits", 40, "--clients", 4, "--json")
        assert done.exit_code == 0, done.output
        found = json.loads(done.output)
        assert found["visits"] == 40
        assert 0 < found["all"] <= 4
        assert found["uniform"] < found["optimal myopic"]
        text = ask(port, "/metrics", None, "sesame")[2].decode()  # of both workers
        assert 'rlsvi_requests_total{path="/recommend",status="200"} 161.0' in text
        assert 'rlsvi_requests_total{path="/feedback",status="200"} 160.0' in text
        assert rlsvi("export-events", file, "--out", tmp_path / "events.csv").exit_code == 0
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert {"at", "level", "process", "event"} <= set.intersection(*(set(line) for line in lines))
    assert {line["process"].split()[0] for line in lines} == {"parent", "worker", "learner"}
    assert "refreshed" in {line["event"] for line in lines}
    assert len((tmp_path / "events.csv").read_text().splitlines()) == 1 + 8 + 1 + 40 * 9


def _healthy(port):
    try:
        return ask(port, "/health", None)[0] == 200
    except OSError:
        return False


@pytest.mark.parametrize(
    ("host", "token", "why"),
    [
        ("0.0.0.0", "", "set a token in the variable RLSVI_TOKEN, of at least 16 characters"),
        ("0.0.0.0", 15 * "x", "set a token in the variable RLSVI_TOKEN, of at least 16 characters"),
        ("0.0.0.0", "two words", "the token in the variable RLSVI_TOKEN must be a text of printable"),
        ("127.0.0.1", "\t\n", "the token in the variable RLSVI_TOKEN must be a text of printable"),
        ("0.0.0.0", 16 * "x", None),
        ("::1", "x", None),
        ("127.0.0.1", "", None),
    ],
)
def test_a_shop_that_is_open_to_others_needs_a_long_token(tmp_path, monkeypatch, host, token, why):
    served = []
    monkeypatch.setenv("RLSVI_TOKEN", token)
    monkeypatch.setattr(processes, "run", lambda *_: served.append(1))
    monkeypatch.setattr(processes, "log_as", lambda role: None)
    monkeypatch.setattr(processes, "stop_on_signal", lambda: None)
    (tmp_path / "shop.toml").write_text(f'[serve]\nhost = "{host}"\n')
    done = rlsvi("serve", tmp_path / "shop.toml")
    assert (done.exit_code, bool(served)) == ((2, False) if why else (0, True))
    assert why is None or (why in done.stderr and not (tmp_path / "shop.db").exists())


def test_repeated_lines_of_the_log_are_left_out_and_counted(logged):
    processes.log_as("worker", logging.WARNING)
    (handler,) = logging.getLogger().handlers

    def refuse(at, status):
        values = {"msg": "refused", "levelno": logging.WARNING, "status": status, "created": at}
        handler.handle(logging.makeLogRecord(values))

    for i in range(1000):
        refuse(i / 100, 401)
        refuse(i / 100, 422)
    for at, status in ((61.0, 401), (62.0, 401), (62.0, 500)):
        refuse(at, status)
    lines = logged()
    assert [line["status"] for line in lines] == 10 * [401, 422] + [401, 401, 500]
    assert [line.get("left_out") for line in lines] == 20 * [None] + [990, None, None]


@pytest.mark.parametrize("command", ["serve", "learn-shop", "simulate-shop"])
def test_settings_that_are_missing_or_wrong_are_told(tmp_path, command):
    assert "there is no file" in rlsvi(command, tmp_path / "shop.toml").stderr
    (tmp_path / "shop.toml").write_text("slot = 3\n")
    refused = rlsvi(command, tmp_path / "shop.toml")
    assert refused.exit_code == 2
    assert "did you mean slots?" in refused.stderr


def test_an_address_that_is_taken_is_told():
    taken = bound_socket("127.0.0.1", 0)
    with contextlib.closing(taken), pytest.raises(OSError, match=r"cannot listen on 127\.0\.0\.1"):
        bound_socket("127.0.0.1", taken.getsockname()[1])


def test_customers_of_the_paper():
    found = references(range(12), 4, seed=0, customers=500)
    assert 1.5 < found["uniform"] < 2.5
    assert found["uniform"] < found["optimal myopic"] <= 4
    assert summary([0.0] * 10 + [1.0] * 10) == {"visits": 20, "all": 0.5, "first tenth": 0.0, "last tenth": 1.0}
    with pytest.raises(ValueError, match="url must be that of a shop"):
        ShopClient("somewhere")


def test_a_product_that_comes_or_goes_changes_the_taste_for_no_other():
    names = [*(f"product-{n:03}" for n in range(300)), 7, "tea"]
    taste, some = named_taste(names, seed=3), [301, 5, 17, 300]
    fewer = named_taste([names[n] for n in some], seed=3)
    np.testing.assert_array_equal(fewer.gamma, taste.gamma[np.ix_(some, some)])
    assert not np.isin(named_taste(names, seed=4).gamma, taste.gamma).any()
    numbers = taste.gamma.ravel() / 2.0  # 91,204 independent normal ones
    assert kstest(numbers, "norm").pvalue > 1e-3
    assert np.unique(numbers).size == numbers.size
    off = ~np.eye(len(names), dtype=bool)
    for other in (taste.gamma.T, np.roll(taste.gamma, 1, axis=0), np.roll(taste.gamma, 1, axis=1)):
        assert abs(np.corrcoef(taste.gamma[off], other[off])[0, 1]) < 6 / np.sqrt(off.sum())


def test_an_address_of_ipv6_is_in_brackets(tmp_path, monkeypatch):
    assert [url_of("::1", 80), url_of("127.0.0.1", 80)] == ["http://[::1]:80", "http://127.0.0.1:80"]
    asked = []
    monkeypatch.setattr(Customers, "run", lambda visiting: asked.append(visiting.url) or [1.0])
    (tmp_path / "shop.toml").write_text('[serve]\nhost = "::1"\nport = 8001\n')
    assert rlsvi("simulate-shop", tmp_path / "shop.toml").exit_code == 0
    assert asked == ["http://[::1]:8001"]
    assert ShopClient(asked[0])._connection.host == "::1"


# ---- ends and new beginnings --------------------------------------------------------------------------------


def test_a_process_that_dies_at_once_is_started_again_after_longer_and_longer_pauses(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("rlsvi_shop.service.processes.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("rlsvi_shop.service.processes.mark_process_dead", lambda pid: None)
    child = Child("worker", [sys.executable, "-c", "raise SystemExit(3)"])
    pauses = []
    for _ in range(7):
        child.process.wait(60)
        child.look()
        assert child.process is None
        begun = clock[0]
        while child.process is None:
            clock[0] += 0.1
            child.look()
        pauses.append(clock[0] - begun)
    assert pauses == sorted(pauses)
    assert pauses[0] < 1
    assert 9 < pauses[-1] < 11
    child.process.wait(60)


@slow
def test_an_end_answers_what_was_accepted_and_leaves_no_process(tmp_path):
    with served(tmp_path) as shop:
        stop = threading.Event()
        clients = [FaultClient(f"c{n}", shop.port, stop) for n in range(4)]
        for client in clients:
            client.start()
        until(lambda: sum(len(client.rewards) for client in clients) > 100)
        children = [*shop.processes("worker"), *shop.processes("learner")]
        assert len(children) == 3
        assert shop.end() == 0
        stop.set()
        for client in clients:
            client.join(60)
    assert not any(Path(f"/proc/{child}").exists() for child in children)
    found = compared(ShopSettings.from_toml(tmp_path / "shop.toml"), clients)
    assert not found["wrong"]
    # A request that was accepted and not answered would be stored, but not acknowledged.
    assert found["stored answers"] == found["acknowledged answers"] > 100


@slow
def test_a_shop_that_was_stopped_before_its_first_visit_ended_learns_after_it(tmp_path):
    with served(tmp_path) as shop:
        product = json.loads(ask(shop.port, "/recommend", {"visit": "a"})[2])["products"][0]
        assert shop.end() == 0
        shop.start()
        shop.wait()
        assert ask(shop.port, "/feedback", {"visit": "a", "product": product, "reward": 1})[0] == 200
        assert ask(shop.port, "/close", {"visit": "a"})[0] == 200
        (learner,) = shop.processes("learner")
        until(
            lambda: json.loads(ask(shop.port, "/health", None)[2])["sample"] == 20 + 3
        )  # products, and what followed
        assert shop.processes("learner") == [learner]  # it has not died and been started again


@slow
def test_children_end_when_their_parent_is_killed(tmp_path):
    shop = Shop(tmp_path, "sqlite:///shop.db")
    try:
        shop.wait()
        children = [*shop.processes("worker"), *shop.processes("learner")]
    finally:
        shop.process.kill()
        shop.process.wait()
    until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))


@slow
def test_nothing_acknowledged_is_lost_when_processes_are_killed(tmp_path):
    found = faults(tmp_path, "sqlite:///shop.db", kills=4, seconds=60, pause=1.0)
    assert sum(found["kills"].values()) == 4
    assert not found["wrong"]
    assert found["exit code"] == 0
    assert found["acknowledged answers"] > 50


@slow
def test_nothing_acknowledged_is_lost_when_the_database_is_killed_too(tmp_path, postgres):
    found = faults(tmp_path, postgres.new_url(), kills=4, seconds=60, pause=1.0, database=postgres, seed=2)
    assert found["kills"]["database"] > 0
    assert not found["wrong"]
    assert found["acknowledged answers"] > 50


@slow
def test_a_database_that_is_away_is_503_until_it_is_back(tmp_path, postgres):
    with served(tmp_path, postgres.new_url()) as shop:
        assert ask(shop.port, "/recommend", {"visit": "a"})[0] == 200
        postgres.stop()
        try:
            status, headers, body = ask(shop.port, "/recommend", {"visit": "a"})
            assert status == 503
            assert headers["retry-after"] == "1"
            assert "the database does not answer" in json.loads(body)["error"]
            until(lambda: ask(shop.port, "/health", None)[0] == 503)  # it is looked at once a second
        finally:
            postgres.start()
        until(lambda: ask(shop.port, "/recommend", {"visit": "b"})[0] == 200)


@slow
def test_a_learner_of_its_own(tmp_path):
    """`serve --no-learner` and `learn-shop`: what one stores, the other learns from."""
    file = tmp_path / "shop.toml"
    port = bound_socket("127.0.0.1", 0)
    file.write_text(f'database = "sqlite:///shop.db"\nslots = 2\n[serve]\nport = {port.getsockname()[1]}\n')
    number = port.getsockname()[1]
    port.close()
    commands = [["serve", str(file), "--no-learner"], ["learn-shop", str(file)]]
    with open(tmp_path / "log", "wb") as log:
        server, learner = (
            subprocess.Popen([sys.executable, "-m", "rlsvi", *each], stderr=log) for each in commands
        )
    try:
        until(lambda: (tmp_path / "shop.db.draws.rlsvi").exists())
        client = ShopClient(f"http://127.0.0.1:{number}")
        client.ask("PUT", "/products", {"products": [{"product": f"p{n}"} for n in range(4)]})
        until(lambda: client.ask("GET", "/health")["sample"] >= 4)
        assert len(Customers(f"http://127.0.0.1:{number}", None, 2, 20, 60, 2).run()) == 20
        until(lambda: client.ask("GET", "/health")["sample"] > 80)
        client.close()
    finally:
        for process in (server, learner):
            process.send_signal(signal.SIGTERM)
        assert [process.wait(60) for process in (server, learner)] == [0, 0]
    with Events(f"sqlite:///{tmp_path}/shop.db") as events:
        assert events.last() == 4 + 20 * 5
