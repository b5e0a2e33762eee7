"""The Fourier basis (Konidaris, Osentoski, Thomas 2011): cosines over [0, 1]^n."""

from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from math import comb

import numpy as np

from rlsvi.core.checks import whole
from rlsvi.core.compile import Floats


@dataclass(frozen=True)
class Fourier:
    """cos(pi c . x) for x in [0, 1]^n, and frequencies c in {0, .., order}^n.

    Parameters
    ----------
    order : the highest frequency; None: 5, or the highest below that which fits.
    features : the budget. The frequencies of how many numbers are combined follows from it: of all, of three, of
        two, or none; the most that fits at order 5, or else at order 3.
    together : combine so many numbers at most, whatever the budget.
    smoothness : a feature is divided by max(1, |c|)^smoothness, so that the prior expects smooth functions, and a
        higher order adds detail only where the data ask for it. 0: all alike, as published.
    """

    order: int | None = None
    features: int = 256
    together: int | None = None
    smoothness: float = 2.0

    def rows(self, x: Floats) -> Floats:
        """The features (N, d) of x (N, n)."""
        if not 0 <= self.smoothness <= 10:
            raise ValueError(f"smoothness must lie in [0, 10], got {self.smoothness!r}")
        waves, size = frequencies(x.shape[-1], self.order, self.features, self.together)
        phi = np.zeros((len(x), waves.shape[1]))
        for i, wave in enumerate(waves):  # not a matrix product: a row has the same bits in any company
            phi += x[:, i : i + 1] * wave
        np.cos(phi, out=phi)
        phi /= size**self.smoothness
        return phi


@cache
def frequencies(n: int, order: int | None, features: int, together: int | None) -> tuple[Floats, Floats]:
    """pi c as columns, (n, d), and max(1, |c|)."""
    order, together = chosen(n, order, features, together)
    rows = [np.zeros((1, n))]
    for size in range(1, together + 1):
        waves = np.array(list(product(range(1, order + 1), repeat=size)), dtype=np.float64)
        for places in combinations(range(n), size):
            block = np.zeros((len(waves), n))
            block[:, places] = waves
            rows.append(block)
    c = np.concatenate(rows).T
    return np.ascontiguousarray(np.pi * c), np.maximum(1.0, np.sqrt((c**2).sum(axis=0)))


def chosen(n: int, order: int | None, features: int, together: int | None) -> tuple[int, int]:
    """The order, and how many numbers are combined: as many as fit, at the highest order for which they do."""
    whole("features", features, 2)
    if order is not None:
        whole("order", order, 1)
    if together is not None:
        together = min(whole("together", together, 1), n)
        return order if order is not None else _highest(n, features, together), together
    combined = list(dict.fromkeys((n, min(3, n), min(2, n))))
    for wanted in (5, 3) if order is None else (order,):  # fine waves of two numbers before coarse ones of all
        for most in combined:
            if count(n, wanted, most) <= features:
                return (order or _highest(n, features, most)), most
    if count(n, order or 1, 1) <= features:
        return (order or _highest(n, features, 1)), 1
    least = count(n, 1 if order is None else order, 1)
    raise ValueError(
        f"{n} numbers need {least} Fourier features, the budget is features={features}: allow more, or give a "
        "basis of fewer, such as bases.StateFeatures(function)"
    )


def _highest(n: int, features: int, together: int) -> int:
    return max((k for k in range(1, 6) if count(n, k, together) <= features), default=1)


def count(n: int, order: int, together: int) -> int:
    """The number of frequencies with at most so many that are not 0."""
    if together >= n:
        return int((order + 1) ** n)  # the same, and quick for the many numbers of a picture
    return sum(comb(n, size) * order**size for size in range(together + 1))
