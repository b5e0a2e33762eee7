"""Customers meet a policy: the visits of a run, and what they earn."""

from dataclasses import dataclass, field

import numpy as np

from benchmarks.shop_quality.worlds import waves


@dataclass
class Visit:
    """What a shop knows of one customer.

    Attributes
    ----------
    customer : her number. `x` : her answers by product, 1 liked, -1 not, 0 not seen, (N,).
    allowed : the products that may be shown next, (N,).
    shown, rewards : what she was shown, and what it earned, slot by slot.
    """

    customer: int
    x: np.ndarray
    allowed: np.ndarray
    shown: list = field(default_factory=list)
    rewards: list = field(default_factory=list)


def play(shop, policy):
    """Serve all customers of a shop and return what was to be expected of each, given her answers, (customers,).

    The customers of a wave are in the shop together and fill their slots side by side. Then the policy learns.
    Rewards are replaced by their expectation given what was shown before, which has the same mean and less noise.
    """
    expected = np.zeros(shop.world.customers)
    here = np.zeros(shop.world.products, dtype=bool)
    for wave in waves(shop.world.customers):
        offered = shop.offered(wave[0])
        policy.add(np.flatnonzero(offered & ~here))
        here = offered
        visits = [Visit(i, np.zeros(len(here), dtype=np.int8), here.copy()) for i in wave]
        opinions = [shop.opinions(i) for i in wave]
        for _ in range(shop.world.slots):
            for visit, opinion, product in zip(visits, opinions, policy.choose(visits), strict=True):
                if not visit.allowed[product]:
                    raise ValueError(f"product {product} may not be shown to customer {visit.customer}")
                chance = shop.chances(visit.customer, visit.x)[product]
                expected[visit.customer] += chance * shop.price[product]
                liked = opinion[product] < chance
                visit.shown.append(int(product))
                visit.rewards.append(float(shop.price[product]) if liked else 0.0)
                visit.x[product] = 1 if liked else -1
                visit.allowed[product] = False
        policy.learn(visits)
    return expected
