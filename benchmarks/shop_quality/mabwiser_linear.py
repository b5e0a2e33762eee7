"""MABWiser's linear Thompson sampling (`LinTS`): one Bayesian regression of the reward for each product.

Its features are one, the context of the customer, her answers in this visit, and, if products have features, their
sum weighted by her answers. A regression per product cannot share what product features say; for products that are
added, MABWiser's own remedy is used: `warm_start` copies the regression of the most similar product.

MABWiser draws the weights of every product anew for each decision. All customers of a wave are handed over
together, so that the matrices are factored once for all of them. Even so the time grows with the cube of the
number of features: with more than `PLACES` products, answers are hashed to that many places, with signs.
"""

import numpy as np

PLACES = 64
ALPHA, L2 = 0.03, 1.0  # chosen on seeds from 100 on, see docs/shop-quality.md
DISTANCE = 0.5  # of warm starts: a cold product copies the nearest one within this quantile of all distances


class LinearThompson:
    """A policy that hands everything to MABWiser."""

    def __init__(self, shop, *, alpha=ALPHA, l2_lambda=L2):
        self.shop, self.mab = shop, None
        self.alpha, self.l2_lambda = alpha, l2_lambda
        N = shop.world.products
        rng = np.random.default_rng([shop.seed, 4])
        self.place = np.arange(N) if N <= PLACES else rng.integers(PLACES, size=N)
        self.sign = np.ones(N) if N <= PLACES else rng.choice([-1.0, 1.0], size=N)
        self.unlearned = []  # of the wave: product, reward, features

    def add(self, products):
        """Products join the shop; after the first time they copy what was learned of similar ones."""
        from mabwiser.mab import MAB, LearningPolicy

        arms = [int(a) for a in products]
        if self.mab is None:
            linear = LearningPolicy.LinTS(alpha=self.alpha, l2_lambda=self.l2_lambda)
            self.mab = MAB(arms, linear, seed=self.shop.seed)
            nothing = self.features(0, np.zeros(self.shop.world.products))
            self.mab.fit([arms[0]], [0.0], [0 * nothing])  # says nothing; makes the regressions
            return
        for arm in arms:
            self.mab.add_arm(arm)
        if arms and self.shop.product.shape[1]:
            known = {arm: list(self.shop.product[arm]) for arm in self.mab.arms}
            self.mab.warm_start(known, distance_quantile=DISTANCE)

    def features(self, customer, x):
        """What the regressions know of a customer with these answers."""
        history = np.bincount(self.place, weights=self.sign * x, minlength=self.place.max() + 1)
        return np.concatenate([[1.0], self.shop.context[customer], history, x @ self.shop.product])

    def choose(self, visits):
        """The product with the largest drawn reward among those allowed, for each visit."""
        contexts = np.array([self.features(visit.customer, visit.x) for visit in visits])
        drawn = self.mab.predict_expectations(contexts)
        drawn = [drawn] if isinstance(drawn, dict) else drawn
        chosen = [
            max((a for a in values if visit.allowed[a]), key=values.__getitem__)
            for visit, values in zip(visits, drawn, strict=True)
        ]
        self.unlearned.append((chosen, contexts))
        return chosen

    def learn(self, visits):
        """Learn from all answers of the wave at once."""
        arms = [a for chosen, _ in self.unlearned for a in chosen]
        rewards = [visit.rewards[slot] for slot in range(len(self.unlearned)) for visit in visits]
        self.mab.partial_fit(arms, rewards, np.concatenate([contexts for _, contexts in self.unlearned]))
        self.unlearned = []
