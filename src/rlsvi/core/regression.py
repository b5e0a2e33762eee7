"""Block Bayesian linear regression with known noise.

Targets b = x . theta[block] + N(0, sigma^2), prior theta[block] ~ N(prior_mean, I / lam), independently
for every block. Everything is stored times sigma^2, so that the rows enter unscaled: the ridge lam sigma^2, the
Cholesky factor L of P = ridge I + sum x x', and y = ridge prior_mean + sum x b. The posterior is then
N(P^-1 y, sigma^2 P^-1), and its mean is ridge regression, LSVI's own estimate.
The same code covers one dense block, one block per action, and one number per table cell.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from rlsvi.core.checks import finite, fits, positive, ridge_of, shaped, shown, whole
from rlsvi.core.cholesky import rank_one, solve_lower, solve_upper
from rlsvi.core.compile import Floats, Words, compiled
from rlsvi.core.random import Seed, normal, stream


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


# ---- The posterior of a block-linear model, as a separate object -------------------------------------------


class Posterior:
    """The posterior over the weights of a block-linear model, updated one observation at a time.

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
        shape = whole("blocks", blocks, 1), whole("dim", dim, 1)
        fits(f"blocks and dim, {shown(blocks)} and {shown(dim)},", blocks * dim * (dim + 4), "make them smaller")
        self.ridge = ridge_of(lam, sigma)
        self.lam, self.sigma = positive("lam", lam), positive("sigma", sigma)
        mean = finite("prior_mean", prior_mean)
        self.prior_mean = np.full(shape, mean) if mean.ndim == 0 else shaped("prior_mean", mean, shape).copy()
        self.factor = prior_factor(shape[:1], dim, self.ridge)
        self._sum, self._error = np.zeros(shape), np.zeros(shape)
        self._squares = np.zeros(blocks)
        self.counts = np.zeros(blocks, dtype=np.int64)

    def observe(self, block: int, x: Floats, target: float) -> None:
        """Add one target of one block."""
        b, row = self._place(block, x)
        value = float(shaped("target", finite("target", target), ()))
        if not rank_one(self.factor.U[b], self.factor.inv[b], row.copy()):
            raise FactorError(f"the factor of block {b} overflowed: scale the features down")
        add(self._sum[b], self._error[b], row, value)
        self._squares[b] += value * value
        self.counts[b] += 1

    def mean(self) -> Floats:
        """Return the posterior mean of the weights, (blocks, dim)."""
        theta = self._y()
        for b, (U, inv) in enumerate(zip(*self.factor, strict=True)):
            solve(U, inv, theta[b])
        return _checked(theta)

    def sample(self, rng: Words | Seed = None) -> Floats:
        """Return one exact sample of the weights, (blocks, dim); `rng` is a seed or a stream to draw from."""
        if isinstance(rng, np.ndarray) and (rng.shape != (4,) or rng.dtype != np.uint64):
            raise ValueError(f"rng must be a seed or a stream of four 64-bit words, got {shown(rng)}")
        if not isinstance(rng, np.ndarray | np.random.SeedSequence | None):
            whole("rng", rng, 0)
        state = rng if isinstance(rng, np.ndarray) else stream(rng)
        theta = self._y()
        for b, (U, inv) in enumerate(zip(*self.factor, strict=True)):
            draw(U, inv, theta[b], self.sigma, state)
        return _checked(theta)

    def log_evidence(self) -> float:
        """Return the log marginal likelihood of all targets seen, under the given prior and noise."""
        w = self._y()
        for b, (U, inv) in enumerate(zip(*self.factor, strict=True)):
            solve_lower(U, inv, w[b])
        energy = self._squares + self.ridge * (self.prior_mean**2).sum(axis=1) - (w**2).sum(axis=1)
        log_det = 0.5 * w.shape[1] * math.log(self.ridge) + np.log(self.factor.inv).sum(axis=1)
        noise = -0.5 * self.counts * math.log(2 * math.pi * self.sigma**2)
        return float(_checked(noise + log_det - 0.5 * energy / self.sigma**2).sum())

    def variance(self, block: int, x: Floats) -> float:
        """Return the posterior variance of x . theta[block]."""
        b, row = self._place(block, x)
        w = row.copy()
        solve_lower(self.factor.U[b], self.factor.inv[b], w)
        return float(_checked(self.sigma * self.sigma * np.square(w)).sum())

    def _place(self, block: Any, x: Any) -> tuple[int, Floats]:
        blocks, dim = self._sum.shape
        if whole("block", block, 0) >= blocks:
            raise ValueError(f"block must be in 0..{blocks - 1}, got {block}")
        return int(block), shaped("x", finite("x", x), (dim,))

    def _y(self) -> Floats:
        return self._sum + self.ridge * self.prior_mean


def _checked(numbers: Floats) -> Floats:
    if not np.isfinite(numbers).all():
        raise FactorError("the posterior is no longer finite: scale features and targets down")
    return numbers
