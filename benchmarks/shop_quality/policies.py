"""Who serves the customers: ours, the rivals with their settings, and policies to compare with."""

from functools import partial
from importlib.util import find_spec

from benchmarks.shop_quality.knowing import BestMean, Myopic, Optimal, Uniform
from benchmarks.shop_quality.linear_shared import SharedThompson
from benchmarks.shop_quality.mabwiser_linear import LinearThompson
from benchmarks.shop_quality.ours import Ours
from benchmarks.shop_quality.vowpal import VowpalSlates, VowpalWabbit

POLICIES = {
    "ours": Ours,
    "ours-one-slot": partial(Ours, plan=False),
    "ours-greedy": partial(Ours, exploration=0.0),
    "shared-ts": SharedThompson,
    "lints": LinearThompson,
    "vw": VowpalWabbit,
    "vw-slate": VowpalSlates,
    "best-mean": BestMean,
    "uniform": Uniform,
    "myopic": Myopic,
    "optimal": Optimal,
}
NAMES = {
    "ours": "ours",
    "ours-one-slot": "ours, one slot",
    "ours-greedy": "ours, greedy",
    "shared-ts": "shared Thompson sampling",
    "lints": "MABWiser LinTS",
    "vw": "Vowpal Wabbit",
    "vw-slate": "Vowpal Wabbit, slates",
    "best-mean": "best mean reward",
    "uniform": "uniform",
    "myopic": "optimal myopic",
    "optimal": "optimal",
}
NEEDS = {"lints": "mabwiser", "vw": "vowpalwabbit", "vw-slate": "vowpalwabbit"}
SOLVED = 10_000  # products ** (slots - 1) of the largest shop for which the optimal policy is computed


def takes_part(policy, world):
    """Whether a policy can serve in a world."""
    return policy != "optimal" or world.products ** (world.slots - 1) <= SOLVED


def installed(policy):
    """Whether the package that a policy needs is there."""
    return policy not in NEEDS or find_spec(NEEDS[policy]) is not None
