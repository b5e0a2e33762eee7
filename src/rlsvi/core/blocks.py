"""Work in fixed blocks of rows, on all cores.

A matrix product on several threads rounds differently from the same product on one. Here the blocks are the same
on every machine, each is computed by one thread, and the results are combined in their order: the number of cores
determines the time, but not the bits.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from rlsvi.core.machine import cores

ROWS = 4096  # of a block: enough to occupy a core for a millisecond, and smaller problems are not divided
LITTLE = 3e7  # multiplications, about 10 ms, for which threads do not pay: on a busy machine they wait
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
    if count <= 1 or work < LITTLE:
        return [function(item) for item in items]
    errors = np.geterr()  # every thread has its own way to treat overflow

    def compute(item: Item) -> Result:
        with np.errstate(**errors):
            return function(item)

    with ThreadPoolExecutor(count) as pool:  # starting threads takes a tenth of a millisecond
        return list(pool.map(compute, items))
