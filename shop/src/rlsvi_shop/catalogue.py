"""The products of a shop: which events add and remove them, and those that a file lists."""

from collections.abc import Iterable, Mapping
from typing import Any

from rlsvi_shop.events import Event
from rlsvi_shop.requests import ProductRequest, check_features, text_of
from rlsvi_shop.settings import ShopSettings
from rlsvi_shop.tables import TableReader, name_parser


def additions(
    asked: Iterable[ProductRequest], catalogue: Mapping[str, Event], settings: ShopSettings
) -> list[Event]:
    """Return the events that offer products, or change their features; none for those that stay as they are."""
    events = []
    for each in asked:
        name = text_of("product", each.product, settings.ids)
        features = check_features(f"features of product {name!r}", settings.product, each.features)
        before = catalogue.get(name)
        if before is None or before.kind == "removed" or (before.features or {}) != features:
            events.append(Event("added", product=name, features=features))
    return events


def products_of(source: Any, settings: ShopSettings) -> list[Event]:
    """Return the products of a table as events "added": a column `product`, and others for their features."""
    table = TableReader(source)
    names = table.column("product", name_parser("product", settings.ids))
    features = table.features(settings.product, "product", ("product",))
    table.refuse_errors()
    first = {name: row for row, name in reversed(list(enumerate(names)))}
    for row, name in enumerate(names):
        if first[name] != row:
            table.add_error(row, f"column 'product': {name!r} is in row {first[name] + 1} already")
    table.refuse_errors()
    return [
        Event("added", product=name, features=each or None) for name, each in zip(names, features, strict=True)
    ]


def products_of_file(settings: ShopSettings) -> list[Event]:
    """Return the products of the file that the settings name as `serve.products`; none without one."""
    return [] if settings.serve.products is None else products_of(settings.serve.products, settings)


def missing_products(products: Iterable[Event], catalogue: Mapping[str, Event]) -> list[Event]:
    """Return those of the products, as events "added", that a catalogue never had, or offers without any feature.

    One that was removed stays so, and features that are known stay as they are.
    """
    return [
        event
        for event in products
        if (known := catalogue.get(event.product)) is None
        or (known.kind == "added" and not known.features and event.features)
    ]


def with_features(events: list[Event], settings: ShopSettings) -> list[Event]:
    """Return events, and after them those that give products the features that only `serve.products` has."""
    catalogue = {event.product: event for event in events if not event.visit}
    listed = [event for event in products_of_file(settings) if event.product in catalogue]
    last = max((event.id for event in events), default=0)
    return [*events, *(e._replace(id=last + i) for i, e in enumerate(missing_products(listed, catalogue), 1))]
