"""`rlsvi demo`: a tour of the library, and a page of what was seen."""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlsvi.cli.errors import report_errors
from rlsvi.core.files import check_folder

if TYPE_CHECKING:
    from rlsvi.cli.tour.guide import Guide

SECONDS = {"ready": 1.0, "cart-pole": 20.0, "chain": 4.0, "recommendation": 3.0, "tetris": 5.0, "claims": 4.0}
CLAIMS = 35.0  # of the last stop, if no claim has been judged there before
FIRST = {"ready": 26.0, "cart-pole": 22.0, "chain": 6.0, "recommendation": 10.0, "tetris": 22.0, "claims": 7.0}


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the page.")] = Path("out/demo"),
) -> None:
    """Take a tour: CartPole, deep exploration, recommendations and Tetris, learned while you watch.

    It takes about a minute, or two the first time, when everything is compiled, and ends with a page,
    OUT/index.html, that needs nothing else to be read.

    Example: rlsvi demo --out out/demo
    """
    with report_errors(lambda: "no page was written"):
        from rich.console import Console

        from rlsvi.cli.tour.guide import Guide
        from rlsvi.core.cache import is_kept
        from rlsvi.simulate.finite import run

        os.environ["MPLBACKEND"] = "agg"  # a notebook's own is not there in its terminal
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and take the second process along
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # a terminal that has no blocks shows question marks
        out.mkdir(parents=True, exist_ok=True)
        index = out / "index.html"
        check_folder(index)
        expected = SECONDS if is_kept(run) else FIRST
        if not (out / "paper").exists():
            expected = expected | {"claims": CLAIMS}
        _tour(Guide(Console(), expected), out, index)


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
    if trouble:
        guide.say(f"The claims could not be judged: {trouble}")
    else:
        guide.say(f"{held} of the {len(claims)} headline claims judged here are reproduced; the others need")
        guide.say("larger runs (make paper).")
    guide.say(f"The tour took {time.monotonic() - guide.began:.0f} seconds. Open this page in a browser:")
    print(index)
