"""Where a long job keeps what it has done so far, so that one that is killed goes on where it was.

A sweep sets a folder of its store aside for each of its jobs, and removes it when the job's results are kept.
The function of a job asks for it by `checkpoint()`; most do not, and are begun again. The folder is locked while
the function runs, so that nobody removes it.
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
    """The folder of the job that is being computed; None where there is none.

    There is none outside of a sweep, and on a machine of a cluster that does not see the store.
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
    """Have `checkpoint()` give a folder, STORE/unfinished/JOB."""
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
