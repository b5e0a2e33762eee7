"""A shop that learns what to recommend: RLSVI for many customers at once, kept in a database."""

from typing import TYPE_CHECKING

from rlsvi._lazy import lazy_exports

try:
    from rlsvi.shop.events import Event, Events, StoreError
    from rlsvi.shop.recommender import Recommender
    from rlsvi.shop.settings import ShopSettings
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("pydantic", "sqlalchemy"):
        raise
    needs = f'a shop needs {error.name}: pip install ".[serve]" in a clone of rlsvi'
    raise ModuleNotFoundError(needs, name=error.name) from None

if TYPE_CHECKING:  # what a server does without
    from rlsvi.shop.exchange import events_frame, export_events, import_events
    from rlsvi.shop.judging import judge

__getattr__, __dir__, __all__ = lazy_exports(__name__)
