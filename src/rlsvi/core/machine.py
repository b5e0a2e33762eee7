"""The machine this runs on."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from multiprocessing import parent_process
from typing import Any, TypeVar

import numpy as np


def cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def memory() -> int:
    """Return the bytes of memory of this machine, or 2^40 if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 2**40


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
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables temporarily."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


# ---- BLAS on one thread ------------------------------------------------------------------------------------
#
# With small matrices, its threads spend more time waiting than computing, and rounding depends on their number.


@cache
def _pools() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Context manager in which matrix products use one thread."""
    pools: AbstractContextManager[Any] = _pools().limit(limits=1)
    return pools


# ---- Work in fixed blocks of rows, on all cores ------------------------------------------------------------
#
# A matrix product on several threads rounds differently from the same product on one. Here the blocks are the same
# on every machine, each is computed by one thread, and the results are combined in their order: the number of
# cores determines the time, but not the bits.


ROWS = 4096  # of a block: enough to occupy a core for a millisecond, and smaller problems are not divided
LITTLE_WORK = 3e7  # multiplications, about 10 ms, for which threads do not pay: on a busy machine they wait
Item = TypeVar("Item")
Result = TypeVar("Result")


def blocks(rows: int) -> list[slice]:
    """Return the blocks of this many rows."""
    return [slice(first, min(rows, first + ROWS)) for first in range(0, rows, ROWS)]


def threads() -> int:
    """Return how many threads to use: one per core, and at most OMP_NUM_THREADS, which is 1 in jobs of a sweep."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores(), max(1, int(given))) if given.isdecimal() else cores()


def on_all_cores(function: Callable[[Item], Result], items: Sequence[Item], work: float) -> list[Result]:
    """Return the function of every item in their order. The work is the number of multiplications in all."""
    count = min(threads(), len(items))
    if count <= 1 or work < LITTLE_WORK:
        return [function(item) for item in items]
    errors = np.geterr()  # every thread has its own way to treat overflow

    def compute(item: Item) -> Result:
        with np.errstate(**errors):
            return function(item)

    with ThreadPoolExecutor(count) as pool:  # starting threads takes a tenth of a millisecond
        return list(pool.map(compute, items))


# ---- Deferred Ctrl-C ---------------------------------------------------------------------------------------


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Defer Ctrl-C to the end of a block, so that its changes are complete. Acquire locks before it."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield  # other threads are never interrupted, and other handlers do not interrupt Python
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)
