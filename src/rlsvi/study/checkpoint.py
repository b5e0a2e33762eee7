"""Where a long job keeps what it has done so far, so that one that is killed goes on where it was.

A sweep sets a folder of its store aside for each of its jobs, and removes it when the job's results are kept.
The function of a job asks for it by `checkpoint()`; most do not, and are begun again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_set_aside: ContextVar[Path | None] = ContextVar("set_aside", default=None)


def checkpoint() -> Path | None:
    """The folder of the job that is being computed; None where there is none.

    There is none outside of a sweep, and on a machine of a cluster that does not see the store.
    """
    folder = _set_aside.get()
    if folder is None or not folder.parents[1].is_dir():
        return None
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def checkpoint_in(folder: str | None) -> Iterator[None]:
    """Have `checkpoint()` give a folder, STORE/unfinished/JOB."""
    token = _set_aside.set(None if folder is None else Path(folder))
    try:
        yield
    finally:
        _set_aside.reset(token)
