"""BLAS on one thread.

With small matrices, its threads spend more time waiting than computing, and rounding depends on their number.
"""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any


@cache
def _pools() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Context manager in which matrix products use one thread."""
    pools: AbstractContextManager[Any] = _pools().limit(limits=1)
    return pools
