"""Block Bayesian linear regression: the noise of its targets, its Cholesky factors, its posterior.

Targets b = x . theta[block] + N(0, sigma^2), prior theta[block] ~ N(prior_mean, I / lam), independently
for every block. Everything is stored times sigma^2, so that the rows enter unscaled: the ridge lam sigma^2, the
Cholesky factor L of P = ridge I + sum x x', and y = ridge prior_mean + sum x b. The posterior is then
N(P^-1 y, sigma^2 P^-1), and its mean is ridge regression, LSVI's own estimate.
The same code covers one dense block, one block per action, and one number per table cell.

Agents that are compiled use the functions here one transition at a time. Two regressions are of another shape: in
agents/practice/regression.py and shop/model/regression.py all actions share weights, so that the precision is an
arrow, which is rebuilt from sums by products of large matrices.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rlsvi.core.archive import storable
from rlsvi.core.checks import finite, fits, number, positive, ridge_of, shaped, shown, whole
from rlsvi.core.compile import ONE, TWO, Floats, Words, compiled, kernel, unsigned
from rlsvi.core.random import Seed, normal, stream

# ---- The noise of a target: its standard deviation, or a prior over its variance --------------------------------


@storable
@dataclass(frozen=True)
class InverseGamma:
    """A prior over the noise: sigma^2 ~ InverseGamma(shape, scale), with density proportional to v^(-shape - 1)
    exp(-scale / v).

    Given sigma^2, the weights are N(prior_mean, sigma^2 I / lam). This is the conjugate prior, in which lam is the
    ridge, measured in transitions.

    Parameters
    ----------
    shape
        A small shape is a weak prior.
    scale
        sigma^2 is about scale / shape.

    Examples
    --------
    >>> import rlsvi
    >>> agent = rlsvi.RLSVI(sigma=rlsvi.InverseGamma(1.0, 0.01))
    """

    shape: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        positive("shape", self.shape)
        positive("scale", self.scale)


@storable
@dataclass(frozen=True)
class ByEvidence:
    """Use the lam and sigma that all data so far support best, as found by `rlsvi.evidence`.

    They are updated at the start of episodes first, 2 first, 4 first, ..; before that, and as long as all targets
    are 0, lam is the given one. Data say nothing about what they do not contain: if rewards are rare, begin with a
    `sigma` that explores.

    Parameters
    ----------
    sigma
        The noise before the first update.
    first
        The episode of the first update.

    Examples
    --------
    >>> import rlsvi
    >>> agent = rlsvi.RLSVI(sigma=rlsvi.ByEvidence(sigma=0.5))
    """

    sigma: float = 0.1
    first: int = 8

    def __post_init__(self) -> None:
        positive("sigma", self.sigma)
        whole("first", self.first, 1)

    def due(self, episodes: int) -> bool:
        """Return whether lam and sigma are updated before this episode."""
        times, rest = divmod(episodes, self.first)
        return rest == 0 and times > 0 and times & (times - 1) == 0


Noise = float | InverseGamma


class Model(NamedTuple):
    """The regression of one discounted value function: prior, noise and discount."""

    mean: Floats  # (B, d) prior mean of the weights
    ridge: float
    sigma: float  # if the noise is known
    shape: float  # if the noise is unknown; 0 if it is known
    scale: float
    gamma: float


def noise_of(lam: float, sigma: Noise) -> tuple[float, float, float, float]:
    """Return the ridge, sigma if known, and the shape (0 if sigma is known) and scale of the prior."""
    if isinstance(sigma, ByEvidence):
        raise ValueError(
            "sigma=ByEvidence() is for RLSVI, which keeps all it needs of its data: give a number here"
        )
    if isinstance(sigma, InverseGamma):
        return positive("lam", lam), 0.0, float(sigma.shape), float(sigma.scale)
    return ridge_of(lam, sigma), float(sigma), 0.0, 0.0


# ---- The Cholesky factor of a precision matrix, updated one observation at a time -------------------------------
#
# P = L L' is stored by the columns of L: `U[j, i] = L[i, j]` for i >= j, with `inv[j] = 1 / L[j, j]`, so that
# solving needs no division. The covariance is never formed: at the paper's scale P has a condition number of 1e12
# and more, and exploration depends on the directions that inverting it would destroy.


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


HUGE_DIAGONAL = 2.0**511  # the square of a diagonal of this size is finite
TINY_UNIT = 2.0**-400  # the unit of the roots in rank_one: p may be 1e250, and its square must not overflow


@compiled
def _rotation(p: float, root: float, shrink: float, total: float) -> tuple[float, float, float, float, float]:
    """Return the cosine, the sine for the scaled row, and sqrt(t_j), its reciprocal and t_j from those of j - 1.

    If t_j = t_{j-1}, as for a row of zeros, the cosine is exactly 1.
    """
    small = p * TINY_UNIT
    t = total + small * small
    r = math.sqrt(t)
    s = r * (1.0 / t)  # the division does not depend on the root
    cos = root * s if t != total else 1.0
    return cos, (small * s) * shrink, r, s * TINY_UNIT, t


@kernel
def rank_one(U: Floats, inv: Floats, x: Floats) -> bool:
    """P <- P + x x', two columns at a time; `x` is overwritten. Returns False if the factor becomes invalid.

    These are Givens rotations, with the row scaled so that square roots and divisions follow from p = L^-1 x
    and depend only on the sum t_j = 1 + p_0^2 + .. + p_j^2. Rotation j has cosine sqrt(t_{j-1} / t_j) and
    sine p_j / sqrt(t_j); the row itself only takes the steps of the triangular solve.
    """
    d = unsigned(x.size)
    odd = d % TWO
    root, shrink, total = TINY_UNIT, 1.0, TINY_UNIT * TINY_UNIT
    if odd == ONE:
        p0, first = x[0] * inv[0], x[0]
        cos0, sin0, root, shrink, total = _rotation(p0, root, shrink, total)
        diagonal0 = cos0 * U[0, 0] + sin0 * first
        if not 0.0 < diagonal0 < HUGE_DIAGONAL:
            return False
        U[0, 0], inv[0] = diagonal0, 1.0 / diagonal0
        for i in range(ONE, d):
            u0, before = U[0, i], x[i]
            U[0, i] = cos0 * u0 + sin0 * before
            x[i] = before - p0 * u0
    for j in range(odd, d, TWO):
        first, second, corner = x[j], x[j + ONE], U[j, j + ONE]
        p0 = first * inv[j]
        between = second - p0 * corner
        p1 = between * inv[j + ONE]
        cos0, sin0, root, shrink, total = _rotation(p0, root, shrink, total)
        cos1, sin1, root, shrink, total = _rotation(p1, root, shrink, total)
        diagonal0 = cos0 * U[j, j] + sin0 * first
        diagonal1 = cos1 * U[j + ONE, j + ONE] + sin1 * between
        if not (0.0 < diagonal0 < HUGE_DIAGONAL and 0.0 < diagonal1 < HUGE_DIAGONAL):
            return False
        U[j, j], U[j, j + ONE], U[j + ONE, j + ONE] = diagonal0, cos0 * corner + sin0 * second, diagonal1
        inv[j], inv[j + ONE] = 1.0 / diagonal0, 1.0 / diagonal1
        for i in range(j + TWO, d):
            u0, u1, before = U[j, i], U[j + ONE, i], x[i]
            between = before - p0 * u0
            U[j, i] = cos0 * u0 + sin0 * before
            U[j + ONE, i] = cos1 * u1 + sin1 * between
            x[i] = between - p1 * u1
    return True


@kernel
def solve_lower(U: Floats, inv: Floats, b: Floats) -> None:
    """b <- L^-1 b, two columns at a time."""
    d = unsigned(b.size)
    odd = d % TWO
    if odd == ONE:
        b[0] *= inv[0]
        first = b[0]
        for i in range(ONE, d):
            b[i] -= U[0, i] * first
    for j in range(odd, d, TWO):
        first = b[j] * inv[j]
        second = (b[j + ONE] - U[j, j + ONE] * first) * inv[j + ONE]
        b[j], b[j + ONE] = first, second
        for i in range(j + TWO, d):
            b[i] = (b[i] - U[j, i] * first) - U[j + ONE, i] * second


@kernel
def solve_upper(U: Floats, inv: Floats, b: Floats) -> None:
    """b <- L^-T b, two rows at a time; sums run backwards, so that the latest results are needed last."""
    d = unsigned(b.size)
    j = d
    while j >= TWO:
        j -= TWO
        first, second = b[j + ONE], b[j]
        i = d
        while i > j + TWO:
            i -= ONE
            first -= U[j + ONE, i] * b[i]
            second -= U[j, i] * b[i]
        b[j + ONE] = first * inv[j + ONE]
        b[j] = (second - U[j, j + ONE] * b[j + ONE]) * inv[j]
    if j == ONE:
        first, i = b[0], d
        while i > ONE:
            i -= ONE
            first -= U[0, i] * b[i]
        b[0] = first * inv[0]


@compiled
def shrink(U: Floats, inv: Floats, by: float) -> None:
    """P <- by P."""
    root = math.sqrt(by)
    for j in range(inv.size):
        inv[j] /= root
        for i in range(j, inv.size):
            U[j, i] *= root


@compiled
def add_diagonal(U: Floats, inv: Floats, amount: float, x: Floats) -> bool:
    """P <- P + amount I, by rotations with rows of one number; `x` (d,) is overwritten. Returns as rank_one."""
    d = unsigned(inv.size)
    for k in range(d):
        for i in range(k, d):
            x[i] = 0.0
        x[k] = math.sqrt(amount)
        for j in range(k, d):
            diagonal = math.sqrt(U[j, j] * U[j, j] + x[j] * x[j])
            if not 0.0 < diagonal < HUGE_DIAGONAL:
                return False
            once = 1.0 / diagonal
            cos, sin = U[j, j] * once, x[j] * once
            U[j, j], inv[j] = diagonal, once
            for i in range(j + ONE, d):
                u = U[j, i]
                U[j, i] = cos * u + sin * x[i]
                x[i] = cos * x[i] - sin * u
    return True


# ---- Large factors, one at a time, by LAPACK ----------------------------------------------------------------


def cholesky(P: Floats) -> Floats:
    """Return L, where P = L L'."""
    try:
        return np.asarray(np.linalg.cholesky(P), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise FactorError(
            "the precision matrix is not positive definite: features are too large or too much alike for this "
            "lam; scale them down, or use a larger lam"
        ) from None


def solve_triangular(L: Floats, y: Floats, trans: str = "N") -> Floats:
    """Return L^-1 y, or L'^-1 y if `trans` is "T"."""
    from scipy.linalg import lapack  # takes longer to import than all agents of this library

    solved: Floats = lapack.dtrtrs(L.T, y, lower=0, trans=int(trans == "N"))[0]  # L' is in LAPACK's own order
    return solved


# ---- The regression ----------------------------------------------------------------------------------------


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
        total[k], error[k] = add_to(total[k], error[k], scale * x[k])


@compiled
def add_to(total: float, error: float, term: float) -> tuple[float, float]:
    """Return total + error + term as a sum and its rounding error."""
    rough = total + term
    part = rough - total
    carry = error + ((total - (rough - part)) + (term - part))
    result = rough + carry
    return result, carry - (result - rough)


# ---- The posterior of a block-linear model, as a separate object -------------------------------------------


class Posterior:
    """The posterior over the weights of a block-linear model, updated one observation at a time.

    Parameters
    ----------
    blocks, dim
        Number of blocks, and of weights in each.
    lam
        Prior precision of every weight, > 0.
    sigma
        Standard deviation of the noise of a target, > 0.
    prior_mean
        Prior mean of the weights; a number or an array (blocks, dim).

    Examples
    --------
    >>> import rlsvi
    >>> posterior = rlsvi.Posterior(blocks=1, dim=2)
    >>> posterior.observe(0, [1.0, 0.0], 2.0)
    >>> posterior.mean().round(6).tolist(), round(posterior.variance(0, [1.0, 0.0]), 6)
    ([[1.0, 0.0]], 0.5)
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
        """Add one target of one block.

        Parameters
        ----------
        block
            The block.
        x
            Its features, (dim,).
        target
            The target.
        """
        b, row = self._place(block, x)
        value = number("target", target)
        if not rank_one(self.factor.U[b], self.factor.inv[b], row.copy()):
            raise FactorError(f"the factor of block {b} overflowed: scale the features down")
        add(self._sum[b], self._error[b], row, value)
        self._squares[b] += value * value
        self.counts[b] += 1

    def mean(self) -> Floats:
        """Return the posterior mean of the weights, (blocks, dim).

        Returns
        -------
        Floats
            (blocks, dim).
        """
        theta = self._y()
        for b, (U, inv) in enumerate(zip(*self.factor, strict=True)):
            solve(U, inv, theta[b])
        return _checked(theta)

    def sample(self, rng: Words | Seed = None) -> Floats:
        """Return one exact sample of the weights, (blocks, dim); `rng` is a seed or a stream to draw from.

        Parameters
        ----------
        rng
            A seed, or a stream to draw from.

        Returns
        -------
        Floats
            (blocks, dim).
        """
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
        """Return the log marginal likelihood of all targets seen, under the given prior and noise.

        Returns
        -------
        float
            The logarithm.
        """
        w = self._y()
        for b, (U, inv) in enumerate(zip(*self.factor, strict=True)):
            solve_lower(U, inv, w[b])
        energy = self._squares + self.ridge * (self.prior_mean**2).sum(axis=1) - (w**2).sum(axis=1)
        log_det = 0.5 * w.shape[1] * math.log(self.ridge) + np.log(self.factor.inv).sum(axis=1)
        noise = -0.5 * self.counts * math.log(2 * math.pi * self.sigma**2)
        return float(_checked(noise + log_det - 0.5 * energy / self.sigma**2).sum())

    def variance(self, block: int, x: Floats) -> float:
        """Return the posterior variance of x . theta[block].

        Parameters
        ----------
        block
            The block.
        x
            Its features, (dim,).

        Returns
        -------
        float
            The variance, without the noise of a target.
        """
        b, row = self._place(block, x)
        w = row.copy()
        solve_lower(self.factor.U[b], self.factor.inv[b], w)
        return float(_checked(self.sigma * self.sigma * np.square(w)).sum())

    def _place(self, block: Any, x: Any) -> tuple[int, Floats]:
        blocks, dim = self._sum.shape
        if whole("block", block, 0) >= blocks:
            raise ValueError(f"block must be in 0..{blocks - 1}, got {shown(block)}")
        return int(block), shaped("x", finite("x", x), (dim,))

    def _y(self) -> Floats:
        return self._sum + self.ridge * self.prior_mean


def _checked(numbers: Floats) -> Floats:
    if not np.isfinite(numbers).all():
        raise FactorError("the posterior is no longer finite: scale features and targets down")
    return numbers
