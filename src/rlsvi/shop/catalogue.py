"""The products of a shop: which events add and remove them, and a CSV file of them."""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rlsvi.shop.event import Event
from rlsvi.shop.features import NumberFeature
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


def read_products(path: Path, settings: ShopSettings) -> dict[str | int, dict[str, Any]]:
    """Return the products of a CSV file: a column `product`, and one for each feature, which may be empty."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, strict=True))
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}, which the setting serve.products names") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a CSV file: {error}") from None
    found: dict[str | int, dict[str, Any]] = {}
    for line, row in enumerate(rows, 2):
        try:
            product, features = _product(row, settings)
        except ValueError as error:
            raise ValueError(f"{path}, line {line}: {error}") from None
        if product in found:
            raise ValueError(f"{path}, line {line}: product {product!r} is there twice")
        found[product] = features
    return found


def _product(row: dict[Any, Any], settings: ShopSettings) -> tuple[str | int, dict[str, Any]]:
    if None in row or None in row.values():
        raise ValueError("the line has more or fewer cells than the first line has names")
    text = row.pop("product", None)
    if not text:
        raise ValueError("the column product is missing or empty")
    features: dict[str, Any] = {}
    for name, cell in row.items():
        if cell:
            numeric = isinstance(settings.product.root.get(name), NumberFeature)
            features[name] = float(cell) if numeric else cell
    return (int(text) if settings.ids == "integer" else text), features
