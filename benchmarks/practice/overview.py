"""One table for each list of tasks: what our agent reached, and when, beside random play and what was asked.

The list of details says why each task is there, which agent was chosen, what it warned of, and what failed.
"""

import numpy as np

from benchmarks.practice.chosen import CHOSEN
from benchmarks.practice.evaluation import score
from benchmarks.practice.reported import REPORTED
from benchmarks.practice.summary import line, number, value

BEGIN, END = "<!-- benchmark begins -->", "<!-- benchmark ends -->"
COLUMNS = ["task", "random play", "threshold", "asked by", "then: median (worst)", "reached", "episodes", "cpu s"]
NOTE = (
    "Asked by: episodes by which the median over seeds should be at the threshold, or the last evaluation. Then:\n"
    "median and worst seed there, bold where the median is at the threshold. Reached: seeds at it at some\n"
    "evaluation. Episodes and processor seconds of training: the median over all seeds of when it\n"
    "was first met; a dash where too few of them met it."
)


def at(rows, episodes):
    """The evaluation after so many episodes, or the last one; None while it is missing."""
    return rows[-1] if not episodes else next((row for row in rows if row["episodes"] >= episodes), None)


def cells(task, seeds):
    """Rows of the table for one task: one for each threshold that was asked for, or for the first one."""
    thresholds = next(iter(seeds.values()))[0]["thresholds"]
    asked = [(level, by) for level, by in zip(thresholds, task.asked, strict=False) if by] or [(thresholds[0], 0)]
    for level, by in asked:
        found, then = line(seeds, level), [row for rows in seeds.values() if (row := at(rows, by)) is not None]
        scores = [score(row) for row in then]
        median = np.median(scores) if scores else np.nan
        met = "**" if scores and median >= level else ""
        yield [
            task.name,
            value(task.random),
            value(level),
            number(by) if by else f"({max(row['episodes'] for row in then)})",
            f"{met}{value(median)}{met} ({value(min(scores))})" if scores else "-",
            f"{found['reached']} of {found['seeds']}",
            number(found["episodes"]),
            number(found["cpu_s"]),
        ]


def table(tasks, results, notes):
    """The table of a list of tasks as Markdown; tasks without results are named as such."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---|" + "---:|" * (len(COLUMNS) - 1)]
    for task in tasks.values():
        seeds, said = results.get((task.name, "ours")), " ".join(notes.get(task.name, ()))
        missing = "failed" if "failed: " in said else "not measured"
        rows = cells(task, seeds) if seeds else [[task.name, value(task.random), *[missing, *"-----"]]]
        lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def tables(results, notes):
    """Both tables."""
    parts = ["### Tasks on which defaults are chosen", table(CHOSEN, results, notes)]
    parts += ["### Tasks on which they are only reported", table(REPORTED, results, notes), NOTE]
    return "\n\n".join(parts) + "\n"


def details(notes):
    """Why the tasks are there, and what our agent was and said on each of them."""
    lines = []
    for name, task in (CHOSEN | REPORTED).items():
        told = "".join(f" {text}." for text in sorted(notes.get(name, ())))
        lines.append(f"- **{name}.** {task.why}{told}")
    return "\n".join(lines) + "\n"


def put_into(page, text):
    """A page with the text between its two marks."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError(f"the page must have the lines {BEGIN} and {END} once each, between which the tables go")
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{text}\n{END}{rest.split(END)[1]}"
