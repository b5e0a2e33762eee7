"""Processes of a shop are killed (SIGKILL) at random under load. What was acknowledged must be stored, once.

Clients make visits over HTTP and send every request again until it is acknowledged: feedback with the same visit
and product, recommend with the same slot. They also repeat some feedback that was acknowledged. They keep lists of
what was acknowledged, which are compared with the events in the database at the end, event by event. Workers, the
learner and the parent are killed; the parent is started again by this program, as by a supervisor.

    python -m benchmarks.shop_faults --out out/bench --kills 200 --seconds 1500
    python -m benchmarks.shop_faults --databases sqlite postgresql   # kills PostgreSQL's server too
"""

import argparse
import http.client
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from benchmarks.shop_service import Shop, prefill, write_markdown, write_settings
from rlsvi_shop import Events, ShopSettings
from rlsvi_shop.model.learner import ShopLearner

SLOTS, PRODUCTS = 5, 20


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


def kill_some(shop, database, kills, seconds, pause, rng):
    """Kill processes at random, as many as asked for or as the time allows; return how many of each role."""
    done, end = Counter(), time.monotonic() + seconds
    roles = ["worker", "learner", "parent", *(["database"] if database else [])]
    while done.total() < kills and time.monotonic() < end:
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
            with suppress(ProcessLookupError):
                os.kill(rng.choice(alive), signal.SIGKILL)
            if role == "parent":
                shop.process.wait()
                shop.wait(again=True)
        done[role] += 1
        if done.total() % 20 == 0:
            print(f"{done.total()} of {kills} killed", file=sys.stderr, flush=True)
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


def faults(folder, url, *, kills, seconds, pause=2.0, clients=4, database=None, seed=0, visits=0):
    """Serve a shop in a folder after past visits, kill its processes under load, and return what was found."""
    if visits:
        write_settings(folder, url=url, slots=SLOTS, products=PRODUCTS)
        prefill(folder, visits=visits, products=PRODUCTS, slots=SLOTS)
    shop, stop = Shop(folder, url, slots=SLOTS, products=PRODUCTS), threading.Event()
    try:
        shop.wait()
        sending = [FaultClient(f"c{number}", shop.port, stop) for number in range(clients)]
        for client in sending:
            client.start()
        done = kill_some(shop, database, kills, seconds, pause, random.Random(seed))
        shop.wait(again=True)  # it is well again
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


def shown(name, found):
    """A row as the documentation has it."""
    lost = Counter(each[0] for each in found["wrong"])
    return {
        "database": name,
        **{f"{role} killed": found["kills"].get(role, 0) for role in ("worker", "learner", "parent", "database")},
        "answers acknowledged": found["acknowledged answers"],
        "requests sent again": found["requests sent again"],
        "lost": lost["lost answer"] + lost["lost product"],
        "stored twice": lost["twice"],
        "other errors": len(found["wrong"]) - lost["lost answer"] - lost["lost product"] - lost["twice"],
    }


def local_server():
    """A PostgreSQL server of our own, as the tests have it."""
    from shop.tests.postgres_server import LocalServer

    return LocalServer()


def measured(name, **asked):
    """Kill the processes of a shop with a database of its own."""
    with tempfile.TemporaryDirectory() as folder:
        if name == "sqlite":
            return faults(Path(folder), "sqlite:///shop.db", **asked)
        database = local_server().start()
        try:
            return faults(Path(folder), database.new_url(), database=database, **asked)
        finally:
            database.remove()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200, help="for each database")
    parser.add_argument("--seconds", type=float, default=1500.0, help="for each database")
    parser.add_argument("--pause", type=float, default=4.0, help="the longest pause between two kills")
    parser.add_argument("--databases", nargs="*", default=["sqlite"], choices=["sqlite", "postgresql"])
    parser.add_argument("--visits", type=int, default=20_000, help="past visits in the database")
    parser.add_argument("--out", type=Path, help="the folder for shop_faults.md")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    asked = {name: getattr(given, name) for name in ("kills", "seconds", "pause", "visits", "seed")}
    words = (
        f"Killed at random under the load of four clients, after {given.visits} past visits; a pause of up to "
        f"{given.pause:g} s between two kills."
    )
    if "postgresql" in given.databases:
        local_server()  # an error before anything is measured
    found = {}
    for name in given.databases:
        found[name] = measured(name, **asked)
        print(json.dumps(found[name], indent=1), file=sys.stderr)
        write_markdown(given.out, "shop_faults.md", [shown(each, found[each]) for each in found], words)
    sys.exit(any(each["wrong"] for each in found.values()))


if __name__ == "__main__":
    main()
