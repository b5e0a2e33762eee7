"""Offline on real data: the small Open Bandit data (Saito et al. 2021) that comes inside the package `obp`.

    pip download --no-deps obp
    python -m benchmarks.shop_quality.open_bandit obp-0.4.1-py3-none-any.whl

The data are read from the wheel; obp is not installed and none of its code runs. For each of three campaigns of a
fashion shop there are 10,000 recommendations that were uniformly random, and 10,000 of a Bernoulli Thompson
sampler that had learned before. Each is one product in one of three positions, shown to a customer with four
categorical features, and was clicked or not.

Policies are fitted to one half of the uniform log, by time, and judged by the other half, and the reverse, with
the estimates of `rlsvi_shop.judge`, which are silent where the log cannot tell; why goes to the standard error
output. Each recommendation is a visit of one slot. The Thompson sampler is judged by its own clicks, with the
interval of Clopper and Pearson.
"""

import argparse
import sys
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
from scipy.stats import beta

from benchmarks.shop_quality.logged_policies import CUSTOMER, POLICIES
from rlsvi.offline.value import ROBUST, WEIGHTED
from rlsvi.study.statistics import Interval
from rlsvi_shop.judging import LoggedSteps, ShopValue, value_of_samples

CAMPAIGNS = ("all", "men", "women")
LEVEL = 0.95
SMOOTH = 0.1  # recommendations without a click, in the rate of each product for the doubly robust estimate


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
    halves = []
    for half in (0, 1):
        mine, other = (rows.filter(pl.col("half") == each) for each in (half, 1 - half))
        shown = np.bincount(other["product"], minlength=len(products))
        rate = np.bincount(other["product"], other["reward"], len(products)) / (shown + SMOOTH)
        acts = chances[mine["state"]]
        steps = LoggedSteps(
            np.arange(len(mine) + 1),
            mine["reward"].to_numpy(),
            mine["propensity"].to_numpy(),
            acts[np.arange(len(mine)), mine["product"]][:, None],
            rate[mine["product"]],
            (acts @ rate)[:, None],
            Counter(),
            "",
        )
        halves.append(value_of_samples(steps, LEVEL))
    own = proportion(rows["reward"].mean(), len(rows))
    return ShopValue(own, tuple(halves), len(rows), Counter(), LEVEL)


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
            told = [thousand(found.estimates.get(name)) for name in (WEIGHTED, ROBUST)]
            effective = sum(half.effective for half in found.halves)
            cells = [campaign, name, f"{rows['reward'].sum():.0f}", *told, f"{effective:.0f}"]
            print("| " + " | ".join(cells) + " |", flush=True)
            if found.why:
                print(f"{campaign}, {name}: {found.why}", file=sys.stderr)


def proportion(value, number):
    """A share of a number of trials, which need not be whole, with Clopper and Pearson's 95% interval."""
    clicks = value * number
    low = beta.ppf(0.025, clicks, number - clicks + 1) if clicks > 0 else 0.0
    return Interval(value, float(low), float(beta.ppf(0.975, clicks + 1, number - clicks)))


def thousand(interval):
    """An interval in clicks per thousand recommendations."""
    if interval is None:
        return "silent"
    return f"{1e3 * interval.value:.1f} ({1e3 * interval.low:.1f} to {1e3 * interval.high:.1f})"


if __name__ == "__main__":
    main()
