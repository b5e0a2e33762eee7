"""Policies fitted to a log of recommendations, one product each: the probability of each product for a customer.

Each is a function of the rows to learn from (a frame with the columns customer, product, reward and propensity),
the customers to serve, and the features of the products. It returns probabilities (customers, products).
"""

import numpy as np

from benchmarks.shop_quality.mabwiser_linear import ALPHA, L2
from rlsvi.shop.draws import choose
from rlsvi.shop.event import Event
from rlsvi.shop.learner import ShopLearner
from rlsvi.shop.settings import ShopSettings

CUSTOMER = ["position", *(f"user_feature_{k}" for k in range(4))]
SAMPLES = 50  # of MABWiser's policy, for its probabilities


def uniform(rows, to_serve, products):
    """Every product alike."""
    return np.full((len(to_serve), len(products)), 1 / len(products))


def learned(rows, products):
    """The samples of our learner after events of one-slot visits, with its default settings, and the settings."""
    low, high = products["number"].min(), products["number"].max()
    settings = ShopSettings(
        slots=1,
        customer={name: {"values": sorted(rows["customer"].struct.field(name).unique())} for name in CUSTOMER},
        product={
            "number": {"low": low, "high": high},
            "category": {"values": sorted(products["category"].unique())},
        },
        learning={"history": 1},
    )
    learner, events = ShopLearner(settings), []
    for a, features in enumerate(products.iter_rows(named=True)):
        events.append(Event("added", product=str(a), features=features))
    for visit, row in enumerate(rows.iter_rows(named=True)):
        what = {"visit": str(visit), "product": str(row["product"])}
        about = {"slot": 0, "propensity": row["propensity"], "features": row["customer"]}
        events += [Event("recommended", **what, **about), Event("answered", **what, reward=row["reward"])]
    for number, event in enumerate(events, start=1):
        learner.take(event._replace(id=number))
    return learner.refresh(), settings


def ours(rows, to_serve, products, greedy=False):
    """The share of the samples that choose each product; greedy: the choice of the posterior mean."""
    draws, settings = learned(rows, products)
    chances = np.zeros((len(to_serve), len(products)))
    samples = [0] if greedy else range(1, len(draws.weight))
    for k, customer in enumerate(to_serve):
        c = settings.customer.encode(customer)
        for sample in samples:
            chances[k, choose(draws, sample, c, [], []).product] += 1 / len(samples)
    return chances


def ours_greedy(rows, to_serve, products):
    """The choice of the posterior mean."""
    return ours(rows, to_serve, products, greedy=True)


def linear_thompson(rows, to_serve, products):
    """How often MABWiser's linear Thompson sampling chooses each product."""
    from mabwiser.mab import MAB, LearningPolicy

    values = [(name, v) for name in CUSTOMER for v in sorted(rows["customer"].struct.field(name).unique())]

    def encoded(customer):
        return [1.0, *(float(customer[name] == value) for name, value in values)]

    mab = MAB(list(range(len(products))), LearningPolicy.LinTS(alpha=ALPHA, l2_lambda=L2), seed=0)
    mab.fit(rows["product"].to_list(), rows["reward"].to_list(), [encoded(one) for one in rows["customer"]])
    asked = [encoded(one) for one in to_serve for _ in range(SAMPLES)]
    chosen = np.array(mab.predict(asked)).reshape(len(to_serve), SAMPLES)
    return np.array([np.bincount(row, minlength=len(products)) / SAMPLES for row in chosen])


POLICIES = {
    "uniform": uniform,
    "MABWiser LinTS": linear_thompson,
    "ours, greedy": ours_greedy,
    "ours": ours,
}
