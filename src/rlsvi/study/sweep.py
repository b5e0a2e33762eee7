"""A sweep: many jobs, each computed once, even if the sweep is interrupted."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import polars as pl

from rlsvi.core.checks import flag, function_of, shown
from rlsvi.core.files import remove_left_over
from rlsvi.core.machine import uninterrupted
from rlsvi.study.executors import Executor, checked_executor
from rlsvi.study.job import Failed, Job
from rlsvi.study.store import Store


class SweepError(RuntimeError):
    """Some jobs failed; the results of the others are stored."""


def sweep(
    jobs: Iterable[Job],
    store: Store | str | os.PathLike[str],
    executor: str | Executor = "processes",
    *,
    redo: bool = False,
    advance: Callable[[Job, bool], None] = lambda job, fresh: None,
) -> pl.DataFrame:
    """Compute those of `jobs` whose results are not in `store`, and return the table of all.

    If a sweep was interrupted, the same call resumes it; jobs that were not finished start over.

    Parameters
    ----------
    jobs
        The jobs.
    store
        A Store, or its folder.
    executor
        "processes" (one per core), "gpu" (these and a graphics card), "serial", "ray", or a result of
        `executors.executor`.
    redo
        Compute all jobs, including those with stored results.
    advance
        Called with each finished job, and whether it was computed now.

    Examples
    --------
    Jobs call a function of a module, here that of a file `squares.py`:

    >>> import pathlib, rlsvi
    >>> _ = pathlib.Path("squares.py").write_text("def area(side): return {'area': side**2}")
    >>> jobs = [rlsvi.Job("squares:area", {"side": side}) for side in (1, 2, 3)]
    >>> rlsvi.sweep(jobs, "results", executor="serial")["area"].to_list()
    [1, 4, 9]
    """
    try:
        jobs = list(jobs)
    except TypeError:
        raise TypeError(f"jobs must be a list of Job, as Job.of makes them, got {shown(jobs)}") from None
    if not all(isinstance(job, Job) for job in jobs):
        raise TypeError(f"jobs must be a list of Job, as Job.of makes them, got {shown(jobs)}")
    store = store if isinstance(store, Store) else Store(store)
    wanted = {job.name: job for job in jobs}
    if not wanted:
        raise ValueError("jobs must be at least one")
    function_of("advance", advance, "a job", "a flag")
    compute(wanted, store, executor, redo=flag("redo", redo), advance=advance)
    return store.frame(list(wanted.values()))


def compute(
    wanted: Mapping[str, Job],
    store: Store,
    executor: str | Executor,
    *,
    redo: bool = False,
    advance: Callable[[Job, bool], None] = lambda job, fresh: None,
) -> None:
    """Make sure that `store` contains the results of all jobs, given by name. See `sweep`."""
    run = checked_executor(executor)
    remove_left_over(store.folder)
    todo = list(wanted.values()) if redo else store.missing(wanted.values())
    open_names = {job.name for job in todo}
    for name, job in wanted.items():
        if name not in open_names:
            advance(job, False)
    failures: list[tuple[Job, Failed]] = []
    left = len(todo)
    outcomes = run(todo) if todo else iter(())
    try:
        for job, outcome in outcomes:
            if isinstance(outcome, Failed):
                failures.append((job, outcome))
            else:
                with uninterrupted():  # polars panics, or interrupts twice and so also interrupts the cleanup
                    store.write(wanted[job.name], outcome)
                    left -= 1
            advance(wanted[job.name], True)
    except KeyboardInterrupt as error:
        error.add_note(
            f"{len(wanted) - left} of {len(wanted)} jobs are stored in {store.folder}: the same call goes on with "
            "the others"
        )
        others = sys.excepthook

        def say_where_it_stopped(kind: Any, error: BaseException, frames: Any) -> None:
            """Print what a sweep says of an interrupt that ends a script, without a traceback."""
            if kind is KeyboardInterrupt and hasattr(error, "__notes__"):
                print("stopped:", *error.__notes__, file=sys.stderr)
            else:
                others(kind, error, frames)

        sys.excepthook = say_where_it_stopped
        raise error.with_traceback(None) from None  # where it was is of no interest
    finally:
        if hasattr(outcomes, "close"):
            outcomes.close()
    if failures:
        job, first = failures[0]
        more = f"{'; the first' if len(failures) > 1 else ''}: {job}: {first.reason}"
        details = f"\n{first.details}" if first.details else ""
        raise SweepError(f"{len(failures)} of {len(wanted)} jobs failed, the others are kept{more}{details}")
