"""The style of all figures, and the learning curve of one agent."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from rlsvi.core.archive import checked_target
from rlsvi.core.checks import shown
from rlsvi.core.compile import Floats
from rlsvi.core.machine import in_notebook

# Okabe and Ito's colours, which readers with colour blindness can distinguish.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442"]
LINES = ["-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2))]
INK, PALE = "#222222", "#d9d9d9"
LONGEST_MEAN = 20  # episodes of a running mean


def styled(axes: Axes) -> Axes:
    """Show only two thin axes without a frame, and a pale grid behind the data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK)
    axes.grid(color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize=9)
    return axes


@contextmanager
def axes_for(path: str | os.PathLike[str] | None, ax: Any) -> Iterator[Axes]:
    """Yield the axes given, or new ones; in the end their figure is written to the file, if one is named."""
    if ax is not None and not isinstance(ax, Axes):
        raise TypeError(f"ax must be axes of matplotlib, got {shown(ax)}")
    if path is not None:
        checked_target(path)
    if ax is None:
        figure: Any = Figure
        if in_notebook():  # which shows a figure of pyplot
            from matplotlib import pyplot

            figure = pyplot.figure
        ax = figure(figsize=(7.2, 4.2), layout="constrained").subplots()
    yield ax
    if path is not None:
        ax.figure.canvas.print_figure(path, dpi=200)


def count_episodes(axes: Axes, episodes: int) -> None:
    """Let the horizontal axis be that of the episodes, counted from 1, with ticks at whole numbers."""
    axes.set_xlim(1, max(episodes, 2))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("episode", color=INK)


def draw_learning_curve(returns: Floats, axes: Axes) -> None:
    """Draw every return, and their running mean."""
    styled(axes)
    at, window = np.arange(1, len(returns) + 1), min(max(len(returns) // 10, 1), LONGEST_MEAN)
    dots: dict[str, Any] = {"color": COLOURS[0], "alpha": 0.5, "clip_on": False, "zorder": 3}
    axes.plot(at, returns, ".", label="an episode of training", **dots)
    if window > 1:
        running = np.convolve(returns, np.full(window, 1 / window), "valid")
        axes.plot(at[window - 1 :], running, color=COLOURS[0], linewidth=2.0, label=f"mean of the last {window}")
    count_episodes(axes, len(returns))
    axes.set_ylabel("return", color=INK)
    axes.legend(frameon=False, fontsize=9)
