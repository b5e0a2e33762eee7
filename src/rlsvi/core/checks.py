"""Validation of arguments before they are used."""

import sys
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsvi.core.machine import memory

if TYPE_CHECKING:
    from rlsvi.core.compile import Floats

LARGEST_NUMBER = 1e100  # of a feature, reward or prior mean: its square and sums stay within float64
QUICK_NUMBERS = 4096  # numbers that are checked all at once by the sum of their squares

Constraint = Callable[[str, Any], Any]  # raises an error that names the argument, given its name and its value
Constraints = Mapping[str, Constraint]


def check_arguments(owner: Any) -> None:
    """Check what a constructor has stored by the tables `_constraints` of its class and of those it derives from.

    The table of a class has a constraint for each argument, in place of that of a class it derives from.
    """
    constraints: dict[str, Constraint] = {}
    for kind in reversed(type(owner).__mro__):
        constraints.update(vars(kind).get("_constraints", {}))
    for name, check in constraints.items():
        check(name, getattr(owner, name))


def optional(check: Constraint) -> Constraint:
    """Return a constraint that also allows None."""
    return lambda name, value: None if value is None else check(name, value)


def positive(name: str, value: Any) -> float:
    """Return `value` if it is a positive finite number."""
    value = value.item() if isinstance(value, np.generic) else value  # a float32 would overflow below
    if not _is_real(value) or not 0 < value <= sys.float_info.max:
        raise ValueError(f"{name} must be a positive, finite number, got {shown(value)}")
    return float(value)


def in_unit_interval(name: str, value: Any, *, closed: bool = False) -> float:
    """Return `value` if it is a number in [0, 1), or in [0, 1] if `closed`."""
    if not _is_real(value) or not (0 <= value < 1 or (closed and value == 1)):
        raise ValueError(f"{name} must lie in [0, 1{']' if closed else ')'}, got {shown(value)}")
    return float(value)


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return `value` if it is an integer of at least `least` and at most `most`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {shown(value)}")
    if most is not None and value > most:
        raise ValueError(f"{name} must be at most {most}, got {shown(value)}")
    return int(value)


def finite(name: str, values: Any) -> "Floats":
    """Return `values` as an array if they are all finite and not too large."""
    if type(values) is np.ndarray and values.dtype == np.float64 and values.size <= QUICK_NUMBERS:
        flat = values.ravel()
        with np.errstate(over="ignore", invalid="ignore"):
            if flat.dot(flat) <= LARGEST_NUMBER:  # then no number is larger, and none is NaN
                return values
    try:
        array = np.asarray(float(values) if np.ndim(values) == 0 else values)
        if isinstance(values, str | bytes | Decimal) or array.dtype.kind not in "fiubO":
            raise TypeError  # complex numbers, dates and text
        array = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number or an array of numbers, got {shown(values)}") from None
    except OverflowError:
        raise ValueError(
            f"{name} must be finite, got more than {LARGEST_NUMBER:g}: replace or remove it"
        ) from None
    if not (np.abs(array) <= LARGEST_NUMBER).all():
        raise ValueError(
            f"{name} must be finite, got NaN, infinity or more than {LARGEST_NUMBER:g}: replace or remove it"
        )
    return array


def at_least(name: str, value: Any, least: float) -> float:
    """Return `value` if it is a finite number of at least `least`."""
    if number(name, value) < least:
        raise ValueError(f"{name} must be at least {least:g}, got {shown(value)}")
    return float(value)


def flag(name: str, value: Any) -> bool:
    """Return `value` if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def one_of(name: str, value: Any, names: Iterable[str]) -> str:
    """Return `value` if it is one of the names."""
    if not isinstance(value, str) or value not in names:
        choice = '" or "'.join(names)
        raise ValueError(f'{name} must be "{choice}", got {shown(value)}{hint(value, names)}')
    return value


def instead(name: str, names: Iterable[str], otherwise: str = "") -> str:
    """Return what to write for an unknown name: the nearest one, whatever its case, or what there is."""
    known = {each.lower(): each for each in names}
    if close := get_close_matches(name.lower(), known, 1):
        return f"did you mean {known[close[0]]}?"
    return otherwise or f"there are {', '.join(known.values())}"


def hint(name: Any, names: Iterable[str]) -> str:
    """Return the end of an error that has listed all names: which of them was probably meant, or nothing."""
    near = instead(name, names, "?") if isinstance(name, str) else "?"
    return "" if near == "?" else f": {near}"


def takes(value: Any, count: int) -> bool:
    """Return whether `value` is a function, not a class, that can be called with so many arguments."""
    if isinstance(value, type) or not callable(value):
        return False
    try:
        signature(value).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        pass  # a function of C does not tell what it takes
    return True


def function_of(name: str, value: Any, *arguments: str) -> None:
    """Raise an error if `value` is not a function that can be called with these arguments, described in words."""
    if not takes(value, len(arguments)):
        raise TypeError(f"{name} must be a function of {' and '.join(arguments)}, got {shown(value)}")


def fits(what: str, numbers: int, remedy: str) -> None:
    """Raise an error if arrays need more memory than this machine has."""
    if 8 * numbers > memory():
        raise ValueError(
            f"{what} take {_gigabytes(8 * numbers)}, more than this machine has ({_gigabytes(memory())}): {remedy}"
        )


def check_even(name: str, value: Any) -> None:
    """Raise an error if lists within a list have different lengths, or are nested too deeply for an array."""
    try:
        np.ndim(value)
    except ValueError:
        raise ValueError(f"{name} must be an array, or lists of one length, got {shown(value)}") from None


def number(name: str, value: Any) -> float:
    """Return `value` if it is one finite number."""
    return float(shaped(name, finite(name, value), ()))


def check_rows(x: Any) -> None:
    """Raise an error if x is not an array of numbers (N, n)."""
    if not isinstance(x, np.ndarray) or x.ndim != 2 or not x.shape[1] or x.dtype.kind not in "fiub":
        raise ValueError(f"x must be an array of numbers of shape (N, n), one row each, got {shown(x)}")


def shaped(name: str, array: "Floats", shape: tuple[int, ...]) -> "Floats":
    """Return `array` if it has the shape."""
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    return array


def read_only(array: Any) -> Any:
    """Make `array` read-only, since compiled code relies on earlier checks."""
    array.flags.writeable = False
    return array


def ridge_of(lam: Any, sigma: Any) -> float:
    """Return lam sigma^2 if it and both arguments are positive finite numbers."""
    ridge = positive("lam", lam) * positive("sigma", sigma) * float(sigma)
    if not 1e-300 < ridge < 1e300:
        raise ValueError(f"lam sigma^2 must lie within float64, got lam = {lam!r} and sigma = {sigma!r}")
    return ridge


def _gigabytes(count: int) -> str:
    if count >= 10**30:
        return "more than 10^21 GB"
    return f"{count // 10**9} GB" if count >= 10**13 else f"{count / 1e9:.3g} GB"


def shown(value: Any) -> str:
    """Format a value for a message, on one line; Python refuses to format numbers with thousands of digits."""
    if isinstance(value, int) and abs(value) >= 10**30:
        return "a number of more than 30 digits"
    try:
        return " ".join(line.strip() for line in repr(value).splitlines())[:80]
    except Exception:  # of any kind: it is what the class of the user raises
        return f"something of the type {type(value).__name__}"
