"""What an argument must be, checked before it is used."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rlsvi.core.compile import Floats

LARGEST = 1e100  # of a feature, reward or prior mean: its square and its sums stay within float64


def positive(name: str, value: Any) -> float:
    """`value`, if it is a positive finite number."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not 0 < value < math.inf:
        raise ValueError(f"{name} must be a positive, finite number, got {value!r}")
    return float(value)


def whole(name: str, value: Any, least: int) -> int:
    """`value`, if it is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def finite(name: str, values: Any) -> "Floats":
    """`values` as an array, if they are all numbers of a sane size."""
    try:
        array = np.asarray(float(values) if np.ndim(values) == 0 else values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number or an array of numbers, got {values!r}") from None
    if not (np.abs(array) <= LARGEST).all():
        raise ValueError(f"{name} must be finite, got NaN, infinity or more than {LARGEST:g}: clean the data")
    return array


def shaped(name: str, array: "Floats", shape: tuple[int, ...]) -> "Floats":
    """`array`, if it has the shape."""
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    return array


def ridge_of(lam: Any, sigma: Any) -> float:
    """lam sigma^2, if it and both of them are positive finite numbers."""
    ridge = positive("lam", lam) * positive("sigma", sigma) * float(sigma)
    if not 1e-300 < ridge < 1e300:
        raise ValueError(f"lam sigma^2 must lie within float64, got lam = {lam!r} and sigma = {sigma!r}")
    return ridge
