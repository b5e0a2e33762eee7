"""Connections of a worker over real sockets: slow, silent and idle ones lock nobody out."""

import contextlib
import http.client
import itertools
import json
import socket
import subprocess
import sys
import time

import pytest
from serving import until
from stories import write

pytest.importorskip("resource", reason="workers need Unix")

from rlsvi_shop import Events, ShopSettings
from rlsvi_shop.events import Event
from rlsvi_shop.follower import Follower
from rlsvi_shop.service.processes import bound_socket

FILES = 256  # that the worker may open, so 128 connections, and 96 requests at once
WORKER = f"""
import os, resource, socket, sys
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from rlsvi_shop.service import guard, worker
from rlsvi_shop.service.processes import log_as
from rlsvi_shop.settings import ShopSettings
resource.setrlimit(resource.RLIMIT_NOFILE, ({FILES}, {FILES}))
worker.HEADER, worker.KEPT_SECONDS, worker.ANSWER, guard.PATIENCE = 1.0, 2.0, 3.0, 3.0
worker.AutoHTTPProtocol = H11Protocol if sys.argv[3] == "h11" else HttpToolsProtocol
log_as("worker")
worker.serve(ShopSettings.from_toml(sys.argv[1]), socket.socket(fileno=int(sys.argv[2])), os.getppid())
"""
KEY = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
HEAD = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """A shop with samples to recommend with."""
    file = tmp_path_factory.mktemp("shop") / "shop.toml"
    file.write_text("slots = 2\n")
    settings = ShopSettings.from_toml(file)
    with Events(settings.database) as events:
        write(events, *[Event("added", product=name) for name in ("tea", "coffee", "cocoa")])
        with Follower(settings, events) as follower:
            follower.publish()
    return file


@pytest.fixture(scope="module", params=["httptools", pytest.param("h11", marks=pytest.mark.slow)])
def port(request, settings):
    listening = bound_socket("127.0.0.1", 0)
    command = [sys.executable, "-c", WORKER, str(settings), str(listening.fileno()), request.param]
    with open(settings.parent / request.param, "wb") as log:
        process = subprocess.Popen(command, pass_fds=[listening.fileno()], stderr=log)
    try:
        port = listening.getsockname()[1]
        with opened(port, 240) as first:
            assert get(first)[0] == 200, (settings.parent / request.param).read_text()
        yield port
    finally:
        listening.close()
        process.terminate()
        process.wait(60)


@contextlib.contextmanager
def opened(port, seconds=10.0):
    with socket.create_connection(("127.0.0.1", port), seconds) as found:
        yield found


def ask(port, path="/health"):
    with opened(port) as one:
        return get(one, path)


def get(connection, path="/health"):
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return answer(connection)


def answer(connection):
    with contextlib.closing(http.client.HTTPResponse(connection)) as found:
        found.begin()
        return found.status, dict(found.getheaders()), found.read()


def seconds_until_closed(connection, most=10.0, sending=None):
    """How long it takes until the server closes the connection, while something may be sent again and again."""
    begun = time.monotonic()
    connection.settimeout(0.2)
    while (passed := time.monotonic() - begun) < most:
        try:
            if sending:
                connection.sendall(sending)
            if not connection.recv(65_536):
                return passed
        except TimeoutError:
            continue
        except OSError:
            return passed
    raise AssertionError(f"the connection was still open after {most} seconds")


@pytest.mark.parametrize(
    "begin", [b"", b"GET", HEAD, HEAD + b"X: " + b"y" * 1000], ids=["nothing", "word", "head", "long"]
)
def test_a_header_that_stops_is_not_waited_for(port, begin):
    with opened(port) as one:
        one.sendall(begin)
        assert 0.5 < seconds_until_closed(one) < 8


def test_a_header_that_never_ends_is_not_waited_for(port):
    with opened(port) as one:
        one.sendall(HEAD)
        assert 0.5 < seconds_until_closed(one, sending=b"X-A: b\r\n") < 8
    with opened(port) as one:
        assert get(one)[0] == 200
        one.sendall(HEAD)  # the second request of a connection
        assert 0.5 < seconds_until_closed(one, sending=b"X-A: b\r\n") < 8


def test_a_large_header_is_not_kept(port):
    with opened(port) as one:
        one.sendall(HEAD + b"X: ")
        one.settimeout(0.5)  # less than a header may take
        with pytest.raises(ConnectionError):
            one.sendall(2**23 * b"y")
    assert ask(port)[0] == 200


def test_upgrades_that_go_silent_are_ended(port):
    with contextlib.ExitStack() as stack:
        silent = []
        for kind, key, end in itertools.product(("websocket", "h2c"), (KEY, ""), ("\r\n", "")):
            one = stack.enter_context(opened(port))
            one.sendall(HEAD + f"Connection: Upgrade\r\nUpgrade: {kind}\r\n{key}{end}".encode())
            assert not end or answer(one)[0] == 200  # there is nothing to upgrade to
            silent.append(one)
        assert all(seconds_until_closed(one) < 8 for one in silent)


def test_a_connection_that_is_used_stays(port):
    with opened(port) as one:
        for _ in range(12):  # longer than a header, a pause or an answer may take
            assert get(one)[0] == 200
            time.sleep(0.4)


def test_an_answer_that_is_not_taken_is_not_kept(port):
    """The client asks, and never reads. Its window fills, and then the buffers of the server."""
    request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect(("127.0.0.1", port))
        one.sendall(1000 * request)

        def refused():
            try:
                one.sendall(request)
            except ConnectionError:
                return True
            return False

        until(refused, 20)
    assert ask(port)[0] == 200


def test_idle_connections_lock_nobody_out(port):
    """400 of them, of which the worker could not keep 256."""
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(opened(port)) for _ in range(400)]
        for _ in range(5):
            assert ask(port)[0] == 200
            idle += [stack.enter_context(opened(port)) for _ in range(100)]


def test_connections_without_a_token_make_room_for_those_with_one(port):
    """This service has no token: who asks for more than public pages counts as one who has shown it."""
    with contextlib.ExitStack() as stack:
        known = [stack.enter_context(opened(port)) for _ in range(20)]
        for _ in range(6):
            assert {get(one, "/products")[0] for one in known} == {200}
            strangers = [stack.enter_context(opened(port)) for _ in range(100)]
            for one in strangers[::2]:
                one.sendall(HEAD + b"\r\n")  # and never reads the answer
        assert {get(one, "/products")[0] for one in known} == {200}


def test_requests_for_public_pages_keep_nobody_else_waiting(port):
    """As many as there may be connections: more than there may be requests at once."""
    with contextlib.ExitStack() as stack:
        asking = [stack.enter_context(opened(port)) for _ in range(FILES // 2)]
        for one in asking:
            one.sendall(5 * (HEAD + b"\r\n"))
        for _ in range(20):
            assert ask(port, "/products")[0] == 200


def test_requests_beyond_the_limit_are_answered_with_503(port):
    slow = b"POST /close HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    with contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(opened(port)) for _ in range(FILES * 3 // 8)]
        for one in waiting:
            one.sendall(slow)
        until(lambda: ask(port, "/products")[0] == 503)
        status, headers, body = ask(port, "/products")
        assert (status, headers["retry-after"]) == (503, "1")
        assert json.loads(body) == {"error": "96 requests are being answered: ask again in a second"}
        assert answer(waiting[0])[0] == 408
        until(lambda: ask(port)[0] == 200, 20)
