"""The share of the gap between random play and a reference that a learner closes, greedily and while it learns.

    python -m benchmarks.practice report --learners ours --tasks Inventory Routing Maintenance Pricing Storage
    python -m benchmarks.practice.shares

The first command measures the problems from operations, the second prints the table of those and of the problems
in unseen.py, for our agent at all points and for others, such as --learners dqn ppo, at the last. 0 is what random
play earns and 1 what the reference earns. Greedy: 100 fresh episodes of the posterior mean. Learning: the mean
return of all episodes up to there.
"""

import argparse
from pathlib import Path

import numpy as np

from benchmarks.practice.evaluation import score
from benchmarks.practice.operations import OPERATIONS, RULES
from benchmarks.practice.results import read
from benchmarks.practice.unseen import REFERENCES, UNSEEN

KNOWN = OPERATIONS | UNSEEN


def lines(task, learner, runs):
    """The lines of the table for one task and learner, given the runs of all seeds."""
    runs = [run for run in runs if run.training]
    if learner == "ours":
        runs = [run for run in runs if len(run.rows) == len(task.points)]  # those that are complete
    for i in range(len(task.points)) if learner == "ours" else [-1]:
        points = [run.rows[i]["episodes"] for run in runs]
        earned = np.array([(score(run.rows[i]), run.earned(n)) for run, n in zip(runs, points, strict=True)])
        shares = (earned - task.random) / ((RULES | REFERENCES)[task.name] - task.random)  # (seeds, 2)
        cells = [f"{np.median(each):z.2f} ({each.min():z.2f})" for each in shares.T]
        yield f"| {task.name} | {learner} | {len(runs)} | {np.median(points):.0f} | {' | '.join(cells)} |"


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.practice.shares",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=Path("out/practice"), metavar="DIR")
    options = parser.parse_args(arguments)
    print("| task | learner | seeds | episodes | greedy: median (worst) | learning: median (worst) |")
    print("|---|---|---:|---:|---:|---:|")
    for (task, learner), runs in read(options.out).items():
        if task in KNOWN:
            print("\n".join(lines(KNOWN[task], learner, list(runs.values()))))


if __name__ == "__main__":
    main()
