"""Recommendations at a shop's size: hundreds of products, what each saving costs, customers who overlap.

    python -m benchmarks.recommendation_scale                  small shops: some minutes
    python -m benchmarks.recommendation_scale --scale paper    up to 500 products: hours on two cores

The paper has ten products, so all criteria are ours. Agents serve customers side by side in shops of several
sizes, with priors that were chosen on other problem instances; then each saving of `Recommender` is tried alone,
and customers who overlap, whose answers are late or never come. DIR then holds the picture, the table of all
results and the verdicts, as `rlsvi paper` writes them; `rlsvi report DIR` makes a page of it. Finished jobs are
kept: the same command goes on where it was interrupted.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.recommendation_scale.figure import FIGURE
from rlsvi.paper.figure import SCALES
from rlsvi.paper.reproduce import reproduce
from rlsvi.study.executors import executor


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.recommendation_scale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--scale", choices=SCALES, default="quick")
    parser.add_argument("--seeds", type=int, help="problem instances, by default those of the scale")
    parser.add_argument("--workers", type=int, help="processes, by default one per core")
    parser.add_argument("--out", type=Path, default=Path("out/recommendation_scale"), metavar="DIR")
    options = parser.parse_args(arguments)
    given = [f"--{name} {value}" for name, value in vars(options).items() if value is not None and name != "out"]
    command = " ".join(["python -m benchmarks.recommendation_scale", *given])
    total = len(FIGURE.plan(options.scale, options.seeds))
    done = 0

    def advance(job, fresh):
        nonlocal done
        done += 1
        print(f"\r{done}/{total} jobs", end="", file=sys.stderr, flush=True)

    processes = executor("processes", options.workers, None)
    verdicts = reproduce(
        [FIGURE],
        options.out,
        scale=options.scale,
        seeds=options.seeds,
        executor=processes,
        advance=advance,
        command=command,
    )
    print(file=sys.stderr)
    for claim, verdict in zip(FIGURE.claims, verdicts[FIGURE.name], strict=True):
        print(f"{verdict.outcome}: {claim.words}\n    {verdict.measured}")


if __name__ == "__main__":
    main()
