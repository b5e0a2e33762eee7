"""A progress bar on stderr."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(total: int, what: str, show: bool) -> Iterator[Callable[..., None]]:
    """Yields `advance(n, words="")`. Nothing is drawn unless `show`; rich is imported only then."""
    if not show:
        yield lambda n, words="": None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    title, words = TextColumn("{task.description}"), TextColumn("{task.fields[words]}")
    columns = title, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), words
    with Progress(*columns, console=Console(stderr=True)) as display:
        task = display.add_task(what, total=total, words="")
        yield lambda n, words="": display.update(task, advance=n, words=words)
