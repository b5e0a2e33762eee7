"""How this package compiles functions.

Strict IEEE arithmetic without fast-math: sums are taken in the order written, so a function gives the same
bits whether it is called from Python, inlined into the fused loop, or vectorised by the compiler.
Nothing is allocated in compiled code: arrays come from the caller. No references are therefore counted there,
which would cost more than the mathematics.
"""

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import Timer
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, cast

import numba
import numpy as np
from numba.core import codegen, compiler
from numba.extending import overload
from numpy.typing import NDArray

from rlsvi.core.cache import keep_on_disk
from rlsvi.core.machine import is_watched

# ---- Compiled functions as parts of other compiled functions -----------------------------------------------
#
# Numba compiles a function that compiled code calls as if Python would call it too: with a wrapper that unpacks
# Python objects, all optimisations, and machine code. The caller then includes its intermediate code and repeats
# all this, and so does the caller's caller; most of that work is discarded. Here a function that is called by
# compiled code is only translated to intermediate code, which is optimised and turned into machine code once,
# within each function that Python calls. The wrapper of the latter runs once per call and is not optimised, and
# garbage collection is off while Numba creates its many objects. Compilation that takes long is announced on
# stderr. If Numba has changed, everything is compiled in Numba's own way, which takes longer.


Library: Any = getattr(codegen, "JITCodeLibrary", object)  # these two are not public in Numba
Compiler: Any = getattr(compiler, "Compiler", object)
USED = ("_raise_if_finalized", "_get_module_for_linking", "_optimize_functions", "_optimize_final_module")
NEW = tuple(int(n) for n in numba.__version__.split(".")[:2]) >= (0, 66)  # before, libraries worked in another way
AVAILABLE = NEW and all(hasattr(Library, name) for name in USED) and hasattr(Compiler, "compile_extra")
WRAPPER = "_ZN7cpython"  # prefix of the names of functions that Python calls


class _NoEnvironments:
    """Replaces the code generator where Numba would tell machine code about its Python environment."""

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing, since there is no machine code."""


class CalleeLibrary(Library):  # type: ignore[misc]
    """Intermediate code that is included by its callers."""

    codegen = _NoEnvironments()

    def get_pointer_to_function(self, name: str) -> int:
        """Return no address, since there is no machine code."""
        return 0

    def finalize(self) -> None:
        """Include the intermediate code of the functions that this one calls, and stop there."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


class KernelLibrary(CalleeLibrary):
    """Intermediate code that is optimised separately, then included by its callers."""

    def finalize(self) -> None:
        """Include what this function calls, and optimise."""
        super().finalize()
        self._optimize_final_module()


class EntryLibrary(Library):  # type: ignore[misc]
    """Machine code that Python calls, through a wrapper that is not optimised."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.enable_object_caching()

    def _optimize_functions(self, module: Any) -> None:
        wrappers = [f for f in module.functions if f.name.startswith(WRAPPER) and not f.is_declaration]
        for wrapper in wrappers:
            wrapper.add_function_attribute("noinline")
            wrapper.add_function_attribute("optnone")
        if wrappers:
            module.data_layout = self._codegen._data_layout
        else:
            super()._optimize_functions(module)


PATIENCE = 2.0  # seconds
COMPILING = "compiling, the first time only: about ten seconds"
_seconds_before_announcing = PATIENCE


@contextmanager
def announce_compiling() -> Iterator[None]:
    """Announce once that code is being compiled, if stderr is interactive and it takes two seconds in total."""
    global _seconds_before_announcing
    left = _seconds_before_announcing
    if left <= 0 or not is_watched():
        yield
        return
    begin, _seconds_before_announcing = time.monotonic(), 0.0  # nested compilation waits for this one
    timer = Timer(left, lambda: print(COMPILING, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        _seconds_before_announcing = left - (time.monotonic() - begin)


def _into(kind: Any) -> dict[str, Any]:
    """Return the option that makes Numba write into a library of this kind."""

    class Into(Compiler):  # type: ignore[misc]
        def __init__(self, typing: Any, target: Any, library: Any, *others: Any) -> None:
            super().__init__(typing, target, kind(target.codegen(), kind.__name__), *others)

        def compile_extra(self, function: Any) -> Any:
            collecting = gc.isenabled()
            gc.disable()
            try:
                with announce_compiling():
                    return super().compile_extra(function)
            finally:
                if collecting:
                    gc.enable()

    return {"pipeline_class": Into} if AVAILABLE else {}


_CALLED: dict[str, Any] = {"no_cpython_wrapper": True, "forceinline": True}
ENTRY = _into(EntryLibrary) or {"forceinline": True}
KERNEL, INLINED = _CALLED | _into(KernelLibrary), _CALLED | _into(CalleeLibrary)


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
            callee: Any = numba.njit(**OPTIONS, **called)(function)  # the same, for compiled code that calls it
            dispatcher.get_call_template, dispatcher.get_overload = callee.get_call_template, callee.get_overload
    return cast(F, dispatcher)


# ---- Functions with one implementation for each class of their first argument, chosen when the caller is compiled
#
# `@generic` declares such a function, and `@function.register(Kind)` adds the implementation for the named tuple
# `Kind` and its subclasses. A compiled function that calls it is compiled once for each class it is called with,
# and contains only the implementation for that class. When called from Python, the implementation is looked up.


P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class GenericFunction(Protocol, Generic[P, R]):
    """A function declared with `generic`."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the implementation."""
        ...

    def register(self, kind: type) -> Callable[[F], F]:
        """Return a decorator for the implementation for `kind`, which compiles the function."""
        ...


def generic(declared: Callable[P, R]) -> GenericFunction[P, R]:
    """Return a function that calls the implementation for the class of its first argument, or for a base class."""
    implementations: dict[type, tuple[Any, Any]] = {}  # as written and as compiled

    def found(kind: type) -> tuple[Any, Any]:
        for base in kind.__mro__:
            if base in implementations:
                return implementations[base]
        raise TypeError(f"no {declared.__name__} is registered for {kind.__name__}")

    @wraps(declared)
    def function(first: Any, *others: Any) -> Any:
        return found(type(first))[1](first, *others)

    def chosen(first: Any, *others: Any) -> Any:
        kind = getattr(first, "instance_class", None)  # of a Numba type that is a named tuple
        return None if kind is None else found(kind)[0]

    for target, options in ("generic", OPTIONS), ("cpu", OPTIONS | INLINED):
        overload(function, jit_options=options, strict=False, target=target)(chosen)  # type: ignore[arg-type]

    def register(kind: type) -> Callable[[F], F]:
        def add(implementation: F) -> F:
            written: Any = getattr(implementation, "py_func", implementation)  # one may serve several kinds
            done = implementation if written is not implementation else compiled(implementation)
            implementations[kind] = written, done
            return done

        return add

    def implementation(kind: type) -> Any:
        """Return what is compiled for `kind`, or None."""
        return next((implementations[base][0] for base in kind.__mro__ if base in implementations), None)

    function.register, function.implementation = register, implementation  # type: ignore[attr-defined]
    return function  # type: ignore[return-value]
