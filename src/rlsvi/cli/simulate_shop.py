"""`rlsvi simulate-shop`: the customers of the paper visit a shop."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from rlsvi.cli.errors import report_errors
from rlsvi.cli.serve import shop_settings

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


def simulate_shop(
    file: Annotated[Path, typer.Argument(metavar="SHOP.TOML", help="The file of the shop's settings.")],
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
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Send simulated customers to a running shop, and print how many products they liked.

    They are those of the paper: how likely one likes a product depends on what she liked and disliked before in
    her visit. With --new, a shop for them is set up, with the likes under other policies as lines on its page.

    Example: rlsvi simulate-shop shop.toml --new --products 50

    Example: rlsvi simulate-shop shop.toml --visits 2000 --clients 8
    """
    with report_errors(lambda: "what was acknowledged is stored"):
        if new:
            _new(file, products, slots, seed)
            return
        settings = shop_settings(file)
        from rlsvi.shop.service.customers import Visiting, summary
        from rlsvi.shop.service.hosts import url_of

        where = url or url_of(settings.serve.host, settings.serve.port)
        token = os.environ.get(settings.serve.token_variable)
        found = summary(Visiting(where, token, settings.slots, visits, seconds, clients, seed).run())
        shown = {name: round(value, 3) for name, value in {**found, **settings.reference}.items()}
        print(json.dumps(shown) if as_json else "\n".join(f"{name:<20}{value:g}" for name, value in shown.items()))


def _new(file: Path, products: int, slots: int, seed: int) -> None:
    """Write the settings of a new shop and its products, if there is no such shop yet."""
    from rlsvi.core.files import check_folder, write_file
    from rlsvi.shop.service.customers import references

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
    write_file(catalogue, "\n".join(["product", *names, ""]).encode())
    write_file(file, NEW.format(products=products, slots=slots, lines=lines).encode())
    print(f"wrote {file} and {catalogue}\nnext: rlsvi serve {file}, and then: rlsvi simulate-shop {file}")
