"""The application: what a shop answers over HTTP."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException

from rlsvi import __version__
from rlsvi.shop.events import StoreError
from rlsvi.shop.ids import asked_name
from rlsvi.shop.recommender import Recommender
from rlsvi.shop.requests import Close, Feedback, ProductsRequest, Recommend, RequestError, ShopRequest
from rlsvi.shop.samples import NotReady
from rlsvi.shop.service.batches import Batcher
from rlsvi.shop.service.described import DESCRIPTION, describe_token, described
from rlsvi.shop.service.guard import Guard
from rlsvi.shop.service.hosts import checked_token
from rlsvi.shop.service.metrics import Metrics
from rlsvi.shop.service.page import HEADERS, page_router
from rlsvi.shop.service.reference import reference_page
from rlsvi.shop.service.statistics import ShopStatistics

PUBLIC = {"/", "/health", "/docs", "/openapi.json"}  # what needs no token
ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
STORED = b'{"stored":true}'
log = logging.getLogger("rlsvi.serve")


def create_app(
    recommender: Recommender, *, token: str | None = None, metrics: Metrics | None = None, most: int = 1000
) -> FastAPI:
    """Return the application of a shop.

    A router of other routes is added with `app.include_router`. They find the recommender, and in it the events,
    as `request.app.state.recommender`.

    Parameters
    ----------
    recommender : what answers; its owner closes it after the application.
    token : what requests must show in the header `Authorization: Bearer`: printable ASCII without spaces;
        None: nothing, and requests are refused whose header Host is not localhost or a loopback address, or whose
        Origin is another one.
    metrics : the numbers for Prometheus; None: new ones.
    most : how many requests are answered at once; the others are refused with 503.
    """
    numbers = Metrics() if metrics is None else metrics
    app = FastAPI(
        title="A shop that learns",
        description=DESCRIPTION,
        version=__version__,
        docs_url=None,  # those of FastAPI load scripts from the network
        redoc_url=None,
        redirect_slashes=False,  # the address of a redirect would be what the header Host says
        lifespan=_lifespan,
    )
    app.state.recommender, app.state.metrics = recommender, numbers
    direct = {"/recommend": _recommend, "/feedback": _feedback, "/close": _close}
    app.add_middleware(
        Guard,
        token=None if token is None else checked_token(token),
        public=PUBLIC,
        largest=recommender.settings.serve.largest_body,
        most=most,
        direct={path: partial(answer, app) for path, answer in direct.items()},
        metrics=numbers,
    )
    app.add_exception_handler(HTTPException, _no_such_path)
    _describe_visits(app)
    _add_products(app)
    _add_operation(app)
    statistics = ShopStatistics(recommender.settings, recommender.events, lambda: recommender.sample)
    app.include_router(page_router(statistics))
    describe_token(app)
    _add_reference(app)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """While the application runs, a thread handles requests in batches."""
    recommender, metrics = app.state.recommender, app.state.metrics

    def handle(requests: list[ShopRequest]) -> list[Any]:
        metrics.batch(len(requests))
        return recommender.handle(requests)  # type: ignore[no-any-return]

    app.state.batcher, app.state.looking = Batcher(handle), asyncio.Lock()
    yield
    await asyncio.to_thread(app.state.batcher.close)


async def _recommend(app: FastAPI, body: bytes) -> bytes:
    asked = Recommend.read(body)
    slot, products = await app.state.batcher.ask(asked)
    return ENCODER.encode({"visit": asked.visit, "slot": slot, "products": products}).encode()


async def _feedback(app: FastAPI, body: bytes) -> bytes:
    await app.state.batcher.ask(Feedback.read(body))
    return STORED


async def _close(app: FastAPI, body: bytes) -> bytes:
    await app.state.batcher.ask(Close.read(body))
    return STORED


def _describe_visits(app: FastAPI) -> None:
    """Describe what the guard answers directly, for the OpenAPI document. It lets no such request pass to here."""

    @app.post("/recommend", **described(Recommend, {"visit": "ann-17", "slot": 0, "products": ["tea"]}, 404, 409))
    async def recommend() -> None:
        """Recommend products for the next slots of a visit; an unknown visit is opened."""

    @app.post("/feedback", **described(Feedback, {"stored": True}, 404, 409))
    async def feedback() -> None:
        """Store the reward of a product. The same answer may be sent again, and counts once."""

    @app.post("/close", **described(Close, {"stored": True}, 404))
    async def close() -> None:
        """End a visit. It may be sent again."""


def _add_products(app: FastAPI) -> None:
    recommender = app.state.recommender
    example = {"product": "tea", "features": {}, "offered": True, "value": 0.4, "spread": 0.1}

    @app.get("/products", **described(None, {"products": [example]}))
    async def products() -> Response:
        """List all products.

        `value` is the posterior mean of the reward of a visit that begins with the product, for the average
        customer. `spread`, a standard deviation, is the doubt of the model about the first recommendation alone,
        given its values of the rest of the visit: less than all the doubt about `value`. Both are null for a
        product that the samples do not know yet."""
        return _json({"products": await asyncio.to_thread(recommender.described_products)})

    @app.put("/products", **described(ProductsRequest, {"stored": True}))
    async def add(request: Request) -> Response:
        """Offer products: all of the list or, if one of them is refused, none."""
        asked = ProductsRequest.read(await request.body())
        given = {each.product: each.features for each in asked.products}
        await asyncio.to_thread(recommender.add_all, given)
        return Response(STORED, media_type="application/json")

    @app.delete("/products/{product:path}", **described(None, {"stored": True}, 404))
    async def remove(product: str) -> Response:
        """Stop offering a product. What was learned of it is kept."""
        try:
            name = asked_name("product", product, recommender.settings.ids)
        except ValueError as error:
            raise RequestError(str(error)) from None
        await asyncio.to_thread(recommender.remove, name)
        return Response(STORED, media_type="application/json")


def _add_operation(app: FastAPI) -> None:
    @app.get("/health", **described(None, {"status": "ok", "sample": 1200, "products": 50, "learner": "ok"}))
    async def health() -> Response:
        """Tell whether the shop can answer, store and learn; if not, the answer is 503 and says why."""
        try:
            async with app.state.looking:  # one look at a time: it may have to wait for others that write
                found = await asyncio.to_thread(app.state.recommender.health)
        except StoreError as error:
            log.error("the database failed", extra={"why": str(error)})
            raise NotReady(f"nothing can be stored: {error.reason or 'the log says why'}") from None
        return _json({"status": "ok", **found})

    @app.get("/metrics", response_class=Response, summary="Numbers for Prometheus")
    async def metrics() -> Response:
        """Return counts and times of all processes in Prometheus's text format."""
        text = await asyncio.to_thread(app.state.metrics.text)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def _add_reference(app: FastAPI) -> None:
    @app.get("/docs", include_in_schema=False)
    def docs() -> HTMLResponse:
        return HTMLResponse(reference_page(app.openapi()), headers=HEADERS)


def _json(found: Any) -> Response:
    return Response(ENCODER.encode(found), media_type="application/json")


async def _no_such_path(request: Request, error: Exception) -> Response:
    """Say in our words what Starlette refuses: a path or a method that there is not."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    words = {404: f"there is no path {request.url.path[:200]!r}", 405: f"{request.method} is not allowed here"}
    return JSONResponse({"error": words.get(status, "the request is refused")}, status_code=status)
