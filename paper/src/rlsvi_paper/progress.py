"""What stderr shows while figures are computed: a bar for each, and the time left."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from rlsvi.progress import display_in_use

TELLING = 0.1  # of all that is to be computed tells how long the rest takes


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
