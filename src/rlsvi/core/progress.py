"""What stderr shows during long operations: a progress bar, or a line of text.

By default, neither is shown in a pipe, in a file or in a worker process, or before two seconds have passed.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from multiprocessing import parent_process
from threading import Lock, Timer

from rlsvi.core.checks import flag

PATIENCE = 2.0  # seconds
COMPILING = "compiling, the first time only: about ten seconds"
Draw = Callable[[int, str], None]
display_in_use = Lock()  # held while a progress display is shown: there is only one at a time
_seconds_before_announcing = PATIENCE


def in_notebook() -> bool:
    """Return whether output goes to a Jupyter notebook."""
    return type(sys.stderr).__module__ == "ipykernel.iostream"


def is_watched() -> bool:
    """Return whether stderr is interactive: on a terminal or in a notebook, in the main process."""
    if parent_process() is not None:
        return False
    with suppress(AttributeError, ValueError):  # there is no stderr, or it is closed
        return in_notebook() or sys.stderr.isatty()
    return False


@contextmanager
def bar(total: int, what: str, show: bool | None) -> Iterator[Callable[..., None]]:
    """Yield `advance(n, words="")`, which threads may share.

    show : True always draws the bar, False never; None draws it after two seconds if stderr is interactive.
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


@contextmanager
def compiling_announced() -> Iterator[None]:
    """Announce once that code is being compiled, if stderr is interactive and it takes two seconds in total."""
    global _seconds_before_announcing
    left = _seconds_before_announcing
    if left <= 0 or not is_watched():
        yield
        return
    begin, _seconds_before_announcing = time.monotonic(), 0.0  # nested compilation waits for this one
    timer = Timer(left, lambda: print(COMPILING, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        _seconds_before_announcing = left - (time.monotonic() - begin)
