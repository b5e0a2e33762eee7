"""The recommendation engine of section 6.3: J products, one after another, each affecting the taste for others.

A history x in {-1, 0, 1}^N says which products the customer has disliked, not seen and liked. A new product a is
liked with probability 1 / (1 + exp(-(beta_a + sum_n gamma_an x_n))). Only products not seen yet are legal. If the
histories can be enumerated, they are the states of a FiniteMDP; `number_of` and `histories` convert between both.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlsvi.core.checks import finite, fits, positive, shaped, shown, whole
from rlsvi.core.compile import Floats, Longs, compiled
from rlsvi.core.elementary import exp
from rlsvi.core.random import Seed, sequence
from rlsvi.mdp.finite import FiniteMDP

MOST_PAIRS = 4_000_000  # the largest number of state-action pairs of a table
History = NDArray[np.int8]


class Taste(NamedTuple):
    """The preferences of customers.

    Attributes
    ----------
    beta
        How much each product is liked, (N,).
    gamma
        The effect of products seen on new ones, (N, N).

    Examples
    --------
    >>> import rlsvi
    >>> rlsvi.mdp.draw_taste(3).gamma.shape
    (3, 3)
    """

    beta: Floats
    gamma: Floats


def draw_taste(
    products: int = 10, *, beta: ArrayLike = 0.0, gamma: ArrayLike | None = None, scale: float = 2, seed: Seed = 0
) -> Taste:
    """Return a problem instance.

    If gamma is not given, gamma_an ~ N(0, scale^2) independently for each a and n. The diagonal is drawn too, but
    has no effect: x_a = 0 while a is new.

    Parameters
    ----------
    products
        N.
    beta
        A number, or one per product.
    gamma
        (N, N). If None, drawn at random.
    scale
        The paper's c.
    seed
        Seed of the draw.

    Examples
    --------
    >>> import rlsvi
    >>> rlsvi.mdp.draw_taste(3, beta=0.5).beta.tolist()
    [0.5, 0.5, 0.5]
    """
    N = whole("products", products, 1, 2**31 - 1)
    fits(f"the taste for {N} products", 2 * N * N, "take fewer")
    given = finite("beta", beta)
    base = np.full(N, given) if given.ndim == 0 else shaped("beta", given, (N,))
    if gamma is None:
        drawn = positive("scale", scale) * np.random.default_rng(sequence(seed)).standard_normal((N, N))
    else:
        drawn = shaped("gamma", finite("gamma", gamma), (N, N))
    return Taste(np.ascontiguousarray(base), np.ascontiguousarray(drawn))


@compiled
def like_probability(taste: Taste, x: History, a: int) -> float:
    """Return the probability that a customer with history x likes the new product a."""
    logit = taste.beta[a]
    for n in range(x.size):
        if x[n] != 0:
            logit += taste.gamma[a, n] * x[n]
    small = exp(-abs(logit))
    return 1.0 / (1.0 + small) if logit >= 0.0 else small / (1.0 + small)


@compiled
def like_probabilities(taste: Taste, x: History, out: Floats) -> None:
    """Compute the same for all histories x (S, N) and all products, into (S, N); NaN for products already seen."""
    for s in range(x.shape[0]):
        for a in range(x.shape[1]):
            out[s, a] = like_probability(taste, x[s], a) if x[s, a] == 0 else np.nan


def myopic_products(taste: Taste, x: ArrayLike, legal: ArrayLike | None = None) -> Longs:
    """Return what the optimal myopic policy may show after history x: the products most likely to be liked.

    It needs no table, so N can be arbitrary; for a table, `myopic_values` gives the same answer.

    Parameters
    ----------
    taste
        What customers like.
    x
        The history: 1 for a product liked, -1 for one disliked, 0 for one not seen, (N,).
    legal
        Which products may be shown, (N,). If None, those not seen yet.

    Returns
    -------
    Longs
        The products; several if they are equally likely to be liked.

    Examples
    --------
    >>> import rlsvi
    >>> taste = rlsvi.mdp.draw_taste(3, beta=[0.0, 1.0, 2.0])
    >>> rlsvi.mdp.myopic_products(taste, [0, 0, 0]).tolist()
    [2]
    """
    if not isinstance(taste, Taste):
        raise TypeError(f"taste must be what draw_taste returns, got {shown(taste)}")
    history = shaped("x", finite("x", x), taste.beta.shape)
    logit = taste.beta + (taste.gamma * history).sum(axis=1)
    allowed = history == 0 if legal is None else shaped("legal", finite("legal", legal), history.shape) != 0
    if not allowed.any():
        raise ValueError("x and legal must leave a product to show, got none")
    best: Longs = np.flatnonzero(allowed & (logit == logit[allowed].max()))
    return best


def recommendation(
    products: int = 10,
    slots: int = 5,
    *,
    beta: ArrayLike = 0.0,
    gamma: ArrayLike | None = None,
    scale: float = 2.0,
    reward_values: tuple[float, float] = (0.0, 1.0),
    seed: Seed = 0,
) -> FiniteMDP:
    """Return the problem as a table, for exact solutions; at most `MOST_PAIRS` pairs of a history and a product.

    States are the histories of fewer than J products, numbered as in `histories` (4521 of them for N = 10 and J =
    5), and one more in which the episode has ended.

    Parameters
    ----------
    products
        N, the number of products.
    slots
        J, how many of them a customer is shown, at most N.
    beta, gamma, scale, seed
        As for `draw_taste`.
    reward_values
        Rewards of a dislike and of a like; (-1, 0) is the same problem, but makes 0 optimistic.

    Examples
    --------
    >>> import rlsvi
    >>> rlsvi.mdp.recommendation(products=4, slots=2).states
    10
    """
    low, high = coding(reward_values)
    count_histories(products, slots)  # checks both
    x = histories(products, slots)
    taste = draw_taste(products, beta=beta, gamma=gamma, scale=scale, seed=seed)
    S, N = x.shape
    legal = np.concatenate([x == 0, np.zeros((1, N), dtype=bool)])
    p = np.empty((S, N))
    like_probabilities(taste, x.copy(), p)
    s, a = np.nonzero(x == 0)
    after = np.repeat(x[s], 2, axis=0)
    after[np.arange(2 * len(s)), np.repeat(a, 2)] = np.tile(np.array([1, -1], dtype=np.int8), len(s))
    end = np.count_nonzero(after, axis=1) == slots
    successor = np.full(2 * len(s), S)
    successor[~end] = number_of(after[~end])
    return FiniteMDP(
        slots,
        S + 1,
        N,
        np.concatenate([[0], np.cumsum(2 * legal.ravel())]),
        successor,
        np.stack([p[s, a], 1.0 - p[s, a]], axis=1).ravel(),
        np.tile([high, low], len(s)),
        (np.arange(S + 1) == 0).astype(np.float64),
        legal=legal,
        absorbing=np.arange(S + 1) == S,
        name=f"recommendation of {slots} out of {N} products",
    )


def coding(reward_values: Any) -> tuple[float, float]:
    """Return the rewards of a dislike and a like, checked."""
    values = finite("reward_values", reward_values)
    if values.shape != (2,) or not values[0] < values[1]:
        raise ValueError(f"reward_values must be a pair (dislike, like) that rises, got {shown(reward_values)}")
    return float(values[0]), float(values[1])


def count_histories(products: int, slots: int) -> int:
    """Return the number of histories with fewer than J products: sum_{j<J} C(N, j) 2^j."""
    whole("products", products, 1, 2**31 - 1)
    if whole("slots", slots, 1, 2**31 - 1) > products:
        raise ValueError(f"slots must be at most products = {products}, got {slots}: no product is shown twice")
    return sum(math.comb(products, j) * 2**j for j in range(slots))


@lru_cache(maxsize=8)
def histories(products: int, slots: int) -> History:
    """Return all histories of fewer than J products, (S, N), in order of their numbers; the first one is empty.

    The array is cached and read-only.
    """
    S = count_histories(products, slots)
    if S * products > MOST_PAIRS:
        raise ValueError(
            f"products = {products} and slots = {slots} make more than {MOST_PAIRS // products} states, too many "
            'for a table: take fewer, or learn from the simulator, gymnasium.make("rlsvi/Recommendation-v0")'
        )
    x = np.zeros((S, products), dtype=np.int8)
    for row, (seen, signs) in zip(x, _seen(products, slots), strict=True):
        row[list(seen)] = signs
    ordered = np.empty_like(x)
    ordered[number_of(x)] = x
    ordered.flags.writeable = False
    return ordered


def _seen(products: int, slots: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    for j in range(slots):
        for seen in combinations(range(products), j):
            for signs in product((-1, 1), repeat=j):
                yield seen, signs


def number_of(x: ArrayLike) -> Longs:
    """Return the number of a history (N,), or of each of many, (.., N), in the table.

    Histories are ordered by the number of products seen. Those with j products are ordered by the set
    {n_1 < .. < n_j} they have seen, which has index sum_i C(n_i, i), and then by the likes in it, as bits.
    """
    history = np.asarray(x)
    seen, N = history != 0, history.shape[-1]
    rank = np.cumsum(seen, axis=-1)
    j = rank[..., -1]
    most = int(j.max(initial=0))
    if N * math.log2(3) >= 62 and math.comb(N, most) * 2**most >= 2**62:
        raise ValueError(f"x has {most} of {N} products in it, too many for a number of 64 bits")
    choose = np.array([[math.comb(n, i) for i in range(most + 1)] for n in range(N)], dtype=np.int64)
    place = np.where(seen, choose[np.arange(N), rank], 0).sum(axis=-1)
    likes = np.where(history > 0, 1 << np.maximum(rank - 1, 0), 0).sum(axis=-1)
    before = np.cumsum([0] + [math.comb(N, i) * 2**i for i in range(most)])
    number: Longs = before[j] + (place << j) + likes
    return number
