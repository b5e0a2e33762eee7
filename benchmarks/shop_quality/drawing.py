"""One picture: a panel for each world, reward per customer against customers served."""

import numpy as np
from matplotlib.figure import Figure

from benchmarks.shop_quality.policies import NAMES
from benchmarks.shop_quality.results import PARTS, curves
from benchmarks.shop_quality.worlds import SIZES, WORLDS
from rlsvi.study.plot import COLOURS, INK, styled

BLUE, ORANGE, GREEN, RED, AMBER, SKY = COLOURS[:6]
GREY = "#8c8c8c"
STYLES = {
    "ours": (BLUE, "-", 2.4),
    "ours-one-slot": (BLUE, (0, (1, 1)), 1.6),
    "ours-greedy": (SKY, (0, (5, 2)), 1.6),
    "shared-ts": (AMBER, "-", 1.6),
    "lints": (ORANGE, "-", 1.6),
    "vw": (GREEN, "-", 1.6),
    "vw-slate": (GREEN, (0, (5, 2)), 1.2),
    "best-mean": (RED, (0, (3, 1, 1, 1)), 1.2),
    "uniform": (GREY, (0, (1, 1.5)), 1.2),
    "myopic": (INK, (0, (5, 2)), 1.0),
    "optimal": (INK, "-", 1.0),
}
KNOW = ("uniform", "myopic", "optimal")  # learn nothing


def figure(results):
    """Columns by kind of world, rows by the number of products; the worlds of one size fill the last columns."""
    rows, columns = len(SIZES), -(-len(WORLDS) // len(SIZES))
    drawing = Figure(figsize=(3.2 * columns, 3.0 * rows + 0.5), layout="constrained")
    axes = drawing.subplots(rows, columns)
    worlds = [*WORLDS.values()] + [None] * (axes.size - len(WORLDS))
    for one, world in zip(axes.T.flat, worlds, strict=True):
        if world is None:
            one.set_axis_off()
        else:
            panel(styled(one), results, world)
            one.set_title(f"{world.kind}, {world.products} products", loc="left", fontsize=10, color=INK)
    handles = {}
    for one in axes.flat:
        handles |= dict(zip(*reversed(one.get_legend_handles_labels()), strict=True))
    shown = [name for name in NAMES.values() if name in handles]
    drawing.legend(
        [handles[name] for name in shown], shown, loc="outside upper center", ncols=len(NAMES), frameon=False
    )
    drawing.supxlabel("customers served", color=INK, fontsize=10)
    drawing.supylabel("reward per customer", color=INK, fontsize=10)
    return drawing


def panel(axes, results, world):
    """The policies in one world; those that learn have a band of one standard error."""
    at = (np.arange(PARTS) + 0.5) * world.customers / PARTS
    for policy, (colour, line, width) in reversed(STYLES.items()):
        if (world.name, policy) not in results:
            continue
        values = curves(results, world.name, policy)
        middle, error = values.mean(axis=0), values.std(axis=0) / max(len(values) - 1, 1) ** 0.5
        if policy not in KNOW:
            axes.fill_between(at, middle - error, middle + error, color=colour, alpha=0.16, linewidth=0)
        axes.plot(at, middle, color=colour, linestyle=line, linewidth=width, label=NAMES[policy])
