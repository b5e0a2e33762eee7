"""Work in threads that end with the program: what cannot be stopped does not hold it up."""

import warnings
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event, Thread
from time import monotonic
from typing import Any

POLL = 0.1  # seconds, after which an interrupt that another thread has received is seen
PATIENCE = 2.0  # seconds in which threads that are no longer needed may end


class Stopped(BaseException):
    """Raised in work that is no longer needed; no `except Exception` of an agent stops it."""


def in_threads(
    work: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], threads: int, show: Callable[[int], None]
) -> list[Any]:
    """Return what `work` returns for every job, called with the parts of the job and `advance`.

    `advance(n)` shows progress, and raises Stopped after an error of other work or an interrupt. Work that does
    not call it goes on in the background, which a warning says.
    """
    stop, todo = Event(), deque(enumerate(jobs))
    done: SimpleQueue[tuple[int, Any, BaseException | None]] = SimpleQueue()

    def advance(n: int) -> None:
        if stop.is_set():
            raise Stopped
        if n:
            show(n)

    def serve() -> None:
        while todo and not stop.is_set():
            try:
                i, job = todo.popleft()
            except IndexError:  # another thread took the last one
                return
            try:
                done.put((i, work(*job, advance), None))
            except BaseException as error:
                done.put((i, None, error))

    crew = [Thread(target=serve, daemon=True) for _ in range(min(threads, len(jobs)))]
    results: dict[int, Any] = {}
    try:
        for thread in crew:
            thread.start()
        while len(results) < len(jobs):
            with suppress(Empty):
                i, results[i], error = done.get(timeout=POLL)
                if error is not None:
                    raise error
    finally:
        stop.set()
        _join(crew)
    return [results[i] for i in range(len(jobs))]


def _join(crew: Sequence[Thread]) -> None:
    end = monotonic() + PATIENCE
    for thread in crew:
        if thread.is_alive():
            thread.join(max(end - monotonic(), 0.0))
    if going_on := sum(thread.is_alive() for thread in crew):
        warnings.warn(
            f"{going_on} of the runs go on in the background, as their agents take no steps: restart Python to "
            "end them, and before comparing such agents again",
            stacklevel=3,
        )
