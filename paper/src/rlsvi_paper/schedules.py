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


def explored(*, epsilon: float = 0.0, eta: float = 0.0, delay: float = 0.0) -> Explore:
    """Epsilon, or the temperature eta, fixed; or divided by delay + l in episode l."""
    scale = epsilon or eta
    schedule = falling(scale, delay) if delay else scale
    return Boltzmann(schedule) if eta else EpsilonGreedy(schedule)


# The numbers of each way.
GRID: Mapping[str, Mapping[str, float]] = {
    **{f"Boltzmann {eta:g}": {"eta": eta} for eta in (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)},
    **{
        f"Boltzmann {c}/({d} + l)": {"eta": float(c), "delay": float(d)}
        for c in (10, 30, 100)
        for d in (1, 10, 100)
    },
    **{f"epsilon {epsilon:g}": {"epsilon": epsilon} for epsilon in (0.01, 0.02, 0.05, 0.1, 0.2)},
    **{f"epsilon {c}/({c} + l)": {"epsilon": float(c), "delay": float(c)} for c in (3, 10, 30, 100, 300)},
}
SCHEDULES: Mapping[str, Explore] = {name: explored(**way) for name, way in GRID.items()}
PRINTED = [name for name, way in GRID.items() if "eta" in way and "delay" not in way]  # of section 6.3


def best_of(frame: pl.DataFrame, loss: str) -> tuple[str, dict[str, Floats]]:
    """The schedule that lost least in its trials, and what each lost in each of them."""
    tried = cells(of_trials(frame), "schedule", value=loss)
    return min(tried, key=lambda name: tried[name].mean()), tried
