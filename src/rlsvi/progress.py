"""What stderr shows during long operations: a bar, a line of text in a notebook, or a bar for each figure.

By default, nothing is shown in a pipe, in a file or in a worker process, or before two seconds have passed.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from threading import Lock
from typing import Any

from rlsvi.core.checks import flag
from rlsvi.core.machine import in_notebook, is_watched

PATIENCE = 2.0  # seconds
TELLING = 0.1  # of all that is to be computed tells how long the rest takes
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


@contextmanager
def figure_bars(plans: Mapping[str, Sequence[Any]], show: bool) -> Iterator[Callable[[Any, bool], None]]:
    """Yield `advance(job, fresh)`, given the jobs of each figure. A job of several figures moves all their bars.

    Where nothing can move, as in a file, a line is written now and then.
    """
    if not show:
        yield lambda job, fresh: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = "[cyan]{task.description}", "{task.completed:.0f}/{task.total:.0f} jobs", "{task.fields[left]}"
    title, count, left = (TextColumn(text) for text in columns)
    with display_in_use, Progress(title, BarColumn(), count, left, console=console) as display:
        tasks = {name: display.add_task(name, total=len(jobs), left="") for name, jobs in plans.items()}
        homes: dict[str, list[str]] = {}
        for name, jobs in plans.items():
            for job in jobs:
                homes.setdefault(job.name, []).append(name)
        costs = {job.name: job.cost for jobs in plans.values() for job in jobs}
        total = display.add_task("total", total=len(costs), left="")
        clock, done = _Clock(sum(costs.values())), 0

        def advance(job: Any, fresh: bool) -> None:
            nonlocal done
            for name in homes[job.name]:
                display.advance(tasks[name])
            done += 1
            words = clock.left(job.cost, fresh)
            display.update(total, advance=1, left=words)
            if not console.is_terminal and fresh and clock.due():
                console.print(", ".join(filter(None, (f"{done}/{len(costs)} jobs", words))))

        yield advance


class _Clock:
    """The time left, from the costs of the jobs computed so far."""

    def __init__(self, cost: float) -> None:
        self.remaining, self.computed, self.begin = cost, 0.0, time.monotonic()
        self.told = self.begin

    def left(self, cost: float, fresh: bool) -> str:
        """In words, after a job of `cost` is finished; `fresh` unless it had been before."""
        self.remaining -= cost
        if not fresh:
            self.begin = time.monotonic()
            return ""
        self.computed += cost
        taken = time.monotonic() - self.begin
        known = self.computed >= TELLING * (self.computed + self.remaining)
        if taken < 5 or not known:  # processes are still starting, and compiling, which costs of jobs leave out
            return ""
        seconds = round(max(self.remaining, 0.0) * taken / self.computed) if self.computed else 0
        return f"about {timedelta(seconds=seconds)} left" if seconds else f"{timedelta(seconds=round(taken))}"

    def due(self) -> bool:
        """Whether half a minute has passed since it last was."""
        now = time.monotonic()
        if now - self.told < 30:
            return False
        self.told = now
        return True
