"""Whether a visit should keep its noise while the shop learns from others.

    python -m benchmarks.shop_quality.open_visits [--products 50] [--arrivals 4] [--seeds 10] [--first-seed 0]

With each tick some customers enter, all who are in the shop fill a slot, those who have filled all of them leave,
and new samples are drawn: a visit lasts for as many refreshes as it has slots. The noise of the samples is drawn
anew with each refresh (redrawn), or for one sample in turn (kept), or never (fixed). Prints likes per customer in
the whole run and in its last fifth, and the differences to `redrawn`, seed by seed.
"""

import argparse
import sys

import numpy as np

from benchmarks.shop_quality.ours import Ours
from benchmarks.shop_quality.visits import Visit
from benchmarks.shop_quality.worlds import WORLDS, Shop
from rlsvi.study.statistics import mean
from rlsvi_shop.model.regression import Noise

KINDS = ("redrawn", "kept", "fixed")


def noise_of(chains, kind, own_scale, shared_scale):
    """Noise for all chains but the first: sample s has a number of its own, and draws anew when it changes."""
    N, S, sizes = chains.count, chains.learning.draws, chains.sizes
    own, shared = np.zeros((N, S + 1, sizes.own)), np.zeros((S + 1, sizes.shared))
    for s in range(1, S + 1):
        age = {"redrawn": chains.refreshes, "kept": (chains.refreshes + s) // S, "fixed": 0}[kind]
        rng = np.random.default_rng([chains.learning.seed, s, age])
        shared[s] = shared_scale * rng.standard_normal(sizes.shared)
        own[:, s] = own_scale * rng.standard_normal((N, sizes.own))
    return Noise(own, shared)


def play(shop, kind, arrivals):
    """Serve all customers and return what was to be expected of each, given her answers, (customers,)."""
    policy, N = Ours(shop), shop.world.products
    policy.learner.chains._noise = lambda *scales: noise_of(policy.learner.chains, kind, *scales)
    policy.add(np.arange(N))
    expected, here, entered = np.zeros(shop.world.customers), [], 0
    while here or entered < len(expected):
        new = range(entered, min(entered + arrivals, len(expected)))
        here += [Visit(i, np.zeros(N, np.int8), np.ones(N, bool)) for i in new]
        entered += len(new)
        for visit, product in zip(here, policy.choose(here), strict=True):
            chance = shop.chances(visit.customer, visit.x)[product]
            liked = shop.opinions(visit.customer)[product] < chance
            expected[visit.customer] += chance * shop.price[product]
            visit.shown.append(int(product))
            visit.rewards.append(float(shop.price[product]) if liked else 0.0)
            visit.x[product], visit.allowed[product] = (1 if liked else -1), False
        policy.learn([visit for visit in here if len(visit.shown) == shop.world.slots])
        here = [visit for visit in here if len(visit.shown) < shop.world.slots]
    return expected


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--products", type=int, choices=(10, 50, 500), default=50)
    parser.add_argument("--arrivals", type=int, default=4, help="customers who enter with each tick")
    parser.add_argument("--customers", type=int, help="by default those of the world")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0, help="settings are chosen on seeds from 100 on")
    given = parser.parse_args()
    world, found = WORLDS[f"plain-{given.products}"], {kind: [] for kind in KINDS}
    world = world.shortened(given.customers or world.customers)
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        for kind in KINDS:
            earned = play(Shop(world, seed), kind, given.arrivals)
            found[kind].append([earned.mean(), earned[-len(earned) // 5 :].mean()])
            print(f"seed {seed}, {kind}: {earned.mean():.2f}", file=sys.stderr)
    print("| noise | whole run | last fifth | less redrawn, whole run | less redrawn, last fifth |")
    print("|---|--:|--:|--:|--:|")
    base = np.array(found["redrawn"])
    for kind in KINDS:
        values = np.array(found[kind])
        intervals = [mean(column) for column in (*values.T, *(values - base).T)]
        cells = [f"{value:.2f} ({low:.2f} to {high:.2f})" for value, low, high in intervals]
        print(f"| {kind} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
