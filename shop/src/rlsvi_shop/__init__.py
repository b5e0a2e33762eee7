"""A shop that learns what to recommend: RLSVI for many customers at once, kept in a database.

Importing it is cheap: its parts are loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlsvi_shop.events import Event, Events, StoreError
    from rlsvi_shop.exchange import events_frame, export_events, import_events
    from rlsvi_shop.judging import judge
    from rlsvi_shop.recommender import Recommender
    from rlsvi_shop.settings import ShopSettings

HOMES = {
    **dict.fromkeys(("Event", "Events", "StoreError"), "events"),
    **dict.fromkeys(("events_frame", "export_events", "import_events"), "exchange"),
    **{"judge": "judging", "Recommender": "recommender", "ShopSettings": "settings"},
}
__all__ = list(HOMES)


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
