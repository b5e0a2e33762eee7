"""The products of a shop: which events add and remove them."""

from collections.abc import Iterable, Mapping

from rlsvi.shop.event import Event
from rlsvi.shop.replies import checked_features, product_name
from rlsvi.shop.requests import Conflict, NotFound, ProductRequest
from rlsvi.shop.settings import ShopSettings


def added(asked: Iterable[ProductRequest], catalogue: Mapping[str, Event], settings: ShopSettings) -> list[Event]:
    """Return the events that offer products; none for those that are offered already."""
    events = []
    for each in asked:
        name = product_name("product", each.product, settings)
        features = checked_features(f"features of product {name!r}", settings.product, each.features)
        before = catalogue.get(name)
        known = None if before is None else settings.product.encode_stored(before.features)
        if before is not None and before.kind == "added":
            if known is not None and (known != settings.product.encode_stored(features)).any():
                raise Conflict(f"product {name!r} has other features, which cannot change: give it another name")
            continue
        events.append(Event("added", product=name, features=features))
    return events


def removed(name: str, catalogue: Mapping[str, Event]) -> list[Event]:
    """Return the event that removes a product; none if it was removed before."""
    before = catalogue.get(name)
    if before is None:
        raise NotFound(f"product {name!r} is unknown: it was never added")
    return [] if before.kind == "removed" else [Event("removed", product=name)]
