"""The events of a shop as a polars frame, a CSV file or a Parquet file, and back."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rlsvi.core.archive import path_of
from rlsvi.core.checks import one_of
from rlsvi.core.checks import whole as whole_number
from rlsvi.core.files import check_folder, whole_file
from rlsvi.shop.catalogue import lacking
from rlsvi.shop.cells import Cells, flag, mapping, moment, place, probability, read_table, reward, whole
from rlsvi.shop.clicks import events_of_clicks, name_in_table, names_in_table, products_of_file
from rlsvi.shop.events import KINDS, LARGEST, Event, Events, row_of
from rlsvi.shop.events import events as table
from rlsvi.shop.requests import an_instance
from rlsvi.shop.settings import ShopSettings

if TYPE_CHECKING:
    import polars as pl

AT_ONCE = 20_000  # rows read or written at once
OPENED = "the events of a shop, such as Events(settings.database)"


def events_frame(events: Events, after: int = 0) -> "pl.DataFrame":
    """Return the events after a number, all by default, as a polars frame with the columns of the table.

    `visit` and `product` are "" where an event has none; `features` and `among` are texts of JSON.
    """
    import polars as pl

    an_instance("events", events, Events, OPENED)
    after = whole_number("after", after, 0, LARGEST)
    kinds: dict[str, Any] = dict.fromkeys(("kind", "visit", "product", "features", "among"), pl.String())
    kinds |= dict.fromkeys(("at", "reward", "propensity"), pl.Float64())
    kinds |= {"id": pl.Int64(), "slot": pl.Int64(), "sample": pl.Int64(), "explored": pl.Boolean()}
    pieces = [pl.DataFrame(schema=[(name, kinds[name]) for name in Event._fields])]
    while rows := events.since(after, AT_ONCE):
        after = rows[-1].id
        texts = [row._replace(features=_text(row.features), among=_text(row.among)) for row in rows]
        pieces.append(pl.DataFrame(texts, schema=pieces[0].schema, orient="row"))
    return pl.concat(pieces).select(column.name for column in table.columns)


def _text(value: Any) -> Any:
    return None if value is None else json.dumps(value)


def export_events(events: Events, path: str | Path) -> int:
    """Write all events to a CSV or Parquet file, which then exists completely or not at all; return how many."""
    an_instance("events", events, Events, OPENED)
    path = path_of(path)
    if path.suffix not in (".csv", ".parquet"):
        raise ValueError(f"path must end in .csv or .parquet, got {path}")
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
    rows : the rows of the table.
    visits, products : how many different ones the table names in the columns `visit` and `product`.
    events : the events that were appended: several for a row of clicks, and one for each product that was added.
    """

    rows: int
    visits: int
    products: int
    events: int

    def __str__(self) -> str:
        counts = {"row": self.rows, "visit": self.visits, "product": self.products}
        return ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts.items())


def import_events(events: Events, settings: ShopSettings, source: Any) -> Imported:
    """Append what a polars frame, a CSV file or a Parquet file holds; return how much that was.

    A table with a column `kind` is one of events, as `export_events` writes it; it is imported into a database
    that has no events yet. Another is one of clicks, with a row for each recommendation:

    visit, product : the visit of a customer and what was recommended.
    reward : the answer, or nothing.
    slot : optional, the place of the recommendation in its visit, from 0; otherwise they are in order.
    at : optional, seconds (not milliseconds) since 1970, or a date and time.
    propensity : optional, the probability with which the product was chosen.
    among : optional, the products that could have been shown, as a list of JSON; if empty, all.
    every other column : a feature of the customer, declared in the settings.

    Products that the catalogue never had are added, with their features if the file `serve.products` of the
    settings has them. All visits are closed. Nothing is imported if any row is wrong: a ValueError names the rows,
    counted from 1.
    """
    an_instance("events", events, Events, OPENED)
    an_instance("settings", settings, ShopSettings, 'a ShopSettings, such as ShopSettings.from_toml("shop.toml")')
    frame = read_table(source)
    whole_table = "kind" in frame.columns
    listed = [] if whole_table else products_of_file(settings)
    events_in = _events_of if whole_table else events_of_clicks
    found = events_in(frame, settings, source)
    visits, products = {event.visit for event in found} - {""}, {event.product for event in found} - {""}
    with events.writing() as writer:
        if whole_table and writer.last():
            raise ValueError("nothing was imported: the database already has events, import them into a new one")
        if not whole_table:
            _refuse_known(writer.visits(event.visit for event in found))
            catalogue = writer.catalogue()
            new = lacking(listed, catalogue)
            known = {*catalogue, *(event.product for event in new)}
            shown = dict.fromkeys(event.product for event in found if event.product)
            found = [*new, *(Event("added", product=name) for name in shown if name not in known), *found]
        for start in range(0, len(found), AT_ONCE):
            writer.append(found[start : start + AT_ONCE])
    return Imported(frame.height, len(visits), len(products), len(found))


def _refuse_known(visits: dict[str, list[Event]]) -> None:
    known = next((name for name, events in visits.items() if events), None)
    if known is not None:
        raise ValueError(f"nothing was imported: the database already has visit {known!r}")


def _events_of(frame: "pl.DataFrame", settings: ShopSettings, source: Any) -> list[Event]:
    """Return the events of a table that `export_events` has written."""
    if {*frame.columns, "among"} != set(Event._fields):  # early versions had no `among`
        raise ValueError(f"a table of events must have the columns {', '.join(Event._fields)}")
    parsers = {
        "kind": lambda value: one_of("it", value, KINDS),
        "visit": lambda value: value and name_in_table("visit", settings.ids)(value),
        "product": lambda value: value and name_in_table("product", settings.ids)(value),
        "slot": place,
        "reward": reward,
        "propensity": probability,
        "explored": flag,
        "sample": whole,
        "features": mapping,
        "at": moment,
        "id": whole,
        "among": names_in_table(settings.ids),
    }
    cells = Cells(frame, source)
    needed = ("kind", "at", "id")
    columns = [cells.of(name, parsers[name], needed=name in needed) for name in Event._fields]
    cells.refuse()
    found = [Event(*row) for row in zip(*columns, strict=True)]
    found = [event._replace(visit=event.visit or "", product=event.product or "") for event in found]
    _refuse_wrong(cells, found)
    return found


def _refuse_wrong(cells: Cells, found: list[Event]) -> None:
    """Refuse events that are incomplete, not in order, or there twice."""
    seen, last = set(), 0
    for row, event in enumerate(found):
        once = (event.visit, event.kind, event.product)
        try:
            row_of(event)
        except ValueError as error:
            cells.wrong(row, str(error))
        if event.id <= last:
            cells.wrong(row, f"column 'id': numbers must increase, got {event.id} after {last}")
        if event.visit and once in seen:
            cells.wrong(row, f"{event.kind!r} of this visit and product is there twice")
        seen.add(once)
        last = event.id
    cells.refuse()
