"""Settings of the rivals, tried on instances that are not reported.

python -m benchmarks.shop_quality.rival_settings
"""

import argparse
from functools import partial

import numpy as np

from benchmarks.shop_quality.linear_shared import SharedThompson
from benchmarks.shop_quality.mabwiser_linear import LinearThompson
from benchmarks.shop_quality.results import LAST_PARTS, PARTS
from benchmarks.shop_quality.visits import play
from benchmarks.shop_quality.vowpal import VowpalWabbit
from benchmarks.shop_quality.worlds import WORLDS, Shop

TRIED = (
    {
        f"LinTS, alpha {alpha:g}, l2_lambda {l2:g}": partial(LinearThompson, alpha=alpha, l2_lambda=l2)
        for alpha in (0.01, 0.03, 0.1, 0.3, 1.0)
        for l2 in (1.0, 10.0)
    }
    | {
        f"shared, alpha {alpha:g}, ridge {ridge:g}, by {each}": partial(
            SharedThompson, alpha=alpha, ridge=ridge, each=each
        )
        for each in ("visit", "decision")
        for alpha in (0.03, 0.1, 0.2, 0.3, 0.6)
        for ridge in (1.0, 3.0, 10.0, 30.0, 100.0)
    }
    | {
        f"VW {setting}": partial(VowpalWabbit, setting=setting)
        for exploring in (
            "--epsilon 0.05",
            "--bag 5",
            "--bag 5 --greedify",
            "--squarecb",
            "--squarecb --gamma_scale 1000",
        )
        for rate in ("", " -l 2", " -l 0.1")
        for setting in [exploring + rate]
    }
)


def main(arguments=None):
    """Print the mean reward of a customer, in the whole run and in its last fifth, for each setting."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shop_quality.rival_settings", description=__doc__)
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=["plain-10", "plain-50", "plain-500"])
    parser.add_argument("--customers", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="settings whose name has this text in it")
    options = parser.parse_args(arguments)
    for name, policy in TRIED.items():
        if options.only in name:
            cells = [
                _cell(WORLDS[world].shortened(options.customers), policy, options.seeds)
                for world in options.worlds
            ]
            print("| " + " | ".join([name, *cells]) + " |", flush=True)


def _cell(world, policy, seeds):
    shops = [Shop(world, seed) for seed in range(100, 100 + seeds)]
    rewards = np.array([play(shop, policy(shop)) for shop in shops])
    last = rewards[:, -(world.customers * LAST_PARTS // PARTS) :].mean()
    return f"{rewards.mean():.2f}, {last:.2f}"


if __name__ == "__main__":
    main()
