"""A progress bar on stderr."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(total: int, what: str, show: bool) -> Iterator[Callable[[int], None]]:
    """Yields `advance(n)`. Nothing is drawn unless `show`; rich is imported only then."""
    if not show:
        yield lambda n: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as display:
        task = display.add_task(what, total=total)
        yield lambda n: display.advance(task, n)
