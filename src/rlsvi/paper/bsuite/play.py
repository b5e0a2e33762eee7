"""A run of the suite: what is missing is computed, and what is there is scored and written."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlsvi.paper.bsuite.scores import Score, scored
from rlsvi.paper.bsuite.summary import write
from rlsvi.study.executors import Executor, executor
from rlsvi.study.job import Job
from rlsvi.study.store import Store
from rlsvi.study.sweep import SweepError, compute

Plans = Mapping[str, Mapping[str, Sequence[Job]]]  # jobs by agent and experiment


def play(
    plans: Plans,
    folder: Path,
    *,
    workers: int | None = None,
    by: Executor | None = None,
    advance: Callable[[Job, bool], None] = lambda job, fresh: None,
    settings: Mapping[str, Any],
) -> list[Score]:
    """Compute the settings that have no results in `folder` yet, and write and return the scores of all.

    If settings fail, the scores of the others are written before the error is raised.
    """
    store = Store(folder / "store")
    wanted = {job.name: job for jobs in plans.values() for its in jobs.values() for job in its}
    failure = None
    try:
        compute(wanted, store, by or executor("processes", workers), advance=advance)
    except SweepError as error:
        failure = error
    scores = found(plans, store)
    if scores:
        write(scores, folder, settings)
    if failure is not None:
        raise failure
    return scores


def found(plans: Plans, store: Store) -> list[Score]:
    """Return the scores of all experiments of which at least one setting is finished."""
    scores = []
    for agent, experiments in plans.items():
        for experiment, jobs in experiments.items():
            tables = [table for job in jobs if (table := store.read(job)) is not None]
            if tables:
                scores.append(scored(agent, experiment, tables))
    return scores
