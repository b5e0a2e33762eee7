"""Policies fitted to a log of recommendations, one product each: the probability of each product for a customer.

Each is a function of the rows to learn from (a frame with the columns customer, product, reward and propensity),
the customers to serve, and the features of the products. It returns probabilities (customers, products).
"""

import tempfile
from contextlib import closing

import numpy as np
import polars as pl

from benchmarks.shop_quality.mabwiser_linear import ALPHA, L2
from rlsvi_shop.catalogue import products_of
from rlsvi_shop.events import Events
from rlsvi_shop.exchange import import_events
from rlsvi_shop.model.draws import choose
from rlsvi_shop.model.learner import ShopLearner
from rlsvi_shop.settings import ShopSettings

CUSTOMER = ["position", *(f"user_feature_{k}" for k in range(4))]
SAMPLES = 50  # of MABWiser's policy, for its probabilities


def uniform(rows, to_serve, products):
    """Every product alike."""
    return np.full((len(to_serve), len(products)), 1 / len(products))


def learned(rows, products):
    """The samples of our learner, with its default settings, after the clicks were imported; and the settings."""
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
    clicks = rows.select(
        pl.int_range(pl.len()).cast(pl.String).alias("visit"),
        pl.col("product").cast(pl.String),
        "reward",
        "propensity",
        *(pl.col("customer").struct.field(name) for name in CUSTOMER),
    )
    learner = ShopLearner(settings)
    with tempfile.TemporaryDirectory() as folder, closing(Events(f"sqlite:///{folder}/shop.db")) as events:
        with events.writing() as writer:
            writer.append(products_of(products, settings))
        import_events(events, settings, clicks)
        for event in events.since(0, 10**9):
            learner.take(event)
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
