"""How the paper's figures are drawn."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rlsvi.core.compile import Floats
from rlsvi.study.plot import COLOURS, INK, LINES, styled
from rlsvi.study.statistics import band, median


def panels(count: int = 1, height: float = 4.2, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """A picture with `count` styled axes side by side, in some rows."""
    figure = Figure(figsize=({1: 7.2, 2: 9.6}.get(count, 12.0), rows * height), layout="constrained")
    return figure, [styled(axes) for axes in np.atleast_1d(figure.subplots(rows, count)).flat]


def labelled(axes: Axes, x: str, y: str, title: str = "") -> None:
    """Names of the axes, and a title at the left."""
    axes.set_xlabel(x, color=INK)
    axes.set_ylabel(y, color=INK)
    axes.set_title(title, loc="left", fontsize=10, color=INK)


def legend(axes: Axes, **options: Any) -> None:
    """A legend without a frame."""
    axes.legend(frameon=False, fontsize=9, labelcolor=INK, **options)


def runs(axes: Axes, cells: Mapping[float, Floats], limit: float, label: str, index: int = 0) -> None:
    """Every run as a dot, the medians as a line; runs that never finished as triangles at `limit`."""
    colour = COLOURS[index % len(COLOURS)]
    x = np.concatenate([np.full(len(times), key) for key, times in cells.items()])
    times = np.concatenate(list(cells.values()))
    done = np.isfinite(times)
    axes.plot(x[done], times[done], ".", color=colour, alpha=0.35, markersize=5)
    if not done.all():
        axes.plot(
            x[~done], np.full((~done).sum(), limit), "^", color=colour, alpha=0.5, markersize=5, clip_on=False
        )
    middle = {key: median(times) for key, times in cells.items()}
    shown = {key: value for key, value in middle.items() if np.isfinite(value)}
    line = LINES[index % len(LINES)]
    axes.plot(list(shown), list(shown.values()), color=colour, linestyle=line, linewidth=2, label=label)


def curves(axes: Axes, at: Floats, values: Floats, label: str, index: int = 0) -> None:
    """Curves of runs, (runs, points): every one thin, their median bold, with its bootstrap band."""
    colour, line = COLOURS[index % len(COLOURS)], LINES[index % len(LINES)]
    axes.plot(at, values.T, color=colour, linewidth=0.5, alpha=0.25)
    middle, low, high = band(values, resamples=500)
    if np.isfinite(low).all():
        axes.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(at, middle, color=colour, linestyle=line, linewidth=2, label=label)


def averaged(axes: Axes, at: Floats, values: Floats, label: str, colour: str, line: Any) -> None:
    """The mean of curves of many instances, (instances, points), with a band of one standard error."""
    mean, error = values.mean(axis=0), values.std(axis=0) / max(len(values) - 1, 1) ** 0.5
    axes.fill_between(at, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
    axes.plot(at, mean, color=colour, linestyle=line, linewidth=2, label=label)


def from_zero(places: Sequence[Axes]) -> None:
    """Let axes begin at 0, once everything is drawn on them."""
    for axes in places:
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
