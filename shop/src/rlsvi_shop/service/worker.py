"""A process that serves: uvicorn on a socket that it shares with the other workers."""

import gc
import itertools
import logging
import os
import signal
import socket
import threading
from resource import RLIMIT_NOFILE, getrlimit
from typing import Any

import numpy as np
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from rlsvi_shop.events import Event
from rlsvi_shop.model.draws import choose
from rlsvi_shop.recommender import Recommender
from rlsvi_shop.samples import first_samples
from rlsvi_shop.service.app import create_app
from rlsvi_shop.service.guard import CONNECTION
from rlsvi_shop.settings import ShopSettings

GRACE = 20  # seconds that accepted requests may take when the process ends
WATCHING = 0.2  # seconds between two looks for new samples
LEARNER = 25  # looks for new samples for one at the learner
HEADER = 10.0  # seconds for a header
KEPT_SECONDS = 60.0  # seconds between two requests
ANSWER = 120.0  # seconds until the answer is taken
LARGEST_HEADER = 65_536  # bytes of a header
CONNECTIONS = 1000  # at most, and no more than half of the files that the process may open
STRANGERS = 8  # one connection of so many may be of clients that have not shown the token, even if all others have
log = logging.getLogger("rlsvi_shop")


class Limits(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """The protocol of uvicorn with limits, so that nobody can keep a connection without using it.

    If there are more connections than `most`, one makes room: the oldest of those that have not shown the token,
    or, if these are few, the one that has waited longest for a request.
    """

    most, largest, known = CONNECTIONS, LARGEST_HEADER, False  # known: whether it has shown the token
    app_state: dict[str, Any]

    def connection_made(self, transport: Any) -> None:
        """Begin with a connection, if there is room for it."""
        super().connection_made(transport)
        self._state, self._since, self._unread = self._limit(), self.loop.time(), 0
        self.app_state = {**self.app_state, CONNECTION: self}
        if len(self.connections) > self.most:
            others = self.connections - {self}
            strangers = [it for it in others if not it.known]
            waiting = [it for it in others if it.known and not it._busy()]
            few = len(strangers) <= self.most // STRANGERS and waiting
            min(waiting if few else strangers or others, key=lambda it: it._since)._end()
        self._look()

    def data_received(self, data: bytes) -> None:
        """Take some bytes, but not without end before there is a request."""
        super().data_received(data)
        self._unread = 0 if self._busy() else self._unread + len(data)
        if self._unread > self.largest:
            self._end()

    def _busy(self) -> bool:
        # There is no cycle before the first request.
        return self.cycle is not None and not self.cycle.response_complete

    def _limit(self) -> tuple[Any, float]:
        """Return what the connection is doing, and for how many seconds it may."""
        kept = self.timeout_keep_alive_task is not None
        return self.cycle, ANSWER if self._busy() else KEPT_SECONDS + HEADER if kept else HEADER

    def _look(self) -> None:
        """Look every second whether the connection has been doing the same for too long."""
        if self not in self.connections:
            return
        state, now = self._limit(), self.loop.time()
        if state != self._state:
            self._state, self._since = state, now
        elif now - self._since > state[1]:
            self._end()
        self.loop.call_later(1.0, self._look)

    def _end(self) -> None:
        self.connections.discard(self)
        self.transport.abort()  # without waiting until the client has taken what was sent

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: uvicorn would advise to install WebSockets, which no path here uses."""


def serve(settings: ShopSettings, listening: socket.socket, parent: int) -> None:
    """Serve until SIGTERM or SIGINT, or until the parent has died."""
    most = min(CONNECTIONS, getrlimit(RLIMIT_NOFILE)[0] // 2)
    limits = {"most": most, "largest": LARGEST_HEADER + settings.serve.largest_body}  # also of an unread body
    with Recommender(settings, learning=False) as recommender:
        token = os.environ.get(settings.serve.token_variable) or None
        app = create_app(recommender, token=token, most=most * 3 // 4)  # always some wait, and can make room
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                http=type("Connection", (Limits,), limits),
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=GRACE,
                timeout_keep_alive=int(KEPT_SECONDS),
            )
        )
        threading.Thread(target=_watch, args=(recommender, app, server, parent), daemon=True).start()
        any_sample = first_samples(settings, {"any": Event("added", product="any")})
        choose(any_sample.draws, 0, np.zeros(settings.customer.width), [0], [1.0], [True])  # the first loads code
        gc.collect()
        gc.freeze()  # what lives as long as the process is not looked at again
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)  # uvicorn takes them, and raises them again in the end
        log.info("serving")
        server.run(sockets=[listening])
        log.info("ended")


def _watch(recommender: Recommender, app: FastAPI, server: uvicorn.Server, parent: int) -> None:
    """Take new samples as they come, look whether the learner works, and end with the parent."""
    waiting, looks, metrics = threading.Event(), itertools.count(), app.state.metrics
    while not server.should_exit:
        try:
            if next(looks) % LEARNER == 0:
                metrics.learner.set(recommender.events.learner_state()[0] or 0.0)
            recommender.renew()
            if recommender.sample is not None:
                metrics.sample.set(recommender.sample.last)
                metrics.drawn.set(recommender.sample.at)
        except Exception as error:
            log.error("samples not renewed", extra={"why": str(error)})
            waiting.wait(1.0)
        waiting.wait(WATCHING)
        if os.getppid() != parent:
            log.error("the parent has ended")
            server.should_exit = True
