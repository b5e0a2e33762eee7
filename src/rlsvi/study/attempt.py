"""Attempts: the computation of jobs in this process, one by one or many at once on a graphics card."""

import time
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from rlsvi.core.card import TooLittleMemory
from rlsvi.core.machine import environment
from rlsvi.study import job as sources
from rlsvi.study.checkpoint import checkpoint_in
from rlsvi.study.job import Columns, Done, Failed, Job

LIBRARIES = ("OMP", "OPENBLAS", "MKL", "BLIS")
Given = Sequence[tuple[Job, str]]  # jobs, and the versions of the code where they were created
Answers = Iterator[tuple[int, Done | Failed | None]]  # None: to be computed elsewhere


def attempt(job: Job, expected: str) -> Done | Failed:
    """Run `job` in this process; errors are returned, not raised.

    expected : the version of the code where the job was created. It is compared with the version of the sources
        here, and not with the job's own, which was sent with the job.
    """
    try:
        module, _, name = job.function.partition(":")
        if sources.version(module) != expected:
            return Failed("this worker has other sources of rlsvi, or of the job: have the same everywhere")
        function = getattr(import_module(module), name)
        begin = time.process_time()
        with one_thread(), checkpoint_in(job.folder):
            columns = _columns(job, function(**job.settings))
    except Exception as error:
        return Failed(f"{type(error).__name__}: {error}", traceback.format_exc())
    return Done(columns, time.process_time() - begin)


def attempt_each(jobs: Given) -> Answers:
    """Compute jobs one by one; yield the number of each and its result."""
    for i, (job, expected) in enumerate(jobs):
        yield i, attempt(job, expected)


def together(job: Job) -> Any:
    """Return a key that is the same for experiments of the same kind and size, or None if it is no experiment.

    The seed and real numbers, such as lam and sigma, do not change the size.
    """
    module, _, name = job.function.partition(":")
    try:
        if not hasattr(getattr(import_module(module), name), "steps"):
            return None
    except Exception:  # the process that attempts the job will report it
        return None
    settings = job.settings.items()
    return job.function, frozenset((key, v) for key, v in settings if key != "seed" and not isinstance(v, float))


def attempt_together(jobs: Given, fewest: int = 1) -> Answers:
    """Compute experiments of the same kind and size on a card; yield the number of each and its result.

    The result is None if it is better computed on a processor: when the card cannot run it, or too few are left.
    """
    begin, found = time.perf_counter(), _found_on_card(jobs, fewest)
    if found is None:  # too little memory
        half = len(jobs) // 2
        yield from attempt_together(jobs[:half], fewest)
        yield from ((half + i, outcome) for i, outcome in attempt_together(jobs[half:], fewest))
        return
    seconds = (time.perf_counter() - begin) / len(jobs)
    for i, outcome in enumerate(found):
        yield i, None if outcome is None else _told(jobs[i][0], outcome, seconds)


def _found_on_card(jobs: Given, fewest: int) -> list[Any] | None:
    """Return the outcomes of experiments, or None if there are too many for the memory."""
    from rlsvi.study.experiment import played_together  # with compiled code, which other jobs do without

    try:
        if any(sources.version(job.function.partition(":")[0]) != expected for job, expected in jobs):
            raise TypeError("this process has other sources of rlsvi, or of the job: have the same everywhere")
        module, _, name = jobs[0][0].function.partition(":")
        with one_thread():
            return played_together(getattr(import_module(module), name), [job.settings for job, _ in jobs], fewest)
    except TooLittleMemory:
        return None if len(jobs) > 1 else [None]
    except Exception as error:
        warnings.warn(f"{len(jobs)} jobs are computed on the processor: {error}", stacklevel=1)
        return [None] * len(jobs)


def _told(job: Job, outcome: Any, seconds: float) -> Done | Failed:
    try:
        if isinstance(outcome, Exception):
            raise outcome
        return Done(_columns(job, outcome), seconds)
    except Exception as error:
        return Failed(f"{type(error).__name__}: {error}", traceback.format_exc())


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit linear algebra to one thread: then neither bits nor load depend on the number of cores.

    The environment variables apply to libraries that are loaded in the meantime.
    """
    from threadpoolctl import threadpool_limits

    with environment({f"{name}_NUM_THREADS": "1" for name in LIBRARIES}), threadpool_limits(1):
        yield


def _columns(job: Job, result: Mapping[str, Any]) -> Columns:
    """Return the table that a job's function returned, as arrays of one length."""
    if not isinstance(result, Mapping) or not result or not all(isinstance(name, str) for name in result):
        raise TypeError(f"{job.function} must return columns by their names, got {result!r:.100}")
    columns = {name: np.atleast_1d(np.asarray(values)) for name, values in result.items()}
    for name, values in columns.items():
        if values.dtype.kind not in "biuU" and values.dtype.char not in "fd":
            raise TypeError(f"{job.function} must return numbers, booleans or text, got {name} of {values.dtype}")
    lengths = {len(values) for values in columns.values()} - {1}
    if len(lengths) > 1 or any(values.ndim > 1 for values in columns.values()):
        shapes = ", ".join(f"{name} {values.shape}" for name, values in columns.items())
        raise TypeError(f"{job.function} must return columns of one length, got {shapes}")
    twice = set(columns) & set(job.settings)
    if twice:
        raise TypeError(f"{job.function} returns columns named as its settings: {', '.join(sorted(twice))}")
    length = lengths.pop() if lengths else 1
    return {name: np.ascontiguousarray(np.broadcast_to(values, length)) for name, values in columns.items()}
