"""Polynomials over [0, 1]^n: products of Legendre polynomials, limited by their total degree."""

from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement
from math import comb

import numpy as np
from numpy.polynomial.legendre import legvander

from rlsvi.bases.basis import MeasuredBasis
from rlsvi.core.archive import storable
from rlsvi.core.checks import check_rows, shown, whole
from rlsvi.core.compile import Floats, Longs


@storable
@dataclass(frozen=True)
class Polynomial(MeasuredBasis):
    """Products of Legendre polynomials of 2 x - 1, up to a total degree.

    They span all polynomials of that degree and are far less correlated than powers, so that the regression stays
    well conditioned.

    Parameters
    ----------
    degree
        The total degree. If None, the highest up to 8 that fits the budget.
    features
        The maximum number of features.

    Examples
    --------
    >>> import numpy as np, rlsvi
    >>> rlsvi.bases.Polynomial(degree=2).rows(np.array([[0.0], [1.0]])).tolist()
    [[1.0, -1.0, 1.0], [1.0, 1.0, 1.0]]
    """

    degree: int | None = None
    features: int = 256

    def rows(self, x: Floats) -> Floats:
        """Return the features (N, d) of x (N, n)."""
        check_rows(x)
        degree = None if self.degree is None else whole("degree", self.degree, 1)
        powers = exponents(x.shape[-1], degree, whole("features", self.features, 2))
        single = legvander(2 * x - 1, int(powers.max()))  # (N, n, degree + 1)
        out = np.ones((len(x), len(powers)))
        for i in range(x.shape[-1]):
            out *= single[:, i, powers[:, i]]
        return out


@cache
def exponents(n: int, degree: int | None, features: int) -> Longs:
    """Return the degrees of each product, (d, n)."""
    if degree is None:
        degree = max((k for k in range(1, 9) if comb(n + k, k) <= features), default=1)
    if degree >= features or comb(n + degree, degree) > features:  # there are more than the degree
        raise ValueError(
            f"polynomials of degree {shown(degree)} in {n} numbers are more features than the budget, "
            f"features={features}: allow more, or lower the degree"
        )
    products = (places for k in range(degree + 1) for places in combinations_with_replacement(range(n), k))
    return np.array([np.bincount(np.array(places, dtype=np.int64), minlength=n) for places in products])
