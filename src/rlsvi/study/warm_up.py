"""Loading the compiled code before several threads or processes need it at once."""

from contextlib import nullcontext
from typing import Any

from rlsvi.agents import RLSVI
from rlsvi.problems import chain
from rlsvi.simulate.finite import simulate


def warm_up(progress: bool) -> None:
    """Load the compiled code, or compile it the first time, which takes a while and is announced."""
    waiting: Any = nullcontext()
    if progress:
        from rich.console import Console

        console, what = Console(stderr=True), "making the compiled code ready (half a minute the first time)"
        waiting = console.status(what)
        if not console.is_terminal:  # where nothing can spin
            console.print(what)
    with waiting:
        simulate(RLSVI(seed=0), chain(4), 1)
