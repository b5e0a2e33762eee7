"""Bayesian regression for many products at once, with weights of their own and weights that they share.

A row u = (1, c, history, h) of product a with features z_a has the target

    theta_a . u[own] + beta . (z_a (x) g) + N(0, sigma^2)         own: 1, c, history;  g = (1, c, h)

with theta_a ~ N(0, sigma^2 / ridge) and beta ~ N(0, sigma^2 / shared_ridge). The precision of all weights is an
arrow: a block P_a for every product, a block for beta, and what crosses them. Since z_a is the same in all rows of
a product, everything follows from one Gram matrix E_a of its rows u. Times sigma^2,

    P_a = ridge I + E_a[own, own]      M_a = E_a[own, g]      B_a = E_a[g, g] - M_a' P_a^-1 M_a
    beta:    precision shared_ridge I + sum_a z_a z_a' (x) B_a, which is what eliminating all theta_a leaves
    theta_a: given beta, precision P_a

L_a is the Cholesky factor of P_a, and W_a = L_a^-1 M_a.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs

from rlsvi.core.compile import Floats, Longs
from rlsvi.core.regression import FactorError
from rlsvi.shop.model.products import ProductArrays
from rlsvi.shop.model.sizes import Sizes


class Ridges(NamedTuple):
    """lam sigma^2 for the weights of products, and for those that they share."""

    own: float
    shared: float


class Noise(NamedTuple):
    """Standard normal numbers times the standard deviation of samples; zero for the posterior mean."""

    own: Floats  # (N, S, d)
    shared: Floats  # (S, k)


def crossing(sizes: Sizes) -> Longs:
    """Return the positions of g in u."""
    found = np.concatenate([np.arange(1 + sizes.customer), np.arange(sizes.own, sizes.width)])
    return found[: sizes.crossed]


def first_weights(beta: Floats, z: Floats, sizes: Sizes) -> Floats:
    """Return the weights, (S, e, n), of n products of which nothing but features z is known, for beta (S, k)."""
    weight = np.zeros((len(beta), sizes.width, len(z)))
    if sizes.product:
        by_feature = beta.reshape(len(beta), sizes.product, sizes.crossed)
        weight[:, crossing(sizes)] = np.tensordot(by_feature, z, (1, 1))
    return weight


def factor_products(products: ProductArrays, sizes: Sizes, ridge: float) -> None:
    """Factor the blocks of the products that are dirty."""
    d, at = sizes.own, crossing(sizes)
    for a in np.flatnonzero(products.dirty):
        L, W = products.L[a], products.W[a]
        L[...] = products.gram[a, :d, :d]
        L.flat[:: d + 1] += ridge
        cholesky(L, f"product {a}")
        if W.size:
            cross = products.gram[a][:, at]
            W[...] = lower_solved(L, cross[:d])
            products.B[a] = cross[at] - W.T @ W
        products.dirty[a] = False


def factor_shared(z: Floats, B: Floats, ridge: float) -> Floats:
    """Return the Cholesky factor of the precision of beta, (k, k)."""
    N, m = z.shape
    g = B.shape[1]
    squares = (z[:, :, None] * z[:, None, :]).reshape(N, m * m)
    blocks = (squares.T @ B.reshape(N, g * g)).reshape(m, m, g, g)
    precision = np.ascontiguousarray(blocks.transpose(0, 2, 1, 3).reshape(m * g, m * g))
    precision.flat[:: m * g + 1] += ridge
    return cholesky(precision, "the shared weights")


def solved(products: ProductArrays, L_shared: Floats, sizes: Sizes, right: Floats, noise: Noise) -> Any:
    """Return the weights of S chains for right-hand sides (S, N, e): on u, (S, e, N), and beta, (S, k)."""
    S, N, e = right.shape
    d, m, g, at = sizes.own, sizes.product, sizes.crossed, crossing(sizes)
    y = np.ascontiguousarray(right[:, :, :d].transpose(1, 0, 2))
    for a in range(N):
        y[a] = lower_solved(products.L[a], y[a].T).T
    beta, by_product = np.zeros((S, m, g)), np.zeros((N, S, g))
    if m:
        rest = right[:, :, at].transpose(1, 0, 2) - y @ products.W
        total = np.tensordot(rest, products.z, (0, 0)).transpose(0, 2, 1).reshape(S, m * g)
        inner = lower_solved(L_shared, total.T) + noise.shared.T
        beta = upper_solved(L_shared, inner).T.reshape(S, m, g)
        by_product = np.tensordot(products.z, beta, (1, 1))
        y -= by_product @ products.W.transpose(0, 2, 1)
    y += noise.own
    weight = np.zeros((S, e, N))
    for a in range(N):
        weight[:, :d, a] = upper_solved(products.L[a], y[a].T).T
    weight[:, at] += by_product.transpose(1, 2, 0)
    if not np.isfinite(weight).all():
        raise FactorError("the new weights are not finite: rewards or features are too large to learn from")
    return weight, beta.reshape(S, m * g)


def lower_solved(L: Floats, right: Floats) -> Floats:
    """Return L^-1 right."""
    return _checked(*dtrtrs(L.T, right, lower=0, trans=1))


def upper_solved(L: Floats, right: Floats) -> Floats:
    """Return L'^-1 right."""
    return _checked(*dtrtrs(L.T, right, lower=0, trans=0))


def _checked(solution: Floats, info: int) -> Floats:
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
