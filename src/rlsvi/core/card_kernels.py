"""Kernels that copy arrays of many runs, given as (numbers, runs). Import it only if there is a card.

They have a file of their own, since a simulated card replaces the global name `cuda` while it runs them.
"""

from typing import Any

import numba.cuda

from rlsvi.core.compile import Longs

cuda: Any = numba.cuda


def fill(to: Any, one: Any) -> None:
    """Give every run the numbers of `one`."""
    numbers, runs = to.shape
    for j in range(cuda.grid(1), numbers * runs, cuda.gridsize(1)):
        to[j // runs, j % runs] = one[j // runs]


def move(to: Any, before: Any, where: Longs) -> None:
    """Move number k of every run to `where[k]`."""
    numbers, runs = before.shape
    for j in range(cuda.grid(1), numbers * runs, cuda.gridsize(1)):
        to[where[j // runs], j % runs] = before[j // runs, j % runs]


def transpose(to: Any, rows: Any, first: int) -> None:
    """Give the runs from `first` on the numbers of one row each."""
    runs, numbers = rows.shape
    for j in range(cuda.grid(1), numbers * runs, cuda.gridsize(1)):
        to[j // runs, first + j % runs] = rows[j % runs, j // runs]
