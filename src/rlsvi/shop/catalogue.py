"""The products of a shop: which events add and remove them."""

from collections.abc import Iterable, Mapping

from rlsvi.shop.event import Event
from rlsvi.shop.replies import checked_features, stored_name
from rlsvi.shop.requests import NotFound, ProductRequest
from rlsvi.shop.settings import ShopSettings


def added(asked: Iterable[ProductRequest], catalogue: Mapping[str, Event], settings: ShopSettings) -> list[Event]:
    """Return the events that offer products, or change their features; none for those that stay as they are."""
    events = []
    for each in asked:
        name = stored_name("product", each.product, settings)
        features = checked_features(f"features of product {name!r}", settings.product, each.features)
        before = catalogue.get(name)
        if before is None or before.kind == "removed" or (before.features or {}) != features:
            events.append(Event("added", product=name, features=features))
    return events


def removed(name: str, catalogue: Mapping[str, Event]) -> list[Event]:
    """Return the event that removes a product; none if it was removed before."""
    before = catalogue.get(name)
    if before is None:
        raise NotFound(f"product {name!r} is unknown: it was never added")
    return [] if before.kind == "removed" else [Event("removed", product=name)]
