"""BLAS on one thread.

With small matrices its threads wait for each other longer than they compute, and rounding depends on their number.
"""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any


@cache
def _pools() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Products of matrices take one thread within this."""
    pools: AbstractContextManager[Any] = _pools().limit(limits=1)
    return pools
