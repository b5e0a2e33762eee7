"""Policies to compare with: uniform, the best mean reward, and two that know the tastes, myopic and optimal."""

from functools import lru_cache

import numpy as np

from rlsvi.mdp.recommendation import histories, number_of


class Uniform:
    """Shows any product."""

    def __init__(self, shop):
        self.rng = np.random.default_rng([shop.seed, 3])

    def add(self, products):
        """Products join the shop: nothing to do."""

    def choose(self, visits):
        """One product for each visit."""
        return [int(self.rng.choice(np.flatnonzero(visit.allowed))) for visit in visits]

    def learn(self, visits):
        """A wave is over: nothing to do."""

    def _best(self, visit, values):
        """An allowed product with the largest value; ties are broken at random."""
        values = np.where(visit.allowed, values, -np.inf)
        best = np.flatnonzero(values >= values.max() - 1e-12)
        return int(best[0]) if len(best) == 1 else int(self.rng.choice(best))


class BestMean(Uniform):
    """Shows the products with the largest mean reward, as many shops do; ties are broken at random.

    The mean reward of all products counts as one more answer of each, so that a product nobody has seen comes
    after those that are better than the average.
    """

    def __init__(self, shop):
        super().__init__(shop)
        self.total, self.count = np.zeros(shop.world.products), np.zeros(shop.world.products)

    def choose(self, visits):
        """One product for each visit."""
        means = (self.total + self.total.sum() / max(self.count.sum(), 1)) / (self.count + 1)
        return [self._best(visit, means) for visit in visits]

    def learn(self, visits):
        """Count the answers of the wave."""
        for visit in visits:
            np.add.at(self.total, visit.shown, visit.rewards)
            np.add.at(self.count, visit.shown, 1)


class Myopic(Uniform):
    """Knows the true tastes, and shows what earns most in the present slot."""

    def __init__(self, shop):
        super().__init__(shop)
        self.shop = shop

    def choose(self, visits):
        """One product for each visit; ties are broken at random."""
        return [self._best(visit, self.values(visit)) for visit in visits]

    def values(self, visit):
        """What each product earns in the present slot, (N,)."""
        return self.shop.price * self.shop.chances(visit.customer, visit.x)


class Optimal(Myopic):
    """Knows the true tastes, and shows what earns most in the whole visit: exact dynamic programming.

    Needs a table of all histories, so products or slots must be few.
    """

    def __init__(self, shop):
        super().__init__(shop)
        self.solutions = {}

    def values(self, visit):
        """What each product earns in this and the later slots of the visit, (N,)."""
        offered = self.shop.offered(visit.customer)
        key = offered.tobytes(), self.shop.context[visit.customer].tobytes()  # who is alike shares a solution
        if key not in self.solutions:
            self.solutions[key] = solved(self.shop, visit.customer, offered)
        return self.solutions[key][int(number_of(visit.x))]

    def learn(self, visits):
        """A wave is over: forget the solutions of its customers."""
        self.solutions.clear()


@lru_cache(maxsize=1)
def table(products, slots):
    """All histories of fewer than `slots` products (S, N), and the numbers of those after a like and a dislike.

    A history that is complete, and one that cannot be, has the number S.
    """
    x = histories(products, slots)
    S, N = x.shape
    after = np.full((2, S, N), S)
    going_on = np.count_nonzero(x, axis=1) < slots - 1
    for a in range(N):
        free = going_on & (x[:, a] == 0)
        for k, answer in enumerate((1, -1)):
            following = x[free].copy()
            following[:, a] = answer
            after[k, free, a] = number_of(following)
    return x.astype(float), after


def solved(shop, customer, offered):
    """The optimal value of each history and product for this customer, (S, N); -inf if it may not be shown."""
    N, slots = shop.world.products, shop.world.slots
    x, (liked, disliked) = table(N, slots)
    chance = shop.chances(customer, x)
    legal = (x == 0) & offered
    seen = np.count_nonzero(x, axis=1)
    V, Q = np.zeros(len(x) + 1), np.full(x.shape, -np.inf)
    for count in reversed(range(slots)):
        s = seen == count
        value = chance[s] * (shop.price + V[liked[s]]) + (1 - chance[s]) * V[disliked[s]]
        Q[s] = np.where(legal[s], value, -np.inf)
        V[:-1][s] = Q[s].max(axis=1)
    return Q
