"""Curves: a panel a task, the median over seeds with a band of their quartiles, against steps."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from benchmarks.practice.evaluation import score
from benchmarks.practice.results import LEARNERS, TASKS
from rlsvi.study.plot import COLOURS, INK, styled

BLUE, ORANGE, GREEN, PURPLE = COLOURS[:4]
GREY = "#8c8c8c"
STYLES = {  # colour, line
    "ours": (BLUE, "-"),
    "q-learning": (GREEN, "-"),
    "dqn": (ORANGE, (0, (1, 1.5))),
    "dqn-tuned": (ORANGE, "-"),
    "ppo": (PURPLE, (0, (1, 1.5))),
    "ppo-tuned": (PURPLE, "-"),
}


def curve(seeds, x):
    """Steps or episodes at the evaluations, and the quartiles of the return there, (3, evaluations).

    A place is the median over the seeds that were evaluated there. Those that have stopped keep their last return.
    """
    runs = list(seeds.values())
    count = max(len(rows) for rows in runs)
    at = [float(np.median([rows[k][x] for rows in runs if k < len(rows)])) for k in range(count)]
    held = [[score(rows[min(k, len(rows) - 1)]) for rows in runs] for k in range(count)]
    return np.maximum.accumulate(at), np.quantile(held, (0.25, 0.5, 0.75), axis=1)


def figure(results, x="steps"):
    """One picture of all tasks in the results."""
    tasks = [task for task in TASKS if any(key[0] == task for key in results)]
    columns = min(len(tasks), 4)
    rows = -(-(len(tasks) + 1) // columns)
    drawing = Figure(figsize=(3.3 * columns, 2.7 * rows), layout="constrained")
    places = list(np.atleast_1d(drawing.subplots(rows, columns)).flat)
    for task, axes in zip(tasks, places, strict=False):
        panel(styled(axes), task, results, x)
    for axes in places[len(tasks) :]:
        axes.axis("off")
    key(places[len(tasks)], {learner for _, learner in results})
    drawing.supxlabel(f"{x} of training", color=INK, fontsize=10)
    drawing.supylabel("return of the greedy policy", color=INK, fontsize=10)
    return drawing


def panel(axes, task, results, x):
    """The learners on one task, ours on top."""
    for learner in reversed(LEARNERS):
        if (task, learner) not in results:
            continue
        colour, line = STYLES[learner]
        at, (low, median, high) = curve(results[task, learner], x)
        mark = "o" if learner == "ours" else "."
        width, size = (2.4, 4) if learner == "ours" else (1.2, 3)
        axes.fill_between(at, low, high, color=colour, alpha=0.16, linewidth=0)
        axes.plot(at, median, mark, color=colour, linestyle=line, linewidth=width, markersize=size)
        row = next(iter(results[task, learner].values()))[0]
    if row["optimum"] is not None:
        axes.axhline(row["optimum"], color=GREY, linewidth=0.9)
    axes.axhline(row["thresholds"][0], color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
    low = TASKS[task].shown_from
    if low is not None:
        top = row["thresholds"][0]
        axes.set_ylim(low, top + 0.05 * (top - low))
    axes.set_xscale("log")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_title(task, loc="left", fontsize=10, color=INK)


def key(axes, learners):
    """The legend, in a place of its own."""
    for learner in [name for name in LEARNERS if name in learners]:
        name, setting = LEARNERS[learner]
        colour, line = STYLES[learner]
        label = f"{name}, {setting}" if name in ("DQN", "PPO") else name
        axes.plot([], [], color=colour, linestyle=line, linewidth=2.4 if learner == "ours" else 1.2, label=label)
    axes.plot([], [], color=INK, linewidth=0.9, linestyle=(0, (4, 3)), label="threshold")
    axes.plot([], [], color=GREY, linewidth=0.9, label="exact optimum")
    axes.fill_between([], [], [], color=INK, alpha=0.16, linewidth=0, label="quartiles of the seeds")
    axes.legend(frameon=False, fontsize=9, labelcolor=INK, loc="center left")
