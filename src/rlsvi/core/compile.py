"""The one way this package compiles a function.

Strict IEEE arithmetic, no fast-math: sums are taken in the order written, so a function gives the same
bits whether it is called from Python, inlined into the fused loop, or vectorised by the compiler.
Nothing is allocated in compiled code: arrays come from the caller. So no reference is ever counted there,
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

unsigned = np.uint64  # an index that cannot be negative costs no check for counting from the end of an array
ONE, TWO, THREE, FOUR = unsigned(1), unsigned(2), unsigned(3), unsigned(4)

F = TypeVar("F", bound=Callable[..., object])

# Nobody calls compiled code from C: leaving out Numba's second entry saves a tenth of the time to compile.
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
}


@cache
def source_stamp() -> str:
    """A digest of every source file that compiled code is made of."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    parts = ("core", "mdp", "tetris", "bases", "agents", "shop", "simulate*")
    for path in sorted(path for part in parts for path in source_files(root, part)):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def compiled(function: F) -> F:
    """Compile `function` on first call, without the GIL, and keep the machine code on disk.

    It becomes a part of the compiled functions that call it. Numba dates cached code by the file of the function
    alone, although it holds functions of other files; here it is dated by all sources, so that no stale machine
    code is ever run.
    """
    return _compiled(function, INLINED)


def kernel(function: F) -> F:
    """As `compiled`, but optimised by itself before it becomes a part of its callers: for the hottest loops."""
    return _compiled(function, KERNEL)


def _compiled(function: F, called: dict[str, Any]) -> F:
    dispatcher: Any = numba.njit(**OPTIONS, **ENTRY)(function)
    if dispatcher is not function:  # it is with NUMBA_DISABLE_JIT
        keep_on_disk(dispatcher, source_stamp())
        if AVAILABLE:
            call_as(dispatcher, numba.njit(**OPTIONS, **called)(function))
    return cast(F, dispatcher)
