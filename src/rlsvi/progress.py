"""What stderr shows during long operations: a bar, or a line of text in a notebook.

By default, nothing is shown in a pipe, in a file or in a worker process, or before two seconds have passed.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from threading import Lock

from rlsvi.core.checks import flag
from rlsvi.core.machine import in_notebook, is_watched

PATIENCE = 2.0  # seconds
Draw = Callable[[int, str], None]
display_in_use = Lock()  # held while a progress display is shown: there is only one at a time


@contextmanager
def bar(total: int, what: str, show: bool | None) -> Iterator[Callable[..., None]]:
    """Yield `advance(n, words="")`, which threads may share.

    With show=True the bar is always drawn, with False never, and with None after two seconds if stderr is
    interactive.
    """
    if (show is not None and not flag("progress", show)) or (show is None and not is_watched()):
        yield lambda n, words="": None
        return
    begin, done, turn = time.monotonic(), 0, Lock()
    draw: Draw | None = None
    with ExitStack() as stack:

        def advance(n: int, words: str = "") -> None:
            nonlocal done, draw
            with turn:
                done += n
                due = show or time.monotonic() - begin > PATIENCE
                if draw is None and due and display_in_use.acquire(blocking=False):
                    stack.callback(display_in_use.release)
                    drawn = _text if in_notebook() else _rich_bar
                    draw = stack.enter_context(drawn(total, what, begin))
                if draw is not None:
                    draw(done, words)

        advance(0)
        yield advance


@contextmanager
def _rich_bar(total: int, what: str, begin: float) -> Iterator[Draw]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    title, words = TextColumn("{task.description}"), TextColumn("{task.fields[words]}")
    columns = title, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), words
    with Progress(*columns, console=Console(stderr=True)) as display:
        task = display.add_task(what, total=total, words="")
        yield lambda done, words: display.update(task, completed=done, words=words)


@contextmanager
def _text(total: int, what: str, begin: float) -> Iterator[Draw]:
    """One line that overwrites itself, for notebooks, where rich would need ipywidgets."""
    written = -PATIENCE

    def draw(done: int, words: str) -> None:
        nonlocal written
        now = time.monotonic()
        if done < total and now - written < 0.5:
            return
        written = now
        left = timedelta(seconds=round((now - begin) / done * (total - done))) if done else "unknown time"
        print(f"\r{what} {done}/{total}, {left} left {words}".ljust(80), end="", file=sys.stderr, flush=True)

    try:
        yield draw
    finally:
        print(file=sys.stderr)
