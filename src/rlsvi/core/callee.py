"""Compiled functions as parts of other compiled functions.

Numba compiles a function that compiled code calls as if Python would call it too: with a wrapper that unpacks
Python objects, all optimisations, and machine code. The caller then includes its intermediate code and repeats all
this, and so does the caller's caller; most of that work is discarded. Here a function that is called by compiled
code is only translated to intermediate code, which is optimised and turned into machine code once, within each
function that Python calls. The wrapper of the latter runs once per call and is not optimised, and garbage
collection is off while Numba creates its many objects. Compilation that takes long is announced on stderr. If
Numba has changed, everything is compiled in Numba's own way, which takes longer.
"""

import gc
from typing import Any

import numba
from numba.core import codegen, compiler

from rlsvi.core.progress import compiling_announced

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


def _into(kind: Any) -> dict[str, Any]:
    """Return the option that makes Numba write into a library of this kind."""

    class Into(Compiler):  # type: ignore[misc]
        def __init__(self, typing: Any, target: Any, library: Any, *others: Any) -> None:
            super().__init__(typing, target, kind(target.codegen(), kind.__name__), *others)

        def compile_extra(self, function: Any) -> Any:
            collecting = gc.isenabled()
            gc.disable()
            try:
                with compiling_announced():
                    return super().compile_extra(function)
            finally:
                if collecting:
                    gc.enable()

    return {"pipeline_class": Into} if AVAILABLE else {}


_CALLED: dict[str, Any] = {"no_cpython_wrapper": True, "forceinline": True}
ENTRY = _into(EntryLibrary) or {"forceinline": True}
KERNEL, INLINED = _CALLED | _into(KernelLibrary), _CALLED | _into(CalleeLibrary)


def call_as(dispatcher: Any, callee: Any) -> None:
    """Make compiled code that calls `dispatcher` call `callee`, the same function compiled differently."""
    dispatcher.get_call_template, dispatcher.get_overload = callee.get_call_template, callee.get_overload
