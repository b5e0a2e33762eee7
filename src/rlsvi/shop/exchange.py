"""The events of a shop as a polars frame, a CSV file or a Parquet file, and back; past clicks as events."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rlsvi.core.archive import path_of
from rlsvi.core.checks import hint, one_of
from rlsvi.core.checks import whole as whole_number
from rlsvi.core.files import check_folder, whole_file
from rlsvi.shop import tables
from rlsvi.shop.catalogue import missing_products, products_of_file
from rlsvi.shop.events import KINDS, LARGEST_COUNT, Event, Events, row_of
from rlsvi.shop.events import events as events_table
from rlsvi.shop.requests import check_type
from rlsvi.shop.settings import ShopSettings
from rlsvi.shop.tables import TableReader, name_parser, names_parser

if TYPE_CHECKING:
    import polars as pl

COLUMNS = ("visit", "product", "reward", "slot", "at", "propensity", "among")  # of clicks
AT_ONCE = 20_000  # rows read or written at once
OPENED = "the events of a shop, such as Events(settings.database)"


def events_frame(events: Events, after: int = 0) -> "pl.DataFrame":
    """Return the events after a number, all by default, as a polars frame with the columns of the table.

    `visit` and `product` are "" where an event has none; `features` and `among` are texts of JSON.

    Parameters
    ----------
    events
        The table of events.
    after
        The number of the last event to leave out.

    Returns
    -------
    pl.DataFrame
        One row per event.

    Examples
    --------
    >>> from rlsvi.shop import Events, events_frame
    >>> events = Events("sqlite:///shop.db")
    >>> events_frame(events).height
    0
    >>> events.close()
    """
    import polars as pl

    check_type("events", events, Events, OPENED)
    after = whole_number("after", after, 0, LARGEST_COUNT)
    kinds: dict[str, Any] = dict.fromkeys(("kind", "visit", "product", "features", "among"), pl.String())
    kinds |= dict.fromkeys(("at", "reward", "propensity"), pl.Float64())
    kinds |= dict.fromkeys(("id", "slot", "sample", "correction"), pl.Int64()) | {"explored": pl.Boolean()}
    pieces = [pl.DataFrame(schema=[(name, kinds[name]) for name in Event._fields])]
    while rows := events.since(after, AT_ONCE):
        after = rows[-1].id
        texts = [row._replace(features=_json(row.features), among=_json(row.among)) for row in rows]
        pieces.append(pl.DataFrame(texts, schema=pieces[0].schema, orient="row"))
    return pl.concat(pieces).select(column.name for column in events_table.columns)


def _json(value: Any) -> Any:
    return None if value is None else json.dumps(value)


def export_events(events: Events, path: str | Path) -> int:
    """Write all events to a CSV or Parquet file, which then exists completely or not at all.

    Parameters
    ----------
    events
        The table of events.
    path
        The file; its suffix determines the format.

    Returns
    -------
    int
        The number of events.

    Examples
    --------
    >>> from rlsvi.shop import Events, export_events
    >>> events = Events("sqlite:///shop.db")
    >>> export_events(events, "events.csv")
    0
    >>> events.close()
    """
    check_type("events", events, Events, OPENED)
    path = path_of(path)
    if path.suffix not in tables.ENDINGS:
        raise ValueError(f"path must end in .csv or .parquet, got {path}{hint(path.suffix, tables.ENDINGS)}")
    check_folder(path)
    frame = events_frame(events)
    with whole_file(path) as file:
        if path.suffix == ".csv":
            frame.write_csv(file)
        else:
            frame.write_parquet(file)
    return frame.height


class Imported(NamedTuple):
    """What was imported.

    Attributes
    ----------
    rows
        The rows of the table.
    visits, products
        How many different ones the table names in the columns `visit` and `product`.
    events
        The events that were appended: several for a row of clicks, and one for each product that was added.
    """

    rows: int
    visits: int
    products: int
    events: int

    def __str__(self) -> str:
        counts = {"row": self.rows, "visit": self.visits, "product": self.products}
        return ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts.items())


def import_events(events: Events, settings: ShopSettings, source: Any) -> Imported:
    """Append what a polars frame, a CSV file or a Parquet file holds.

    A table with a column `kind` is one of events, as `export_events` writes it; it is imported into a database
    that has no events yet. Another is one of clicks, with a row for each recommendation and these columns:

    - `visit`, `product`: the visit of a customer and what was recommended.
    - `reward`: the answer, or nothing.
    - `slot`: optional, the place of the recommendation in its visit, from 0; otherwise they are in order.
    - `at`: optional, seconds (not milliseconds) since 1970, or a date and time.
    - `propensity`: optional, the probability with which the product was chosen.
    - `among`: optional, the products that could have been shown, as a list of JSON; if empty, all.
    - Every other column is a feature of the customer, declared in the settings.

    Products that the catalogue never had are added, with their features if the file `serve.products` of the
    settings has them. All visits are closed.

    Parameters
    ----------
    events
        The table of events to append to.
    settings
        The settings of the shop.
    source
        The frame, or the path of the file.

    Returns
    -------
    Imported
        How much was imported.

    Raises
    ------
    ValueError
        A row is wrong. The message names the rows, counted from 1, and nothing is imported.

    Examples
    --------
    >>> import polars
    >>> from rlsvi.shop import Events, ShopSettings, import_events
    >>> settings = ShopSettings(database="sqlite:///shop.db")
    >>> events = Events(settings.database)
    >>> clicks = polars.DataFrame({"visit": ["ann", "bob"], "product": ["tea", "tea"], "reward": [1.0, 0.0]})
    >>> import_events(events, settings, clicks).visits
    2
    >>> events.close()
    """
    check_type("events", events, Events, OPENED)
    check_type("settings", settings, ShopSettings, 'a ShopSettings, such as ShopSettings.from_toml("shop.toml")')
    table = TableReader(source)
    clicks = "kind" not in table.frame.columns
    listed = products_of_file(settings) if clicks else []
    found = (_events_of_clicks if clicks else _events_of_table)(table, settings)
    visits, products = {event.visit for event in found} - {""}, {event.product for event in found} - {""}
    with events.writing() as writer:
        if clicks:
            past = writer.visits(event.visit for event in found)
            known = next((name for name, stored in past.items() if stored), None)
            if known is not None:
                raise ValueError(f"nothing was imported: the database already has visit {known!r}")
            catalogue = writer.catalogue()
            new = missing_products(listed, catalogue)
            there = {"", *catalogue, *(event.product for event in new)}
            unlisted = dict.fromkeys(event.product for event in found if event.product not in there)
            found = [*new, *(Event("added", product=name) for name in unlisted), *found]
        elif writer.last():
            raise ValueError("nothing was imported: the database already has events, import them into a new one")
        for start in range(0, len(found), AT_ONCE):
            writer.append(found[start : start + AT_ONCE])
    return Imported(table.frame.height, len(visits), len(products), len(found))


def _events_of_table(table: TableReader, settings: ShopSettings) -> list[Event]:
    """Return the events of a table that `export_events` has written."""
    if {*table.frame.columns, "among", "correction"} != set(Event._fields):  # early versions had neither
        raise ValueError(f"a table of events must have the columns {', '.join(Event._fields)}")
    visit, product = name_parser("visit", settings.ids), name_parser("product", settings.ids)
    parsers = {
        "kind": lambda value: one_of("it", value, KINDS),
        "visit": lambda value: value and visit(value),
        "product": lambda value: value and product(value),
        "slot": tables.slot,
        "reward": tables.reward_parser(settings.reward),
        "propensity": tables.probability,
        "explored": tables.flag,
        "sample": tables.whole,
        "features": tables.json_object,
        "at": tables.moment,
        "id": tables.whole,
        "among": names_parser("among", settings.ids),
        "correction": tables.whole,
    }
    needed = ("kind", "at", "id")
    columns = [table.column(name, parsers[name], needed=name in needed) for name in Event._fields]
    table.refuse_errors()
    found = [Event(*row) for row in zip(*columns, strict=True)]
    found = [
        event._replace(visit=event.visit or "", product=event.product or "", correction=event.correction or 0)
        for event in found
    ]
    seen, last = set(), 0
    for row, event in enumerate(found):  # none may be incomplete, out of order, or there twice
        once = (event.visit, event.kind, event.product, event.correction)
        try:
            row_of(event)
        except ValueError as error:
            table.add_error(row, str(error))
        if event.id <= last:
            table.add_error(row, f"column 'id': numbers must increase, got {event.id} after {last}")
        if event.visit and once in seen:
            table.add_error(row, f"{event.kind!r} of this visit and product is there twice")
        seen.add(once)
        last = event.id
    table.refuse_errors()
    return found


def _events_of_clicks(table: TableReader, settings: ShopSettings) -> list[Event]:
    """Return the events of the visits in a table of clicks."""
    there = set(table.frame.columns)
    columns = {
        "visit": table.column("visit", name_parser("visit", settings.ids)),
        "product": table.column("product", name_parser("product", settings.ids)),
        "reward": table.column("reward", tables.reward_parser(settings.reward), needed="reward" not in there),
        "slot": table.column("slot", tables.whole, needed="slot" in there),
        "at": table.column("at", tables.moment, needed="at" in there),
        "propensity": table.column("propensity", tables.probability, needed=False),
        "among": table.column("among", names_parser("among", settings.ids), needed=False),
        "features": table.features(settings.customer, "customer", COLUMNS),
    }
    table.refuse_errors()
    clicks = [
        dict(zip(columns, values, strict=True), row=row)
        for row, values in enumerate(zip(*columns.values(), strict=True))
    ]
    visits: dict[str, list[dict[str, Any]]] = {}
    for click in clicks:
        visits.setdefault(click["visit"], []).append(click)
    ordered = (sorted(visit, key=_order) for visit in visits.values())
    found = [_events_of_visit(table, visit, settings.slots) for visit in ordered]
    table.refuse_errors()
    return [event for events in sorted(found, key=lambda events: events[0].at) for event in events]


def _order(click: dict[str, Any]) -> float:
    return float(click["at"] or 0) if click["slot"] is None else click["slot"]


def _events_of_visit(table: TableReader, clicks: list[dict[str, Any]], slots: int) -> list[Event]:
    """Return the events of one visit, whose clicks are given in order."""
    events: list[Event] = []
    name, context, products = clicks[0]["visit"], clicks[0]["features"], set[str]()
    for slot, click in enumerate(clicks):
        row, product, at = click["row"], click["product"], click["at"] or 0.0
        if click["slot"] not in (None, slot):
            wrong = f"visit {name!r} must have slots 0, 1, .. once each, got {click['slot']}"
            table.add_error(row, f"column 'slot': {wrong}")
        if slot >= slots:
            table.add_error(row, f"visit {name!r} has more than the {slots} slots of the settings")
        if product in products:
            table.add_error(row, f"column 'product': visit {name!r} has {product!r} twice")
        if any(context.get(key) != value for key, value in click["features"].items()):
            table.add_error(row, f"the features of the customer must be the same in all rows of visit {name!r}")
        products.add(product)
        more = {"propensity": click["propensity"], "among": click["among"], "at": at}
        events.append(Event("recommended", name, product, slot, features=None if slot else context, **more))
        if click["reward"] is not None:
            events.append(Event("answered", name, product, reward=click["reward"], at=at))
    return [*events, Event("closed", name, at=events[-1].at)]
