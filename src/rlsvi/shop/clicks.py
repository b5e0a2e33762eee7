"""Past clicks and lists of products, as analysts have them, as events of a shop."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from rlsvi.shop.cells import Cells, listing, moment, number, probability, read_table, reward, whole
from rlsvi.shop.events import Event
from rlsvi.shop.features import Encoder, NumberFeature
from rlsvi.shop.ids import Ids, text_of
from rlsvi.shop.settings import ShopSettings

if TYPE_CHECKING:
    import polars as pl

COLUMNS = ("visit", "product", "reward", "slot", "at", "propensity", "among")


def products_of(source: Any, settings: ShopSettings) -> list[Event]:
    """Return the products of a table as events "added": a column `product`, and others for their features."""
    cells = Cells(read_table(source), source)
    names = cells.of("product", name_in_table("product", settings.ids))
    features = _features(cells, settings.product, "product", ("product",))
    cells.refuse()
    first = {name: row for row, name in reversed(list(enumerate(names)))}
    for row, name in enumerate(names):
        if first[name] != row:
            cells.wrong(row, f"column 'product': {name!r} is in row {first[name] + 1} already")
    cells.refuse()
    return [
        Event("added", product=name, features=each or None) for name, each in zip(names, features, strict=True)
    ]


def products_of_file(settings: ShopSettings) -> list[Event]:
    """Return the products of the file that the settings name as `serve.products`; none without one."""
    return [] if settings.serve.products is None else products_of(settings.serve.products, settings)


def events_of_clicks(frame: "pl.DataFrame", settings: ShopSettings, source: Any = None) -> list[Event]:
    """Return the events of the visits in a table of clicks; see `import_events`."""
    cells = Cells(frame, source)
    there = set(frame.columns)
    columns = {
        "visit": cells.of("visit", name_in_table("visit", settings.ids)),
        "product": cells.of("product", name_in_table("product", settings.ids)),
        "reward": cells.of("reward", reward, needed="reward" not in there),
        "slot": cells.of("slot", whole, needed="slot" in there),
        "at": cells.of("at", moment, needed="at" in there),
        "propensity": cells.of("propensity", probability, needed=False),
        "among": cells.of("among", names_in_table(settings.ids), needed=False),
        "features": _features(cells, settings.customer, "customer", COLUMNS),
    }
    cells.refuse()
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    visits: dict[str, list[int]] = {}
    for row, click in enumerate(rows):
        visits.setdefault(click["visit"], []).append(row)
    ordered = [sorted(visit, key=lambda row: _order(rows[row])) for visit in visits.values()]
    found = [_visit(cells, rows, visit, settings.slots) for visit in ordered]
    cells.refuse()
    return [event for events in sorted(found, key=lambda events: events[0].at) for event in events]


def name_in_table(what: str, ids: Ids) -> Callable[[Any], str]:
    """Return the function that makes a name of what a cell holds: in a CSV file, integers are texts too."""
    return lambda value: text_of(what, whole(value) if ids == "integer" else value, ids)


def names_in_table(ids: Ids) -> Callable[[Any], list[str]]:
    """Return the function that makes names of a list of products, as JSON."""
    name = name_in_table("among", ids)
    return lambda value: [name(each) for each in listing(value)]


def _features(cells: Cells, encoder: Encoder, whose: str, others: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the features in each row: of all columns but the others, which have a meaning of their own."""
    names = [column for column in cells.frame.columns if column not in others]
    for name in names:
        if name not in encoder.root:
            raise ValueError(f"column {name!r} is no feature of a {whose}: declare it in [{whose}], or drop it")
    columns = [cells.of(name, partial(_feature, encoder, name), needed=False) for name in names]
    rows = zip(*columns, strict=True) if columns else [()] * cells.frame.height
    return [{name: value for name, value in zip(names, row, strict=True) if value is not None} for row in rows]


def _feature(encoder: Encoder, name: str, value: Any) -> float | str:
    feature = encoder.root[name]
    return feature.checked(name, number(value) if isinstance(feature, NumberFeature) else value)


def _order(click: dict[str, Any]) -> float:
    return float(click["at"] or 0) if click["slot"] is None else click["slot"]


def _visit(cells: Cells, rows: list[dict[str, Any]], visit: list[int], slots: int) -> list[Event]:
    """Return the events of one visit, whose rows are given in order."""
    events: list[Event] = []
    first, products = rows[visit[0]], set[str]()
    for slot, row in enumerate(visit):
        click = rows[row]
        name, product, at = click["visit"], click["product"], click["at"] or 0.0
        if click["slot"] not in (None, slot):
            cells.wrong(
                row, f"column 'slot': visit {name!r} must have slots 0, 1, .. once each, got {click['slot']}"
            )
        if slot >= slots:
            cells.wrong(row, f"visit {name!r} has more than the {slots} slots of the settings")
        if product in products:
            cells.wrong(row, f"column 'product': visit {name!r} has {product!r} twice")
        if any(first["features"].get(key) != value for key, value in click["features"].items()):
            cells.wrong(row, f"the features of the customer must be the same in all rows of visit {name!r}")
        products.add(product)
        features = None if slot else first["features"]
        events.append(
            Event(
                "recommended",
                name,
                product,
                slot,
                propensity=click["propensity"],
                features=features,
                at=at,
                among=click["among"],
            )
        )
        if click["reward"] is not None:
            events.append(Event("answered", name, product, reward=click["reward"], at=at))
    return [*events, Event("closed", first["visit"], at=events[-1].at)]
