"""Samples of the posterior, and how the next product of a visit is chosen with them."""

import hashlib
from typing import Any, NamedTuple

import numpy as np

from rlsvi.core.compile import Bools, Floats, Longs, compiled
from rlsvi.core.regression import FactorError
from rlsvi.shop.model.regression import first_weights
from rlsvi.shop.model.sizes import Sizes
from rlsvi.shop.model.targets import add_answer, add_rows, largest, not_zero


class Draws(NamedTuple):
    """What serving needs: the posterior mean, at index 0, and S samples of the posterior, for N products.

    The value of product a for a customer of whom u is known, see `Sizes`, is base_j + weight[s, :, a] . u.
    """

    weight: Floats  # (S + 1, e, N)
    base: Floats  # (J + 1,) expected reward from slot j on
    z: Floats  # (N, m) features of products
    offered: Bools  # (N,)
    shown: Longs  # (N,) how often each product was shown, in visits that have ended
    value: Floats  # (N,) posterior mean of the reward of a visit that begins with the product, see `values`
    spread: Floats  # (N,) the posterior standard deviation of the first recommendation alone, see `values`
    beta: Floats  # (S + 1, k) what products share by their features
    customer: Longs  # () q


class Choice(NamedTuple):
    """A product, the share of samples that choose it here, and whether the posterior mean prefers another."""

    product: int
    propensity: float
    explored: bool


def with_products(draws: Draws, z: Floats) -> Draws:
    """Return the samples with products of features z (n, m) after the others: nothing else is known of these.

    Their value and its spread are nan: only a refresh computes them.
    """
    e = draws.weight.shape[1]
    q, (n, m) = int(draws.customer), z.shape
    new = first_weights(draws.beta, z, Sizes(0, q, m, e - 1 - q - m))
    return draws._replace(
        weight=np.concatenate([draws.weight, new], axis=2),
        z=np.concatenate([draws.z, z]),
        offered=np.append(draws.offered, np.ones(n, np.bool_)),
        shown=np.append(draws.shown, np.zeros(n, np.int64)),
        value=np.append(draws.value, np.full(n, np.nan)),
        spread=np.append(draws.spread, np.full(n, np.nan)),
    )


def draw_of(visit: str, draws: Draws, seed: int) -> int:
    """Return which sample a visit uses, 1 .. S: the same for all its slots, another for other visits."""
    digest = hashlib.blake2b(f"{seed}:{visit}".encode(), digest_size=8).digest()
    return 1 + int.from_bytes(digest, "little") % (len(draws.weight) - 1)


def choose(draws: Draws, draw: int, c: Any, known: Any, x: Any, allowed: Any = None) -> Choice:
    """Return the product with the largest value under one of the samples, and how the others would choose.

    Parameters
    ----------
    draws : the samples.
    draw : which of them chooses: 1 .. S, or 0 for the posterior mean.
    c : (q,) the customer.
    known, x : the products that the customer has answered in this visit, by index, and the answers, 1 or -1.
    allowed : (N,) which products may be shown: at least those already shown are not. None: all that are offered.
    """
    S = len(draws.weight)
    if not 0 <= draw < S:
        raise ValueError(f"draw must be one of 0..{S - 1}, got {draw}")
    best, explored = best_by_sample(draws, known_row(draws, c, known, x), draw, allowed)
    chosen = int(best[draw])
    samples = best[1:] if S > 1 else best
    return Choice(chosen, float((samples == chosen).mean()), explored)


def known_row(draws: Draws, c: Any, known: Any, x: Any) -> Floats:
    """Return u, see `Sizes`, of a customer and her answers; the arguments are those of `choose`."""
    _, e, N = draws.weight.shape
    q, m = int(draws.customer), draws.z.shape[1]
    customer = np.asarray(c, dtype=np.float64)
    answered, answers = np.asarray(known, dtype=np.int64), np.asarray(x, dtype=np.float64)
    if customer.shape != (q,) or not np.isfinite(customer).all():
        raise ValueError(f"c must be {q} finite numbers, got shape {customer.shape}")
    if answered.ndim != 1 or answers.shape != answered.shape or not (abs(answers) == 1.0).all():
        raise ValueError("known and x must be as many products as answers, each answer 1 or -1")
    if answered.size and not 0 <= answered.min() <= answered.max() < N:
        raise ValueError(f"known must be numbers of products, each of 0..{N - 1}")
    u = np.zeros(e)
    u[0], u[1 : 1 + q] = 1.0, customer
    add_answers(u, draws.z, answered, answers, q, e - 1 - q - m)
    return u


def best_by_sample(draws: Draws, u: Floats, draw: int, allowed: Any = None) -> tuple[Longs, bool]:
    """Return the product that each sample prefers, (S + 1,), and whether the mean disagrees with one of them.

    u : what is known, from `known_row`.
    """
    S, e, N = draws.weight.shape
    mask = draws.offered if allowed is None else np.asarray(allowed, dtype=np.bool_)
    if mask.shape != (N,):
        raise ValueError(f"allowed must have shape ({N},), got {mask.shape}")
    mask = mask & draws.offered
    if not mask.any():
        raise LookupError("no product is left that may be shown")
    index, values, best = np.empty(e, np.int64), np.empty(N), np.empty(S, np.int64)
    explored = best_products(draws.weight, u, mask, draw, index, values, best)
    if explored < 0:
        raise FactorError("a value is not finite: refresh the draws")
    return best, explored == 1


@compiled
def add_answers(u: Floats, z: Floats, known: Longs, x: Floats, q: int, D: int) -> None:
    """Add answers to what is known."""
    for i in range(known.size):
        add_answer(u, z, known[i], x[i], q, D)


@compiled
def best_products(
    weight: Floats, u: Floats, allowed: Bools, draw: int, index: Longs, values: Floats, best: Longs
) -> int:
    """Set best[s] to the best allowed product under every sample s.

    Returns 1 if the mean values the choice of `draw` less than its own, otherwise 0, or -1 if values are not
    finite. Ties go to the first product from a place that differs between samples.
    """
    S, N, count = weight.shape[0], values.size, not_zero(u, index)
    for s in range(S - 1, -1, -1):
        for a in range(N):
            values[a] = 0.0 if allowed[a] else -np.inf
        add_rows(weight[s], u, index, count, 0, values)
        top = largest(values)
        if not abs(top) < np.inf:
            return -1
        a = (s * N) // S
        while values[a] != top:
            a = a + 1 if a + 1 < N else 0
        best[s] = a
    return 1 if values[best[draw]] < values[best[0]] else 0
