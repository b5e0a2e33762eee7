"""Block Bayesian linear regression with known noise.

Targets b = x . theta[block] + N(0, sigma^2), prior theta[block] ~ N(prior_mean, I / lam), independently
for every block. All is kept times sigma^2, so that the rows enter unscaled: the ridge lam sigma^2, the
Cholesky factor L of P = ridge I + sum x x', and y = ridge prior_mean + sum x b. Then the posterior is
N(P^-1 y, sigma^2 P^-1), and its mean is ridge regression, LSVI's own estimate.
One dense block, one block an action, or one number a table cell: the same code.
"""

import math
from typing import NamedTuple

import numpy as np

from rlsvi.core.cholesky import rank_one, solve_lower, solve_upper
from rlsvi.core.compile import Floats, Words, compiled
from rlsvi.core.random import Seed, normal, stream


class FactorError(ArithmeticError):
    """A factor, weight or value stopped being a finite number; nothing built on it can be trusted."""


class Factor(NamedTuple):
    """Cholesky factors of many precision matrices: any leading axes, then (d, d) and (d,)."""

    U: Floats
    inv: Floats


def prior_factor(shape: tuple[int, ...], d: int, ridge: float) -> Factor:
    """Factors of ridge I."""
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
    """total += scale x, what rounding loses being carried along in `error` (Knuth's two-sum).

    A million terms then sum as exactly as one, which the unvisited directions of a posterior need.
    """
    for k in range(x.size):
        term = scale * x[k]
        rough = total[k] + term
        part = rough - total[k]
        carry = error[k] + ((total[k] - (rough - part)) + (term - part))
        total[k] = rough + carry
        error[k] = carry - (total[k] - rough)


class Posterior:
    """The posterior over the weights of a block-linear model, one observation after another.

    Parameters
    ----------
    blocks, dim : number of blocks, and of weights in each.
    lam : prior precision of every weight, > 0.
    sigma : standard deviation of the noise of a target, > 0.
    prior_mean : prior mean of the weights; a number or an array (blocks, dim).
    """

    def __init__(
        self, blocks: int, dim: int, lam: float = 1.0, sigma: float = 1.0, prior_mean: float | Floats = 0.0
    ) -> None:
        if blocks < 1 or dim < 1:
            raise ValueError(f"blocks and dim must be at least 1, got {blocks} and {dim}")
        self.lam, self.sigma = positive("lam", lam), positive("sigma", sigma)
        self.prior_mean = finite("prior_mean", np.broadcast_to(prior_mean, (blocks, dim)).astype(np.float64))
        self.ridge = self.lam * self.sigma**2
        self.factor = prior_factor((blocks,), dim, self.ridge)
        self._sum, self._error = np.zeros((blocks, dim)), np.zeros((blocks, dim))
        self._squares = np.zeros(blocks)
        self.counts = np.zeros(blocks, dtype=np.int64)

    def observe(self, block: int, x: Floats, target: float) -> None:
        """Take in one target of one block."""
        blocks, dim = self._sum.shape
        if not 0 <= block < blocks:
            raise ValueError(f"block must be in 0..{blocks - 1}, got {block}")
        x = finite("x", np.asarray(x, dtype=np.float64))
        if x.shape != (dim,):
            raise ValueError(f"x must have shape ({dim},), got {x.shape}")
        target = float(finite("target", np.asarray(target, dtype=np.float64)))
        if not rank_one(self.factor.U[block], self.factor.inv[block], x.copy()):
            raise FactorError(f"the factor of block {block} overflowed: scale the features down")
        add(self._sum[block], self._error[block], x, target)
        self._squares[block] += target * target
        self.counts[block] += 1

    def mean(self) -> Floats:
        """Posterior mean of the weights, (blocks, dim)."""
        theta = self._y()
        for b, (U, inv) in enumerate(zip(*self.factor, strict=True)):
            solve(U, inv, theta[b])
        return _checked(theta)

    def sample(self, rng: Words | Seed = None) -> Floats:
        """One exact sample of the weights, (blocks, dim); `rng` is a seed or a stream to draw from."""
        state = rng if isinstance(rng, np.ndarray) else stream(rng)
        theta = self._y()
        for b, (U, inv) in enumerate(zip(*self.factor, strict=True)):
            draw(U, inv, theta[b], self.sigma, state)
        return _checked(theta)

    def log_evidence(self) -> float:
        """Log marginal likelihood of all targets seen, under the prior and the noise given."""
        w = self._y()
        fit = np.empty(len(w))
        for b, (U, inv) in enumerate(zip(*self.factor, strict=True)):
            solve_lower(U, inv, w[b])
            fit[b] = w[b] @ w[b]
        energy = (self._squares + self.ridge * (self.prior_mean**2).sum(axis=1) - fit) / self.sigma**2
        log_det = 0.5 * w.shape[1] * math.log(self.ridge) + np.log(self.factor.inv).sum(axis=1)
        noise = -0.5 * self.counts * math.log(2 * math.pi * self.sigma**2)
        return float((noise + log_det - 0.5 * energy).sum())

    def variance(self, block: int, x: Floats) -> float:
        """Posterior variance of x . theta[block]."""
        w = finite("x", np.array(x, dtype=np.float64))
        solve_lower(self.factor.U[block], self.factor.inv[block], w)
        return self.sigma**2 * float(w @ w)

    def _y(self) -> Floats:
        return self._sum + self.ridge * self.prior_mean


def positive(name: str, value: float) -> float:
    """`value`, if it is a positive finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < math.inf:
        raise ValueError(f"{name} must be a positive, finite number, got {value!r}")
    return float(value)


def finite(name: str, values: Floats) -> Floats:
    """`values`, if they are all finite numbers."""
    if not np.isfinite(values).all():
        raise ValueError(
            f"{name} must be finite, got NaN or infinity: clean the data before they are learned from"
        )
    return values


def _checked(theta: Floats) -> Floats:
    if not np.isfinite(theta).all():
        raise FactorError("the posterior is no longer finite: scale features and targets down")
    return theta
