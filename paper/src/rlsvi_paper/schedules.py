"""The ways to dither that "dithering fails" is judged against: a grid, and the choice of the best one.

Epsilon and the temperature are fixed, or fall with the episode l. A schedule that is judged was chosen by its
trials, with other seeds than those that judge it, so that luck does not count. In a table, trials are the rows in
which `schedule` has a value.
"""

from collections.abc import Callable, Mapping

import polars as pl

from rlsvi.agents.explore import Boltzmann, EpsilonGreedy, Explore
from rlsvi.core.compile import Floats
from rlsvi_paper.results import cells, rows_with

of_trials = rows_with("schedule")


def falling(scale: float, delay: float) -> Callable[[int], float]:
    """A schedule that is scale / (delay + l) in episode l."""
    return lambda episode: scale / (delay + episode)


PRINTED: Mapping[str, Explore] = {  # of section 6.3
    f"Boltzmann {eta:g}": Boltzmann(eta) for eta in (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
}
SCHEDULES: Mapping[str, Explore] = {
    **PRINTED,
    **{f"Boltzmann {c}/({d} + l)": Boltzmann(falling(c, d)) for c in (10, 30, 100) for d in (1, 10, 100)},
    **{f"epsilon {epsilon:g}": EpsilonGreedy(epsilon) for epsilon in (0.01, 0.02, 0.05, 0.1, 0.2)},
    **{f"epsilon {c}/({c} + l)": EpsilonGreedy(falling(c, c)) for c in (3, 10, 30, 100, 300)},
}


def best_of(frame: pl.DataFrame, loss: str) -> tuple[str, dict[str, Floats]]:
    """The schedule that lost least in its trials, and what each lost in each of them."""
    tried = cells(of_trials(frame), "schedule", value=loss)
    return min(tried, key=lambda name: tried[name].mean()), tried
