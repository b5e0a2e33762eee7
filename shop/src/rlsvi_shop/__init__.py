"""A shop that learns what to recommend: RLSVI for many customers at once, kept in a database."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rlsvi_shop.events import Event, Events, StoreError
from rlsvi_shop.recommender import Recommender
from rlsvi_shop.settings import ShopSettings

if TYPE_CHECKING:
    from rlsvi_shop.exchange import events_frame, export_events, import_events
    from rlsvi_shop.judging import judge

LATER = {"events_frame": "exchange", "export_events": "exchange", "import_events": "exchange", "judge": "judging"}
__all__ = ["Event", "Events", "Recommender", "ShopSettings", "StoreError", *LATER]


def __getattr__(name: str) -> Any:  # what a server does without is loaded on first use
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{LATER[name]}"), name)
