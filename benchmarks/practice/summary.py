"""One table: what every learner reached on every task, and when, and what it earned while learning.

A list below it has the agents of ours that were chosen, their warnings and what failed.
"""

import re
from itertools import zip_longest

import numpy as np

from benchmarks.practice.box import BOX
from benchmarks.practice.chosen import CHOSEN
from benchmarks.practice.evaluation import score
from benchmarks.practice.reported import REPORTED
from benchmarks.practice.results import LEARNERS

BEGIN, END = "<!-- benchmark begins -->", "<!-- benchmark ends -->"
LISTS = {
    "Defaults are chosen on these": CHOSEN,
    "Actions are real numbers": BOX,
    "Only reported": REPORTED,
}
COLUMNS = [
    *("task", "random play", "learner", "threshold", "asked by", "then: median (worst), seeds at it"),
    *("while learning", "reached", "episodes", "cpu s"),
]
NOTE = """\
"Asked by" is the number of training episodes after which the median over seeds should be at the threshold; in
brackets, nothing is asked and the last evaluation is shown. "Then" is the greedy policy at that point: median and
worst seed, bold where they are as good as asked, and how many seeds are at the threshold. "While learning" is the
mean return of all training episodes until then, median and worst seed, with the number of seeds where some played
fewer. "Reached" counts the seeds that were at the threshold in some evaluation; "episodes" and "cpu s" of training
are the medians over all seeds of when that was first, with a dash where too few got there. For other learners,
"then" is their end, and "while learning" covers as many episodes as ours is asked for."""


def reached(run, threshold):
    """The first evaluation at the threshold, or None."""
    return next((row for row in run.rows if score(row) >= threshold), None)


def at(run, episodes):
    """The first evaluation after at least `episodes` episodes, or the last if that is 0; None if it is missing."""
    rows = run.rows
    return rows[-1] if not episodes else next((row for row in rows if row["episodes"] >= episodes), None)


def middle(values):
    """The median of values of which some may be infinite: the larger of the middle two if one of them is."""
    return float(np.median(values)) if np.isfinite(values).all() else float(sorted(values)[len(values) // 2])


def line(seeds, threshold, by, compared):
    """What the runs of the seeds of one learner on one task, {seed: Run}, come to.

    by : episodes after which the greedy policy counts; 0: the last evaluation.
    compared : episodes over which the return while learning is taken.
    """
    runs = seeds.values()
    firsts = [reached(run, threshold) for run in runs]
    then = [score(row) for run in runs if (row := at(run, by)) is not None]
    earned = [mean for run in runs if (mean := run.earned(compared)) is not None]
    found = {"seeds": len(seeds), "reached": sum(first is not None for first in firsts)}
    for name in ("episodes", "steps", "wall_s", "cpu_s"):
        found[name] = middle([np.inf if first is None else first[name] for first in firsts])
    return found | {"then": then, "met": sum(each >= threshold for each in then), "earned": earned}


def thresholds(task, seeds):
    """The thresholds of a task, given the optimum that was found when it was measured."""
    return task.thresholds(next(iter(seeds.values())).rows[0]["optimum"])


def lines(task, results):
    """Rows of the table for one task: [(learner, threshold, episodes asked by or 0, level of the worst, line)].

    Others have one, for the threshold at which they stop; ours has one for each threshold that was asked for, and
    for that of the others.
    """
    found, others = [], any((task.name, other) in results for other in LEARNERS if other != "ours")
    for learner in LEARNERS:
        seeds = results.get((task.name, learner))
        if not seeds:
            continue
        levels = thresholds(task, seeds)
        asked = list(zip_longest(levels, task.asked, task.worst))[: len(levels)]
        for i, (level, by, least) in enumerate(asked if learner == "ours" else [(levels[0], 0, None)]):
            if by or (i == 0 and (others or not any(task.asked))):
                found.append((learner, level, by or 0, least, line(seeds, level, by, by or task.compared)))
    return found


def cells(task, results, notes):
    """The same as texts; a task without results is named as such."""
    found = lines(task, results)
    if not any(learner == "ours" for learner, *_ in found):
        missing = "failed" if "failed: " in " ".join(notes.get(task.name, ())) else "not measured"
        yield [task.name, value(task.random), name_of("ours"), missing, *"------"]
    for learner, level, by, least, row in found:
        yield [
            task.name,
            value(task.random),
            name_of(learner),
            value(level),
            number(by) if by else f"({number(task.points[-1])})" if learner == "ours" else "end",
            f"{spread(row['then'], level, least)}, {row['met']}/{len(row['then'])}",
            spread(row["earned"])
            + ("" if len(row["earned"]) in (0, row["seeds"]) else f", {len(row['earned'])} seeds"),
            f"{row['reached']}/{row['seeds']}",
            number(row["episodes"]),
            number(row["cpu_s"]),
        ]


def spread(values, level=np.inf, least=None):
    """Median and worst, bold where they are at the levels that are asked of them; one alone; "-" for none."""
    if not values:
        return "-"
    if len(values) == 1:
        return bold(values[0], level)
    median, worst = float(np.median(values)), min(values)
    return f"{bold(median, level)} ({bold(worst, np.inf if least is None else least)})"


def bold(x, level):
    """A return, bold where it is at a level."""
    return f"**{value(x)}**" if x >= level else value(x)


def number(x):
    """A count or seconds, or a dash."""
    return "-" if not np.isfinite(x) else f"{x:.1f}" if x < 100 and x % 1 else f"{x:,.0f}"


def value(x):
    """A return."""
    return f"{x:.1f}" if abs(x) >= 10 else f"{x:.3f}"


def name_of(learner):
    """What a learner is called, with its setting where it has several."""
    name, setting = LEARNERS[learner]
    if learner == "ours":
        return "rlsvi"
    return f"{name}, {setting}" if setting in ("default", "tuned") else name


def table(results, notes):
    """The table as Markdown, with the lists of tasks one after the other."""
    rows = ["| " + " | ".join(COLUMNS) + " |", "|---|---:|---|" + "---:|" * (len(COLUMNS) - 3)]
    for title, tasks in LISTS.items():
        rows.append(f"| *{title}:* |" + " |" * (len(COLUMNS) - 1))
        rows += ["| " + " | ".join(row) + " |" for task in tasks.values() for row in cells(task, results, notes)]
    return "\n".join([*rows, "", NOTE]) + "\n"


def text(results, notes):
    """The tasks that have results or failed, for a terminal."""
    rows = [
        [part.replace("**", "") for part in row]
        for tasks in LISTS.values()
        for task in tasks.values()
        for row in cells(task, results, notes)
        if row[3] != "not measured"
    ]
    widths = [max(len(row[i]) for row in [COLUMNS, *rows]) for i in range(len(COLUMNS))]
    sides = [str.ljust, str.rjust, str.ljust, *[str.rjust] * (len(COLUMNS) - 3)]
    shown = []
    for row in [COLUMNS, *rows]:
        parts = [side(part, width) for side, part, width in zip(sides, row, widths, strict=True)]
        shown.append("  ".join(parts).rstrip())
    return "\n".join([*shown, "", NOTE])


def details(notes):
    """The tasks by what our agent was on them, what it warned of and what failed, without what to try."""
    tasks = {}
    for name in (name for each in LISTS.values() for name in each):
        for told in sorted(notes.get(name, ())):
            tasks.setdefault(re.split(";|: try ", told)[0], []).append(name)
    return "".join(f"- {told} ({', '.join(names)})\n" for told, names in tasks.items())


def put_into(page, text):
    """A page with the text between its two marks."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError(f"the page must have the lines {BEGIN} and {END} once each, between which the table goes")
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{text}\n{END}{rest.split(END)[1]}"
