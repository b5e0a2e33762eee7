"""Bayesian regression for many products at once, with weights of their own and weights that they share.

A row u = (1, c, history, h) of product a with features z_a has the target

    theta_a . u[own] + beta . (z_a (x) g) + N(0, sigma^2)         own: 1, c, history;  g = (1, c, h)

with theta_a ~ N(0, sigma^2 / ridge) and beta ~ N(0, sigma^2 / shared_ridge). The precision of all weights is an
arrow: a block P_a for every product, a block for beta, and what crosses them. Since z_a is the same in all rows of
a product, everything follows from one Gram matrix E_a of its rows u, divided by sigma^2:

    P_a = ridge I + E_a[own, own]      M_a = E_a[own, g]      B_a = E_a[g, g] - M_a' P_a^-1 M_a
    beta:    precision shared_ridge I + sum_a z_a z_a' (x) B_a, which is what eliminating all theta_a leaves
    theta_a: given beta, precision P_a
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs

from rlsvi.core.compile import Bools, Floats, Longs
from rlsvi.core.regression import FactorError
from rlsvi.shop.sizes import Sizes


class Ridges(NamedTuple):
    """lam sigma^2 for the weights of products, and for those that they share."""

    own: float
    shared: float


class Posterior(NamedTuple):
    """Factors of the precision of N products; L[a] = chol(P_a), W[a] = L[a]^-1 M_a."""

    L: Floats  # (N, d, d) lower triangles
    W: Floats  # (N, d, g)
    B: Floats  # (N, g, g)
    crossing: Longs  # (g,) the positions of g in u


def new_posterior(sizes: Sizes, products: int) -> Posterior:
    """Return arrays for `products` products, none of them factored."""
    d, g = sizes.own, sizes.crossed
    crossing = np.concatenate([np.arange(1 + sizes.customer), np.arange(d, sizes.width)])
    return Posterior(
        np.zeros((products, d, d)), np.zeros((products, d, g)), np.zeros((products, g, g)), crossing[:g]
    )


def factor_products(posterior: Posterior, gram: Floats, ridge: float, which: Bools) -> None:
    """Factor the blocks of the products in the mask `which`."""
    d = posterior.L.shape[1]
    for a in np.flatnonzero(which):
        L, W, B = posterior.L[a], posterior.W[a], posterior.B[a]
        L[...] = gram[a, :d, :d]
        L.flat[:: d + 1] += ridge
        _cholesky(L, f"product {a}")
        if W.size:
            cross = gram[a][:, posterior.crossing]
            W[...] = lower_solved(L, cross[:d])
            B[...] = cross[posterior.crossing] - W.T @ W


def factor_shared(posterior: Posterior, z: Floats, ridge: float) -> Floats:
    """Return the Cholesky factor of the precision of beta, (k, k)."""
    N, m = z.shape
    g = posterior.B.shape[1]
    squares = (z[:, :, None] * z[:, None, :]).reshape(N, m * m)
    blocks = (squares.T @ posterior.B.reshape(N, g * g)).reshape(m, m, g, g)
    precision = np.ascontiguousarray(blocks.transpose(0, 2, 1, 3).reshape(m * g, m * g))
    precision.flat[:: m * g + 1] += ridge
    return _cholesky(precision, "the shared weights")


def solved(
    posterior: Posterior, L_shared: Floats, z: Floats, right: Floats, noise: Floats, noise_shared: Floats
) -> tuple[Floats, Floats]:
    """Return the weights of S chains for right-hand sides (S, N, e): on u, (S, e, N), and beta, (S, k).

    noise (N, S, d) and noise_shared (S, k): standard normals times the standard deviation of a sample; 0 for means.
    """
    S, N, e = right.shape
    d, m, g = noise.shape[2], z.shape[1], posterior.B.shape[1]
    y = np.ascontiguousarray(right[:, :, :d].transpose(1, 0, 2))
    for a in range(N):
        y[a] = lower_solved(posterior.L[a], y[a].T).T
    beta, by_product = np.zeros((S, m, g)), np.zeros((N, S, g))
    if m:
        rest = right[:, :, posterior.crossing].transpose(1, 0, 2) - y @ posterior.W
        total = np.tensordot(rest, z, (0, 0)).transpose(0, 2, 1).reshape(S, m * g)
        inner = lower_solved(L_shared, total.T) + noise_shared.T
        beta = upper_solved(L_shared, inner).T.reshape(S, m, g)
        by_product = np.tensordot(z, beta, (1, 1))
        y -= by_product @ posterior.W.transpose(0, 2, 1)
    y += noise
    weight = np.zeros((S, e, N))
    for a in range(N):
        weight[:, :d, a] = upper_solved(posterior.L[a], y[a].T).T
    weight[:, posterior.crossing] += by_product.transpose(1, 2, 0)
    if not np.isfinite(weight).all():
        raise FactorError("new weights are not finite: larger rewards or features than can be learned from")
    return weight, beta.reshape(S, m * g)


def lower_solved(L: Floats, right: Floats) -> Floats:
    """Return L^-1 right."""
    return _checked(*dtrtrs(L.T, right, lower=0, trans=1))


def upper_solved(L: Floats, right: Floats) -> Floats:
    """Return L'^-1 right."""
    return _checked(*dtrtrs(L.T, right, lower=0, trans=0))


def _checked(solution: Any, info: int) -> Floats:
    if info != 0:
        raise FactorError("a factor of the posterior is singular")
    found: Floats = solution
    return found


def _cholesky(P: Floats, what: str) -> Floats:
    """Replace P by its lower factor."""
    U, info = dpotrf(P.T, lower=0, clean=1, overwrite_a=1)
    if info != 0 or not np.isfinite(U).all():
        raise FactorError(f"the precision of {what} is not positive definite: choose a larger lam")
    P[...] = U.T
    return P
