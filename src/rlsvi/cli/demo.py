"""`rlsvi demo`: a tour of the library, and a page of what was seen."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlsvi.cli.environment import check_folder
from rlsvi.cli.errors import told

if TYPE_CHECKING:
    from rlsvi.cli.tour.guide import Guide

SECONDS = {"ready": 2.0, "cart-pole": 8.0, "chain": 5.0, "recommendation": 4.0, "tetris": 5.0, "claims": 25.0}


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the page.")] = Path("out/demo"),
) -> None:
    """Take a tour: CartPole, deep exploration, recommendations and Tetris, learned while you watch.

    It takes about a minute, or two the first time, when everything is compiled, and ends with a page,
    OUT/index.html, that needs nothing else to be read.

    Example: rlsvi demo --out out/demo
    """
    with told(lambda: "no page was written"):
        from rich.console import Console

        from rlsvi.cli.tour.guide import Guide

        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # a terminal that has no blocks shows question marks
        out.mkdir(parents=True, exist_ok=True)
        index = out / "index.html"
        check_folder(index)
        _tour(Guide(Console(), SECONDS), out, index)


def _tour(guide: "Guide", out: Path, index: Path) -> None:
    import time

    from rlsvi.cli.tour import cart_pole, chain, recommendation, tetris
    from rlsvi.cli.tour.headlines import headlines, judged
    from rlsvi.cli.tour.page import page
    from rlsvi.core.files import write_file
    from rlsvi.study.compare import warm_up

    stops = {"cart-pole": cart_pole, "chain": chain, "recommendation": recommendation, "tetris": tetris}
    exhibits = []
    with judged(out / "paper") as process:
        with guide.stop("ready", "Getting ready"):
            warm_up()
        for number, (name, stop) in enumerate(stops.items(), 1):
            with guide.stop(name, f"{number}. {stop.TITLE}"):
                exhibits.append(stop.show(guide))
        with guide.stop("claims", "5. What the paper claims"):
            claims, trouble = headlines(process, out / "paper")
    write_file(index, page(exhibits, claims, trouble).encode())
    held = sum(claim.outcome == "reproduced" for claim in claims)
    guide.say(trouble or f"{held} of {len(claims)} headline claims judged in this run are reproduced already.")
    guide.say(f"The tour took {time.monotonic() - guide.began:.0f} seconds.")
    print(index)
