"""The page to watch a shop: `GET /` is a document that loads nothing else, `GET /statistics` what it shows."""

from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, JSONResponse

from rlsvi.report.document import document
from rlsvi.serve.statistics import MOST, ShopStatistics

HEADERS = {
    "Cache-Control": "no-store",
    # Beside the document's own policy: in nobody else's frame, and the script cannot make HTML of texts.
    "Content-Security-Policy": "frame-ancestors 'self'; require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


@cache
def page() -> str:
    """Return the whole document."""
    folder = files("rlsvi.serve")
    body, style, script = (folder.joinpath(f"page.{kind}").read_text("utf-8") for kind in ("html", "css", "js"))
    return document("The shop", body, style, script, live=True)


def page_router(statistics: ShopStatistics) -> APIRouter:
    """Return the routes of the page. `/` shows nothing of the shop; `/statistics` does, and needs the token."""
    router = APIRouter()

    @router.get("/", include_in_schema=False)
    def watch() -> HTMLResponse:
        return HTMLResponse(page(), headers=HEADERS)

    @router.get("/statistics", summary="What the page shows: rewards, exploration, products, latest visits")
    def current(
        by: Literal["product", "shown", "mean", "value", "offered"] = "shown",
        descending: bool = True,
        count: Annotated[int, Query(ge=1, le=MOST)] = 25,
    ) -> JSONResponse:
        found: dict[str, Any] = statistics.current(by=by, descending=descending, count=count)
        return JSONResponse(found, headers={"Cache-Control": "no-store"})

    return router
