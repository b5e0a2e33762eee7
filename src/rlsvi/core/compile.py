"""How this package compiles functions.

Strict IEEE arithmetic without fast-math: sums are taken in the order written, so a function gives the same
bits whether it is called from Python, inlined into the fused loop, or vectorised by the compiler.
Nothing is allocated in compiled code: arrays come from the caller. No references are therefore counted there,
which would cost more than the mathematics.
"""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from rlsvi.core.cache import keep_on_disk
from rlsvi.core.callee import AVAILABLE, ENTRY, INLINED, KERNEL, call_as
from rlsvi.core.files import source_files

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]
Words = NDArray[np.uint64]

unsigned = np.uint64  # unsigned indices need no check for negative ones
ONE, TWO, THREE, FOUR = unsigned(1), unsigned(2), unsigned(3), unsigned(4)

F = TypeVar("F", bound=Callable[..., object])

# Compiled code is not called from C: omitting Numba's second entry point saves a tenth of the compile time.
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
}


@cache
def source_stamp() -> str:
    """Return a digest of all source files that compiled code is made of."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    parts = ("core", "mdp", "tetris", "bases", "agents", "shop", "simulate*")
    for path in sorted(path for part in parts for path in source_files(root, part)):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def compiled(function: F) -> F:
    """Compile `function` on its first call, without the GIL, and cache the machine code on disk.

    It becomes part of the compiled functions that call it.
    """
    return _compiled(function, INLINED)


def kernel(function: F) -> F:
    """Like `compiled`, but optimised separately before it becomes part of its callers: for the hottest loops."""
    return _compiled(function, KERNEL)


def _compiled(function: F, called: dict[str, Any]) -> F:
    dispatcher: Any = numba.njit(**OPTIONS, **ENTRY)(function)
    if dispatcher is not function:  # it is with NUMBA_DISABLE_JIT
        keep_on_disk(dispatcher)
        if AVAILABLE:
            call_as(dispatcher, numba.njit(**OPTIONS, **called)(function))
    return cast(F, dispatcher)
