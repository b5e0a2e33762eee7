"""The commands of a shop: serve, learn-shop, judge-shop, simulate-shop, export-events and import-events."""

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlsvi.cli.errors import report_errors
from rlsvi.core.files import PRIVATE, check_folder, file_instead, write_file

if TYPE_CHECKING:  # a command loads what it uses, so that the other commands start quickly
    from rlsvi_shop.settings import ShopSettings

ShopFile = Annotated[Path, typer.Argument(metavar="SHOP.TOML", help="The file of the shop's settings.")]
AsJSON = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
LOOPBACK = ("127.0.0.1", "::1", "localhost")
SHORTEST_TOKEN = 16  # characters, for a shop that others can reach
NEW = """\
# A shop with the customers of the paper (section 6.3): {products} products, of which a visit is shown {slots}.
database = "sqlite:///simulated.db"
slots = {slots}

[serve]
port = 8000
products = "products.csv"

[reference]  # mean likes of a visit, by simulation
{lines}
"""


def serve(
    file: ShopFile,
    workers: Annotated[
        int | None,
        typer.Option(min=1, max=256, help="How many processes serve.", show_default="the setting, or 1"),
    ] = None,
    learner: Annotated[
        bool, typer.Option("--learner/--no-learner", help="Whether a process beside them learns.")
    ] = True,
) -> None:
    """Serve a shop over HTTP: recommend, take feedback, learn, and show a page to watch it.

    The token that requests must show is read from the environment variable RLSVI_TOKEN, or the one that the
    settings name. Without one, the shop is served to this machine only. Logs go to stderr, a JSON object a line.
    SIGTERM or Ctrl-C ends it after all requests that were accepted are answered.

    Example: rlsvi serve shop.toml --workers 2
    """
    with report_errors(lambda: "all that was acknowledged is stored"):
        settings = shop_settings(file)
        variable, host = settings.serve.token_variable, settings.serve.host
        from rlsvi_shop.service.guard import check_token

        token = os.environ.get(variable)
        if token:
            check_token(token, f"the token in the variable {variable}")
        if host not in LOOPBACK and len(token or "") < SHORTEST_TOKEN:
            raise ValueError(
                f"serve.host = {host!r} is open to others: set a token in the variable {variable}, of at least "
                f"{SHORTEST_TOKEN} characters that nobody can guess, such as by\n"
                f'export {variable}=$(python -c "import secrets; print(secrets.token_urlsafe())")'
            )
        from rlsvi_shop.service.processes import load_products, log_as, run, stop_on_signal

        log_as("parent")
        load_products(settings)
        run(file, settings, workers or settings.serve.workers, learner, stop_on_signal())


def learn_shop(file: ShopFile) -> None:
    """Learn from the events of a shop, for `rlsvi serve --no-learner`. A shop has one learner.

    Example: rlsvi learn-shop shop.toml
    """
    with report_errors(lambda: "what was learned is kept"):
        settings = shop_settings(file)
        from rlsvi_shop.follower import learn
        from rlsvi_shop.service.processes import log_as, stop_on_signal

        log_as("learner")
        learn(settings, stop_on_signal())


def judge_shop(
    file: ShopFile,
    level: Annotated[float, typer.Option(help="The probability of the intervals.")] = 0.95,
    as_json: AsJSON = False,
) -> None:
    """Estimate the reward per visit of a shop's recommender from past events, before it serves.

    The recommender learns from one half of the visits and is judged by the other one, and the reverse. It is
    judged as it serves: each visit draws one of the samples of the posterior. The policy of the log is what the
    events were made with.

    The log must have chosen products at random, and must say how likely each was to be shown. If it cannot judge
    the recommender, the result says why, and has no estimate.

    Example: rlsvi judge-shop shop.toml
    """
    with report_errors(lambda: "there is no result"):
        settings = shop_settings(file)
        from rlsvi_shop.judging import judge

        value = judge(settings, level=level)
        plain = {  # as JSON can hold it: an end that is not known, or not finite, is None
            name.replace(" ", "_"): {end: v if math.isfinite(v) else None for end, v in interval._asdict().items()}
            for name, interval in {"logged": value.logged, **value.estimates}.items()
        }
        print(
            json.dumps({**plain, "left_out": value.left_out, "why": value.why}, allow_nan=False)
            if as_json
            else value
        )


def simulate_shop(
    file: ShopFile,
    new: Annotated[bool, typer.Option("--new", help="Write a new shop.toml and products.csv, and stop.")] = False,
    products: Annotated[int, typer.Option(min=2, max=10_000, help="With --new: how many products.")] = 50,
    slots: Annotated[int, typer.Option(min=1, max=1000, help="With --new: products shown in a visit.")] = 10,
    visits: Annotated[int, typer.Option(min=1, help="The most visits.")] = 1000,
    seconds: Annotated[float, typer.Option(min=0, help="No visit begins after this time.")] = 60.0,
    clients: Annotated[int, typer.Option(min=1, max=256, help="How many customers are there at once.")] = 4,
    url: Annotated[
        str | None, typer.Option(help="Where the shop is.", show_default="the host and port of the settings")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides, with the products' names, the customers' taste.")] = 0,
    as_json: AsJSON = False,
) -> None:
    """Send simulated customers to a running shop, and print how many products they liked.

    They are those of the paper: how likely one likes a product depends on what she liked and disliked before in
    her visit. With --new, a shop for them is set up, with the likes under other policies as lines on its page.

    Example: rlsvi simulate-shop shop.toml --new --products 50

    Example: rlsvi simulate-shop shop.toml --visits 2000 --clients 8
    """
    with report_errors(lambda: "what was acknowledged is stored"):
        if new:
            _write_new(file, products, slots, seed)
            return
        settings = shop_settings(file)
        from rlsvi_shop.service.customers import Customers, summary
        from rlsvi_shop.service.processes import url_of

        where = url or url_of(settings.serve.host, settings.serve.port)
        token = os.environ.get(settings.serve.token_variable)
        found = summary(Customers(where, token, settings.slots, visits, seconds, clients, seed).run())
        shown = {name: round(value, 3) for name, value in {**found, **settings.reference}.items()}
        print(json.dumps(shown) if as_json else "\n".join(f"{name:<20}{value:g}" for name, value in shown.items()))


def _write_new(file: Path, products: int, slots: int, seed: int) -> None:
    from rlsvi_shop.service.customers import references

    if slots > products:
        raise ValueError(f"slots must be at most products = {products}, got {slots}: no product is shown twice")
    catalogue = file.with_name("products.csv")
    for path in (file, catalogue):
        if path.exists():
            raise FileExistsError(f"{path} exists: name a new file, in a folder without a shop")
    check_folder(file)
    width = len(str(products - 1))
    names = [f"product-{i:0{width}}" for i in range(products)]
    lines = "\n".join(f'"{name}" = {value:.3f}' for name, value in references(names, slots, seed).items())
    write_file(catalogue, "\n".join(["product", *names, ""]).encode(), PRIVATE)
    write_file(file, NEW.format(products=products, slots=slots, lines=lines).encode(), PRIVATE)
    print(f"wrote {file} and {catalogue}\nnext: rlsvi serve {file}, and then: rlsvi simulate-shop {file}")


def export_events(
    file: ShopFile,
    out: Annotated[Path, typer.Option(help="The file to write, which ends in .csv or .parquet.")],
) -> None:
    """Write all events of a shop to a CSV or Parquet file, one row each. The shop may be served meanwhile.

    Example: rlsvi export-events shop.toml --out events.parquet
    """
    with report_errors(lambda: "no file was written"):
        settings = shop_settings(file)
        from rlsvi_shop import Events, exchange

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
        from rlsvi_shop import Events, exchange

        with Events(settings.database, sync=settings.sync) as events:
            print(f"imported {table}: {exchange.import_events(events, settings, table)}")


def shop_settings(file: Path) -> "ShopSettings":
    """Return the settings in a file."""
    from rlsvi_shop.settings import ShopSettings

    if not file.exists():
        otherwise = "name the settings of a shop, as rlsvi simulate-shop shop.toml --new writes them"
        raise FileNotFoundError(f"there is no file {file}: {file_instead(file, otherwise)}")
    return ShopSettings.from_toml(file)
