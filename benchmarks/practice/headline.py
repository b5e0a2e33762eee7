"""The picture of the README, from a table of the documentation: episodes until a task is learned.

    python -m benchmarks.practice.headline docs/practice-evidence.md docs/images/benchmark.png

The table needs the columns task, learner, reached and episodes; of several rows of a learner the first counts.
"""

import re
import sys
from pathlib import Path

from matplotlib.figure import Figure

from rlsvi.study.plot import COLOURS, INK, styled

TASKS = ("CartPole-v1", "MountainCar-v0", "Acrobot-v1")
LEARNERS = {
    "rlsvi": "rlsvi, one default for all tasks",
    "PPO, tuned": "PPO, tuned",
    "DQN, tuned": "DQN, tuned",
}


def episodes_in(page: str) -> dict[str, dict[str, tuple[str, str]]]:
    """By task and learner: how many seeds have reached the first threshold, and after how many episodes."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    columns: list[str] = []
    for row in re.findall(r"^\| (.+) \|$", page, re.MULTILINE):
        parts = row.split(" | ")
        if parts[0] == "task":
            columns = parts
        cell = dict(zip(columns, parts, strict=False))
        if cell.get("learner") in LEARNERS and {"reached", "episodes"} <= cell.keys():
            numbers = cell["reached"], cell["episodes"]
            found.setdefault(cell["task"], {}).setdefault(LEARNERS[cell["learner"]], numbers)
    return found


def drawn(found: dict[str, dict[str, tuple[str, str]]]) -> Figure:
    """Bars on a logarithmic scale, the numbers beside them."""
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    axes = styled(figure.subplots())
    axes.grid(visible=False, axis="y")
    for i, name in enumerate(dict.fromkeys(LEARNERS.values())):
        for j, task in enumerate(TASKS):
            reached, number = found[task][name]
            known = number.replace(",", "").replace(".", "").isdecimal()
            width, y = float(number.replace(",", "")) if known else 1000.0, j + 0.27 * (i - 1)
            label = name if j == 0 else None
            axes.barh(y, width, 0.24, color=COLOURS[i], alpha=1.0 if known else 0.25, label=label)
            words = f"{width:g}" if known else f"not reached by half of the seeds ({reached.replace('/', ' of ')})"
            axes.text(width * 1.06 if known else 1.2, y, words, va="center", fontsize=9, color=INK)
    axes.set_xscale("log")
    axes.set_xlim(1, 2000)
    axes.set_yticks(range(len(TASKS)), TASKS)
    axes.invert_yaxis()
    axes.set_xlabel("episodes until the policy is good (median over seeds, logarithmic)", color=INK)
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    drawn(episodes_in(source.read_text())).savefig(target, dpi=160)
