"""Checkpoints: where a long job stores its progress, so that it can resume after being killed.

A sweep reserves a folder of its store for each of its jobs, and removes it once the job's results are stored. The
function of a job obtains it from `checkpoint()`; most functions do not use it and start over. The folder is locked
while the function runs, so that no other process removes it.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from rlsvi.core.files import alone, folder_in_use, remove_left_over


@dataclass
class _Place:
    folder: Path
    descriptor: int | None = None


_set_aside: ContextVar[_Place | None] = ContextVar("set_aside", default=None)


def checkpoint() -> Path | None:
    """Return the checkpoint folder of the current job, or None if there is none.

    There is none outside of a sweep, or on a cluster machine that has no access to the store.

    Examples
    --------
    A long function can store how far it is:

    >>> from rlsvi.study.checkpoint import checkpoint
    >>> folder = checkpoint()
    >>> print(folder)  # outside of a sweep
    None
    """
    place = _set_aside.get()
    if place is None or not place.folder.parents[1].is_dir():
        return None
    if place.descriptor is None:
        place.descriptor = folder_in_use(place.folder)
        remove_left_over(place.folder)
    return place.folder


@contextmanager
def checkpoint_in(folder: str | None) -> Iterator[None]:
    """Make `checkpoint()` return a folder, STORE/unfinished/JOB."""
    place = None if folder is None else _Place(Path(folder))
    token = _set_aside.set(place)
    try:
        yield
    finally:
        _set_aside.reset(token)
        if place is not None and place.descriptor is not None:
            os.close(place.descriptor)


def remove(folder: Path) -> None:
    """Remove the folder of a job, unless another process is computing the job."""
    with alone(folder) as unused:
        if unused:
            shutil.rmtree(folder, ignore_errors=True)
