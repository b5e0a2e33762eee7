"""What the figures on concurrent agents share: the regret per agent of runs, in words and in a picture."""

from collections.abc import Iterable

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.paper.drawing import LOGARITHMIC, Picture, labelled, legend, panels, style, ticks_at
from rlsvi.paper.results import cells, having
from rlsvi.study.statistics import Interval, mean


def regrets(frame: pl.DataFrame, task: str, scheme: str) -> dict[int, Floats]:
    """The regret per agent of every run, by the number of agents."""
    return cells(having(frame, task=task, scheme=scheme), "agents", value="regret")


def tasks_of(frame: pl.DataFrame, tasks: Iterable[str]) -> list[str]:
    """The problems of a figure that the results have, in their order."""
    return [task for task in tasks if task in frame["task"].unique()]


def shown(interval: Interval) -> str:
    """A mean and its interval, with three digits."""
    value, low, high = (f"{x:.0f}" if abs(x) >= 100 else f"{x:.3g}" for x in interval)
    return f"{value} ({low} to {high})"


def picture(frame: pl.DataFrame, tasks: list[str], schemes: Iterable[str]) -> Picture:
    """Regret per agent against the number of agents, for each problem, with the key below the first."""
    figure, places = panels(len(tasks), height=4.8)
    for axes, task in zip(places, tasks, strict=True):
        for index, scheme in enumerate(schemes):
            found = {K: mean(values) for K, values in regrets(frame, task, scheme).items()}
            at = np.array(list(found), dtype=np.float64)
            value, low, high = np.array([(it.value, it.low, it.high) for it in found.values()]).T
            if np.isfinite(low).all():
                low = np.maximum(low, 1e-3 * value)
                axes.fill_between(at, low, high, color=style(index)["color"], alpha=0.2, linewidth=0)
            axes.plot(at, value, marker="o", markersize=4, **style(index), label=scheme)
        labelled(axes, "agents", "regret per agent", task, **LOGARITHMIC)
        ticks_at(axes, at)
    legend(places[0], loc="upper left", bbox_to_anchor=(0.0, -0.14))
    return figure
