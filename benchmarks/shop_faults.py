"""Processes of a shop are killed (SIGKILL) at random under load. What was acknowledged must be stored, once.

Clients make visits over HTTP and send every request again until it is acknowledged: feedback with the same visit
and product, recommend with the same slot. They also repeat some feedback that was acknowledged. They keep lists of
what was acknowledged, which are compared with the events in the database at the end, event by event.

    python -m benchmarks.shop_faults --kills 200 --seconds 1500            # SQLite: workers and learner
    python -m benchmarks.shop_faults --kills 200 --seconds 1500 --postgres # and the server of the database
"""

import argparse
import contextlib
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from rlsvi.shop import Events, ShopSettings
from rlsvi.shop.model.learner import ShopLearner

SLOTS, PRODUCTS = 5, 20
SETTINGS = """
database = "{url}"
slots = {slots}
[serve]
port = {port}
products = "products.csv"
"""


class FaultClient(threading.Thread):
    """Makes visits until it is told to stop, and keeps what was acknowledged."""

    def __init__(self, name, port, stop):
        super().__init__(daemon=True)
        self.client, self.port, self.stop = name, port, stop
        self.shown, self.rewards, self.retries, self.unexpected = {}, {}, 0, []
        self.connection = None
        self.rng = random.Random(name)

    def run(self):
        visit = 0
        while not self.stop.is_set():
            self.visit(f"{self.client}-{visit}")
            visit += 1
        if self.connection is not None:
            self.connection.close()

    def visit(self, name):
        for slot in range(SLOTS):
            answer = self.acknowledged("/recommend", {"visit": name, "slot": slot})
            if answer is None:
                return
            product = answer["products"][0]
            self.shown[name, slot] = product
            reward = self.rng.randrange(5)
            asked = {"visit": name, "product": product, "reward": reward}
            if self.acknowledged("/feedback", asked) is None:
                return
            self.rewards[name, product] = float(reward)
            if self.rng.random() < 0.2:
                self.acknowledged("/feedback", asked)

    def acknowledged(self, path, body):
        """Send a request until it is acknowledged; None if that did not happen before the end."""
        while not self.stop.is_set():
            try:
                if self.connection is None:
                    self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                self.connection.request("POST", path, json.dumps(body))
                answer = self.connection.getresponse()
                found = json.loads(answer.read())
            except (OSError, http.client.HTTPException, ValueError):
                self.connection.close()
                self.connection = None
                self.retries += 1
                time.sleep(0.05)
                continue
            if answer.status == 200:
                return found
            if answer.status != 503:
                self.unexpected.append((path, body, answer.status, found))
                return None
            self.retries += 1
            time.sleep(0.1)
        return None


class Shop:
    """`rlsvi serve` in a folder."""

    def __init__(self, folder, url):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        (folder / "shop.toml").write_text(SETTINGS.format(url=url, slots=SLOTS, port=self.port))
        (folder / "products.csv").write_text("product\n" + "".join(f"p{n}\n" for n in range(PRODUCTS)))
        command = [sys.executable, "-m", "rlsvi", "serve", str(folder / "shop.toml"), "--workers", "2"]
        with open(folder / "log", "ab") as log:
            self.process = subprocess.Popen(command, stderr=log)

    def healthy(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        return False

    def wait(self, seconds=120):
        limit = time.monotonic() + seconds
        while not self.healthy():
            if time.monotonic() > limit or self.process.poll() is not None:
                raise RuntimeError("the shop does not answer")
            time.sleep(0.2)

    def processes(self, role):
        """The ids of the workers, or of the learner."""
        parent, found = self.process.pid, []
        for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{child}/cmdline").read_bytes()
                if (b"rlsvi.serve.learning" in words) == (role == "learner") and b"rlsvi.serve" in words:
                    found.append(int(child))
        return found

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(90)
        self.process.kill()
        return self.process.wait()


def kill_some(shop, database, kills, seconds, pause, rng):
    """Kill processes at random, as many as asked for or as the time allows; return how many of each role."""
    done, end = Counter(), time.monotonic() + seconds
    roles = ["worker", "learner"] + (["database"] if database else [])
    while sum(done.values()) < kills and time.monotonic() < end:
        time.sleep(rng.random() * pause)
        role = next((each for each in roles if not done[each]), None) or rng.choice(roles)  # each at least once
        if role == "database":
            database.stop(signal.SIGKILL)
            time.sleep(rng.random() * pause / 2)
            database.start()
        else:
            alive = shop.processes(role)
            if not alive:
                continue
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(alive), signal.SIGKILL)
        done[role] += 1
    return done


def compared(settings, clients):
    """Compare what was acknowledged with what is stored, and return all differences and some counts."""
    with Events(settings.database) as opened:
        events = opened.since(0, 10**9)
    wrong = [each for client in clients for each in client.unexpected]
    keys = Counter((event.visit, event.kind, event.product) for event in events if event.visit)
    wrong += [("twice", key) for key, count in keys.items() if count > 1]
    rewards = {(event.visit, event.product): event.reward for event in events if event.kind == "answered"}
    shown = {(event.visit, event.slot): event.product for event in events if event.kind == "recommended"}
    for client in clients:
        wrong += [("lost answer", key) for key, value in client.rewards.items() if rewards.get(key) != value]
        wrong += [("lost product", key) for key, value in client.shown.items() if shown.get(key) != value]
    learner = ShopLearner(settings)
    for event in events:
        learner.take(event)
    wrong += [("not learned from", learner.ignored)] if learner.ignored else []
    return {
        "wrong": wrong,
        "acknowledged answers": sum(len(client.rewards) for client in clients),
        "stored answers": len(rewards),
        "acknowledged products": sum(len(client.shown) for client in clients),
        "requests sent again": sum(client.retries for client in clients),
        "visits learned from": learner.visits,
    }


def faults(folder, url, *, kills, seconds, pause=2.0, clients=4, database=None, seed=0):
    """Serve a shop in a folder, kill its processes under load, and return what was found."""
    shop, stop = Shop(folder, url), threading.Event()
    try:
        shop.wait()
        sending = [FaultClient(f"c{number}", shop.port, stop) for number in range(clients)]
        for client in sending:
            client.start()
        done = kill_some(shop, database, kills, seconds, pause, random.Random(seed))
        shop.wait()  # it is well again
        answers = sum(len(client.rewards) for client in sending)
        limit = time.monotonic() + 60
        while sum(len(client.rewards) for client in sending) < answers + 20 and time.monotonic() < limit:
            time.sleep(0.1)
        stop.set()
        for client in sending:
            client.join(90)
        code = shop.end()
    finally:
        stop.set()
        if shop.process.poll() is None:
            shop.end()
    found = compared(ShopSettings.from_toml(folder / "shop.toml"), sending)
    return {"kills": dict(done), "exit code": code, **found}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=1500.0)
    parser.add_argument("--pause", type=float, default=4.0, help="the longest pause between two kills")
    parser.add_argument("--postgres", action="store_true", help="kill the server of a PostgreSQL database too")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    asked = {"kills": given.kills, "seconds": given.seconds, "pause": given.pause, "seed": given.seed}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.postgres:
            from tests.postgres_server import LocalServer

            database = LocalServer().start()
            try:
                found = faults(folder, database.new_url(), database=database, **asked)
            finally:
                database.remove()
        else:
            found = faults(folder, "sqlite:///shop.db", **asked)
    print(json.dumps(found, indent=1))
    sys.exit(bool(found["wrong"]))


if __name__ == "__main__":
    main()
