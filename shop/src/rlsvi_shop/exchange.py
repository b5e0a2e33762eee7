"""The events of a shop as a polars frame, a CSV file or a Parquet file, and back; past clicks as events."""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rlsvi.core.archive import path_of
from rlsvi.core.checks import hint, one_of
from rlsvi.core.checks import whole as whole_number
from rlsvi.core.files import PRIVATE, check_folder, whole_file
from rlsvi_shop import tables
from rlsvi_shop.catalogue import missing_products, products_of_file
from rlsvi_shop.events import KINDS, LARGEST_COUNT, Event, Events, row_of
from rlsvi_shop.events import events as events_table
from rlsvi_shop.requests import check_type
from rlsvi_shop.settings import RewardSettings, ShopSettings
from rlsvi_shop.tables import TableReader, name_parser, names_parser

if TYPE_CHECKING:
    import polars as pl

COLUMNS = ("visit", "product", "reward", "slot", "at", "propensity", "among")  # of clicks
AT_ONCE = 20_000  # rows read or written at once
BEFORE = "events before"  # the name of a column that is added
FORMULA = r"^('*[=+\-@\t\r])"  # what a spreadsheet would compute, if no apostrophe stood before it
ESCAPED = r"^'('*[=+\-@\t\r])"
OPENED = "the events of a shop, such as Events(settings.database)"


def events_frame(events: Events, after: int = 0) -> "pl.DataFrame":
    """Return the events after a number, all by default, as a polars frame with the columns of the table.

    `visit` and `product` are "" where an event has none; `features`, `among` and `agreeing` are texts of JSON.

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
    >>> from rlsvi_shop import Events, events_frame
    >>> events = Events("sqlite:///shop.db")
    >>> events_frame(events).height
    0
    >>> events.close()
    """
    import polars as pl

    check_type("events", events, Events, OPENED)
    after = whole_number("after", after, 0, LARGEST_COUNT)
    kinds: dict[str, Any] = dict.fromkeys(
        ("kind", "visit", "product", "features", "among", "agreeing"), pl.String()
    )
    kinds |= dict.fromkeys(("at", "reward", "propensity"), pl.Float64())
    kinds |= dict.fromkeys(("id", "slot", "sample", "correction"), pl.Int64()) | {"explored": pl.Boolean()}
    pieces = [pl.DataFrame(schema=[(name, kinds[name]) for name in Event._fields])]
    while rows := events.since(after, AT_ONCE):
        after = rows[-1].id
        table = [
            row._replace(features=_json(row.features), among=_json(row.among), agreeing=_json(row.agreeing))
            for row in rows
        ]
        pieces.append(pl.DataFrame(table, schema=pieces[0].schema, orient="row"))
    return pl.concat(pieces).select(column.name for column in events_table.columns)


def _json(value: Any) -> Any:
    return None if value is None else json.dumps(value)


def export_events(events: Events, path: str | Path) -> int:
    """Write all events to a CSV or Parquet file, which then exists completely or not at all.

    Only its owner may read it. In a CSV file, an apostrophe is put before names that a spreadsheet would take for
    a formula because they begin with =, +, - or @. `import_events` removes it.

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
    >>> from rlsvi_shop import Events, export_events
    >>> events = Events("sqlite:///shop.db")
    >>> export_events(events, "events.csv")
    0
    >>> events.close()
    """
    import polars as pl

    check_type("events", events, Events, OPENED)
    path = path_of(path)
    if path.suffix not in tables.ENDINGS:
        raise ValueError(f"path must end in .csv or .parquet, got {path}{hint(path.suffix, tables.ENDINGS)}")
    check_folder(path)
    frame = events_frame(events)
    with whole_file(path, mode=PRIVATE) as file:
        if path.suffix == ".csv":
            escaped = pl.col("visit", "product").str.replace(FORMULA, "'${1}")  # the other texts are ours
            frame.with_columns(escaped).write_csv(file)
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
    >>> from rlsvi_shop import Events, ShopSettings, import_events
    >>> settings = ShopSettings(database="sqlite:///shop.db")
    >>> events = Events(settings.database)
    >>> clicks = polars.DataFrame({"visit": ["ann", "bob"], "product": ["tea", "tea"], "reward": [1.0, 0.0]})
    >>> import_events(events, settings, clicks).visits
    2
    >>> events.close()
    """
    import polars as pl

    check_type("events", events, Events, OPENED)
    check_type("settings", settings, ShopSettings, 'a ShopSettings, such as ShopSettings.from_toml("shop.toml")')
    table = TableReader(source)
    clicks = "kind" not in table.frame.columns
    if clicks:
        for name in ("visit", "product", "reward"):
            table.check_column(name)
        listed, (order, ends) = products_of_file(settings), _order_of_clicks(table.frame)
        named = _names(table.frame["product"][order], name_parser("product", settings.ids))
        pieces = _pieces_of_clicks(table, settings, order, ends)
    else:
        # Early versions had not all of these.
        if {*table.frame.columns, "among", "correction", "agreeing"} != set(Event._fields):
            raise ValueError(f"a table of events must have the columns {', '.join(Event._fields)}")
        if table.csv is not None:
            table.frame = table.frame.with_columns(pl.col("visit", "product").str.replace(ESCAPED, "${1}"))
        pieces = _pieces_of_table(table, settings)
    names = [table.frame[name].cast(pl.String) for name in ("visit", "product")]
    visits, products = (name.filter(name != "").n_unique() for name in names)
    with events.writing() as writer:
        new: list[Event] = []
        if clicks:
            catalogue = writer.catalogue()
            new = missing_products(listed, catalogue)
            there = {*catalogue, *(event.product for event in new)}
            new += [Event("added", product=name) for name in named if name not in there]
        elif writer.last():
            raise ValueError("nothing was imported: the database already has events, import them into a new one")
        count = len(writer.append(new))
        for piece in pieces:
            if clicks:
                past = writer.visits(event.visit for event in piece)
                if known := [name for name, stored in past.items() if stored]:
                    raise ValueError(f"nothing was imported: the database already has visit {known[0]!r}")
            if table.is_right:
                count += len(writer.append(piece))
        table.refuse_errors()
    return Imported(table.height, visits, products, count)


def _pieces_of_table(table: TableReader, settings: ShopSettings) -> Iterator[list[Event]]:
    import polars as pl

    visit, product = name_parser("visit", settings.ids), name_parser("product", settings.ids)
    parsers = {
        "kind": lambda value: one_of("it", value, KINDS),
        "visit": lambda value: value and visit(value),
        "product": lambda value: value and product(value),
        "slot": tables.slot,
        "reward": tables.reward_parser(RewardSettings()),  # it may be from before the limits, or corrected
        "propensity": tables.probability,
        "explored": tables.flag,
        "sample": tables.whole,
        "features": tables.json_object,
        "at": tables.moment,
        "id": tables.whole,
        "among": names_parser("among", settings.ids),
        "correction": tables.whole,
        "agreeing": tables.json_list,
    }
    count = pl.int_range(pl.len()).over("visit", "kind", "product")
    table.frame = table.frame.with_columns(count.alias(BEFORE))
    last, ends = 0, [*range(AT_ONCE, table.height, AT_ONCE), table.height]
    for piece in table.pieces(ends):
        columns = [
            table.column(name, parsers[name], needed=name in ("kind", "at", "id")) for name in Event._fields
        ]
        found, cells_are_right = [], table.is_right
        for row, (values, before) in enumerate(zip(zip(*columns, strict=True), piece[BEFORE], strict=True)):
            event = Event(*values)
            event = event._replace(
                visit=event.visit or "", product=event.product or "", correction=event.correction or 0
            )
            found.append(event)
            if not cells_are_right:
                continue  # an event of a wrong cell would be called incomplete
            try:
                row_of(event)
            except ValueError as error:
                table.add_error(row, str(error))
            if event.id <= last:
                table.add_error(row, f"column 'id': numbers must increase, got {event.id} after {last}")
            if event.correction and event.correction != before:
                table.add_error(
                    row,
                    f"column 'correction': must be {before}, the number of earlier answers to this, "
                    f"got {event.correction}",
                )
            elif event.visit and before > event.correction:
                table.add_error(row, f"{event.kind!r} of this visit and product is there twice")
            last = event.id
        yield found


def _pieces_of_clicks(table: TableReader, settings: ShopSettings, order: Any, ends: Any) -> Iterator[list[Event]]:
    there = set(table.frame.columns)
    for _ in table.pieces(ends, order):
        columns = {
            "visit": table.column("visit", name_parser("visit", settings.ids)),
            "product": table.column("product", name_parser("product", settings.ids)),
            "reward": table.column("reward", tables.reward_parser(settings.reward), needed=False),
            "slot": table.column("slot", tables.whole, needed="slot" in there),
            "at": table.column("at", tables.moment, needed="at" in there),
            "propensity": table.column("propensity", tables.probability, needed=False),
            "among": table.column("among", names_parser("among", settings.ids), needed=False),
            "features": table.features(settings.customer, "customer", COLUMNS),
        }
        visits: dict[str, list[dict[str, Any]]] = {}
        for row, values in enumerate(zip(*columns.values(), strict=True)):
            click = dict(zip(columns, values, strict=True), row=row)
            visits.setdefault(click["visit"], []).append(click)
        if table.is_right:
            yield [event for visit in visits.values() for event in _events_of_visit(table, visit, settings.slots)]


def _order_of_clicks(frame: "pl.DataFrame") -> tuple[Any, Any]:
    """Return the order in which rows of clicks become events, and where pieces of whole visits end.

    Visits come in the order of their first clicks, and the clicks of a visit in the order of slots, or of times.
    """
    import polars as pl

    keys = pl.DataFrame({"visit": frame["visit"], "at": _times(frame)}).with_row_index("row")
    by, first = "at", pl.col("at").min()
    if "slot" in frame.columns:
        keys = keys.with_columns(frame["slot"].cast(pl.Int64, strict=False))
        by, first = "slot", pl.col("at").sort_by("slot").first()
    begin = first.over("visit").alias("begin"), pl.col("row").min().over("visit").alias("first")
    keys = keys.with_columns(begin).sort("begin", "first", by, "row")
    last = np.append(np.flatnonzero(keys["first"].diff()[1:].to_numpy()) + 1, len(keys))
    wanted = np.arange(AT_ONCE, len(keys) + AT_ONCE, AT_ONCE).clip(max=len(keys))
    return keys["row"].to_numpy(), np.unique(last[np.searchsorted(last, wanted)])


def _times(frame: "pl.DataFrame") -> list[float]:
    """Return the times of clicks, 0 where there is none or it is wrong."""
    found = []
    for value in frame["at"] if "at" in frame.columns else [None] * frame.height:
        try:
            found.append(tables.moment(value))
        except ValueError:
            found.append(0.0)
    return found


def _names(values: "pl.Series", parse: Callable[[Any], str]) -> list[str]:
    """Return the different names in a column in their order, without those that are wrong."""
    found = dict[str, None]()
    for value in values.unique(maintain_order=True).drop_nulls():
        with contextlib.suppress(ValueError):
            found[parse(value)] = None
    return list(found)


def _events_of_visit(table: TableReader, clicks: list[dict[str, Any]], slots: int) -> list[Event]:
    """Return the events of one visit, whose clicks are given in order."""
    events: list[Event] = []
    name, context, products = clicks[0]["visit"], clicks[0]["features"], set[str]()
    for slot, click in enumerate(clicks):
        row, product, at = click["row"], click["product"], click["at"] or 0.0
        if click["slot"] not in (None, slot):
            table.add_error(
                row, f"column 'slot': visit {name!r} must have slots 0, 1, .. once each, got {click['slot']}"
            )
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
