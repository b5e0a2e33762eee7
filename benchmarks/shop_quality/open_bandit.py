"""Offline on real data: the small Open Bandit data (Saito et al. 2021) that comes inside the package `obp`.

    pip download --no-deps obp
    python -m benchmarks.shop_quality.open_bandit obp-0.4.1-py3-none-any.whl

The data are read from the wheel; obp is not installed and none of its code runs. For each of three campaigns of a
fashion shop there are 10,000 recommendations that were uniformly random, and 10,000 of a Bernoulli Thompson
sampler that had learned before. Each is one product in one of three positions, shown to a customer with four
categorical features, and was clicked or not.

Policies are fitted to one half of the uniform log, by time, and judged by the other half, and the reverse.
`rlsvi.value_of` judges: each recommendation is a visit of one slot. The Thompson sampler is judged by its own
clicks. Clicks are rare, so that intervals from a variance are too narrow where hardly any click is left after
weighting; the interval of importance sampling is therefore that of Clopper and Pearson for the effective number of
recommendations (Korn and Graubard 1998).
"""

import argparse
import warnings
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
from gymnasium.spaces import Discrete
from scipy.stats import beta

import rlsvi
from benchmarks.shop_quality.logged_policies import CUSTOMER, POLICIES
from rlsvi.bases import StateFeatures
from rlsvi.envs import Spaces
from rlsvi.study.statistics import Interval

CAMPAIGNS = ("all", "men", "women")


def read(wheel, policy, campaign):
    """The rows of one log, in order of time, with a number for each distinct customer and half of the log."""
    with zipfile.ZipFile(wheel) as files:
        rows = pl.read_csv(files.read(f"obp/dataset/obd/{policy}/{campaign}/{campaign}.csv"))
    rows = (
        rows.sort("timestamp")
        .with_row_index("row")
        .select(
            pl.struct(*(pl.col(name).cast(pl.String) for name in CUSTOMER)).alias("customer"),
            pl.col("item_id").alias("product"),
            pl.col("click").cast(pl.Float64).alias("reward"),
            pl.col("propensity_score").alias("propensity"),
            (pl.col("row") >= pl.len() // 2).cast(pl.Int64).alias("half"),
        )
    )
    return rows.with_columns((pl.struct("half", "customer").rank("dense") - 1).cast(pl.Int64).alias("state"))


def catalogue(wheel, campaign):
    """The features of products: a number and the category with the fewest values."""
    with zipfile.ZipFile(wheel) as files:
        items = pl.read_csv(files.read(f"obp/dataset/obd/random/{campaign}/item_context.csv")).sort("item_id")
    return items.select(
        pl.col("item_id").cast(pl.String).alias("product"),
        pl.col("item_feature_0").alias("number"),
        pl.col("item_feature_3").alias("category"),
    )


def judged(rows, products, policy):
    """What each half says of the policy that was fitted to the other one, together."""
    chances = np.zeros((rows["state"].max() + 1, len(products)))
    for half in (0, 1):
        served = rows.filter(pl.col("half") == half).unique("state", maintain_order=True)
        chances[served["state"]] = policy(
            rows.filter(pl.col("half") != half), served["customer"].to_list(), products
        )
    log = rows.select(
        pl.int_range(pl.len()).alias("episode"),
        pl.lit(0).alias("step"),
        pl.col("state").alias("observation"),
        pl.col("state").alias("next_observation"),
        pl.col("product").alias("action"),
        "reward",
        pl.lit(True).alias("terminated"),
        pl.lit(False).alias("truncated"),
        "propensity",
    )
    spaces = Spaces(Discrete(len(chances)), Discrete(len(products)))
    rate_of_product = StateFeatures(lambda state: [1.0])  # for the doubly robust estimate
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few effective episodes: the table has a column of them
        return rlsvi.value_of(
            lambda state: chances[state], log, spaces, horizon=1, per_period=True, basis=rate_of_product
        )


def main(arguments=None):
    """Print clicks per thousand recommendations of each policy."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.shop_quality.open_bandit",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("wheel", type=Path, help="the wheel of obp")
    options = parser.parse_args(arguments)
    print("| campaign | policy | clicks judged by | weighted importance sampling | doubly robust | effective |")
    print("| --- | --- | --- | --- | --- | --- |")
    for campaign in CAMPAIGNS:
        products = catalogue(options.wheel, campaign)
        rows, logged = (read(options.wheel, policy, campaign) for policy in ("random", "bts"))
        clicks = thousand(proportion(logged["reward"].mean(), len(logged)))
        print(
            f"| {campaign} | Bernoulli Thompson sampling | {logged['reward'].sum():.0f} | {clicks} (its own) | | |"
        )
        for name, policy in POLICIES.items():
            found = judged(rows, products, policy)
            share = proportion(found.weighted.value, found.effective)
            cells = [
                campaign,
                name,
                f"{rows['reward'].sum():.0f}",
                thousand(share),
                thousand(found.robust),
            ]
            print("| " + " | ".join([*cells, f"{found.effective:.0f}"]) + " |", flush=True)


def proportion(value, number):
    """A share of a number of trials, which need not be whole, with Clopper and Pearson's 95% interval."""
    clicks = value * number
    low = beta.ppf(0.025, clicks, number - clicks + 1) if clicks > 0 else 0.0
    return Interval(value, float(low), float(beta.ppf(0.975, clicks + 1, number - clicks)))


def thousand(interval):
    """An interval in clicks per thousand recommendations."""
    if interval is None:
        return "unknown"
    return f"{1e3 * interval.value:.1f} ({1e3 * interval.low:.1f} to {1e3 * interval.high:.1f})"


if __name__ == "__main__":
    main()
