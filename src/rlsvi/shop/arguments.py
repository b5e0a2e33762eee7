"""Validation of the arguments of a recommender and its methods, before anything changes."""

import sys
from numbers import Integral, Real
from typing import Any

import numpy as np

from rlsvi.core.checks import finite, flag, positive, ridge_of, whole
from rlsvi.core.compile import Bools
from rlsvi.shop.size import Form, check_size

Customer = str | int
MAX = sys.float_info.max
MOST = 2**31 - 1  # product numbers are 32-bit integers


def named(customer: Any) -> Customer:
    """Validate a customer's name, which is a string or an integer of any type."""
    if isinstance(customer, str):
        return str(customer)
    if isinstance(customer, bool) or not isinstance(customer, Integral):
        raise ValueError(f"customer must be a string or a whole number, got {customer!r}")
    return int(customer)


def product_of(product: Any, products: int) -> int:
    """Validate a product number."""
    any_kind = isinstance(product, Integral) and not isinstance(product, bool)
    a = whole("product", int(product) if any_kind else product, 0)
    if a >= products:
        raise ValueError(f"product {a} is unknown: there are 0..{products - 1}")
    return a


def mask_of(name: str, chosen: Any, products: int) -> Bools:
    """Convert product numbers to a boolean mask of shape (N,)."""
    try:
        numbers = np.array(list(chosen) or np.zeros(0, dtype=np.int64))
    except (TypeError, ValueError):
        numbers = np.zeros(())
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not ((numbers >= 0) & (numbers < products)).all():
        raise ValueError(f"{name} must be numbers of products, each of 0..{products - 1}, got {chosen!r:.80}")
    mask = np.zeros(products, dtype=np.bool_)
    mask[numbers] = True
    return mask


def context_of(context: Any, products: int) -> list[list[int]]:
    """Split a context into the products the customer is known to like and those known to be disliked."""
    given = finite("context", context)
    if given.shape != (products,) or not np.isin(given, (-1, 0, 1)).all():
        raise ValueError(f"context must be {products} numbers -1, 0 or 1, one per product, got {context!r:.80}")
    return [np.flatnonzero(given == sign).tolist() for sign in (1, -1)]


def moment(name: str, value: Any) -> float:
    """Return `value` if it is a valid time in seconds."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not -MAX <= value <= MAX:
        raise ValueError(f"{name} must be a finite number of seconds, as of time.time(), got {value!r:.80}")
    return float(value)


def settled(given: dict[str, Any]) -> dict[str, Any]:
    """Validate the arguments of a recommender and check that it fits in memory."""
    flags = {name: flag(name, given[name]) for name in ("pooled", "clip", "myopic")}
    lam, sigma, memory = (positive(name, given[name]) for name in ("lam", "sigma", "memory"))
    ridge_of(lam, sigma)
    sketch = None if given["sketch"] is None else whole("sketch", given["sketch"], 1, MOST)
    sizes = {name: whole(name, given[name], 1, MOST) for name in ("products", "slots", "remember")}
    check_size(Form(sizes["products"], sizes["slots"], flags["pooled"], sketch), sizes["remember"], memory)
    numbers = {"lam": lam, "sigma": sigma, "memory": memory, "sketch": sketch}
    chosen = {"every": _interval(given["every"]), "baseline": _baseline(given["baseline"])}
    return {**given, **flags, **sizes, **numbers, **chosen}


def _interval(every: Any) -> int | str | None:
    """Validate `every`: the number of customers between two samples, "later" or None."""
    if every is None or (isinstance(every, str) and every == "later"):
        return every
    if isinstance(every, str):
        raise ValueError(f'every must be a whole number of at least 1, "later" or None, got {every!r}')
    return whole("every", every, 1)


def _baseline(baseline: Any) -> str | float:
    """Validate `baseline`: the expected number of likes per slot, or "recent"."""
    if isinstance(baseline, str) and baseline == "recent":
        return baseline
    if isinstance(baseline, str | bool) or np.ndim(baseline) or not 0.0 <= finite("baseline", baseline) <= 1.0:
        raise ValueError(f'baseline must be "recent" or a number from 0 to 1, got {baseline!r}')
    return float(baseline)
