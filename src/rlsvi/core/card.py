"""Graphics cards: whether one can be used, arrays of many runs on it, and kernels with the processor's arithmetic.

Arrays of many runs are stacked along their last axis, so that neighbouring threads, one per run, read neighbouring
numbers. A compiled function gives the same bits on a card as on a processor, since sums and products are not fused
(`-fma=0`), and exponentials and logarithms are our own (core/elementary.py).
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

THREADS = 32  # per block; small blocks spread few runs over all multiprocessors
COPIERS = 1024  # blocks of a kernel that copies

Array = NDArray[Any]


class NoCard(RuntimeError):
    """There is no graphics card that can be used.

    Examples
    --------
    >>> import rlsvi
    >>> from rlsvi.core.card import NoCard
    >>> def best_device(agents, problem):
    ...     try:
    ...         return rlsvi.compare(agents, problem, episodes=1000, seeds=1000, device="cuda")
    ...     except NoCard:
    ...         return rlsvi.compare(agents, problem, episodes=1000, seeds=100)
    """


class TooLittleMemory(NoCard):
    """The card has too little memory for so many runs."""


@cache
def cuda() -> Any:
    """Return `numba.cuda`, after checking that there is a card, or raise NoCard with the remedy."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import numba.cuda
    except ImportError as error:
        raise NoCard(f"numba-cuda is missing ({error}): pip install '.[cuda]' in a clone of rlsvi") from None
    found: Any = numba.cuda
    if is_simulated():
        return found
    if find_spec("numba_cuda") is None:
        raise NoCard(
            "numba-cuda is missing: pip install '.[cuda]' in a clone of rlsvi, or leave device='cuda' or "
            "--executor gpu out"
        )
    if not found.is_available():
        raise NoCard(
            "no CUDA device can be used: leave device='cuda' or --executor gpu out to compute on the processor; "
            "with a card, install its driver and pip install '.[cuda]' in a clone of rlsvi"
        )
    return found


def is_simulated() -> bool:
    """Return whether Numba simulates the card on the processor (NUMBA_ENABLE_CUDASIM=1), as tests do."""
    return bool(getattr(numba.config, "ENABLE_CUDASIM", False))


def free_memory() -> int:
    """Return the number of bytes that are free on the card."""
    if is_simulated():
        return 2**32
    context = cuda().current_context()
    context.deallocations.clear()  # what was freed and is still held
    return int(context.get_memory_info().free)


def is_usable() -> bool:
    """Return whether there is a card that can be used."""
    try:
        return bool(cuda())
    except NoCard:
        return False


@contextmanager
def memory_is_checked() -> Iterator[None]:
    """Context manager in which TooLittleMemory is raised if an allocation fails."""
    try:
        yield
    except Exception as error:
        if "MEMORY" in str(error).upper() and type(error).__name__ == "CudaAPIError":
            raise TooLittleMemory(f"the card has too little memory: {error}") from error
        raise


@contextmanager
def strict_arithmetic() -> Iterator[None]:
    """Context manager in which kernels are compiled without fusing products and sums."""
    if is_simulated():
        yield
        return
    nvvm: Any = import_module("numba.cuda.cudadrv.nvvm")
    usual = nvvm.compile_ir
    nvvm.compile_ir = lambda code, **options: usual(code, **{**options, "fma": 0})
    try:
        yield
    finally:
        nvvm.compile_ir = usual


def kernel(function: Any, registers: int | None = None) -> Any:
    """Return a kernel that is compiled on its first call, which must be within `strict_arithmetic`.

    A thread has at most `registers`; with fewer, more threads run at once.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if is_simulated():
            return cuda().jit(function)
        return cuda().jit(function, lto=False, max_registers=registers)


def sized(kernel: Any, blocks: int, threads: int) -> Any:
    """Return a kernel to be called with so many blocks of threads, without Numba's warning that they are few."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r".*Grid size \d+ will likely result in GPU under-utilization")
        return kernel[blocks, threads]


@cache
def _copiers() -> tuple[Any, Any, Any]:
    """Return the kernels that fill, move and transpose stacked arrays."""
    cuda()
    from rlsvi.core import card_kernels

    return kernel(card_kernels.fill), kernel(card_kernels.move), kernel(card_kernels.transpose)


def _launch(copier: Any, *arguments: Any) -> None:
    copier[(1, 4) if is_simulated() else (COPIERS, 256)](*arguments)


def stacked(one: Array, runs: int) -> Any:
    """Return an array on the card that holds `one` for each of so many runs, along its last axis."""
    to = cuda().device_array((max(one.size, 1), runs), one.dtype)
    if one.size:
        _launch(_copiers()[0], to, cuda().to_device(np.ascontiguousarray(one).reshape(-1)))
    return _shaped(to, one, runs)


def stacked_rows(rows: Sequence[Array]) -> Any:
    """Return an array on the card of one array per run, along its last axis."""
    one, runs = rows[0], len(rows)
    to, wave = cuda().device_array((one.size, runs), one.dtype), max(1, 2**28 // max(one.nbytes, 1))
    for first in range(0, runs, wave):
        part = np.stack([row.reshape(-1) for row in rows[first : first + wave]])
        _launch(_copiers()[2], to, cuda().to_device(part), first)
    return _shaped(to, one, runs)


def enlarged(before: Any, was: Array, one: Array) -> Any:
    """Return a stacked array in which every run has the shape of `one` instead of that of `was`.

    The first part along every axis is that of `before`, the rest is that of `one`.
    """
    runs = before.shape[was.ndim]
    to = stacked(one, runs)
    where = np.arange(one.size).reshape(one.shape)[tuple(slice(n) for n in was.shape)]
    old, new = before.reshape(was.size, runs), to.reshape(one.size, runs)
    _launch(_copiers()[1], new, old, cuda().to_device(np.ascontiguousarray(where).reshape(-1)))
    return to


def _shaped(to: Any, one: Array, runs: int) -> Any:
    return to.reshape((*one.shape, runs)) if one.size else to[:0].reshape((*one.shape, runs))
