"""Figures in publication quality."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rlsvi.core.progress import in_notebook
from rlsvi.study.bootstrap import band

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
    styled(axes)
    at = np.unique(np.linspace(0, runs.episodes - 1, min(POINTS, runs.episodes)).round().astype(np.int64))
    several = len(runs.seeds) > 1  # a single run gives no bounds
    for i, agent in enumerate(runs.agents):
        curves = runs.cumulative(agent)[:, at]
        colour, line = COLOURS[i % len(COLOURS)], LINES[i % len(LINES)]
        middle, low, high = band(curves)
        axes.plot(at + 1, curves.T, color=colour, linewidth=0.5, alpha=0.25)
        if several:
            axes.fill_between(at + 1, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(at + 1, middle, color=colour, linestyle=line, linewidth=2.0, label=agent)
    axes.set_xlim(1, max(runs.episodes, 2))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("episode", color=INK)
    axes.set_ylabel("cumulative expected regret", color=INK)
    shown = f"median, its 95% band and all of {len(runs.seeds)} seeds" if several else "one seed"
    axes.set_title(f"{runs.problem}: {shown}", loc="left", fontsize=10, color=INK)
    axes.legend(frameon=False, fontsize=9)
    return axes
