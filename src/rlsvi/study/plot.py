"""Figures in publication quality."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from rlsvi.axes import COLOURS, INK, LINES, count_episodes, styled
from rlsvi.core.compile import Floats, Longs
from rlsvi.study.statistics import band

if TYPE_CHECKING:
    from rlsvi.study.runs import Runs

WORST = (0, (1, 1))  # the line of the worst seed
POINTS = 600  # maximum number of points of a curve, including the first and the last episode


def draw_regret(runs: "Runs", axes: Axes) -> Axes:
    """Draw cumulative expected regret against episodes, one colour per agent."""
    at = np.unique(np.linspace(0, runs.episodes - 1, min(POINTS, runs.episodes)).round().astype(np.int64))
    curves = {agent: runs.cumulative(agent)[:, at] for agent in runs.agents}
    worst = {agent: int(np.argmax(drawn[:, -1])) for agent, drawn in curves.items()}
    draw_curves(runs, axes, at + 1, curves, worst).set_ylim(bottom=0)
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
    worst = {agent: int(np.argmin(runs.total_return(agent))) for agent in curves}
    draw_curves(runs, axes, at, curves, worst)
    axes.set_ylabel("return" if width == 1 else f"mean return of {width} episodes", color=INK)
    return axes


def draw_curves(
    runs: "Runs", axes: Axes, at: Longs, curves: Mapping[str, Floats], worst: Mapping[str, int]
) -> Axes:
    """Draw the curves of every agent, (seeds, points), with their median, its band, and that of the worst seed."""
    styled(axes)
    several = len(runs.seeds) > 1  # a single run gives no bounds
    for i, (agent, drawn) in enumerate(curves.items()):
        colour, line = COLOURS[i % len(COLOURS)], LINES[i % len(LINES)]
        middle, low, high = band(drawn)
        axes.plot(at, drawn.T, color=colour, linewidth=0.5, alpha=0.25)
        if several:
            axes.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(at, middle, color=colour, linestyle=line, linewidth=2.0, label=agent)
        if several:
            label = f"{agent}, worst seed: {runs.seeds[worst[agent]]}"
            axes.plot(at, drawn[worst[agent]], color=colour, linestyle=WORST, linewidth=1.0, label=label)
    count_episodes(axes, runs.episodes)
    shown = f"median, 95% band, all of {len(runs.seeds)} seeds" if several else "one seed"
    axes.set_title(f"{runs.problem}: {shown}", loc="left", fontsize=10, color=INK)
    axes.legend(frameon=False, fontsize=9)
    return axes
