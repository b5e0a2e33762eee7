"""What every request passes: the token or the host, the limits on its body, and errors as `{"error": ...}`.

Clients that show no token, as those of public pages, have a small share of the time and yield to the others.
"""

import asyncio
import contextlib
import hmac
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from functools import lru_cache
from ipaddress import ip_address
from time import monotonic, perf_counter
from typing import Any

from rlsvi_shop.events import StoreError
from rlsvi_shop.requests import Conflict, NotFound, NotJSON, NotReady, RequestError
from rlsvi_shop.service.metrics import Metrics

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGI = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
PATIENCE = 10.0  # seconds for a whole body
STRANGERS_PER_SECOND = 200  # answers to clients that show no token
STRANGERS_AT_ONCE = 50  # so many of them at once, after a pause
STRANGERS_WAIT = 5.0  # seconds, at most, until it is their turn
TOO_LARGE = "the body must have at most {} bytes: send less, or raise largest_body in the section [serve]"
CONNECTION = "rlsvi.connection"  # in the state of a request: where it is noted that the client has shown the token
CLOSE = b"connection", b"close"  # what is left of the body is not read
HEADERS = {  # by status
    401: ((b"www-authenticate", b"Bearer"), CLOSE),
    503: ((b"retry-after", b"1"),),
    **dict.fromkeys((403, 408, 413), (CLOSE,)),
}
log = logging.getLogger("rlsvi_shop")


class BusyError(RuntimeError):
    """More requests wait than can be answered soon."""


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
    app
        The application.
    token
        What `Authorization: Bearer` must show; None: nothing, and only requests to a loopback host pass.
    public
        The paths that need no token. They have a share of their own, with the requests that are refused for want
        of a token: 200 answers a second. So clients without a token cannot keep the others waiting.
    largest
        The most bytes of a body.
    most
        The most other requests that are answered at once.
    direct
        By path, the function with which the route of the application answers the body of a POST. It is called
        here, without the route: a request to a route of FastAPI takes 410 instead of 260 microseconds of processor
        time in all, a plain one of Starlette 300.
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
        self._direct, self._most, self._going, self._turn = direct, most, 0, 0.0
        self._token = None if token is None else b"Bearer " + token.encode()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Pass a request on, if it may pass."""
        if scope["type"] != "http":
            await self._pass_other(scope, receive, send)
            return
        exchange = _Exchange(receive, send, self._largest)
        begun = perf_counter()
        known, refusal = self._look(scope)
        self._going += known
        try:
            if not known:
                await self._wait_for_turn()
            elif self._going > self._most:
                raise BusyError(f"{self._most} requests are being answered: ask again in a second")
            elif connection := scope.get("state", {}).get(CONNECTION):
                connection.known = True
            if refusal is not None:
                await exchange.refuse(*refusal)
            elif scope["method"] == "POST" and scope["path"] in self._direct:
                await exchange.answer(200, await self._direct[scope["path"]](await exchange.body()), ())
            else:
                await self._app(scope, exchange.receive, exchange.send)
        except Exception as error:
            await exchange.refuse(*_status_and_words(error))
        finally:
            self._going -= known
            self._metrics.count_answer(scope["path"], exchange.status, perf_counter() - begun)
            if exchange.status >= 400:
                about = {"path": scope["path"][:200], "status": exchange.status, "why": exchange.why}
                log.warning("refused", extra=about)

    async def _wait_for_turn(self) -> None:
        """Wait until one more client that shows no token may be answered; those that come next wait longer."""
        now = monotonic()
        turn = max(self._turn, now - STRANGERS_AT_ONCE / STRANGERS_PER_SECOND) + 1 / STRANGERS_PER_SECOND
        if turn > now + STRANGERS_WAIT:
            raise BusyError("too many clients that show no token ask: ask again in a second")
        self._turn = turn
        await asyncio.sleep(max(0.0, turn - now))

    async def _pass_other(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Pass on the application's start and end, and a WebSocket of another router if it may pass."""
        refusal = None if scope["type"] == "lifespan" else self._look(scope)[1]
        if refusal is None:
            await self._app(scope, receive, send)
            return
        await receive()  # that there is one
        await send({"type": "websocket.close", "code": 1008, "reason": refusal[1][:100]})  # answered with 403
        log.warning("refused", extra={"path": scope["path"][:200], "status": 403, "why": refusal[1]})

    def _look(self, scope: MutableMapping[str, Any]) -> tuple[bool, tuple[int, str] | None]:
        """Return whether a request shows the token (or would have to), and why it is refused, if it is."""
        if self._token is None and (why := _refusal_of_host(scope["headers"])):
            return False, (403, why)
        headers = dict(scope["headers"])
        shown, size = headers.get(b"authorization", b""), headers.get(b"content-length", b"")
        public = scope["type"] == "http" and scope["path"] in self._public
        known = not public if self._token is None else hmac.compare_digest(shown, self._token)
        if not known and not public:
            return False, (401, "the token is missing or wrong: send the header Authorization: Bearer TOKEN")
        if size and (not size.isdigit() or int(size[:20]) > self._largest):
            return known, (413, TOO_LARGE.format(self._largest))
        return known, None


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
        parts = b""
        while not self._complete:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientLeft("the client has left")
            parts += message.get("body", b"")
        return parts

    async def answer(self, status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]]) -> None:
        usual = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await self.send({"type": "http.response.start", "status": status, "headers": [*usual, *headers]})
        await self.send({"type": "http.response.body", "body": body})

    async def refuse(self, status: int, why: str) -> None:
        """Answer with an error, unless an answer has begun."""
        self.why = why
        if not self._begun:
            await self.answer(status, json.dumps({"error": why}).encode(), HEADERS.get(status, ()))


def _status_and_words(error: Exception) -> tuple[int, str]:
    for kind, status in STATUS:
        if isinstance(error, kind):
            if kind is StoreError:  # what it says of the database is for the log alone
                log.error("the database failed", extra={"why": str(error)})
                return status, error.for_client  # type: ignore[attr-defined]
            return status, str(error)
    log.error("failed", exc_info=error)
    return 500, "the server failed; its log says why"


# ---- tokens and hosts ---------------------------------------------------------------------------------------

REMEDY = "or set a token, with which any host may ask"


def _refusal_of_host(headers: Sequence[tuple[bytes, bytes]]) -> str | None:
    """Return why a service without a token refuses a request with these headers; None if it does not.

    Such a service listens on loopback, and still any web page can make the browser send requests to it. A page of
    another site names itself in the header Origin. One whose name was made to point to 127.0.0.1 has that name in
    the header Host. So Host must be localhost or a loopback address, with any port, and Origin, if there is one,
    must be the same. A request without Host passes: browsers always send it.
    """
    if not all(_is_loopback(value) for name, value in headers if name == b"host"):
        return f"without a token, Host must be localhost or a loopback address: ask there, {REMEDY}"
    last = dict(headers)
    host, origin = last.get(b"host"), last.get(b"origin")
    if origin is not None and (host is None or origin.lower().partition(b"://")[2] != host.lower()):
        return f"without a token, pages of other sites may not ask: the header Origin differs from Host; {REMEDY}"
    return None


def check_token(token: str, name: str = "token") -> str:
    """Return a token if a header can show it: printable ASCII characters without spaces."""
    if not isinstance(token, str) or not re.fullmatch("[!-~]+", token):
        raise ValueError(
            f"{name} must be a text of printable ASCII characters without spaces: choose another token"
        )
    return token


@lru_cache(maxsize=64)
def _is_loopback(host: bytes) -> bool:
    """Return whether a header Host is localhost, an address in 127.0.0.0/8 or [::1], with any port or none."""
    # An address of IPv6, and no other, has colons and is in brackets.
    found = re.fullmatch(r"(?:\[([^][]*:[^][]*)\]|([^:]*))(?::[0-9]*)?", host.decode("latin-1").lower())
    with contextlib.suppress(ValueError):
        return found is not None and (found[2] == "localhost" or ip_address(found[1] or found[2]).is_loopback)
    return False
