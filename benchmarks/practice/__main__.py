"""Our agent at its one default beside random play, DQN, PPO, SAC, TD3 and tabular Q-learning.

    python -m benchmarks.practice choose     tasks on which defaults are chosen, all learners: hours on one core
    python -m benchmarks.practice box        tasks whose actions are real numbers, all learners: hours on one core
    python -m benchmarks.practice report     tasks on which our agent is only reported
    python -m benchmarks.practice summary    the table and the plots of what is there; --into docs
    python -m benchmarks.practice random     what random play brings, and the optimum where it is known
    python -m benchmarks.practice choose --learners ours --tasks CartPole-v1 --seeds 2     a part of it

The return of every episode of training is kept. At points of training the greedy policy (ours: of the posterior
mean) plays 100 fresh episodes; where dynamic programming can tell its expected return, that one counts. Rivals
stop when the threshold is met, but not before they have played as many episodes as ours is asked for. Every result
is a file in the folder: an interrupted benchmark goes on where it was, and results of another version have to be
measured --again. All learners use one thread, training alone is timed. Seeds come one after the other, each with
all tasks and learners. --quick tries the benchmark itself, with two episodes each, in a folder of its own.

DIR then holds the results, practice.md (the table) and practice-TASK.png (a plot of each of six tasks). DQN, PPO,
SAC, TD3 and the packages of the tasks: pip install ".[bench]".
"""

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from benchmarks.practice import rivals
from benchmarks.practice.box import BOX
from benchmarks.practice.chosen import CHOSEN
from benchmarks.practice.reported import REPORTED
from benchmarks.practice.results import LEARNERS, TASKS, measure, notes, path_of, read, seeds_of, takes_part
from benchmarks.practice.summary import details, put_into, table, text

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
LISTS = {"choose": CHOSEN, "box": BOX, "report": REPORTED, "summary": TASKS, "random": TASKS}


def seeds_in(text):
    """The seeds of "10", which are 0 to 9, or of "4-9"."""
    first, _, last = text.partition("-")
    seeds = range(int(first), int(last) + 1) if last else range(int(first))
    if not seeds:
        raise ValueError(text)
    return seeds


def options_of(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.practice",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=LISTS)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, metavar="TASK", help=", ".join(TASKS))
    parser.add_argument(
        "--learners", nargs="+", choices=LEARNERS, default=list(LEARNERS), metavar="NAME", help=", ".join(LEARNERS)
    )
    parser.add_argument(
        "--seeds",
        type=seeds_in,
        help="how many, or from which to which, 4-9; 30 for classic control, 10 elsewhere, 5 for rivals",
    )
    parser.add_argument(
        "--jobs", type=int, default=1, help="processes, each on one core; seconds suffer beyond cores"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="out/practice, or with --quick out/practice-quick")
    parser.add_argument("--again", action="store_true", help="measure what is there already once more")
    parser.add_argument("--quick", action="store_true", help="hardly any learning: does everything run?")
    parser.add_argument("--into", type=Path, metavar="DOCS", help="the folder of pages to put the results into")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error("--jobs must be 1 or more")
    options.tasks = options.tasks or list(LISTS[options.what])
    strange = [task for task in options.tasks if task not in LISTS[options.what]]
    if strange:
        parser.error(f"{', '.join(strange)}: not in the list of {options.what}")
    options.out = options.out or Path("out/practice-quick" if options.quick else "out/practice")
    return options


def asked_for(options):
    """What is to be measured and not there yet: (task, learner, seed)."""
    learners = list(options.learners)
    if not rivals.available() and any(name.startswith(rivals.NAMES) for name in learners):
        print(rivals.MISSING, file=sys.stderr)
        learners = [name for name in learners if not name.startswith(rivals.NAMES)]
    asked = [
        (task, learner, seed)
        for task in options.tasks
        for learner in learners
        for seed in options.seeds or seeds_of(task, learner)
        if takes_part(task, learner) and (options.again or not path_of(options.out, task, learner, seed).exists())
    ]
    return sorted(asked, key=lambda one: one[2])


def run(measured, left, jobs, **options):
    """Measure, in processes that are made with `options`; how many failed."""
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))  # for the processes that follow
    failed, pool = 0, ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), **options)
    asked = {pool.submit(measured, *one): one for one in left}
    try:
        for done, future in enumerate(as_completed(asked), 1):
            name = " ".join(str(part) for part in asked[future])
            try:
                row = future.result()["rows"][-1]
                told = f"{row['steps']} steps, return {row['mean']:.2f}, {row['cpu_s']:.0f} s"
            except Exception as error:
                failed, told = failed + 1, f"failed: {error!r}"
            print(f"{done} of {len(left)}  {name}: {told}", flush=True)
    finally:
        pool.shutdown(cancel_futures=True)
    return failed


def write(results, told, out, docs):
    """The table and the plots, and both into the documentation where its folder is given."""
    from benchmarks.practice.drawing import figures

    found = f"{table(results, told)}\n{details(told)}"
    if docs is not None:
        page = docs / "practice-evidence.md"
        page.write_text(put_into(page.read_text(), found))
    (out / "practice.md").write_text(found)
    for task, drawing in figures(results).items():
        for folder in [out] if docs is None else [out, docs / "images"]:
            drawing.savefig(folder / f"practice-{task.lower()}.png", dpi=160)


def main(arguments=None):
    options = options_of(arguments)
    if options.what == "random":
        from benchmarks.practice.evaluation import levels

        for task in options.tasks:
            print(levels(TASKS[task]), flush=True)
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    left = [] if options.what == "summary" else asked_for(options)
    try:
        failed = run(partial(measure, options.out, quick=options.quick), left, options.jobs) if left else 0
    except KeyboardInterrupt:
        print(f"interrupted: what is done is in {options.out}, the same command goes on", file=sys.stderr)
        return 130
    results, told = read(options.out), notes(options.out)
    if results:
        write(results, told, options.out, options.into)
        print(text(results, told))
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
