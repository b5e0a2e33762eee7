"""How the paper's figures are drawn."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rlsvi.core.compile import Floats
from rlsvi.study.plot import COLOURS, INK, LINES, styled
from rlsvi.study.statistics import Interval, band, median

Picture = Figure  # what matplotlib calls a figure
LOGARITHMIC: dict[str, Any] = {"xscale": "log", "yscale": "log"}
MOST_THIN_RUNS = 20  # runs that are drawn one by one beside their median
DOTS: dict[str, Any] = {"marker": "o", "markersize": 4}
DOTTED: dict[str, Any] = {"color": INK, "linewidth": 0.8, "linestyle": ":"}  # lines to compare with


def panels(count: int = 1, height: float = 4.2, rows: int = 1) -> tuple[Picture, list[Axes]]:
    """A picture with `count` styled axes side by side, in some rows."""
    figure = Figure(figsize=({1: 7.2, 2: 9.6}.get(count, 12.0), rows * height), layout="constrained")
    return figure, [styled(axes) for axes in np.atleast_1d(figure.subplots(rows, count)).flat]


def labelled(axes: Axes, x: str, y: str, title: str = "", key: str | None = None, **settings: Any) -> None:
    """Names of the axes, a title at the left, a legend at the place `key`, and any settings of `Axes.set`."""
    axes.set_xlabel(x, color=INK)
    axes.set_ylabel(y, color=INK)
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    axes.set(**settings)
    if key is not None:
        legend(axes, loc=key)


def legend(axes: Axes, **options: Any) -> None:
    """A legend without a frame."""
    axes.legend(frameon=False, fontsize=9, labelcolor=INK, **options)


def ticks_at(axes: Axes, places: Any) -> None:
    """Ticks at these whole numbers and nowhere else, on a logarithmic axis too."""
    axes.set_xticks(places, [f"{place:.0f}" for place in places])
    axes.set_xticks([], minor=True)


def style(index: int) -> dict[str, Any]:
    """The colour and the dashes of the line number `index`."""
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": LINES[index % len(LINES)], "linewidth": 2}


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
    axes.plot(list(shown), list(shown.values()), **style(index), label=label)


def curves(axes: Axes, at: Floats, values: Floats, label: str, index: int = 0) -> None:
    """Curves of runs, (runs, points): the first ones thin, their median bold, with its bootstrap band."""
    colour = COLOURS[index % len(COLOURS)]
    axes.plot(at, values[:MOST_THIN_RUNS].T, color=colour, linewidth=0.5, alpha=0.25)
    middle, low, high = band(values, resamples=500)
    if np.isfinite(low).all():
        axes.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(at, middle, **style(index), label=label)


def means(
    axes: Axes, found: Mapping[Any, Interval], label: str, index: int = 0, positive: bool = False, **marks: Any
) -> None:
    """A line of means with their intervals as a band; of what is `positive`, for a logarithmic axis, above 0."""
    at = list(found)
    value, low, high = np.array(list(found.values())).T
    if np.isfinite(low).all():
        low = np.maximum(low, 1e-3 * value) if positive else low
        axes.fill_between(at, low, high, color=style(index)["color"], alpha=0.2, linewidth=0)
    axes.plot(at, value, **style(index), **marks, label=label)


def averaged(axes: Axes, at: Floats, values: Floats, label: str, colour: str, line: Any) -> None:
    """The mean of curves of many instances, (instances, points), with a band of one standard error."""
    mean, error = values.mean(axis=0), values.std(axis=0) / max(len(values) - 1, 1) ** 0.5
    axes.fill_between(at, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
    axes.plot(at, mean, color=colour, linestyle=line, linewidth=2, label=label)


def from_zero(places: Sequence[Axes]) -> None:
    """Let axes begin at 0, once everything is drawn on them."""
    for axes in places:
        axes.set(xlim=(0, None), ylim=(0, None))
