"""A shop for measurements: `rlsvi serve` in a folder, its processes, and past visits to begin with."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np

from rlsvi_shop import Event, Events, ShopSettings

SETTINGS = """
database = "{url}"
slots = {slots}
[serve]
port = {port}
products = "products.csv"
"""
ROLES = {role: b"rlsvi_shop.service.processes\0%s\0" % role.encode() for role in ("worker", "learner")}
AT_ONCE = 2_000  # past visits written in one transaction


def write_settings(folder, *, url="sqlite:///shop.db", slots, products):
    """Write shop.toml, with a free port, and products.csv; return the port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "shop.toml").write_text(SETTINGS.format(url=url, slots=slots, port=port))
    names = "".join(f"{name}\n" for name in product_names(products))
    (folder / "products.csv").write_text(f"product\n{names}")
    return port


def product_names(products):
    return [f"product-{n:03}" for n in range(products)]


def prefill(folder, *, visits, products, slots, seed=0):
    """Store past visits of customers who were shown products at random, and like some more than others."""
    rng, names = np.random.default_rng(seed), product_names(products)
    liked = rng.uniform(0.05, 0.6, products)
    with Events(ShopSettings.from_toml(folder / "shop.toml").database) as events:
        with events.writing() as writer:
            writer.append([Event("added", product=name) for name in names])
        for begin in range(0, visits, AT_ONCE):
            some = []
            for visit in range(begin, min(begin + AT_ONCE, visits)):
                shown = rng.choice(products, slots, replace=False).tolist()
                rewards = (rng.random(slots) < liked[shown]).tolist()
                for slot, (a, reward) in enumerate(zip(shown, rewards, strict=True)):
                    name = f"past-{visit}"
                    some.append(Event("recommended", name, names[a], slot, propensity=1 / (products - slot)))
                    some.append(Event("answered", name, names[a], reward=float(reward)))
            with events.writing() as writer:
                writer.append(some)


class Shop:
    """`rlsvi serve` in a folder, which has settings or is given them."""

    def __init__(self, folder, url="sqlite:///shop.db", *, products=20, slots=5, workers=2, learner=True):
        self.folder, self._options = folder, ["--workers", str(workers), *([] if learner else ["--no-learner"])]
        self._learns = learner
        self.port = write_settings(folder, url=url, slots=slots, products=products)
        self.start()

    def start(self):
        """Start the parent, which starts the others."""
        command = [sys.executable, "-m", "rlsvi", "serve", str(self.folder / "shop.toml"), *self._options]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(command, stderr=log)

    def healthy(self):
        """Whether it is well and, if it learns, has samples."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=10) as answer:
                return answer.status == 200 and (not self._learns or json.load(answer)["sampled_at"] is not None)
        except (OSError, http.client.HTTPException):
            return False

    def serving(self):
        """The number of workers that have said in the log that they serve."""
        log = (self.folder / "log").read_text()
        return sum(f'"process": "worker {one}", "event": "serving"' in log for one in self.processes("worker"))

    def wait(self, seconds=240, again=False, workers=1):
        """Wait until it answers, and so many workers serve.

        With `again` a parent that has ended is started again, as a supervisor would.
        """
        limit = time.monotonic() + seconds
        while not (self.process.poll() is None and self.healthy() and self.serving() >= workers):
            ended = self.process.poll() is not None
            if time.monotonic() > limit or (ended and not again):
                raise RuntimeError(f"the shop does not answer: {(self.folder / 'log').read_text()[-2000:]}")
            if ended:
                self.start()  # which fails as long as workers of the last one hold the address
            time.sleep(0.3)

    def processes(self, role):
        """The ids of the workers, of the learner, or of the parent."""
        parent, found = self.process.pid, []
        if role == "parent":
            return [parent]
        with contextlib.suppress(OSError):
            for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
                with contextlib.suppress(OSError):
                    if ROLES[role] in Path(f"/proc/{child}/cmdline").read_bytes():
                        found.append(int(child))
        return found

    def megabytes(self):
        """The memory of each process by role: what it has of its own, and its share of what is common."""
        return {role: [_megabytes(one) for one in self.processes(role)] for role in ("parent", *ROLES)}

    def processor_seconds(self):
        """The time that the processes of each role have worked."""
        ticks, found = os.sysconf("SC_CLK_TCK"), {}
        for role in ("parent", *ROLES):
            texts = [Path(f"/proc/{one}/stat").read_text() for one in self.processes(role)]
            parts = [text.rpartition(")")[2].split() for text in texts]
            found[role] = sum(int(part[11]) + int(part[12]) for part in parts) / ticks
        return found

    def end(self):
        """End it, and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(90)
        self.process.kill()
        return self.process.wait()


def _megabytes(process):
    lines = [line.split() for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()]
    return next(int(line[1]) for line in lines if line[0] == "Pss:") / 1024


def markdown(rows):
    """A table of rows that have the same keys."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *([str(cell) for cell in row.values()] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def write_markdown(folder, name, rows, words):
    """Write a table with a paragraph below it to a file of a folder, and print it."""
    text = f"{markdown(rows)}\n{words}\n"
    print(text)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
