"""`rlsvi demo`: a tour of the library, and a page of what was seen."""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from rlsvi.cli.errors import report_errors
from rlsvi.core.files import check_folder


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the page.")] = Path("out/demo"),
) -> None:
    """Take a tour: CartPole, deep exploration and recommendations, learned while you watch.

    If the package rlsvi-paper is installed, Tetris and some claims of the paper follow. The tour takes about a
    minute, or two the first time, when everything is compiled, and ends with a page, OUT/index.html, that needs
    nothing else to be read.

    Example: rlsvi demo --out out/demo
    """
    with report_errors(lambda: "no page was written"):
        os.environ["MPLBACKEND"] = "agg"  # a notebook's own is not there in its terminal
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and take processes of the tour along
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")  # a terminal that has no blocks shows question marks
        out.mkdir(parents=True, exist_ok=True)
        check_folder(out / "index.html")
        from rlsvi.cli.tour import show_all

        print(show_all(out))
