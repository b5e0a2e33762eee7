"""What a shop earns with each way to recommend, side by side, with the same customers.

    python -m benchmarks.shop_quality --quick      a few customers: a minute
    python -m benchmarks.shop_quality --jobs 2     all worlds, ten seeds: hours on two cores

Finished runs are kept in DIR: the same command goes on where it was interrupted. DIR then holds tables.md and
shop-quality.png. MABWiser and Vowpal Wabbit are left out where they are not installed:
pip install mabwiser vowpalwabbit
"""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from benchmarks.shop_quality.drawing import figure
from benchmarks.shop_quality.policies import NEEDS, POLICIES, installed, takes_part
from benchmarks.shop_quality.results import finished, measure, read
from benchmarks.shop_quality.summary import page
from benchmarks.shop_quality.worlds import WORLDS
from rlsvi.core.files import write_file
from rlsvi.study.executors import one_thread_everywhere

SEEDS, QUICK = 10, 40  # instances; customers of --quick


def main(arguments=None):
    """Measure what is missing, then write the tables and the picture."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.shop_quality",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="few customers and two seeds, to try the benchmark")
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=list(POLICIES))
    parser.add_argument("--seeds", type=int, help=f"number of instances, by default {SEEDS}")
    parser.add_argument("--first-seed", type=int, default=0, help="settings are chosen on seeds from 100 on")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes, of one thread each")
    parser.add_argument("--out", type=Path, default=Path("out/shop_quality"), metavar="DIR")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    missing = [name for name in options.policies if not installed(name)]
    if missing:
        print(f"left out: pip install {' '.join(NEEDS[name] for name in missing)}", file=sys.stderr)
    with one_thread_everywhere():
        run(planned(options, missing), options.out, options.jobs)
    results = read(options.out)
    write_file(options.out / "tables.md", page(results).encode())
    figure(results).savefig(options.out / "shop-quality.png", dpi=110)
    print(page(results))


def run(todo, out, jobs):
    """Measure in processes; after an interrupt or a failure, the runs that have begun end."""
    pool = ProcessPoolExecutor(jobs, get_context("spawn"))
    asked = {pool.submit(measure, out, *one): one for one in todo}
    try:
        for number, done in enumerate(as_completed(asked), start=1):
            world, policy, seed = asked[done]
            told = f"{number}/{len(todo)} {world.name}, {policy}, seed {seed}"
            print(f"{told}: {done.result()['cpu_seconds']} s of processor time", file=sys.stderr, flush=True)
    finally:
        pool.shutdown(cancel_futures=True)


def planned(options, missing):
    """The runs that are not there yet: all worlds with one seed, then with the next."""
    seeds = options.seeds if options.seeds is not None else 2 if options.quick else SEEDS
    runs = []
    for seed in range(options.first_seed, options.first_seed + seeds):
        for world in (WORLDS[name] for name in options.worlds):
            world = world.shortened(QUICK) if options.quick else world
            for policy in options.policies:
                fits = takes_part(policy, world) and policy not in missing
                if fits and not finished(options.out, world, policy, seed):
                    runs.append((world, policy, seed))
    return runs


if __name__ == "__main__":
    main()
