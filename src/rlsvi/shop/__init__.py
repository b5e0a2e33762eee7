"""A shop that learns what to recommend: RLSVI for many customers at once, kept in a database."""

import importlib
from typing import TYPE_CHECKING, Any

try:
    from rlsvi.shop.events import Event, Events, StoreError
    from rlsvi.shop.recommender import Recommender
    from rlsvi.shop.settings import ShopSettings
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("pydantic", "sqlalchemy"):
        raise
    needs = f'a shop needs {error.name}: pip install ".[serve]" in a clone of rlsvi'
    raise ModuleNotFoundError(needs, name=error.name) from None

if TYPE_CHECKING:
    from rlsvi.shop.exchange import events_frame, export_events, import_events
    from rlsvi.shop.judging import judge  # type: ignore[no-redef]

_LATER = {  # what a server does without is imported when it is asked for
    "events_frame": "rlsvi.shop.exchange",
    "export_events": "rlsvi.shop.exchange",
    "import_events": "rlsvi.shop.exchange",
    "judge": "rlsvi.shop.judging",
}
__all__ = ["Event", "Events", "Recommender", "ShopSettings", "StoreError", *_LATER]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
