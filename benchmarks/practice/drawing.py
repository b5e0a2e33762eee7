"""The plots: one for each of six tasks, return against episodes of training.

Ours is shown with the median over seeds of the greedy policy, the band between the quartiles, and the worst seed,
and with the median of what was earned while learning; others with the median of both, and their name.
"""

import warnings

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from benchmarks.practice.chosen import TAXI
from benchmarks.practice.evaluation import score
from benchmarks.practice.results import TASKS
from benchmarks.practice.summary import name_of, thresholds
from rlsvi.study.plot import COLOURS, INK, styled

SHOWN = {  # the tasks, and the learners beside ours: those that do best on them
    "CartPole-v1": ("ppo-tuned", "dqn-tuned"),
    "MountainCar-v0": ("ppo-tuned", "dqn-tuned"),
    "Acrobot-v1": ("ppo-tuned", "dqn-tuned"),
    "Pendulum-v1": ("ppo-tuned", "sac-tuned"),
    "LunarLander-v3": ("ppo-tuned", "dqn-tuned"),
    TAXI: ("q-learning",),
}
BLUE, ORANGE, GREEN, PURPLE, YELLOW = COLOURS[:5]
GREY = "#8c8c8c"
COLOUR = {
    "ours": BLUE,
    "q-learning": GREEN,
    "dqn-tuned": ORANGE,
    "ppo-tuned": PURPLE,
    "sac-tuned": YELLOW,
}
WHILE_LEARNING, WORST, THRESHOLD = (0, (2, 1.5)), (0, (1, 1)), (0, (6, 3))


def curve(seeds):
    """Episodes at the evaluations, and the least, the quartiles and the return while learning there.

    A place is the median over the seeds that were evaluated there. Those that have stopped keep their last return.
    The return while learning is the median over seeds of the mean since the evaluation before, NaN if not known.
    """
    runs = list(seeds.values())
    count = max(len(run.rows) for run in runs)
    at = [np.median([run.rows[k]["episodes"] for run in runs if k < len(run.rows)]) for k in range(count)]
    last = [[min(k, len(run.rows) - 1) for run in runs] for k in range(count)]
    held = [[score(run.rows[i]) for run, i in zip(runs, row, strict=True)] for row in last]
    earned = [run.earned_between() for run in runs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # where no seed has it
        learning = np.nanmedian([[e[i] for e, i in zip(earned, row, strict=True)] for row in last], axis=1)
    return np.maximum.accumulate(at), np.quantile(held, (0.0, 0.25, 0.5, 0.75), axis=1), learning


def figures(results):
    """A plot of each of the six tasks by its name, small enough to stand beside another on a page."""
    drawings = {}
    for task, others in SHOWN.items():
        drawings[task] = Figure(figsize=(3.7, 3.4), layout="constrained")
        learners = [name for name in ("ours", *others) if (task, name) in results]
        panel(styled(drawings[task].subplots()), task, learners, results)
    return drawings


def panel(axes, task, learners, results):
    """The learners on one task, ours on top."""
    axes.set_title(task, loc="left", fontsize=11, color=INK)
    if not learners:
        axes.text(0.5, 0.5, "not measured", ha="center", va="center", transform=axes.transAxes, color=GREY)
        return
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("episodes of training", color=INK)
    for learner in reversed(learners):
        at, (worst, low, median, high), learning = curve(results[task, learner])
        width, colour = (2.4 if learner == "ours" else 1.4), COLOUR[learner]
        if learner == "ours":
            axes.fill_between(at, low, high, color=colour, alpha=0.18, linewidth=0)
            axes.plot(at, worst, color=colour, linestyle=WORST, linewidth=1.2)
        else:
            axes.annotate(name_of(learner), (at[-1], median[-1]), color=colour, fontsize=9, ha="right", va="top")
        axes.plot(at, median, "o-", color=colour, linewidth=width, markersize=1.6 * width)
        axes.plot(at, learning, color=colour, linestyle=WHILE_LEARNING, linewidth=width)
    levels = thresholds(TASKS[task], results[task, learners[0]])
    top = max([level for level, by in zip(levels, TASKS[task].asked, strict=False) if by] or levels[:1])
    axes.axhline(top, color=INK, linewidth=0.9, linestyle=THRESHOLD)
    if TASKS[task].shown_from is not None:
        axes.set_ylim(TASKS[task].shown_from, top + 0.1 * (top - TASKS[task].shown_from))
