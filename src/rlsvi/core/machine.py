"""The machine this runs on."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache


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
