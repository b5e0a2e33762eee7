"""A shop that learns what to recommend: RLSVI for many customers at once, kept in a database."""

try:
    from rlsvi.shop.event import Event
    from rlsvi.shop.events import Events, StoreError
    from rlsvi.shop.recommender import Recommender
    from rlsvi.shop.settings import ShopSettings
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("pydantic", "sqlalchemy"):
        raise
    raise ModuleNotFoundError(f'a shop needs {error.name}: pip install "rlsvi[serve]"', name=error.name) from None

__all__ = ["Event", "Events", "Recommender", "ShopSettings", "StoreError"]
