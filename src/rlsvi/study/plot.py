"""Figures in publication quality."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rlsvi.core.compile import Floats, Longs
from rlsvi.core.machine import in_notebook
from rlsvi.study.statistics import band

if TYPE_CHECKING:
    from rlsvi.study.runs import Runs

# Okabe and Ito's colours, which readers with colour blindness can distinguish.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442"]
LINES = ["-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2))]
INK, PALE = "#222222", "#d9d9d9"
POINTS = 600  # maximum number of points of a curve, including the first and the last episode


def styled(axes: Axes) -> Axes:
    """Show only two thin axes without a frame, and a pale grid behind the data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK)
    axes.grid(color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize=9)
    return axes


def new_axes() -> Axes:
    """Return the axes of a new figure. In a notebook it is a pyplot figure, which the notebook shows."""
    size: Any = {"figsize": (7.2, 4.2), "layout": "constrained"}
    if in_notebook():
        from matplotlib import pyplot

        return pyplot.figure(**size).subplots()
    return Figure(**size).subplots()


def draw_regret(runs: "Runs", axes: Axes) -> Axes:
    """Draw cumulative expected regret against episodes, one colour per agent."""
    at = np.unique(np.linspace(0, runs.episodes - 1, min(POINTS, runs.episodes)).round().astype(np.int64))
    curves = {agent: runs.cumulative(agent)[:, at] for agent in runs.agents}
    draw_curves(runs, axes, at + 1, curves).set_ylim(bottom=0)
    axes.set_ylabel("cumulative expected regret", color=INK)
    return axes


def draw_returns(runs: "Runs", axes: Axes) -> Axes:
    """Draw the mean return of the last episodes, a tenth of all, against episodes, one colour per agent."""
    width = max(runs.episodes // 10, 1)
    every = np.arange(width, runs.episodes + 1)
    at = every[np.unique(np.linspace(0, len(every) - 1, min(POINTS, len(every))).round().astype(np.int64))]
    curves = {}
    for agent in runs.agents:
        sums = np.cumsum([[0.0, *run.history.reward] for run in runs.of(agent)], axis=1)
        curves[agent] = (sums[:, at] - sums[:, at - width]) / width
    draw_curves(runs, axes, at, curves)
    axes.set_ylabel("return" if width == 1 else f"mean return of {width} episodes", color=INK)
    return axes


def draw_curves(runs: "Runs", axes: Axes, at: Longs, curves: Mapping[str, Floats]) -> Axes:
    """Draw the curves of every agent, (seeds, points), with their median and its band."""
    styled(axes)
    several = len(runs.seeds) > 1  # a single run gives no bounds
    for i, (agent, drawn) in enumerate(curves.items()):
        colour, line = COLOURS[i % len(COLOURS)], LINES[i % len(LINES)]
        middle, low, high = band(drawn)
        axes.plot(at, drawn.T, color=colour, linewidth=0.5, alpha=0.25)
        if several:
            axes.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(at, middle, color=colour, linestyle=line, linewidth=2.0, label=agent)
    axes.set_xlim(1, max(runs.episodes, 2))
    axes.set_xlabel("episode", color=INK)
    shown = f"median, its 95% band and all of {len(runs.seeds)} seeds" if several else "one seed"
    axes.set_title(f"{runs.problem}: {shown}", loc="left", fontsize=10, color=INK)
    axes.legend(frameon=False, fontsize=9)
    return axes
