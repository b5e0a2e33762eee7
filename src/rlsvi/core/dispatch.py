"""Functions with one implementation for each class of their first argument, chosen when the caller is compiled.

`@generic` declares such a function, and `@function.register(Kind)` adds the implementation for the named tuple
`Kind` and its subclasses. A compiled function that calls it is compiled once for each class it is called with, and
contains only the implementation for that class. When called from Python, the implementation is looked up.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

from numba.extending import overload

from rlsvi.core.callee import INLINED
from rlsvi.core.compile import OPTIONS, F, compiled

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
