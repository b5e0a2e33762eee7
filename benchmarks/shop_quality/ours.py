"""Our learner, in process: events go in, samples of the posterior come out, as in a shop that runs."""

import math

from rlsvi_shop.events import Event
from rlsvi_shop.model.draws import choose, draw_of, order_of
from rlsvi_shop.model.learner import ShopLearner
from rlsvi_shop.settings import ShopSettings


class Ours:
    """A policy that hands everything to `ShopLearner`, with its default settings; 0 exploration is greedy."""

    def __init__(self, shop, *, exploration=None, **learning):
        if exploration is not None:
            learning["exploration"] = exploration
        self.shop = shop
        self.settings = ShopSettings(
            slots=shop.world.slots,
            customer=schema_of(shop.customer_features),
            product=schema_of(shop.product_features),
            learning={"seed": shop.seed, **learning},
        )
        self.learner = ShopLearner(self.settings)
        self.events, self.draws = 0, None

    def _take(self, kind, **columns):
        self.events += 1
        self.learner.take(Event(kind, id=self.events, **columns))

    def add(self, products):
        """Products join the shop, with their features."""
        for a in products:
            self._take("added", product=str(a), features=self.shop.product_features[a])
        if len(products):
            self.draws = self.learner.refresh()

    def choose(self, visits):
        """The best product of each visit under the sample that the visit uses."""
        return [self._choose(visit) for visit in visits]

    def _choose(self, visit):
        name, seed = str(visit.customer), self.settings.learning.seed
        draw, order = draw_of(name, self.draws, seed), order_of(name, seed)
        c = self.settings.customer.encode(self.shop.customer_features[visit.customer])
        x, slot = visit.x[visit.shown], len(visit.shown)
        allowed = visit.allowed[: len(self.draws.offered)]
        return choose(self.draws, draw, c, visit.shown, x, allowed, order ^ slot, slot).product

    def learn(self, visits):
        """Take the events of the wave and draw new samples."""
        for visit in visits:
            name, features = str(visit.customer), self.shop.customer_features[visit.customer]
            for slot, (a, reward) in enumerate(zip(visit.shown, visit.rewards, strict=True)):
                about = features if slot == 0 else None
                self._take("recommended", visit=name, product=str(a), slot=slot, features=about)
                self._take("answered", visit=name, product=str(a), reward=reward)
        self.draws = self.learner.refresh()


def schema_of(features):
    """How features are declared: numbers between the whole numbers around them, and categories by their values."""
    declared = {}
    for name in features[0] or {}:
        values = sorted({one[name] for one in features})
        if isinstance(values[0], float):
            declared[name] = {"low": math.floor(values[0]), "high": math.ceil(values[-1])}
        else:
            declared[name] = {"values": tuple(values)}
    return declared
