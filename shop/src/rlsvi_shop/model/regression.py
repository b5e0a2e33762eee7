"""Bayesian regression for many products at once, with weights of their own and weights that they share.

A row u = (1, c, history, h) of product a with features z_a has the target

    theta_a . u[own] + beta . (z_a (x) g) + N(0, sigma^2)         own: 1, c, history;  g = (1, c, h)

with theta_a ~ N(0, sigma^2 / ridge) and beta ~ N(0, sigma^2 / shared_ridge); weights on the history have ridges of
their own, see `Ridges`. The precision of all weights is an arrow: a block P_a for every product, a block for beta,
and what crosses them. Since z_a is the same in all rows of a product, everything follows from one Gram matrix E_a
of its rows u. Times sigma^2,

    P_a = ridge I + E_a[own, own]      M_a = E_a[own, g]      B_a = E_a[g, g] - M_a' P_a^-1 M_a
    beta:    precision shared_ridge I + sum_a z_a z_a' (x) B_a, which is what eliminating all theta_a leaves
    theta_a: given beta, precision P_a

L_a is the Cholesky factor of P_a, and W_a = L_a^-1 M_a.

`core.regression` has no weights that blocks share, and takes one row at a time; here the blocks of products with
new rows are factored anew by LAPACK, and solved for all chains at once.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs

from rlsvi.core.checks import fits
from rlsvi.core.compile import Bools, Floats, Longs
from rlsvi.core.regression import FactorError
from rlsvi_shop.model.targets import left_of, told


class Sizes(NamedTuple):
    """The numbers that determine the shapes of all arrays.

    What is known when a slot is filled is described by `width` numbers, u = (1, c, history, h): the customer c,
    the answers of this visit by product, and h, which exists only if products have features: the share of slots
    left, and the sums of the features of products liked and of those not liked, and for each feature the last
    answer to a product that has it. Products of more than `WIDE` numbers have one sum, of answers times features.
    """

    slots: int  # J
    customer: int  # q, the numbers that describe a customer
    product: int  # m, the numbers that describe a product
    history: int  # D, the positions for answers

    @property
    def own(self) -> int:
        """d, the weights that every product has of its own: those of 1, c and the history."""
        return 1 + self.customer + self.history

    @property
    def width(self) -> int:
        """The length of u."""
        return self.own + told(self.product)

    @property
    def crossed(self) -> int:
        """The length of g = (1, c, h), which is multiplied with the features of a product; 0 without features."""
        return 1 + self.customer + told(self.product) if self.product else 0

    @property
    def shared(self) -> int:
        """k, the weights that all products share: one for each product of a feature and a number in g."""
        return self.product * self.crossed


def check_memory(sizes: Sizes, products: int, draws: int, visits: int) -> None:
    """Raise an error if the learner needs more memory than this machine has, before it is allocated."""
    d, e, chains = sizes.own, sizes.width, draws + 1
    numbers = products * (e * e + d * d + d * sizes.crossed + (sizes.slots + 2) * e)  # the posterior
    numbers += products * chains * (2 * e + 3 * d) + 3 * sizes.shared * (sizes.shared + chains)
    numbers += visits * (sizes.customer + sizes.slots * (3 + chains) + 2)
    what = f"the posterior of {products} products with history = {sizes.history} and {visits} remembered visits"
    fits(what, numbers, "choose a smaller `history`, fewer `draws` or a smaller `remember` in [learning]")


class ProductArrays(NamedTuple):
    """Sums over the rows u of every product, in the order of their numbers, and factors of its posterior."""

    gram: Floats  # (N, e, e) sum of u u'
    frozen: Floats  # (N, e) sum of u times the target, of visits no longer remembered
    mass: Floats  # (N, J, e) sum of u for each slot, of the same visits
    z: Floats  # (N, m) features
    new_z: Floats  # (N, m) features from the next refresh on
    offered: Bools  # (N,)
    shown: Longs  # (N,) in visits that have ended
    answers: Longs  # (N,)
    dirty: Bools  # (N,) whether the factors are out of date
    L: Floats  # (N, d, d) Cholesky factors
    W: Floats  # (N, d, g)
    B: Floats  # (N, g, g)

    def part(self, products: int) -> "ProductArrays":
        """Return views of the first products."""
        return ProductArrays._make(array[:products] for array in self)

    def longer(self, products: int) -> "ProductArrays":
        """Return copies with room for more products."""
        longer = ProductArrays._make(np.zeros((products, *array.shape[1:]), array.dtype) for array in self)
        for to, of in zip(longer, self, strict=True):
            to[: len(of)] = of
        longer.dirty[len(self.dirty) :] = True
        return longer


FACTORS = ("dirty", "L", "W", "B")  # follow from the others


def no_products(sizes: Sizes) -> ProductArrays:
    """Return arrays of no product."""
    d, e, g, m = sizes.own, sizes.width, sizes.crossed, sizes.product
    shapes: dict[str, tuple[int, ...]] = {"gram": (e, e), "frozen": (e,), "mass": (sizes.slots, e)}
    shapes |= {"z": (m,), "new_z": (m,), "L": (d, d), "W": (d, g), "B": (g, g)}
    kinds: dict[str, Any] = {"offered": np.bool_, "shown": np.int64, "answers": np.int64, "dirty": np.bool_}
    names = ProductArrays._fields
    return ProductArrays._make(np.zeros((0, *shapes.get(name, ())), kinds.get(name, np.float64)) for name in names)


class Ridges(NamedTuple):
    """lam sigma^2 for the weights that products have of their own, and for those that they share.

    What they owe to the visit so far, its slots left and its answers, has ridges of its own.
    """

    own: float
    own_history: float
    shared: float
    shared_history: float

    def of_own(self, sizes: Sizes) -> Floats:
        """Return the ridge of every own weight of a product, (d,)."""
        return np.repeat(self[:2], [1 + sizes.customer, sizes.history])

    def of_shared(self, sizes: Sizes) -> Floats:
        """Return the ridge of every shared weight, (k,)."""
        by_feature = np.repeat(self[2:], [1 + sizes.customer, told(sizes.product)])[: sizes.crossed]
        return np.tile(by_feature, sizes.product)


class Noise(NamedTuple):
    """Standard normal numbers times the standard deviation of samples; zero for the posterior mean."""

    own: Floats  # (N, S, d)
    shared: Floats  # (S, k)


def crossed_positions(sizes: Sizes) -> Longs:
    """Return the positions of g in u."""
    found = np.concatenate([np.arange(1 + sizes.customer), np.arange(sizes.own, sizes.width)])
    return found[: sizes.crossed]


def first_weights(beta: Floats, z: Floats, sizes: Sizes) -> Floats:
    """Return the weights, (S, e, n), of n products of which nothing but features z is known, for beta (S, k)."""
    weight = np.zeros((len(beta), sizes.width, len(z)))
    if sizes.product:
        by_feature = beta.reshape(len(beta), sizes.product, sizes.crossed)
        weight[:, crossed_positions(sizes)] = np.tensordot(by_feature, z, (1, 1))
    return weight


def factor_products(products: ProductArrays, sizes: Sizes, ridge: Floats) -> None:
    """Factor the blocks of the products that are dirty; `ridge` is that of every own weight, (d,)."""
    d, at = sizes.own, crossed_positions(sizes)
    for a in np.flatnonzero(products.dirty):
        L, W = products.L[a], products.W[a]
        L[...] = products.gram[a, :d, :d]
        L.flat[:: d + 1] += ridge
        cholesky(L, f"product {a}")
        if W.size:
            cross = products.gram[a][:, at]
            W[...] = solve_lower(L, cross[:d])
            products.B[a] = cross[at] - W.T @ W
        products.dirty[a] = False


def factor_shared(z: Floats, B: Floats, ridge: Floats) -> Floats:
    """Return the Cholesky factor of the precision of beta, (k, k)."""
    N, m = z.shape
    g = B.shape[1]
    squares = (z[:, :, None] * z[:, None, :]).reshape(N, m * m)
    blocks = (squares.T @ B.reshape(N, g * g)).reshape(m, m, g, g)
    precision = np.ascontiguousarray(blocks.transpose(0, 2, 1, 3).reshape(m * g, m * g))
    precision.flat[:: m * g + 1] += ridge
    return cholesky(precision, "the shared weights")


def solve_weights(products: ProductArrays, L_shared: Floats, sizes: Sizes, right: Floats, noise: Noise) -> Any:
    """Return the weights of S chains for right-hand sides (S, N, e): on u, (S, e, N), and beta, (S, k)."""
    S, N, e = right.shape
    d, m, g, at = sizes.own, sizes.product, sizes.crossed, crossed_positions(sizes)
    answered = np.flatnonzero(products.gram[:, 0, 0])  # the factors of the others are diagonal
    y = np.ascontiguousarray(right[:, :, :d].transpose(1, 0, 2))
    for a in answered:
        y[a] = solve_lower(products.L[a], y[a].T).T
    beta, by_product = np.zeros((S, m, g)), np.zeros((N, S, g))
    if m:
        rest = right[:, :, at].transpose(1, 0, 2) - y @ products.W
        total = np.tensordot(rest, products.z, (0, 0)).transpose(0, 2, 1).reshape(S, m * g)
        inner = solve_lower(L_shared, total.T) + noise.shared.T
        beta = solve_upper(L_shared, inner).T.reshape(S, m, g)
        by_product = np.tensordot(products.z, beta, (1, 1))
        y -= by_product @ products.W.transpose(0, 2, 1)
    y += noise.own
    weight = np.zeros((S, e, N))
    weight[:, :d] = (y / np.diagonal(products.L, axis1=1, axis2=2)[:, None]).transpose(1, 2, 0)
    for a in answered:
        weight[:, :d, a] = solve_upper(products.L[a], y[a].T).T
    weight[:, at] += by_product.transpose(1, 2, 0)
    if not np.isfinite(weight).all():
        raise FactorError("the new weights are not finite: rewards or features are too large to learn from")
    return weight, beta.reshape(S, m * g)


def solve_lower(L: Floats, right: Floats) -> Floats:
    """Return L^-1 right."""
    return _check(*dtrtrs(L.T, right, lower=0, trans=1))


def solve_upper(L: Floats, right: Floats) -> Floats:
    """Return L'^-1 right."""
    return _check(*dtrtrs(L.T, right, lower=0, trans=0))


def _check(solution: Floats, info: int) -> Floats:
    if info != 0:
        raise FactorError("a factor of the posterior is singular: choose a larger lam")
    return solution


def cholesky(P: Floats, what: str) -> Floats:
    """Replace P by its lower Cholesky factor, and return it."""
    U, info = dpotrf(P.T, lower=0, clean=1, overwrite_a=1)
    if info != 0 or not np.isfinite(U).all():
        raise FactorError(f"the precision of {what} is not positive definite: choose a larger lam")
    P[...] = U.T
    return P


def learnable(products: ProductArrays, L_shared: Floats, sizes: Sizes, ridge: Floats) -> tuple[Floats, Floats]:
    """Return which share of the variance of weights can still be learned in time to pay: own (N, d), shared (k,).

    The answers to come are taken to be as many as those seen, spread evenly over the products offered. If they add
    `coming` to the precision of a weight, which is L_kk^2 given the weights after it, this share of its variance
    will be gone: noise of that variance is what a sample may hope to profit from. It is nearly 1 where a product
    can get many answers, and nearly 0 for the weights of hundreds of products that will get a few answers each.

    Parameters
    ----------
    ridge
        That of the shared weights.
    """
    diagonals = np.diagonal(products.L, axis1=1, axis2=2), np.diagonal(L_shared)
    seen = np.diagonal(products.gram, axis1=1, axis2=2)[:, : sizes.own].sum(axis=0)
    coming = seen / max(int(products.offered.sum()), 1), np.maximum((L_shared**2).sum(axis=1) - ridge, 0.0)
    own, shared = (more / (more + given**2) for more, given in zip(coming, diagonals, strict=True))
    return own, shared


# ---- the value of showing a product first -------------------------------------------------------------------


def first_values(products: ProductArrays, weight: Floats, L_shared: Floats, base: float, sizes: Sizes) -> Floats:
    """Return the value of every product for the average customer, and its standard deviation over sigma: (2, N).

    The value of product a in the first slot, Q_0(a), is the expected sum of the rewards of a visit that begins
    with a. Nothing is known of the visit yet but that all slots are left, and the customer: c is the mean over all
    answers, or 0 before the first. Given the targets of chain 0, which has the weights (e, N), the value is normal
    with mean base_0 + theta . u and variance

        sigma^2 (|v|^2 + |L_shared^-1 (z_a (x) (g - W_a' v))|^2)        v = L_a^-1 u[own],  g = u[1, c, h]

    It does not depend on the setting `exploration`. The standard deviation is the doubt about the first
    recommendation alone: the targets of chain 0 hold what the rest of the visit is worth, and what is not known of
    that is left out. So 1.96 of it to each side make no 95% interval of the value.
    """
    u, answers, at = np.zeros(sizes.width), products.gram[:, 0, 0].sum(), crossed_positions(sizes)
    u[0] = 1.0
    if answers > 0:
        u[1 : 1 + sizes.customer] = products.gram[:, 0, 1 : 1 + sizes.customer].sum(axis=0) / answers
    u[sizes.own : sizes.own + 1] = left_of(0, sizes.slots)  # which u has only if products have features
    N, m, g = len(products.z), sizes.product, sizes.crossed
    variance, crossed = np.zeros(N), np.zeros((N, m, g))
    for a in range(N):
        v = solve_lower(products.L[a], u[: sizes.own, None])[:, 0]
        variance[a] = v @ v
        if m:
            crossed[a] = np.outer(products.z[a], u[at] - products.W[a].T @ v)
    if m:
        shared = solve_lower(L_shared, crossed.reshape(N, m * g).T)
        variance += (shared**2).sum(axis=0)
    return np.stack([base + u @ weight, np.sqrt(variance)])


# ---- the strength of the prior and the noise, by evidence ---------------------------------------------------
#
# For n rows with targets y, relative to the baseline, whose precision under a ridge is P, the residual of the
# posterior mean is R = y'y - b' P^-1 b, with b = sum u y. The logarithm of the marginal likelihood is, but for a
# constant,
#
#     - n log(sigma) - R / (2 sigma^2) - (log det P - log det of the ridge alone) / 2
#
# and is largest for sigma^2 = R / n.
#
# Targets are not data but maxima over the model's own estimates, which makes weak priors look better than they
# are. The ridge of the weights that products have of their own is therefore at least `LEAST_RIDGES.own`: without
# this limit, a shop with 50 products earned less in its first thousand visits.

RIDGE_STEP = 10**0.5  # ridges are compared in steps of this factor
FIRST_RIDGES = Ridges(10.0, 10.0, 1.0, 1.0)
LEAST_RIDGES, MOST_RIDGES = Ridges(10.0, 10.0, 1e-3, 1e-3), Ridges(1e5, 1e5, 1e5, 1e5)


class PriorEvidence(NamedTuple):
    """Log marginal likelihood at the best sigma, or at a given one, and that sigma."""

    log: float
    sigma: float


class Rows(NamedTuple):
    """What is known of the rows and their targets y."""

    answers: int
    right: Floats  # (N, e) sum of u y
    squares: float  # sum of y^2


class OwnEvidence(NamedTuple):
    """What the rows of the products seen say once their own weights are eliminated."""

    explained: float  # b' P^-1 b of the own weights
    determinant: float  # log det P of these, less that of the ridge
    z: Floats  # (n, m) features
    B: Floats  # (n, g, g) and what remains of the Gram matrices
    rest: Floats  # (n, g) and of the right-hand sides, for the shared weights


def eliminate(products: ProductArrays, sizes: Sizes, rows: Rows, ridge: Floats) -> OwnEvidence:
    """Eliminate the weights that products have of their own, under a ridge for each, (d,)."""
    d, g, at = sizes.own, sizes.crossed, crossed_positions(sizes)
    seen = np.flatnonzero(products.answers)
    B, rest = np.zeros((len(seen), g, g)), np.zeros((len(seen), g))
    explained = determinant = 0.0
    for i, a in enumerate(seen):
        gram, right = products.gram[a], rows.right[a]
        L = cholesky(gram[:d, :d] + np.diag(ridge), f"product {a}")
        y = solve_lower(L, right[:d])
        explained += float(y @ y)
        determinant += _log_determinant(L, ridge)
        if g:
            W = solve_lower(L, gram[:d, at])
            B[i], rest[i] = gram[np.ix_(at, at)] - W.T @ W, right[at] - y @ W
    return OwnEvidence(explained, determinant, products.z[seen], B, rest)


def evidence(own: OwnEvidence, rows: Rows, shared_ridge: Floats, sigma: float | None) -> PriorEvidence:
    """Return the evidence at the best sigma, or at a given one."""
    explained, determinant = own.explained, own.determinant
    if own.z.shape[1]:
        L = factor_shared(own.z, own.B, shared_ridge)
        y = solve_lower(L, (own.z.T @ own.rest).ravel())
        explained += float(y @ y)
        determinant += _log_determinant(L, shared_ridge)
    residual = max(rows.squares - explained, 1e-12 * rows.squares, 1e-300)
    noise = residual / rows.answers if sigma is None else sigma**2
    log = -0.5 * (rows.answers * np.log(noise) + residual / noise + determinant)
    return PriorEvidence(float(log), float(np.sqrt(noise)))


def _log_determinant(L: Floats, ridge: Floats) -> float:
    return float((2.0 * np.log(np.diagonal(L)) - np.log(ridge)).sum())


def evidence_for(
    products: ProductArrays, sizes: Sizes, rows: Rows, sigma: float | None
) -> Callable[[Ridges], PriorEvidence]:
    """Return the evidence as a function of ridges, which computes nothing twice."""
    of_own = cache(
        lambda own, history: eliminate(products, sizes, rows, Ridges(own, history, 0.0, 0.0).of_own(sizes))
    )
    return cache(lambda ridges: evidence(of_own(*ridges[:2]), rows, ridges.of_shared(sizes), sigma))


def best_ridges(
    of: Callable[[Ridges], PriorEvidence], start: Ridges, shared: bool
) -> tuple[Ridges, PriorEvidence]:
    """Climb from `start` to ridges whose neighbours have less evidence.

    If products have no features, there are no shared weights, and all own weights have one ridge.
    """
    best, found, improved = start, of(start), True
    directions = np.eye(4) if shared else np.array([[1.0, 1.0, 0.0, 0.0]])
    while improved:
        improved = False
        for direction in directions:
            for way in (1, -1):
                while True:
                    near = Ridges._make((np.array(best) * RIDGE_STEP ** (way * direction)).tolist())
                    inside = np.clip(near, LEAST_RIDGES, MOST_RIDGES) == near
                    other = of(near) if inside.all() else found
                    if not other.log > found.log:
                        break
                    best, found, improved = near, other, shared
    return best, found
