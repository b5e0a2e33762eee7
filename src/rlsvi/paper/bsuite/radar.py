"""The radar plot of the suite: the mean score in each ability, 0 at the centre and 1 at the rim."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes

from rlsvi.paper.bsuite.package import TAGS
from rlsvi.study.plot import COLOURS, INK, LINES, PALE

CIRCLES = (0.25, 0.5, 0.75, 1.0)


def radar(scores: Mapping[str, Mapping[str, float]], title: str = "") -> Figure:
    """Return the picture of the scores of agents by tag, one colour an agent; a tag without a score is a gap."""
    figure = Figure(figsize=(6.4, 5.2), layout="constrained")
    axes = figure.add_subplot(projection="polar")
    assert isinstance(axes, PolarAxes)
    angles = np.linspace(0, 2 * np.pi, len(TAGS), endpoint=False)
    _frame(axes, angles)
    figure.suptitle(title, fontsize=9, color=INK)
    for i, (agent, by_tag) in enumerate(scores.items()):
        values = np.array([by_tag.get(tag, np.nan) for tag in TAGS])
        colour, line = COLOURS[i % len(COLOURS)], LINES[i % len(LINES)]
        round_, closed = np.append(angles, angles[0]), np.append(values, values[0])
        axes.plot(round_, closed, color=colour, linestyle=line, linewidth=2, label=agent, clip_on=False, zorder=3)
        axes.plot(angles, values, "o", color=colour, markersize=4.5, clip_on=False, zorder=4)
        if np.isfinite(values).all():
            axes.fill(angles, values, color=colour, alpha=0.12, linewidth=0)
    figure.legend(frameon=False, fontsize=9, labelcolor=INK, loc="outside lower center", ncols=4)
    return figure


def _frame(axes: PolarAxes, angles: np.ndarray) -> None:
    """Draw circles, and the names of the abilities around them."""
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    axes.set_ylim(0, 1)
    axes.set_yticks(CIRCLES, ["¼", "½", "¾", "1"], fontsize=8, color=INK)
    axes.set_rlabel_position(180 / len(TAGS))
    axes.set_xticks(angles, [tag.replace("_", " ") for tag in TAGS], fontsize=10, color=INK)
    for angle, label in zip(angles, axes.get_xticklabels(), strict=True):
        label.set_horizontalalignment("center" if angle == 0 else "left" if angle < np.pi else "right")
    axes.tick_params(axis="x", pad=4)
    axes.grid(color=PALE, linewidth=0.6)
    axes.spines["polar"].set_color(PALE)
