"""Shops with simulated customers: the paper's model, and what a real shop adds to it.

A customer with context c and history x (-1, 0 or 1 for each product) likes product a with probability
1 / (1 + exp(-(beta_a + w_a . c + gamma_a . x))). In worlds of genres, what the genres seen and liked add takes the
place of gamma_a . x. Her answer is decided by one uniform number for each customer and product: all policies
meet the same customers.
"""

from dataclasses import dataclass, replace

import numpy as np

from rlsvi.mdp.recommendation import draw_taste

KINDS = ("plain", "customer features", "new products", "revenue")
SIZES = {10: (5, 1500), 50: (8, 1000), 500: (10, 400)}  # products: slots, customers
# Worlds of genres, with prices and two kinds of customers: what the first like of a genre adds to the logits of
# those it helps, and what each product seen adds to the logits of its own genre.
HISTORIES = {
    "genres": (0.0, 0.0),
    "opener": (1.5, 0.0),
    "warm up": (0.8, 0.0),
    "bundles": (1.5, 0.0),
    "boredom": (0.0, -1.0),
}
# Nothing is chosen on these worlds; those of genres were made by what policies earn that know the tastes.
OTHERS = {
    "rare clicks": (100, 5, 2000),
    "drift": (50, 8, 1000),
} | dict.fromkeys(HISTORIES, (60, 3, 3000))  # products, slots, customers
SEGMENTS, GENRES = ("a", "b", "c", "d"), ("comedy", "drama", "jazz", "rock")
NUMBERS = {"customer": 3, "product": 2}  # of each
TASTE, CONTEXT, POPULARITY = 2.0, 1.0, 1.0  # standard deviations of gamma (the paper's), w and beta
EXPLAINED = 0.5  # the share of the variance of gamma and beta that product features explain
SPREAD = 0.5  # of the logarithm of prices
CLICKS, RARE_TASTE = 0.02, 0.5  # of rare clicks: the chance of the median product, standard deviation of gamma
GOODS, BUYERS = ("bread", "cheese", "coffee", "fruit", "tea", "wine"), ("local", "tourist")
LEVEL, BETWEEN, WITHIN = -1.0, 0.5, 0.5  # the mean of beta, standard deviations between and within these genres
CHEAP, EASY = 0.3, 1.0  # of genres that help others: the price is multiplied by this, this is added to beta
AT_START = 0.7  # the share of the products that are there at the start, if some are added midway
FIRST_WAVE, GROWTH = 10, 0.05


@dataclass(frozen=True)
class World:
    """What is simulated: the number of products, slots and customers, and what is special about them."""

    kind: str
    products: int
    slots: int
    customers: int

    @property
    def name(self):
        """The name in files and on the command line."""
        return f"{self.kind.replace(' ', '-')}-{self.products}"

    def shortened(self, customers):
        """The same world with fewer customers."""
        return replace(self, customers=customers)


WORLDS = {
    world.name: world
    for world in (
        *(World(kind, N, *size) for kind in KINDS for N, size in SIZES.items()),
        *(World(kind, *size) for kind, size in OTHERS.items()),
    )
}


class Shop:
    """One instance of a world: tastes, prices, features, and the customers in the order in which they come.

    Attributes
    ----------
    context : (customers, q), `product` : (N, m), encoded as numbers; q and m are 0 if there are no such features.
    customer_features, product_features : the same as the shop would receive them, one dict each.
    price : (N,), the reward of a like. `arrival` : (N,), the customer before whom a product is added.
    genre : (N, G), 1 for the genre of each product; None but in worlds of genres.
    """

    def __init__(self, world, seed):
        self.world, self.seed = world, seed
        N, M = world.products, world.customers
        taste = draw_taste(N, scale=TASTE, seed=seed)
        self.beta, self.gamma = taste.beta.copy(), taste.gamma.copy()
        rng = np.random.default_rng([seed, 1])
        kind = world.kind
        with_context, with_features = kind == "customer features", kind == "new products"
        self.context, self.customer_features = _features(rng, M, "customer", SEGMENTS, with_context)
        self.product, self.product_features = _features(rng, N, "product", GENRES, with_features)
        self.effect = CONTEXT * rng.standard_normal((N, self.context.shape[1]))
        self.price = np.exp(SPREAD * rng.standard_normal(N)) if kind == "revenue" else np.ones(N)
        self.arrival = np.zeros(N, dtype=int)
        if with_features:
            self.arrival[round(AT_START * N) :] = M // 2
            self._explain(rng)
        if kind == "rare clicks":
            self.beta = np.log(CLICKS / (1 - CLICKS)) + POPULARITY * rng.standard_normal(N)
            self.gamma *= RARE_TASTE / TASTE
        self.later = TASTE * rng.standard_normal((N, N)) if kind == "drift" else None
        self.genre = None
        if kind in HISTORIES:
            self._sort(rng)

    def _explain(self, rng):
        """Let product features explain a part of how popular products are, and of how they affect each other."""
        z = self.product
        like, popular = (z @ rng.standard_normal((z.shape[1],) * 2) @ z.T), z @ rng.standard_normal(z.shape[1])
        known, own = EXPLAINED**0.5, (1 - EXPLAINED) ** 0.5
        self.gamma = TASTE * known * _standard(like) + own * self.gamma
        self.beta = POPULARITY * (known * _standard(popular) + own * rng.standard_normal(len(z)))

    def _sort(self, rng):
        """Sort products into genres, with prices, and customers into kinds, with their tastes for genres."""
        N, G = self.world.products, len(GOODS)
        genre = np.arange(N) % G
        self.genre = np.eye(G)[genre]
        like, seen = HISTORIES[self.world.kind]
        helps = np.zeros((G, G))
        if self.world.kind == "bundles":
            helps[range(0, G, 2), range(1, G, 2)] = 1  # bread and cheese, coffee and fruit, tea and wine
        elif like:
            helps[0, 1:] = 1
        self.helps, self.bores = like * helps, seen * np.eye(G)
        first = helps.any(axis=1)[genre]
        self.beta = LEVEL + EASY * first + WITHIN * rng.standard_normal(N)
        self.effect = BETWEEN * self.genre @ rng.standard_normal((G, len(BUYERS)))
        self.price = np.exp(SPREAD * rng.standard_normal(N)) * np.where(first, CHEAP, 1)
        kind = rng.integers(len(BUYERS), size=self.world.customers)
        self.context = np.eye(len(BUYERS))[kind]
        self.product = np.column_stack([self.genre, 2 * self.price / np.ceil(self.price.max()) - 1])
        self.customer_features = [{"kind": BUYERS[k]} for k in kind]
        self.product_features = [
            {"genre": GOODS[g], "price": float(price)} for g, price in zip(genre, self.price, strict=True)
        ]

    def offered(self, customer):
        """The products that are in the shop when she comes, (N,) of bool."""
        return self.arrival <= customer

    def base(self, customer):
        """The logits of all products at the beginning of her visit."""
        return self.beta + self.effect @ self.context[customer]

    def chances(self, customer, x):
        """The probability that she likes each product after history x, (N,), or after each of many, (S, N)."""
        if self.genre is None:
            after = x @ self.taste(customer).T
        else:
            liked, seen = np.minimum((x > 0) @ self.genre, 1), (x != 0) @ self.genre
            after = (liked @ self.helps + seen @ self.bores) @ self.genre.T
        return 1 / (1 + np.exp(-(self.base(customer) + after)))

    def taste(self, customer):
        """gamma, (N, N): with drift, it turns into another gamma from the first customer to the last."""
        if self.later is None:
            return self.gamma
        angle = 0.5 * np.pi * customer / self.world.customers
        return np.cos(angle) * self.gamma + np.sin(angle) * self.later

    def opinions(self, customer):
        """One uniform number for each product: she likes it if the number is below her probability."""
        return np.random.default_rng([self.seed, 2, customer]).random(self.world.products)


def _features(rng, count, of, values, wanted):
    """Some numbers in [-1, 1] and one category for each of `count` customers or products."""
    if not wanted:
        return np.zeros((count, 0)), [None] * count
    numbers, category = rng.uniform(-1, 1, (count, NUMBERS[of])), rng.integers(len(values), size=count)
    told = [
        {f"number{k}": float(value) for k, value in enumerate(row)} | {"category": values[index]}
        for row, index in zip(numbers, category, strict=True)
    ]
    return np.hstack([numbers, np.eye(len(values))[category]]), told


def _standard(values):
    return (values - values.mean()) / values.std()


def waves(customers):
    """Customers who are in the shop together, as ranges: ten, later a twentieth of all who came before.

    Policies learn between waves. One wave ends at the middle, where products may be added.
    """
    start = 0
    while start < customers:
        end = min(start + max(FIRST_WAVE, int(GROWTH * start)), customers)
        if start < customers // 2 < end:
            end = customers // 2
        yield range(start, end)
        start = end
