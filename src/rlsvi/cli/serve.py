"""`rlsvi serve` and `rlsvi learn-shop`: a shop as a service."""

import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlsvi.cli.errors import report_errors

if TYPE_CHECKING:
    from rlsvi.shop.settings import ShopSettings

ShopFile = Annotated[Path, typer.Argument(metavar="SHOP.TOML", help="The file of the shop's settings.")]
LOOPBACK = ("127.0.0.1", "::1", "localhost")


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
        from rlsvi.shop.service.hosts import checked_token

        if token := os.environ.get(variable):
            checked_token(token, f"the token in the variable {variable}")
        elif host not in LOOPBACK:
            raise ValueError(f"serve.host = {host!r} is open to others: set a token in the variable {variable}")
        from rlsvi.shop.service.logs import log_as
        from rlsvi.shop.service.processes import load_products, run

        log_as("parent")
        load_products(settings)
        run(file, settings, workers or settings.serve.workers, learner, stopped_by_signal())


def learn_shop(file: ShopFile) -> None:
    """Learn from the events of a shop, for `rlsvi serve --no-learner`. A shop has one learner.

    Example: rlsvi learn-shop shop.toml
    """
    with report_errors(lambda: "what was learned is kept"):
        settings = shop_settings(file)
        from rlsvi.shop.service.learning import learn
        from rlsvi.shop.service.logs import log_as

        log_as("learner")
        learn(settings, stopped_by_signal())


def stopped_by_signal() -> threading.Event:
    """Return an event that SIGTERM and Ctrl-C set."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


def shop_settings(file: Path) -> "ShopSettings":
    """Return the settings in a file, or say what has to be installed to read them."""
    try:
        from rlsvi.shop.settings import ShopSettings
    except ImportError as error:
        raise RuntimeError(str(error)) from None  # it says what to install
    return ShopSettings.from_toml(file)


COMMANDS = (serve, learn_shop)
