"""The ways to dither that "dithering fails" is judged against: a grid, and the choice of the best one.

Epsilon and the temperature are fixed, or fall with the episode l. A schedule that is judged was chosen
by its trials, with other seeds than those that judge it, so that luck does not count. What is tried is a column of
its own: a table has its trials where `schedule` has a value.
"""

from collections.abc import Callable, Mapping
from itertools import product

import polars as pl

from rlsvi.agents.explore import Boltzmann, EpsilonGreedy, Explore
from rlsvi.core.compile import Floats
from rlsvi_paper.results import cells, rows_with

FIXED = (0.01, 0.02, 0.05, 0.1, 0.2)  # epsilon
TEMPERATURES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
HALVED = (3, 10, 30, 100, 300)  # c of epsilon = c / (c + l)
ANNEALED = tuple(product((10, 30, 100), (1, 10, 100)))  # c and d of a temperature c / (d + l)
of_trials = rows_with("schedule")


def falling(scale: float, delay: float) -> Callable[[int], float]:
    """A schedule that is scale / (delay + l) in episode l."""
    return lambda episode: scale / (delay + episode)


PRINTED: Mapping[str, Explore] = {f"Boltzmann {eta:g}": Boltzmann(eta) for eta in TEMPERATURES}  # of section 6.3
SCHEDULES: Mapping[str, Explore] = {
    **PRINTED,
    **{f"Boltzmann {c}/({d} + l)": Boltzmann(falling(c, d)) for c, d in ANNEALED},
    **{f"epsilon {epsilon:g}": EpsilonGreedy(epsilon) for epsilon in FIXED},
    **{f"epsilon {c}/({c} + l)": EpsilonGreedy(falling(c, c)) for c in HALVED},
}


def best_of(frame: pl.DataFrame, loss: str) -> tuple[str, dict[str, Floats]]:
    """The schedule that lost least in its trials, and what each lost in each of them."""
    tried = cells(of_trials(frame), "schedule", value=loss)
    return min(tried, key=lambda name: tried[name].mean()), tried
