"""A shop's application in this process, asked without a network."""

import asyncio
import json
import time
from contextlib import contextmanager
from typing import NamedTuple

from rlsvi_shop import Recommender
from rlsvi_shop.service.app import create_app

PRODUCTS = ["tea", "coffee", "cocoa", "juice", "water"]
SCHEMA = {"customer": {"age": {"low": 0, "high": 100}}, "product": {"price": {"low": 0, "high": 10}}}


class Answer(NamedTuple):
    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


def new_shop(folder, products=PRODUCTS, **options):
    """A shop that learns in this process, with some products."""
    shop = Recommender(database=f"sqlite:///{folder}/shop.db", **{"slots": 3, **SCHEMA, **options})
    shop.add_all({product: {} for product in products})
    return shop


def until(true, seconds=60):
    limit = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < limit, "it did not happen in time"
        time.sleep(0.1)


async def ask(app, method, path, body=b"", headers=(), chunks=None):
    """Send one request; the body comes in the chunks given, or whole."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    parts = [body] if chunks is None else list(chunks)
    given = [(name.lower().encode(), value.encode()) for name, value in dict(headers).items()]
    if chunks is None:
        given.append((b"content-length", str(len(body)).encode()))
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": given,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    sent = []

    async def receive():
        if parts:
            return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    first, rest = sent[0], sent[1:]
    found = {name.decode(): value.decode() for name, value in first["headers"]}
    return Answer(first["status"], found, b"".join(message.get("body", b"") for message in rest))


class Served:
    """An application that has started, and a loop to ask it in."""

    def __init__(self, app, runner):
        self.app, self._runner = app, runner

    def __call__(self, method, path, body=b"", headers=(), chunks=None):
        return self._runner.run(ask(self.app, method, path, body, headers, chunks))

    def together(self, requests):
        """The answers to requests, (method, path, body) each, that are sent at once."""

        async def all_of_them():
            return await asyncio.gather(*(ask(self.app, *request) for request in requests))

        return self._runner.run(all_of_them())


@contextmanager
def serving(shop, **options):
    app = create_app(shop, **options)
    with asyncio.Runner() as runner:
        life = app.router.lifespan_context(app)
        runner.run(life.__aenter__())
        try:
            yield Served(app, runner)
        finally:
            runner.run(life.__aexit__(None, None, None))
