"""Tables: who reached the threshold, after how much, and what came out in the end."""

import numpy as np

from benchmarks.practice.evaluation import score
from benchmarks.practice.results import LEARNERS

COLUMNS = ["learner", "setting", "reached", "episodes", "steps", "wall s", "cpu s", "last: median", "last: worst"]
NOTE = (
    "Reached: seeds at the threshold at some evaluation, of those measured. Episodes, steps and seconds: the\n"
    "median over all seeds of when the threshold was first met; a dash where too few of them met it. Last: over\n"
    "seeds, the return of the last evaluation, which for all but ours is the first that meets the threshold, or\n"
    "the end of the budget. Seconds are of training alone, on one core."
)


def reached(rows, threshold):
    """The first row at the threshold, or None."""
    return next((row for row in rows if score(row) >= threshold), None)


def middle(values):
    """The median of values of which some may be infinite: the larger of the middle two if one of them is."""
    return float(np.median(values)) if np.isfinite(values).all() else float(sorted(values)[len(values) // 2])


def line(seeds, threshold):
    """What the rows of the seeds of one learner on one task, {seed: rows}, come to."""
    firsts = [reached(rows, threshold) for rows in seeds.values()]
    last = [score(rows[-1]) for rows in seeds.values()]
    found = {"seeds": len(seeds), "reached": sum(first is not None for first in firsts)}
    for name in ("episodes", "steps", "wall_s", "cpu_s"):
        found[name] = middle([np.inf if first is None else first[name] for first in firsts])
    return found | {"last": float(np.median(last)), "worst": float(min(last))}


def summary(results):
    """Rows of the table: (task, threshold, optimum, learner, line). Ours alone is asked for a second threshold."""
    table = []
    for (task, learner), seeds in results.items():
        row = next(iter(seeds.values()))[0]
        for threshold in row["thresholds"] if learner == "ours" else row["thresholds"][:1]:
            table.append((task, threshold, row["optimum"], learner, line(seeds, threshold)))
    return table


def cells(learner, found):
    """A row of the table as texts."""
    return [
        *LEARNERS[learner],
        f"{found['reached']} of {found['seeds']}",
        *(number(found[name]) for name in ("episodes", "steps", "wall_s", "cpu_s")),
        value(found["last"]),
        value(found["worst"]),
    ]


def number(x):
    """A count or seconds, or a dash."""
    return "-" if not np.isfinite(x) else f"{x:.1f}" if x < 100 and x % 1 else f"{x:,.0f}"


def value(x):
    """A return."""
    return f"{x:.1f}" if abs(x) >= 10 else f"{x:.3f}"


def heading(task, threshold, optimum):
    """What a table is of."""
    known = "" if optimum is None else f", the exact optimum is {value(optimum)}"
    return f"{task}: threshold {value(threshold)}{known}"


def blocks(results):
    """The tables: [(heading, rows of texts)]."""
    found = {}
    for task, threshold, optimum, learner, row in summary(results):
        found.setdefault(heading(task, threshold, optimum), []).append(cells(learner, row))
    return list(found.items())


def text(results):
    """The tables for a terminal."""
    lines = []
    for title, rows in blocks(results):
        widths = [max(len(row[i]) for row in [COLUMNS, *rows]) for i in range(len(COLUMNS))]
        lines += ["", title]
        for row in [COLUMNS, *rows]:
            parts = [c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
            lines.append("  " + "  ".join(parts).rstrip())
    return "\n".join([*lines, "", NOTE])


def markdown(results):
    """The tables as Markdown."""
    lines = [NOTE]
    for title, rows in blocks(results):
        lines += ["", f"### {title}", "", "| " + " | ".join(COLUMNS) + " |", "|---|---|" + "---:|" * 7]
        lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
