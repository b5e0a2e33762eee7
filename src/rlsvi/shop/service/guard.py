"""What every request passes: the token or the host, the limit on its body, and errors as `{"error": ...}`."""

import asyncio
import hmac
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from time import perf_counter
from typing import Any

from rlsvi.shop.events import StoreError
from rlsvi.shop.requests import Conflict, NotFound, NotJSON, RequestError
from rlsvi.shop.samples import NotReady
from rlsvi.shop.service.batches import BusyError
from rlsvi.shop.service.hosts import foreign
from rlsvi.shop.service.metrics import Metrics

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGI = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
PATIENCE = 10.0  # seconds for a whole body
TOO_LARGE = "the body must have at most {} bytes: send less, or raise largest_body in the section [serve]"
log = logging.getLogger("rlsvi.serve")


class TooLarge(ValueError):
    """A body of more bytes than are allowed."""


class TooSlow(ValueError):
    """A body that does not come."""


class ClientLeft(ValueError):
    """A client that closed its connection before its request was complete."""


# The first class that fits; what is in none of them is an error of ours.
STATUS: list[tuple[type[Exception], int]] = [
    (NotJSON, 400),
    (RequestError, 422),
    (TooLarge, 413),
    (TooSlow, 408),
    (ClientLeft, 400),
    (NotFound, 404),
    (Conflict, 409),
    (NotReady, 503),
    (StoreError, 503),
    (BusyError, 503),
]


class Guard:
    """The outermost layer of the application.

    Parameters
    ----------
    app : the application.
    token : what `Authorization: Bearer` must show; None: nothing, and only requests to a loopback host pass.
    public : the paths that need no token.
    largest : the most bytes of a body.
    most : the most requests that are answered at once.
    direct : what answers the body of a POST to a path directly, without the routes of the application: finding and
        calling a route takes as long as a recommendation.
    """

    def __init__(
        self,
        app: ASGI,
        *,
        token: str | None,
        public: set[str],
        largest: int,
        most: int,
        direct: dict[str, Callable[[bytes], Awaitable[bytes]]],
        metrics: Metrics,
    ) -> None:
        self._app, self._public, self._largest, self._metrics = app, public, largest, metrics
        self._direct, self._most, self._going = direct, most, 0
        self._token = None if token is None else b"Bearer " + token.encode()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Pass a request on, if it may pass."""
        if scope["type"] != "http":
            await self._pass_other(scope, receive, send)
            return
        exchange = _Exchange(receive, send, self._largest)
        begun = perf_counter()
        self._going += 1
        try:
            if self._going > self._most:
                raise BusyError(f"{self._most} requests are being answered: ask again in a second")
            refusal = self._refusal(scope)
            if refusal is not None:
                await exchange.refuse(*refusal)
            elif scope["method"] == "POST" and scope["path"] in self._direct:
                await exchange.answer(200, await self._direct[scope["path"]](await exchange.body()), ())
            else:
                await self._app(scope, exchange.receive, exchange.send)
        except Exception as error:
            status, message = _told(error)
            await exchange.refuse(status, message)
        finally:
            self._going -= 1
            self._metrics.answered(scope["path"], exchange.status, perf_counter() - begun)
            if exchange.status >= 400:
                path, status = scope["path"][:200], exchange.status
                log.warning("refused", extra={"path": path, "status": status, "why": exchange.why})

    async def _pass_other(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Pass on the application's start and end, and a WebSocket of another router if it may pass."""
        refusal = None if scope["type"] == "lifespan" else self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send)
            return
        await receive()  # that there is one
        await send({"type": "websocket.close", "code": 1008, "reason": refusal[1][:100]})  # answered with 403
        log.warning("refused", extra={"path": scope["path"][:200], "status": 403, "why": refusal[1]})

    def _refusal(self, scope: MutableMapping[str, Any]) -> tuple[int, str] | None:
        if self._token is None and (why := foreign(scope["headers"])):
            return 403, why
        shown = size = b""
        for name, value in scope["headers"]:
            if name == b"authorization":
                shown = value
            elif name == b"content-length":
                size = value
        public = scope["type"] == "http" and scope["path"] in self._public
        needed = self._token is not None and not public
        if needed and not hmac.compare_digest(shown, self._token or b""):
            return 401, "the token is missing or wrong: send the header Authorization: Bearer TOKEN"
        if size and (not size.isdigit() or int(size[:20]) > self._largest):
            return 413, TOO_LARGE.format(self._largest)
        return None


class _Exchange:
    """One request and its answer: the body has a limit and a deadline, and the status of the answer is noted."""

    def __init__(self, receive: Receive, send: Send, largest: int) -> None:
        self._receive, self._send, self._left, self._largest = receive, send, largest, largest
        self.status, self.why, self._begun, self._complete = 500, "", False, False
        self._deadline = asyncio.get_running_loop().time() + PATIENCE

    async def receive(self) -> Message:
        if self._complete:  # what comes now is that the client leaves, whenever
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            raise TooSlow(f"the body was not complete within {PATIENCE:g} seconds") from None
        self._complete = not message.get("more_body", False)
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise TooLarge(TOO_LARGE.format(self._largest))
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self._begun = message["status"], True
        await self._send(message)

    async def body(self) -> bytes:
        """Return the whole body."""
        parts = b""
        while not self._complete:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientLeft("the client has left")
            parts += message.get("body", b"")
        return parts

    async def answer(self, status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Send an answer."""
        usual = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await self.send({"type": "http.response.start", "status": status, "headers": [*usual, *headers]})
        await self.send({"type": "http.response.body", "body": body})

    async def refuse(self, status: int, why: str) -> None:
        """Answer with an error, unless an answer has begun."""
        self.why = why
        if self._begun:
            return
        headers = []
        if status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        if status == 503:
            headers.append((b"retry-after", b"1"))
        if status in (401, 403, 408, 413):
            headers.append((b"connection", b"close"))  # what is left of the body is not read
        await self.answer(status, json.dumps({"error": why}).encode(), headers)


def _told(error: Exception) -> tuple[int, str]:
    """Return the status of an error and what the client is told of it."""
    for kind, status in STATUS:
        if isinstance(error, kind):
            if kind is StoreError:  # what it says of the database is for the log alone
                log.error("the database failed", extra={"why": str(error)})
                return status, error.told  # type: ignore[attr-defined]
            return status, str(error)
    log.error("failed", exc_info=error)
    return 500, "the server failed; its log says why"
