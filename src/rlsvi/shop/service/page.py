"""The page to watch a shop: `GET /` is a document that loads nothing else, `GET /statistics` what it shows."""

import re
from functools import cache
from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, JSONResponse

from rlsvi.html import document, style_of
from rlsvi.shop.requests import RequestError
from rlsvi.shop.service.described import described
from rlsvi.shop.service.statistics import COLUMNS, MOST, ShopStatistics

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
    folder = files("rlsvi.shop.service")
    body, script = (folder.joinpath(f"page.{kind}").read_text("utf-8") for kind in ("html", "js"))
    return document("The shop", body, style_of("rlsvi.shop.service", "page.css"), script, live=True)


def page_router(statistics: ShopStatistics) -> APIRouter:
    """Return the routes of the page. `/` shows nothing of the shop; `/statistics` does, and needs the token."""
    router = APIRouter()

    @router.get("/", include_in_schema=False)
    def watch() -> HTMLResponse:
        return HTMLResponse(page(), headers=HEADERS)

    @router.get("/statistics", **described(None, {"events": 1200, "visits": 50}, 422))
    def current(by: str = "shown", descending: str = "true", count: str = "25") -> JSONResponse:
        """Return what the page shows: rewards and exploration over time, the first products, the latest visits."""
        if by not in COLUMNS:
            raise RequestError(f"by must be one of {', '.join(COLUMNS)}")
        if descending not in ("true", "false"):
            raise RequestError("descending must be true or false")
        if not re.fullmatch("[0-9]{1,4}", count) or not 1 <= int(count) <= MOST:
            raise RequestError(f"count must be a whole number from 1 to {MOST}")
        found = statistics.current(by=by, descending=descending == "true", count=int(count))
        return JSONResponse(found, headers={"Cache-Control": "no-store"})

    return router
