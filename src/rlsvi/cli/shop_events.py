"""`rlsvi export-events` and `rlsvi import-events`: the events of a shop as a table, and back."""

from pathlib import Path
from typing import Annotated

import typer

from rlsvi.cli.errors import report_errors
from rlsvi.cli.serve import ShopFile, shop_settings


def export_events(
    file: ShopFile,
    out: Annotated[Path, typer.Option(help="The file to write, which ends in .csv or .parquet.")],
) -> None:
    """Write all events of a shop to a CSV or Parquet file, one row each. The shop may be served meanwhile.

    Example: rlsvi export-events shop.toml --out events.parquet
    """
    with report_errors(lambda: "no file was written"):
        settings = shop_settings(file)
        from rlsvi.shop import exchange
        from rlsvi.shop.events import Events

        with Events(settings.database, sync=settings.sync, create=False) as events:
            print(f"wrote {exchange.export_events(events, out)} events to {out}")


def import_events(
    file: ShopFile,
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A CSV or Parquet file.")],
) -> None:
    """Append past clicks, or the events that export-events wrote, to the database of a shop: all, or nothing.

    A table of clicks has a row for each recommendation: visit, product, reward, and, if known, slot, at,
    propensity and features of the customer. Import it before the shop is served, which then
    begins with what is known.

    Example: rlsvi import-events shop.toml clicks.csv
    """
    with report_errors(lambda: "nothing was imported"):
        settings = shop_settings(file)
        from rlsvi.shop import exchange
        from rlsvi.shop.events import Events

        with Events(settings.database, sync=settings.sync) as events:
            print(f"imported {table}: {exchange.import_events(events, settings, table)}")


COMMANDS = (export_events, import_events)
