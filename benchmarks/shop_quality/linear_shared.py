"""A linear Thompson sampler that looks one slot ahead: one Bayesian regression of the reward for all products.

The features of product a with features z_a, shown to a customer with context c after answers x, are

    (1, c, likes, dislikes) ⊗ (1, z_a), and product by product (1), with c if products have no features,
                                        and with x if there are at most `WITH_ANSWERS` products

where likes and dislikes are the sums of the features of the products liked and disliked in this visit. The
posterior is exact, the same as if all answers were given at once. Every decision has a sample of its own.
"""

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from benchmarks.shop_quality.knowing import Uniform

ALPHA, RIDGE, EACH = 0.2, 30.0, "decision"  # chosen on seeds from 100 on
WITH_ANSWERS = 50


class SharedThompson(Uniform):
    """Samples have the posterior's covariance for noise of standard deviation alpha, and a ridge as the prior.

    A sample serves a `visit`, or a `decision`.
    """

    def __init__(self, shop, *, alpha=ALPHA, ridge=RIDGE, each=EACH):
        self.shop, self.alpha, self.each = shop, alpha, each
        self.rng = np.random.default_rng([shop.seed, 6])
        N = shop.world.products
        self.z = np.column_stack([np.ones(N), shop.product])
        own, shared = self.known(0, np.zeros(N))
        size = N * len(own) + len(shared) * self.z.shape[1]
        self.precision, self.sums = ridge * np.eye(size), np.zeros(size)
        self.learn([])

    def known(self, customer, x):
        """What is crossed with each product, and what with the features of products."""
        c, z = self.shop.context[customer], self.shop.product
        own = [[1.0], c[: 0 if z.shape[1] else None], x[: None if len(x) <= WITH_ANSWERS else 0]]
        return np.concatenate(own), np.concatenate([[1.0], c, (x > 0) @ z, (x < 0) @ z])

    def row(self, customer, x, product):
        """The features of a product for a customer with these answers."""
        own, shared = self.known(customer, x)
        by_product = np.zeros((len(x), len(own)))
        by_product[product] = own
        return np.concatenate([by_product.ravel(), np.outer(shared, self.z[product]).ravel()])

    def choose(self, visits):
        """The product with the largest reward in the sample of each visit."""
        if self.each == "decision" or not visits[0].shown:
            noise = self.rng.standard_normal((len(self.mean), len(visits)))
            noise = solve_triangular(self.root, noise, lower=True, trans=1, overwrite_b=True)
            self.drawn = self.mean + self.alpha * noise.T
        return [self._best(*each) for each in zip(visits, map(self.values, visits, self.drawn), strict=True)]

    def values(self, visit, weights):
        """The reward of each product with these weights, (N,)."""
        own, shared = self.known(visit.customer, visit.x)
        mine, ours = np.split(weights, [len(self.z) * len(own)])
        return mine.reshape(-1, len(own)) @ own + self.z @ (shared @ ours.reshape(len(shared), -1))

    def learn(self, visits):
        """Learn from the answers of the wave."""
        rows = []
        for visit in visits:
            x = np.zeros(len(self.z))
            for a in visit.shown:
                rows.append(self.row(visit.customer, x, a))
                x[a] = visit.x[a]
        if rows:
            self.precision += np.transpose(rows) @ rows
            self.sums += np.concatenate([visit.rewards for visit in visits]) @ rows
        self.root = cholesky(self.precision, lower=True)
        self.mean = cho_solve((self.root, True), self.sums)
