"""The products of a shop: which events add and remove them."""

from collections.abc import Iterable, Mapping

from rlsvi.shop.clicks import products_of_file
from rlsvi.shop.events import Event
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


def lacking(products: Iterable[Event], catalogue: Mapping[str, Event]) -> list[Event]:
    """Return those of the products, as events "added", that a catalogue never had, or offers without any feature.

    One that was removed stays so, and features that are known stay as they are.
    """
    return [event for event in products if _lacks(catalogue.get(event.product), event)]


def _lacks(known: Event | None, event: Event) -> bool:
    return known is None or (known.kind == "added" and not known.features and bool(event.features))


def with_features(events: list[Event], settings: ShopSettings) -> list[Event]:
    """Return events, and after them those that give products the features that only `serve.products` has."""
    catalogue = {event.product: event for event in events if not event.visit}
    listed = [event for event in products_of_file(settings) if event.product in catalogue]
    last = max((event.id for event in events), default=0)
    return [*events, *(e._replace(id=last + i) for i, e in enumerate(lacking(listed, catalogue), 1))]


def removed(name: str, catalogue: Mapping[str, Event]) -> list[Event]:
    """Return the event that removes a product; none if it was removed before."""
    before = catalogue.get(name)
    if before is None:
        raise NotFound(f"product {name!r} is unknown: it was never added")
    return [] if before.kind == "removed" else [Event("removed", product=name)]
