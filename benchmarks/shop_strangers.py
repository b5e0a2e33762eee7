"""Whether clients without a token keep those with one from their answers.

A shop with a token, whose processes may open 1024 files each, is asked by a few clients that show it: half of
them keep their connection, half make a new one for each request. Meanwhile 450 others, in a process of their own,
do not show the token: they connect and say nothing, ask once and stay, or ask again and again. A request of the
first is refused if its answer is not 200, or if there is none. All share the cores of the machine.

    python -m benchmarks.shop_strangers --out out/bench     # in 3 minutes
"""

import argparse
import asyncio
import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.shop_service import Shop, write_markdown

FILES = 1024  # that a process may open
TOKEN = "a-token-of-the-benchmark"
KINDS = ("none", "silent", "idle", "/health", "/", "/products")  # what strangers do


async def answer(reader, writer, request):
    """Send a request, and return the status of the answer and whether the connection stays."""
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    start = head.index(b"content-length:") + 15
    await reader.readexactly(int(head[start : head.index(b"\r", start)]))
    return int(head[9:12]), b"connection: close" not in head


def request_of(path, body=None, token=False):
    shown = f"Authorization: Bearer {TOKEN}\r\n" if token else ""
    if body is None:
        return f"GET {path} HTTP/1.1\r\nHost: shop\r\n{shown}\r\n".encode()
    return f"POST {path} HTTP/1.1\r\nHost: shop\r\n{shown}Content-Length: {len(body)}\r\n\r\n{body}".encode()


async def stranger(port, kind):
    """Do what this kind of stranger does, and connect again whenever the connection ends."""
    request = request_of(kind if kind.startswith("/") else "/health")
    while True:
        with contextlib.suppress(OSError, EOFError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            with contextlib.closing(writer):
                stays = kind == "silent" or (await answer(reader, writer, request))[1]
                while kind.startswith("/") and stays:
                    _, stays = await answer(reader, writer, request)
                if stays:
                    await reader.read()  # until the server closes it


async def strangers(port, kind, count):
    await asyncio.gather(*(stranger(port, kind) for _ in range(count)))


async def client(port, name, keeps, end, found):
    """Make visits of one product, one after another."""
    reader = writer = None
    visit = 0
    while time.perf_counter() < end:
        visit += 1
        request = request_of("/recommend", f'{{"visit":"{name}-{visit}"}}', token=True)
        begun, status = time.perf_counter(), 0
        with contextlib.suppress(OSError, EOFError, TimeoutError):
            async with asyncio.timeout(30):
                if writer is None:
                    reader, writer = await asyncio.open_connection("127.0.0.1", port)
                status, _ = await answer(reader, writer, request)
        found.append((status, time.perf_counter() - begun))
        if writer is not None and (not keeps or status != 200):
            writer.close()
            writer = None
        await asyncio.sleep(0.01)


async def clients(port, count, seconds, name):
    found, end = [], time.perf_counter() + seconds
    await asyncio.gather(*(client(port, f"{name}-{i}", i % 2 == 0, end, found) for i in range(count)))
    return found


def measured(shop, kind, given):
    """The row of one kind of strangers."""
    command = [sys.executable, "-m", "benchmarks.shop_strangers", "--as-strangers", str(shop.port), "--kind", kind]
    others = None
    if kind != "none":
        others = subprocess.Popen([*command, "--strangers", str(given.strangers)])
    try:
        time.sleep(2.0)
        found = asyncio.run(clients(shop.port, given.clients, given.seconds, f"{os.getpid()}{kind}"))
    finally:
        if others is not None:
            others.kill()
            others.wait()
    milliseconds = 1000 * np.array([seconds for _, seconds in found])
    row = {"strangers": kind, "requests": len(found), "refused": sum(status != 200 for status, _ in found)}
    return row | {f"p{p}, ms": f"{np.percentile(milliseconds, p):.1f}" for p in (50, 99)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strangers", type=int, default=450)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=15.0, help="the length of a run")
    parser.add_argument("--out", type=Path, help="the folder for shop_strangers.md")
    parser.add_argument("--as-strangers", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--kind", choices=KINDS, help="only these strangers")
    given = parser.parse_args()
    if given.as_strangers:
        asyncio.run(strangers(given.as_strangers, given.kind, given.strangers))
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    os.environ["RLSVI_TOKEN"] = TOKEN
    rows = []
    with tempfile.TemporaryDirectory() as name:
        shop = Shop(Path(name), workers=1)
        try:
            shop.wait()
            for kind in [given.kind] if given.kind else KINDS:
                rows.append(measured(shop, kind, given))
                print(rows[-1], file=sys.stderr, flush=True)
                time.sleep(3.0)
        finally:
            shop.end()
    words = (
        f"{given.clients} clients with the token for {given.seconds:g} s beside {given.strangers} without it, one "
        f"worker, `ulimit -n {FILES}`, {os.cpu_count()} cores shared by all."
    )
    write_markdown(given.out, "shop_strangers.md", rows, words)


if __name__ == "__main__":
    main()
