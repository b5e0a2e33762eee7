"""The picture of the study."""

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from benchmarks.recommendation_scale.plan import (
    CROWDS,
    EXACT,
    LAMS,
    POOLED,
    SAVINGS,
    gained,
    in_crowd,
    of_study,
    parts,
    ridged,
    share_of,
    shops,
    with_saving,
)
from benchmarks.recommendation_scale.runs import LEARNERS, PARTS
from rlsvi.core.compile import Floats
from rlsvi.paper.drawing import averaged, labelled, legend, panels
from rlsvi.study.plot import COLOURS, LINES

CURVES = (*LEARNERS, "tabular bandit", "Thompson sampling")


def draw(frame: pl.DataFrame) -> Picture:
    """Learning curves in every shop; below them savings, customers who overlap, and the choice of priors."""
    many = shops(of_study("shop")(frame))
    figure, axes = panels(max(len(many), 3), 4.2, rows=2)
    figure.set_figwidth(13.0)
    for panel, (N, rows) in zip(axes, many, strict=False):
        _learning(panel, N, rows)
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=7, frameon=False, fontsize=9
    )
    below = axes[max(len(many), 3) :]
    _savings(below[0], of_study("saving")(frame))
    _crowds(below[1], of_study("crowd")(frame))
    _priors(below[2], frame)
    for spare in (*axes[len(many) : max(len(many), 3)], *below[3:]):
        spare.remove()
    return figure


def _learning(panel: Axes, N: int, rows: pl.DataFrame) -> None:
    for i, agent in enumerate(CURVES):
        at = rows.filter(pl.col("agent") == agent).sort("seed", "customer")["customer"].to_numpy()[:PARTS]
        averaged(panel, at.astype(float), parts(rows, agent), agent, COLOURS[i], LINES[i % len(LINES)])
    for agent, line in (("myopic policy", "--"), ("random", ":")):
        panel.axhline(parts(rows, agent).mean(), color=COLOURS[6], linestyle=line, linewidth=1, label=agent)
    panel.set_xlim(left=0)
    labelled(panel, "customers", "likes a customer", f"{rows['slots'][0]} of {N} products")


def _shares(panel: Axes, places: list[float], found: list[tuple[Floats, Floats]], colour: str, label: str) -> None:
    """Shares of what is gained elsewhere on the same instances, with Fieller's intervals."""
    shares = [share_of(values, others) for values, others in found]
    values = np.array([share.value for share in shares])
    ends = np.array([[share.value - share.low, share.high - share.value] for share in shares]).T
    far = np.where(np.isfinite(ends), ends, 0.0)
    panel.errorbar(values, places, xerr=far, fmt="o", color=colour, markersize=4, linewidth=1.2, label=label)


def _savings(panel: Axes, frame: pl.DataFrame) -> None:
    names = [name for name in SAVINGS if name != EXACT]
    for i, (N, rows) in enumerate(shops(frame)):
        base = EXACT if with_saving(rows, EXACT).height else POOLED
        tried = [name for name in names if name != base and with_saving(rows, name).height]
        found = [(gained(with_saving(rows, name)), gained(with_saving(rows, base))) for name in tried]
        label = f"{N} products" + (", of the pooled form" if base != EXACT else "")
        _shares(panel, [names.index(name) + 0.2 * i for name in tried], found, COLOURS[i], label)
    short = [name.replace(f"{POOLED}, ", "... ") for name in names]
    _named(panel, short, "gained, as a share of the exact form", "what savings keep")


def _crowds(panel: Axes, frame: pl.DataFrame) -> None:
    names = list(CROWDS)
    for i, agent in enumerate(("RLSVI", "myopic policy")):
        best = gained(in_crowd(frame, names[0]), "myopic policy")
        found = [(gained(in_crowd(frame, name), agent), best) for name in names]
        _shares(panel, [place + 0.2 * i for place in range(len(names))], found, COLOURS[6 * i], agent)
    _named(panel, names, "gained, as a share of the myopic policy in order", "customers who overlap")


def _named(panel: Axes, names: list[str], x: str, title: str) -> None:
    panel.axvline(1.0, color=COLOURS[6], linewidth=0.8, linestyle=":")
    panel.set_yticks(range(len(names)), names, fontsize=8)
    panel.set_ylim(1.3 * len(names), -0.5)  # room for the legend
    labelled(panel, x, " ", title)
    legend(panel, loc="lower left")


def _priors(panel: Axes, frame: pl.DataFrame) -> None:
    """What every lambda gains on the other instances; the one taken for the comparison is ringed."""
    compared = of_study("shop")(frame)
    for j, (N, rows) in enumerate(shops(of_study("prior")(frame))):
        half = rows["slots"][0] / 2
        for i, agent in enumerate(LEARNERS):
            share = [gained(ridged(rows, lam), agent).mean() / half for lam in LAMS]
            label = agent if j == 0 else None
            panel.plot(LAMS, share, color=COLOURS[i], linestyle=LINES[j % len(LINES)], linewidth=1.5, label=label)
            mine = compared.filter(pl.col("products") == N, pl.col("agent") == agent)["lam"][0]
            at = LAMS.index(mine)
            panel.plot([mine], [share[at]], "o", mfc="none", color=COLOURS[i], markersize=8)
        panel.plot([], [], color=COLOURS[6], linestyle=LINES[j % len(LINES)], label=f"{N} products")
    panel.set_xscale("log")
    labelled(panel, "lambda", "gained over random play, a share of J / 2", "priors, chosen on other instances")
    low, high = panel.get_ylim()
    panel.set_ylim(low - 0.6 * (high - low), high)  # room for the legend
    legend(panel, loc="lower left")
