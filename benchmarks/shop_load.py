"""How many recommendations a second a shop makes over loopback, how long they take, and how much memory it uses.

Clients are closed loops: each sends its next request when the last one is answered. A visit asks for a product for
each of its ten slots, and tells the reward of each, unless --no-feedback is given. All clients run in one process
of their own, on the same cores as the server. Latencies are those that the clients see.

    python -m benchmarks.shop_load --out out/bench
    python -m benchmarks.shop_load --clients 8 --workers 1 --products 500 --learner on --seconds 5
"""

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
import polars as pl

SLOTS = 10
SETTINGS = """
database = "sqlite:///shop.db"
slots = {slots}
[serve]
port = {port}
products = "products.csv"
"""


# ---- the clients, in a process of their own -----------------------------------------------------------------


class Connection(asyncio.Protocol):
    """One client: it makes visits, one request after another, until the time is over."""

    def __init__(self, name, end, seconds, feedback):
        self.name, self.end, self.seconds = name, end, seconds  # of requests, by path
        self.feedback = feedback
        self.visit, self.slot, self.buffer, self.done = 0, 0, b"", asyncio.get_running_loop().create_future()
        self.path, self.statuses = "", {}

    def connection_made(self, transport):
        self.transport = transport
        self.recommend()

    def send(self, path, body):
        self.path, self.begun = path, time.perf_counter()
        head = f"POST {path} HTTP/1.1\r\nHost: shop\r\nContent-Length: {len(body)}\r\n\r\n"
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
        self.seconds[self.path].append(now - self.begun)
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.buffer = b""
        if now > self.end:
            self.transport.close()
            self.done.set_result(None)
        elif self.path == "/recommend" and self.feedback:
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
            lambda client=client: Connection(f"{run}-{client}", begun + seconds, spent, feedback),
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
        runner.run(
            visiting(port, clients, min(seconds, 1.0), f"{run}-before", feedback)
        )  # what is new is done once
        spent, statuses, wall = runner.run(visiting(port, clients, seconds, run, feedback))
    found = {"wall": wall, "statuses": statuses, "client_cpu": time.process_time()}
    for path, name in (("/recommend", "recommend"), *([("/feedback", "feedback")] if feedback else [])):
        milliseconds = 1000 * np.array(spent[path])
        found[f"{name}s_per_second"] = len(milliseconds) / wall
        for share in (50, 99, 99.9):
            found[f"{name}_p{share:g}_ms"] = float(np.percentile(milliseconds, share))
    print(json.dumps(found))


# ---- the server ---------------------------------------------------------------------------------------------


class Server:
    """`rlsvi serve` in a folder, and its processes."""

    def __init__(self, folder, workers, learner):
        self.port = int((folder / "port").read_text())
        command = [sys.executable, "-m", "rlsvi", "serve", str(folder / "shop.toml"), "--workers", str(workers)]
        command += [] if learner else ["--no-learner"]
        self.log = open(folder / "log", "ab")  # noqa: SIM115
        self.process = subprocess.Popen(command, stderr=self.log)
        limit = time.monotonic() + 120
        while not self.ready():
            if time.monotonic() > limit or self.process.poll() is not None:
                self.end()
                raise RuntimeError((folder / "log").read_text()[-2000:])
            time.sleep(0.2)

    def ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def children(self):
        """The ids of its processes, by role."""
        found = {"parent": [self.process.pid], "worker": [], "learner": []}
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for child in map(int, children):
            words = Path(f"/proc/{child}/cmdline").read_bytes()
            found["learner" if b"learning" in words else "worker"].append(child)
        return found

    def megabytes(self):
        """The memory of each role: what its processes have of their own, and their share of what is common."""
        found = {}
        for role, processes in self.children().items():
            rolled = [Path(f"/proc/{process}/smaps_rollup").read_text().splitlines() for process in processes]
            lines = [line.split() for text in rolled for line in text]
            found[f"{role}_mb"] = sum(int(line[1]) for line in lines if line[0] == "Pss:") / 1024
        return found

    def processor_seconds(self):
        ticks = os.sysconf("SC_CLK_TCK")
        found = {}
        for role, processes in self.children().items():
            parts = [Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split() for process in processes]
            found[f"{role}_cpu"] = sum(int(part[11]) + int(part[12]) for part in parts) / ticks
        return found

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(90)
        self.log.close()


def new_folder(folder, products):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "port").write_text(str(port))
    (folder / "shop.toml").write_text(SETTINGS.format(slots=SLOTS, port=port))
    (folder / "products.csv").write_text("product\n" + "".join(f"product-{n:03}\n" for n in range(products)))


def measured(products, workers, learner, clients, seconds, feedback):
    """One row of the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        new_folder(folder, products)
        if not learner:
            Server(folder, 1, True).end()  # which leaves samples to serve with
        server = Server(folder, workers, learner)
        try:
            before = server.processor_seconds()
            command = [sys.executable, "-m", "benchmarks.shop_load", "--as-client", str(server.port)]
            command += ["--clients", str(clients), "--seconds", str(seconds)]
            command += [] if feedback else ["--no-feedback"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 120, check=False)
            if done.returncode:
                raise RuntimeError(done.stderr)
            found = json.loads(done.stdout)
            after = server.processor_seconds()
            spent = {role: after[role] - before[role] for role in after}
            memory = server.megabytes()
        finally:
            server.end()
    asked = {
        "feedback": feedback,
        "products": products,
        "workers": workers,
        "learner": learner,
        "clients": clients,
    }
    refused = {code: count for code, count in found.pop("statuses").items() if code != "200"}
    return {**asked, **found, "refused": sum(refused.values()), **spent, **memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 8, 64])
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--products", type=int, nargs="*", default=[50, 500])
    parser.add_argument("--learner", nargs="*", default=["on", "off"], choices=["on", "off"])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--no-feedback", action="store_true", help="recommend only")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--as-client", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.as_client:
        client(given.as_client, given.clients[0], given.seconds, f"{os.getpid()}", not given.no_feedback)
        return
    rows = []
    for products in given.products:
        for workers in given.workers:
            for learner in given.learner:
                for clients in given.clients:
                    row = measured(
                        products, workers, learner == "on", clients, given.seconds, not given.no_feedback
                    )
                    print(
                        json.dumps({k: round(v, 2) if isinstance(v, float) else v for k, v in row.items()}),
                        flush=True,
                    )
                    rows.append(row)
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        pl.DataFrame(rows).write_csv(given.out / "shop_load.csv")


if __name__ == "__main__":
    main()
