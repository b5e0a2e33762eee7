"""How many recommendations a second a shop makes over loopback, how long they take, and how much memory it uses.

Clients are closed loops: each sends its next request when the last one is answered. A visit asks for a product for
each of its ten slots, and tells the reward of each, unless --no-feedback is given. All clients run in one process
of their own, on the same cores as the server. Latencies are those that the clients see. Every server begins with
the same past visits, which its learner has learned from. In every run the learner works and is stopped in turn,
two seconds each, so that noise of the machine meets both alike.

    python -m benchmarks.shop_load --out out/bench     # in 8 minutes at most
    python -m benchmarks.shop_load --clients 8 --workers 1 --products 500 --seconds 8 --visits 1000
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.shop_service import Shop, prefill, write_markdown, write_settings
from rlsvi_shop import Events, ShopSettings

SLOTS = 10
MOST_REQUESTS = 100_000  # requests of one run
TURN = 2.0  # seconds for which the learner works, and for which it is stopped
SETTLING = 0.2  # seconds after each change that are not measured


# ---- the clients, in a process of their own -----------------------------------------------------------------


class Connection(asyncio.Protocol):
    """One client: it makes visits, one request after another, until the time or the number of requests is over."""

    def __init__(self, name, end, most, seconds, feedback):
        self.name, self.end, self.left, self.seconds = name, end, most, seconds  # of requests, by path
        self.feedback = feedback
        self.visit, self.slot, self.buffer, self.done = 0, 0, b"", asyncio.get_running_loop().create_future()
        self.path, self.statuses = "", {}

    def connection_made(self, transport):
        self.transport = transport
        self.recommend()

    def send(self, path, body):
        self.path, self.begun = path, time.perf_counter()
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)

    def recommend(self):
        self.send("/recommend", f'{{"visit":"{self.name}-{self.visit}"}}'.encode())

    def data_received(self, data):
        self.buffer += data
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        start = head.lower().index(b"content-length:") + 15
        length = int(head[start : head.find(b"\r", start) % (len(head) + 1)])
        if len(body) < length:
            return
        now, status = time.perf_counter(), head[9:12].decode()
        self.seconds[self.path].append((self.begun, now - self.begun))
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.buffer, self.left = b"", self.left - 1
        if now > self.end or not self.left:
            self.transport.close()
            self.done.set_result(None)
        elif status.startswith("4"):
            self.transport.close()
            self.done.set_exception(RuntimeError(f"{self.path} was answered by {status}: {body[:300]!r}"))
        elif self.path == "/recommend" and self.feedback and status == "200":
            product = body[body.index(b"[") + 1 : body.index(b"]")]
            reward = (self.visit * 7 + len(product)) % 3 == 0
            text = f'{{"visit":"{self.name}-{self.visit}","product":{product.decode()},"reward":{int(reward)}}}'
            self.send("/feedback", text.encode())
        else:
            self.slot += 1
            if self.slot == SLOTS:
                self.visit, self.slot = self.visit + 1, 0
            self.recommend()


async def visiting(port, clients, seconds, run, feedback):
    """Return the latencies by path, the statuses and the time."""
    loop, begun = asyncio.get_running_loop(), time.perf_counter()
    spent = {"/recommend": [], "/feedback": []}
    made = []
    for client in range(clients):
        _, connection = await loop.create_connection(
            lambda client=client: Connection(
                f"{run}-{client}", begun + seconds, MOST_REQUESTS // clients, spent, feedback
            ),
            "127.0.0.1",
            port,
        )
        made.append(connection)
    await asyncio.wait_for(asyncio.gather(*(connection.done for connection in made)), seconds + 60)
    statuses = {}
    for connection in made:
        for status, count in connection.statuses.items():
            statuses[status] = statuses.get(status, 0) + count
    return spent, statuses, time.perf_counter() - begun


def client(port, clients, seconds, run, feedback):
    """Print what one run found as JSON."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        # First, without being measured: through so many connections that every worker answers some.
        runner.run(visiting(port, max(clients, 16), min(seconds, 1.0), f"{run}-before", feedback))
        spent, statuses, wall = runner.run(visiting(port, clients, seconds, run, feedback))
    found = {"wall": wall, "statuses": statuses, "client_cpu": time.process_time()}
    for path, name in (("/recommend", "recommend"), *([("/feedback", "feedback")] if feedback else [])):
        begun, seconds = np.array(spent[path]).T
        turn, since = np.divmod(begun, TURN)
        for learner, parity in (("on", 0), ("off", 1)):
            some = 1000 * seconds[(turn % 2 == parity) & (since > SETTLING)]
            found[f"{name}s_per_second_{learner}"] = len(some) / (wall / 2 * (1 - SETTLING / TURN))
            for share in (50, 99, 99.9):
                found[f"{name}_p{share:g}_ms_{learner}"] = float(np.percentile(some, share))
            found[f"{name}_longest_ms_{learner}"] = float(some.max())
    print(json.dumps(found))


# ---- the table ----------------------------------------------------------------------------------------------


def learned_folder(folder, products, visits):
    """Make a folder with a shop whose learner has learned from past visits."""
    folder.mkdir()
    write_settings(folder, slots=SLOTS, products=products)
    prefill(folder, visits=visits, products=products, slots=SLOTS)
    shop = Shop(folder, products=products, slots=SLOTS, workers=1)
    try:
        shop.wait()
    finally:
        shop.end()


def measured(shop, clients, seconds, feedback):
    """What one run of clients finds, and what the server needs meanwhile."""
    before = shop.processor_seconds()
    command = [sys.executable, "-m", "benchmarks.shop_load", "--as-client", str(shop.port)]
    command += ["--clients", str(clients), "--seconds", str(seconds)]
    command += [] if feedback else ["--no-feedback"]
    with in_turn(shop):
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 120, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found, after, memory = json.loads(done.stdout), shop.processor_seconds(), shop.megabytes()
    refused = sum(count for code, count in found.pop("statuses").items() if code != "200")
    spent = {f"{role}_cpu": after[role] - before[role] for role in after}
    sizes = {f"{role}_mb": " + ".join(f"{one:.0f}" for one in some) for role, some in memory.items()}
    return {**found, "refused": refused, **spent, **sizes}


@contextlib.contextmanager
def in_turn(shop):
    """Context manager during which the learner works in every other turn of the clock, and is stopped between."""
    (learner,), ended = shop.processes("learner"), threading.Event()
    database = ShopSettings.from_toml(shop.folder / "shop.toml").database

    def change():
        with Events(database) as events:
            while not ended.wait(TURN - time.perf_counter() % TURN):
                on = time.perf_counter() // TURN % 2 == 0
                with contextlib.nullcontext() if on else events.writing():  # never within a transaction of its own
                    os.kill(learner, signal.SIGCONT if on else signal.SIGSTOP)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        os.kill(learner, signal.SIGCONT)


def rows_of(given, end):
    """Yield the rows of the table until the time is over."""
    with tempfile.TemporaryDirectory() as name:
        for products, workers in itertools.product(given.products, given.workers):
            past, folder = Path(name) / f"past-{products}", Path(name) / "shop"
            if time.monotonic() > end:
                return
            if not past.exists():
                learned_folder(past, products, given.visits)
            shutil.copytree(past, folder)
            shop = Shop(folder, products=products, slots=SLOTS, workers=workers)
            try:
                shop.wait(workers=workers)
                for clients in given.clients:
                    if time.monotonic() > end:
                        return
                    asked = {"products": products, "workers": workers, "clients": clients}
                    yield asked | measured(shop, clients, given.seconds, not given.no_feedback)
            finally:
                shop.end()
                shutil.rmtree(folder)


def shown(row):
    """A row as the documentation has it."""
    both = ("on", "off")
    rate = {"recommendations/s": " / ".join(f"{row[f'recommends_per_second_{it}']:.0f}" for it in both)}
    latency = {
        f"p{share}, ms": " / ".join(f"{row[f'recommend_p{share}_ms_{it}']:.1f}" for it in both)
        for share in ("50", "99", "99.9")
    }
    longest = {"longest, ms": " / ".join(f"{row[f'recommend_longest_ms_{it}']:.0f}" for it in both)}
    memory = {f"{role}, MB": row[f"{role}_mb"] for role in ("parent", "worker", "learner")}
    return {name: row[name] for name in ("products", "workers", "clients")} | rate | latency | longest | memory


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 8, 64])
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--products", type=int, nargs="*", default=[50, 500])
    parser.add_argument("--seconds", type=float, default=12.0, help="the length of a run")
    parser.add_argument("--visits", type=int, default=20_000, help="past visits in the database")
    parser.add_argument("--limit", type=float, default=420.0, help="seconds after which no run begins")
    parser.add_argument("--no-feedback", action="store_true", help="recommend only")
    parser.add_argument("--out", type=Path, help="the folder for shop_load.md and shop_load.csv")
    parser.add_argument("--as-client", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.as_client:
        client(given.as_client, given.clients[0], given.seconds, f"{os.getpid()}", not given.no_feedback)
        return
    rows = []
    for row in rows_of(given, time.monotonic() + given.limit):
        rows.append(row)
        plain = {name: round(value, 2) if isinstance(value, float) else value for name, value in row.items()}
        print(json.dumps(plain), file=sys.stderr, flush=True)
    if not rows:
        raise SystemExit("there was no time for any run: raise --limit")
    asked = len(given.products) * len(given.workers) * len(given.clients)
    words = (
        f"{len(rows)} of {asked} runs of {given.seconds:g} s after {given.visits} past visits, "
        f"the learner working / stopped in turn, slots = {SLOTS}, "
        f"SQLite, {os.cpu_count()} cores ({platform.machine()}) shared by server and clients; "
        f"{'recommendations only' if given.no_feedback else 'each recommendation is followed by its feedback'}; "
        f"{sum(row['refused'] for row in rows)} requests refused."
    )
    write_markdown(given.out, "shop_load.md", [shown(row) for row in rows], words)
    if given.out is not None:
        pl.DataFrame(rows).write_csv(given.out / "shop_load.csv")


if __name__ == "__main__":
    main()
