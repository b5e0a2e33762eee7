"""Block Bayesian linear regression with known noise.

Targets b = x . theta[block] + N(0, sigma^2), prior theta[block] ~ N(prior_mean, I / lam), independently
for every block. Everything is stored times sigma^2, so that the rows enter unscaled: the ridge lam sigma^2, the
Cholesky factor L of P = ridge I + sum x x', and y = ridge prior_mean + sum x b. The posterior is then
N(P^-1 y, sigma^2 P^-1), and its mean is ridge regression, LSVI's own estimate.
The same code covers one dense block, one block per action, and one number per table cell.
"""

import math
from typing import NamedTuple

import numpy as np

from rlsvi.core.cholesky import solve_lower, solve_upper
from rlsvi.core.compile import Floats, Words, compiled
from rlsvi.core.random import normal


class FactorError(ArithmeticError):
    """A factor, weight or value is no longer finite, and nothing computed from it is reliable."""


class Factor(NamedTuple):
    """Cholesky factors of many precision matrices: any leading axes, then (d, d) and (d,)."""

    U: Floats
    inv: Floats


def prior_factor(shape: tuple[int, ...], d: int, ridge: float) -> Factor:
    """Return factors of ridge I."""
    U = np.zeros((*shape, d, d))
    U[..., np.arange(d), np.arange(d)] = math.sqrt(ridge)
    return Factor(U, np.full((*shape, d), 1.0 / math.sqrt(ridge)))


@compiled
def solve(U: Floats, inv: Floats, y: Floats) -> None:
    """y <- P^-1 y."""
    solve_lower(U, inv, y)
    solve_upper(U, inv, y)


@compiled
def draw(U: Floats, inv: Floats, y: Floats, sigma: float, state: Words) -> None:
    """y <- a sample from N(P^-1 y, sigma^2 P^-1), that is L^-T (L^-1 y + sigma z)."""
    solve_lower(U, inv, y)
    for k in range(y.size):
        y[k] += sigma * normal(state)
    solve_upper(U, inv, y)


@compiled
def add(total: Floats, error: Floats, x: Floats, scale: float) -> None:
    """total += scale x, with the rounding error accumulated in `error` (Knuth's two-sum).

    A million terms are then summed as accurately as one, which the unvisited directions of a posterior need.
    """
    for k in range(x.size):
        term = scale * x[k]
        rough = total[k] + term
        part = rough - total[k]
        carry = error[k] + ((total[k] - (rough - part)) + (term - part))
        total[k] = rough + carry
        error[k] = carry - (total[k] - rough)
