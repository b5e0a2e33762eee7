"""The application: what a shop answers over HTTP, and how its OpenAPI document describes that."""

import asyncio
import inspect
import json
import logging
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from queue import SimpleQueue
from time import monotonic
from typing import Any, Generic, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException

from rlsvi import __version__
from rlsvi_shop.events import StoreError
from rlsvi_shop.recommender import Recommender
from rlsvi_shop.requests import (
    Close,
    Feedback,
    NotReady,
    ProductsRequest,
    Recommend,
    RequestError,
    ShopRequest,
    VisitRequest,
    name_of,
)
from rlsvi_shop.service.guard import BusyError, Guard, check_token
from rlsvi_shop.service.metrics import Metrics
from rlsvi_shop.service.pages import HEADERS, reference_page, watch_page
from rlsvi_shop.service.statistics import COLUMNS, MOST_PRODUCTS, ShopStatistics

Asked = TypeVar("Asked")
PUBLIC = {"/", "/health", "/docs", "/openapi.json"}  # what needs no token
ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
STORED = b'{"stored":true}'
LARGEST_BATCH = 256  # requests in a transaction
HEALTH = 1.0  # seconds between two looks at the health of the shop
log = logging.getLogger("rlsvi_shop")


def create_app(
    recommender: Recommender, *, token: str | None = None, metrics: Metrics | None = None, most: int = 1000
) -> FastAPI:
    """Return the application of a shop.

    A router of other routes is added with `app.include_router`. They find the recommender, and in it the events,
    as `request.app.state.recommender`.

    Parameters
    ----------
    recommender
        What answers; its owner closes it after the application.
    token
        What requests must show in the header `Authorization: Bearer`: printable ASCII without spaces; None:
        nothing, and requests are refused whose header Host is not localhost or a loopback address, or whose Origin
        is another one.
    metrics
        The numbers for Prometheus; None: new ones.
    most
        How many requests are answered at once; the others are refused with 503.
    """
    app = FastAPI(
        title="A shop that learns",
        description=DESCRIPTION,
        version=__version__,
        docs_url=None,  # those of FastAPI load scripts from the network
        redoc_url=None,
        redirect_slashes=False,  # the address of a redirect would be what the header Host says
        lifespan=_lifespan,
    )
    app.state.recommender, app.state.metrics = recommender, Metrics() if metrics is None else metrics
    app.add_middleware(
        Guard,
        token=None if token is None else check_token(token),
        public=PUBLIC,
        largest=recommender.settings.serve.largest_body,
        most=most,
        direct=_add_visits(app),
        metrics=app.state.metrics,
    )
    app.add_exception_handler(HTTPException, _no_such_path)
    _add_products(app)
    _add_operation(app)
    _add_pages(app)
    _describe_token(app)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """While the application runs, a thread handles requests in batches."""
    recommender, metrics = app.state.recommender, app.state.metrics

    def handle(requests: list[VisitRequest]) -> list[Any]:
        metrics.batch.observe(len(requests))
        return recommender.handle(requests)  # type: ignore[no-any-return]

    app.state.batcher, app.state.looking, app.state.health = Batcher(handle), asyncio.Lock(), (-HEALTH, b"")
    yield
    await asyncio.to_thread(app.state.batcher.close)


# ---- the routes ---------------------------------------------------------------------------------------------


def _add_visits(app: FastAPI) -> dict[str, Callable[[bytes], Awaitable[bytes]]]:
    """Add the routes of visits, and return what they do with a body: the guard calls it without the route."""
    direct: dict[str, Callable[[bytes], Awaitable[bytes]]] = {}

    def add(path: str, answer: Callable[[bytes], Awaitable[bytes]], about: dict[str, Any]) -> None:
        async def route(request: Request) -> Response:
            return _json(await answer(await request.body()))

        app.post(path, name=answer.__name__, description=inspect.getdoc(answer), **about)(route)
        direct[path] = answer

    async def recommend(body: bytes) -> bytes:
        """Recommend products for the next slots of a visit; an unknown visit is opened."""
        asked = Recommend.read(body)
        slot, products = await app.state.batcher.ask(asked)
        return ENCODER.encode({"visit": asked.visit, "slot": slot, "products": products}).encode()

    async def feedback(body: bytes) -> bytes:
        """Store the reward of a product. The same answer may be sent again, and counts once.

        With `correct`, the reward replaces the one that was told before, also after the end of the visit; null
        withdraws it. Send the corrections of a product one after another."""
        await app.state.batcher.ask(Feedback.read(body))
        return STORED

    async def close(body: bytes) -> bytes:
        """End a visit. It may be sent again."""
        await app.state.batcher.ask(Close.read(body))
        return STORED

    example = {"visit": "ann-17", "slot": 0, "products": ["tea"]}
    add("/recommend", recommend, _operation(Recommend, example, 404, 409))
    add("/feedback", feedback, _operation(Feedback, {"stored": True}, 404, 409))
    add("/close", close, _operation(Close, {"stored": True}, 404))
    return direct


def _add_products(app: FastAPI) -> None:
    recommender = app.state.recommender
    example = {"product": "tea", "features": {}, "offered": True, "value": 0.4, "spread": 0.1}

    @app.get("/products", **_operation(None, {"products": [example]}))
    async def products() -> Response:
        """List all products.

        `value` is the posterior mean of the reward of a visit that begins with the product, for the average
        customer. `spread`, a standard deviation, is the doubt of the model about the first recommendation alone,
        given its values of the rest of the visit: less than all the doubt about `value`. Both are null for a
        product that the samples do not know yet."""
        return _json({"products": await asyncio.to_thread(recommender.described_products)})

    @app.put("/products", **_operation(ProductsRequest, {"stored": True}))
    async def add(request: Request) -> Response:
        """Offer products: all of the list or, if one of them is refused, none."""
        asked = ProductsRequest.read(await request.body()).products
        await asyncio.to_thread(recommender.add_all, {each.product: each.features for each in asked})
        return _json(STORED)

    @app.delete("/products/{product:path}", **_operation(None, {"stored": True}, 404))
    async def remove(product: str) -> Response:
        """Stop offering a product. What was learned of it is kept."""
        await asyncio.to_thread(recommender.remove, name_of(product, recommender.settings.ids, "product"))
        return _json(STORED)


def _add_operation(app: FastAPI) -> None:
    @app.get("/health", **_operation(None, {"status": "ok", "sample": 1200, "products": 50, "learner": "ok"}))
    async def health() -> Response:
        """Tell whether the shop can answer, store and learn; if not, the answer is 503 and says why."""
        async with app.state.looking:  # one look at a time: it may have to wait for others that write
            at, found = app.state.health
            if monotonic() - at >= HEALTH:
                found = await asyncio.to_thread(_health, app.state.recommender)
                app.state.health = monotonic(), found
        if isinstance(found, NotReady):
            raise found.with_traceback(None)
        return _json(found)

    @app.get("/metrics", response_class=Response, summary="Numbers for Prometheus")
    async def metrics() -> Response:
        """Return counts and times of all processes in Prometheus's text format."""
        text = await asyncio.to_thread(app.state.metrics.text)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def _health(recommender: Recommender) -> bytes | NotReady:
    try:
        return ENCODER.encode({"status": "ok", **recommender.health()}).encode()
    except StoreError as error:
        log.error("the database failed", extra={"why": str(error)})
        return NotReady(f"nothing can be stored: {error.reason or 'the log says why'}")
    except NotReady as error:
        return error


def _add_pages(app: FastAPI) -> None:
    """Add the pages. `/` shows nothing of the shop; `/statistics` does, and needs the token."""
    recommender = app.state.recommender
    shop = ShopStatistics(
        recommender.settings, recommender.events, lambda: recommender.sample, recommender.learner_state
    )

    page_of_requests = cache(lambda: reference_page(app.openapi()))

    @app.get("/", include_in_schema=False)
    async def watch() -> HTMLResponse:
        return HTMLResponse(watch_page(), headers=HEADERS)

    @app.get("/statistics", name="current", **_operation(None, {"events": 1200, "visits": 50}, 422))
    def statistics(by: str = "shown", descending: str = "true", count: str = "25") -> JSONResponse:
        """Return what the page shows: rewards and exploration over time, the first products, the latest visits."""
        if by not in COLUMNS:
            raise RequestError(f"by must be one of {', '.join(COLUMNS)}")
        if descending not in ("true", "false"):
            raise RequestError("descending must be true or false")
        if not re.fullmatch("[0-9]{1,4}", count) or not 1 <= int(count) <= MOST_PRODUCTS:
            raise RequestError(f"count must be a whole number from 1 to {MOST_PRODUCTS}")
        found = shop.current(by=by, descending=descending == "true", count=int(count))
        return JSONResponse(found, headers={"Cache-Control": "no-store"})

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(page_of_requests(), headers=HEADERS)


def _json(found: Any) -> Response:
    return Response(found if isinstance(found, bytes) else ENCODER.encode(found), media_type="application/json")


async def _no_such_path(request: Request, error: Exception) -> Response:
    """Say in our words what Starlette refuses: a path or a method that there is not."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    words = {404: f"there is no path {request.url.path[:200]!r}", 405: f"{request.method} is not allowed here"}
    return JSONResponse({"error": words.get(status, "the request is refused")}, status_code=status)


# ---- requests that wait together share one transaction ------------------------------------------------------


class Batcher(Generic[Asked]):
    """A thread that takes all requests that wait, handles them at once, and goes on with those that came.

    Parameters
    ----------
    handle
        Returns the result of every request of a list, or the exception that it raises.
    waiting
        The most requests that may wait; another one raises a BusyError.
    """

    def __init__(self, handle: Callable[[list[Asked]], Sequence[Any]], waiting: int = 4096) -> None:
        self._handle, self._most, self._waiting = handle, waiting, 0
        self._queue: SimpleQueue[tuple[Asked, asyncio.Future[Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="batches", daemon=True)
        self._thread.start()

    async def ask(self, request: Asked) -> Any:
        """Return the result of a request, or raise its exception."""
        if self._waiting >= self._most:
            raise BusyError(f"{self._waiting} requests wait: ask again in a second")
        future = asyncio.get_running_loop().create_future()
        self._waiting += 1
        self._queue.put((request, future))
        try:
            return await future
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Answer what waits, and end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (first := self._queue.get()) is not None:
            batch = [first]
            while len(batch) < LARGEST_BATCH and not self._queue.empty():  # nobody else takes from it
                another = self._queue.get()
                if another is None:
                    self._queue.put(None)  # end after this batch
                    break
                batch.append(another)
            self._answer(batch)

    def _answer(self, batch: list[tuple[Asked, asyncio.Future[Any]]]) -> None:
        try:
            results = self._handle([request for request, _ in batch])
        except Exception as error:
            results = [error] * len(batch)
        loop = batch[0][1].get_loop()
        if not loop.is_closed():
            loop.call_soon_threadsafe(_deliver, [future for _, future in batch], results)


def _deliver(futures: list[asyncio.Future[Any]], results: Sequence[Any]) -> None:
    for future, result in zip(futures, results, strict=True):
        if future.done():  # its client has left
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)


# ---- the OpenAPI document, which /docs shows ----------------------------------------------------------------

DESCRIPTION = """Recommendations that influence each other, by randomized least-squares value iteration.

A visit is a customer's stay. `POST /recommend` opens it and returns a product for its next slot; `POST /feedback`
tells the reward; `POST /close` ends it. What is acknowledged is stored. Feedback, close, and recommend with `slot`
may be sent again after a failure.

If the server has a token, send the header `Authorization: Bearer TOKEN`. Errors are `{"error": "why"}`."""

ERRORS = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    403: "The server has no token, and the header Host or Origin is not its own.",
    404: "There is no such visit or product.",
    409: "It contradicts what happened before.",
    408: "The body was not complete within 10 seconds.",
    413: "The body has more bytes than the setting `largest_body` allows.",
    422: "A field is missing, unknown or has a wrong value.",
    503: "The database or the samples are not there, or too many ask; ask again after the seconds in Retry-After.",
}
ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}


def _operation(body: type[ShopRequest] | None, answer: dict[str, Any], *errors: int) -> dict[str, Any]:
    """Return what FastAPI is told of a route: its body, an example of the answer, and the errors there are."""
    usual = (401, 403, 503) if body is None else (400, 401, 403, 408, 413, 422, 503)
    content = {"application/json": {"schema": ERROR}}
    responses: dict[int | str, dict[str, Any]] = {
        200: {"description": "Done.", "content": {"application/json": {"example": answer}}}
    }
    responses |= {code: {"description": ERRORS[code], "content": content} for code in sorted({*usual, *errors})}
    extra: dict[str, Any] = {"security": [{"token": []}]}
    if body is not None:
        schema = body.model_json_schema()
        schema = _inline(schema, schema.pop("$defs", {}))
        extra["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return {"responses": responses, "openapi_extra": extra, "response_model": None}


def _inline(schema: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inline(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inline(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    return {name: _inline(each, definitions) for name, each in schema.items()}


def _describe_token(app: FastAPI) -> None:
    document = app.openapi

    def openapi() -> dict[str, Any]:
        found = document()
        schemes = found.setdefault("components", {}).setdefault("securitySchemes", {})
        schemes["token"] = {"type": "http", "scheme": "bearer"}
        return found

    app.openapi = openapi  # type: ignore[method-assign]
