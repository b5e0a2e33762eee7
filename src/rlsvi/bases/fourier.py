"""The Fourier basis (Konidaris, Osentoski, Thomas 2011): cosines over [0, 1]^n."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, islice, product
from itertools import count as count_from
from math import comb, isqrt
from typing import Any

import numpy as np

from rlsvi.bases.basis import MeasuredBasis
from rlsvi.core.archive import storable
from rlsvi.core.checks import check_rows, number, shown, whole
from rlsvi.core.compile import Floats, compiled
from rlsvi.core.elementary import cosine, exp, log, power


@storable
@dataclass(frozen=True)
class Fourier(MeasuredBasis):
    """cos(pi c . x) for x in [0, 1]^n, and frequencies c in {0, .., order}^n.

    Parameters
    ----------
    order
        The highest frequency. If None, the highest up to 5 for which all products fit the budget. If those of
        order 3 do not fit, the smoothest waves in all numbers that do: all c up to some length. If these leave no
        room for combinations of two numbers, each number has its own waves.
    features
        The budget. With a given order, it determines how many numbers the frequencies combine: all, three, two, or
        one.
    together
        The maximum number of numbers to combine, whatever the budget.
    smoothness
        A feature is divided by max(1, |c|)^smoothness, so that the prior expects smooth functions and a higher
        order adds detail only where the data require it. 0: all features alike, as published.

    Examples
    --------
    >>> import numpy as np, rlsvi
    >>> rlsvi.bases.Fourier(order=2).rows(np.array([[0.0], [1.0]])).tolist()
    [[1.0, 1.0, 0.25], [1.0, -1.0, 0.25]]
    """

    order: int | None = None
    features: int = 256
    together: int | None = None
    smoothness: float = 2.0

    def rows(self, x: Floats) -> Floats:
        """Return the features (N, d) of x (N, n)."""
        check_rows(x)
        waves, divisor = frequencies(x.shape[-1], *self._checked)
        phi = np.empty((len(x), len(divisor)))
        numbers = np.ascontiguousarray(x, dtype=np.float64)
        fill_waves(numbers, waves, np.zeros(len(divisor)), 1.0, np.empty(len(divisor)), phi)
        phi /= divisor
        return phi

    @cached_property
    def _checked(self) -> tuple[int | None, int, int | None, float]:
        """The arguments, checked when they are first used."""
        smoothness = number("smoothness", self.smoothness)
        if not 0 <= smoothness <= 10:
            raise ValueError(f"smoothness must lie in [0, 10], got {smoothness!r}")
        order = None if self.order is None else whole("order", self.order, 1)
        together = None if self.together is None else whole("together", self.together, 1)
        return order, whole("features", self.features, 2), together, smoothness

    def size(self, n: int, most: int) -> int:
        """Return the number of features of n numbers; `together` may exceed the budget."""
        if self.together is None:
            return super().size(n, most)
        return count(n, *chosen(n, self.order, self.features, self.together))

    def arrays(self, n: int) -> dict[str, Any]:
        """Return the frequencies and the factors of the cosines."""
        waves, divisor = frequencies(n, self.order, self.features, self.together, self.smoothness)
        return {"waves": 2 * np.pi * waves, "scale": 1 / divisor}


@compiled
def fill_waves(z: Floats, waves: Floats, phase: Floats, scale: float, turns: Floats, phi: Floats) -> None:
    """Set the last columns of phi to cosines. No matrix product: the bits of a row must not depend on others."""
    first = phi.shape[1] - phase.size
    for row in range(z.shape[0]):
        for j in range(phase.size):
            turns[j] = phase[j]
        for i in range(z.shape[1]):
            number = z[row, i]
            for j in range(phase.size):
                turns[j] += number * waves[i, j]
        for j in range(phase.size):
            phi[row, first + j] = scale * cosine(turns[j])


@cache
def frequencies(
    n: int, order: int | None, features: int, together: int | None, smoothness: float
) -> tuple[Floats, Floats]:
    """Return the waves as columns (n, d) in turns, which are c / 2, and max(1, |c|)^smoothness."""
    budget = whole("features", features, 2)
    if order is None and together is None and count(n, 1, 2) <= budget < count(n, 3, n):
        c = smoothest(n, budget)
    else:
        c = products(n, *chosen(n, order, budget, together))
    size = np.maximum(1.0, np.sqrt((c**2).sum(axis=1))).tolist()
    if smoothness == int(smoothness):
        divisor = [power(x, int(smoothness)) for x in size]
    else:
        divisor = [exp(smoothness * log(x)) for x in size]
    return np.ascontiguousarray(c.T / 2), np.array(divisor)


def products(n: int, order: int, together: int) -> Floats:
    """Return all frequencies (d, n) up to an order that combine at most `together` numbers."""
    rows = [np.zeros((1, n))]
    for size in range(1, together + 1):
        waves = np.array(list(product(range(1, order + 1), repeat=size)), dtype=np.float64)
        for places in combinations(range(n), size):
            block = np.zeros((len(waves), n))
            block[:, places] = waves
            rows.append(block)
    return np.concatenate(rows)


def smoothest(n: int, features: int) -> Floats:
    """Return all frequencies (d, n) up to the greatest length that fits: those that the prior expects most."""
    rows: list[tuple[int, ...]] = []
    for square in count_from(0):
        rows_of = list(_of_length(n, square, features - len(rows)))
        if len(rows) + len(rows_of) > features:
            return np.array(rows, dtype=np.float64)
        rows += rows_of
    raise AssertionError


def _of_length(n: int, square: int, most: int) -> Iterator[tuple[int, ...]]:
    """Return the frequencies of n numbers with |c|^2 = square, but at most `most` + 1 of them."""
    parts = (c for size in range(min(n, square) + 1) for c in _sums(square, size))
    found = (
        tuple(dict(zip(places, c, strict=True)).get(i, 0) for i in range(n))
        for c in parts
        for places in combinations(range(n), len(c))
    )
    return islice(found, most + 1)


def _sums(square: int, size: int) -> Iterator[tuple[int, ...]]:
    """Yield the tuples of `size` positive integers whose squares sum to `square`."""
    if size == 0:
        yield from [()] if square == 0 else []
        return
    for k in range(1, isqrt(square - size + 1) + 1):
        for rest in _sums(square - k * k, size - 1):
            yield k, *rest


def chosen(n: int, order: int | None, features: int, together: int | None) -> tuple[int, int]:
    """Return the order, and how many numbers are combined: as many as fit."""
    whole("features", features, 2)
    if order is not None:
        whole("order", order, 1)
    if together is not None:
        together = min(whole("together", together, 1), n)
        return order if order is not None else _highest(n, features, together), together
    wanted = 3 if order is None else order
    for most in dict.fromkeys((n, 1) if order is None else (n, min(3, n), min(2, n), 1)):
        if count(n, wanted if most > 1 else order or 1, most) <= features:
            return order or _highest(n, features, most), most
    raise ValueError(
        f"{n} numbers need {shown(count(n, order or 1, 1))} Fourier features with order={shown(order or 1)}, the "
        f"budget is features={features}: make a picture smaller by gymnasium.wrappers.ResizeObservation and "
        "GrayscaleObservation, keep what matters by TransformObservation, or give "
        "basis=bases.Fourier(features=..) or one of fewer numbers, such as bases.StateFeatures(function)"
    )


def _highest(n: int, features: int, together: int) -> int:
    return max((k for k in range(1, 6) if count(n, k, together) <= features), default=1)


def count(n: int, order: int, together: int) -> int:
    """Return the number of frequencies with at most `together` nonzero entries."""
    if together >= n:
        return int((order + 1) ** n)  # the same, but fast for the many numbers of an image
    return sum(comb(n, size) * order**size for size in range(together + 1))
