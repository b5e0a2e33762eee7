"""Compiled functions as parts of other compiled functions.

Numba compiles a function that compiled code calls as if Python were to call it too: with a wrapper that unpacks
Python objects, all optimisations, and machine code. The caller then takes in its intermediate code and does the
same again, and so does the caller's caller; most of that work is thrown away. Here a function that is called by
compiled code is only translated to intermediate code, which is optimised and made machine code once, within each
function that Python calls. Where Numba has changed, all is compiled as Numba does it, which takes longer.
"""

from typing import Any

from numba.core import codegen, compiler

Library: Any = getattr(codegen, "JITCodeLibrary", object)  # these two are no part of Numba's public face
Compiler: Any = getattr(compiler, "Compiler", object)
USED = ("_raise_if_finalized", "_get_module_for_linking", "get_pointer_to_function", "finalize")
AVAILABLE = Compiler is not object and all(hasattr(Library, name) for name in USED)  # else Numba has changed


class _NoEnvironments:
    """Stands in for the code generator where Numba would tell machine code of its Python environment."""

    def set_env(self, name: str, environment: Any) -> None:
        """There is no machine code."""


class CalleeLibrary(Library):  # type: ignore[misc]
    """Intermediate code that waits for its callers."""

    codegen = _NoEnvironments()

    def get_pointer_to_function(self, name: str) -> int:
        """No address: there is no machine code."""
        return 0

    def finalize(self) -> None:
        """Take in the intermediate code of the functions that this one calls, and leave it at that."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


class CalleeCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler, writing into a CalleeLibrary."""

    def __init__(self, typing: Any, target: Any, library: Any, *others: Any) -> None:
        super().__init__(typing, target, CalleeLibrary(target.codegen(), "callee"), *others)


KERNEL: dict[str, Any] = {"no_cpython_wrapper": True, "forceinline": True}  # optimised by itself first
INLINED = KERNEL | ({"pipeline_class": CalleeCompiler} if AVAILABLE else {})


def call_as(dispatcher: Any, callee: Any) -> None:
    """Let compiled code that calls `dispatcher` call `callee`, the same function compiled otherwise."""
    dispatcher.get_call_template, dispatcher.get_overload = callee.get_call_template, callee.get_overload
