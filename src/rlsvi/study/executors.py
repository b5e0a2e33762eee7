"""Executors, which compute the jobs of a sweep.

An executor is a function from jobs to an iterator of (job, result), in any order. It has no state: the store
determines which jobs are done. Jobs are computed by `run_job`, so all executors give the same bits.
"""

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsvi.core.card import TooLittleMemory, cuda
from rlsvi.core.checks import hint, shown, takes, whole
from rlsvi.core.machine import cores, environment
from rlsvi.ray_cluster import check_address, connect_ray, import_ray
from rlsvi.study import job as sources
from rlsvi.study.job import Columns, Done, Failed, Job, Outcomes

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

Executor = Callable[[Sequence[Job]], Outcomes]
NAMES = ("processes", "serial", "ray", "gpu")


def executor(name: str = "processes", workers: int | None = None, address: str | None = None) -> Executor:
    """Return an executor by name.

    Parameters
    ----------
    name
        "processes" (on this machine), "gpu" (these and a graphics card), "serial" (in this process) or "ray".
    workers
        Number of processes. If None, one per core. If a running Ray cluster is joined, the cluster decides.
    address
        Address of a Ray cluster to join, as for ray.init. None starts one on this machine.

    Returns
    -------
    Executor
        What `sweep` and `compare` take as `executor`.

    Examples
    --------
    >>> import rlsvi
    >>> from rlsvi.study.executors import executor
    >>> agents = {"RLSVI": rlsvi.RLSVI()}
    >>> serial = executor("serial")
    >>> rlsvi.compare(agents, rlsvi.problems.chain(5), episodes=50, seeds=2, executor=serial)
    Runs(chain of length 5, 50 episodes, 2 seeds: RLSVI)
    """
    if not isinstance(name, str) or name not in NAMES:
        raise ValueError(f"executor must be one of {', '.join(NAMES)}, got {shown(name)}{hint(name, NAMES)}")
    if address is not None and name != "ray":
        raise ValueError(f"address is that of a Ray cluster, and goes with the executor 'ray', not {shown(name)}")
    if name == "serial":
        return serial
    if name in ("processes", "gpu"):
        return processes(workers, card=name == "gpu")
    return ray_cluster(None if workers is None else whole("workers", workers, 1, 10**4), address)


def checked_executor(given: str | Executor, workers: int | None = None) -> Executor:
    """Return the executor of this name, or what the user has made with `executor`."""
    chosen = executor(given, workers) if isinstance(given, str) else given
    if not takes(chosen, 1):
        raise TypeError(f"executor must be a name or what executors.executor returns, got {shown(given)}")
    return chosen


def serial(jobs: Sequence[Job]) -> Outcomes:
    """Compute one job after the other, in this process."""
    for job in jobs:
        yield job, run_job(job, job.version)


# ---- The computation of jobs in this process, one by one or many at once on a graphics card ------------------


LIBRARIES = ("OMP", "OPENBLAS", "MKL", "BLIS")
Given = Sequence[tuple[Job, str]]  # jobs, and the versions of the code where they were created
Answers = Iterator[tuple[int, Done | Failed | None]]  # None: to be computed elsewhere


def run_job(job: Job, expected: str) -> Done | Failed:
    """Compute `job` in this process; errors are returned, not raised.

    `expected` is the version of the code where the job was created. It is compared with the version of the sources
    here, and not with the job's own, which was sent with the job.
    """
    try:
        if not _has_same_sources(job, expected):
            return Failed("this worker has other sources of rlsvi, or of the job: have the same everywhere")
        function = resolve_name(job.function)
        begin = time.process_time()
        with one_thread_everywhere():
            given = () if job.given is None else (job.given,)
            columns = _columns(job, function(*given, **job.settings))
    except Exception as error:
        return Failed(f"{type(error).__name__}: {error}", traceback.format_exc())
    return Done(columns, time.process_time() - begin)


def _has_same_sources(job: Job, expected: str) -> bool:
    return sources.version(job.function) == expected


def _run_each(jobs: Given) -> Answers:
    """Compute jobs one by one; yield the number of each and its result."""
    for i, (job, expected) in enumerate(jobs):
        yield i, run_job(job, expected)


def batch_key(job: Job) -> Any:
    """Return a key that is the same for experiments of the same kind and size, or None if it is no experiment.

    The seed and real numbers, such as lam and sigma, do not change the size.
    """
    try:
        if not hasattr(resolve_name(job.function), "play_together"):
            return None
    except Exception:  # the process that runs the job will report it
        return None
    settings = job.settings.items()
    return job.function, frozenset((key, v) for key, v in settings if key != "seed" and not isinstance(v, float))


def _run_on_card(jobs: Given, fewest: int = 1) -> Answers:
    """Compute experiments of the same kind and size on a card; yield the number of each and its result.

    The result is None if it is better computed on a processor: when the card cannot run it, or too few are left.
    """
    begin, found = time.perf_counter(), _outcomes_on_card(jobs, fewest)
    if found is None:  # too little memory
        half = len(jobs) // 2
        yield from _run_on_card(jobs[:half], fewest)
        yield from ((half + i, outcome) for i, outcome in _run_on_card(jobs[half:], fewest))
        return
    seconds = (time.perf_counter() - begin) / len(jobs)
    for i, outcome in enumerate(found):
        yield i, None if outcome is None else _done_or_failed(jobs[i][0], outcome, seconds)


def _outcomes_on_card(jobs: Given, fewest: int) -> list[Any] | None:
    """Return the outcomes of experiments, or None if there are too many for the memory."""
    try:
        if not all(_has_same_sources(job, expected) for job, expected in jobs):
            raise TypeError("this process has other sources of rlsvi, or of the job: have the same everywhere")
        with one_thread_everywhere():
            function = resolve_name(jobs[0][0].function)
            return list(function.play_together([job.settings for job, _ in jobs], fewest))
    except TooLittleMemory:
        return None if len(jobs) > 1 else [None]
    except Exception as error:
        warnings.warn(f"{len(jobs)} jobs are computed on the processor: {error}", stacklevel=1)
        return [None] * len(jobs)


def _done_or_failed(job: Job, outcome: Any, seconds: float) -> Done | Failed:
    try:
        if isinstance(outcome, Exception):
            raise outcome
        return Done(_columns(job, outcome), seconds)
    except Exception as error:
        return Failed(f"{type(error).__name__}: {error}", traceback.format_exc())


@contextmanager
def one_thread_everywhere() -> Iterator[None]:
    """Limit linear algebra to one thread: then neither bits nor load depend on the number of cores.

    Unlike `one_thread` of core/machine.py, which is entered in every episode and knows the libraries that were
    loaded before its first use, it finds all that are loaded now, and tells those that a job loads.
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


# ---- Processes on this machine, and a graphics card ----------------------------------------------------------


FEWEST_TOGETHER, MOST_TOGETHER = 256, 8192  # jobs that a card computes together; a few are faster on a core
FEWEST_LEFT = 64  # with fewer that go on, a card is given other jobs


def processes(workers: int | None = None, card: bool = False) -> Callable[[Sequence[Job]], Outcomes]:
    """Return an executor that uses processes on this machine, by default one per core.

    With `card`, one more process computes experiments on a graphics card, those of the same kind and size together
    if there are hundreds; the others compute the rest, and then what the card has not begun.
    If a process dies, only its own jobs are lost; if this process dies, the others end too.
    """
    if workers is not None:
        whole("workers", workers, 1, 10**4)
    if card:
        cuda()  # raises an error if there is none

    def run(jobs: Sequence[Job]) -> Outcomes:
        queue = Queue(jobs, card)
        crew: list[_Worker] = []
        try:
            if queue.groups:
                crew.append(_Worker(on_card=True))
            for _ in range(min(workers or cores(), len(jobs))):
                crew.append(_Worker())
            for worker in crew:
                worker.give(queue.next(worker.on_card))
            while busy := [worker for worker in crew if worker.jobs]:
                ready = set(wait([worker.pipe for worker in busy]))
                for worker in (worker for worker in busy if worker.pipe in ready):
                    taken = worker.take()
                    queue.others.extend(job for job, outcome in taken if outcome is None)
                    for each in crew:
                        if not each.jobs:
                            each.give(queue.next(each.on_card))
                    yield from ((job, outcome) for job, outcome in taken if outcome is not None)
        finally:
            for worker in crew:
                worker.end()

    return run


class Queue:
    """The jobs that no process has begun: those for a card in groups, and the others."""

    def __init__(self, jobs: Sequence[Job], card: bool) -> None:
        groups: dict[Any, list[Job]] = {}
        for job in jobs:
            groups.setdefault(batch_key(job) if card else None, []).append(job)
        small = [key for key, each in groups.items() if key is None or len(each) < FEWEST_TOGETHER]
        self.others = deque(job for key in small for job in groups.pop(key))
        self.groups = deque(sorted(_parts(groups.values()), key=lambda part: -sum(job.cost for job in part)))

    def next(self, on_card: bool) -> list[Job]:
        """Return the next jobs of a worker, none if there are no more; the card begins with the largest groups."""
        while on_card and self.groups:
            group = self.groups.popleft()
            if len(group) >= FEWEST_TOGETHER:
                return group
            self.others.extend(group)  # the cores have taken the rest
        if on_card or not (self.others or self.groups):
            return []
        if self.others:
            return [self.others.popleft()]
        job = self.groups[-1].pop()
        if not self.groups[-1]:
            self.groups.pop()
        return [job]


def _parts(groups: Iterable[list[Job]]) -> list[list[Job]]:
    """Divide groups into equal parts of at most MOST_TOGETHER jobs."""
    counts = [(each, -(-len(each) // MOST_TOGETHER)) for each in groups]
    return [each[i::count] for each, count in counts for i in range(count)]


@contextlib.contextmanager
def without_interrupts() -> Iterator[None]:
    """Let Ctrl-C wait until the end, where the system can, also in processes that are started meanwhile."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Worker:
    """A process that computes a few jobs at a time, and is replaced if it dies."""

    def __init__(self, on_card: bool = False) -> None:
        self.jobs: dict[int, Job] = {}
        self.on_card = on_card
        self.start()

    def start(self) -> None:
        if parent_process() is not None:
            raise RuntimeError(
                "processes cannot start processes: in a script, call sweep or compare under "
                "if __name__ == '__main__':"
            )
        self.ready = False
        context = get_context("spawn")  # threads of numerical libraries do not survive a fork
        self.pipe, theirs = context.Pipe()
        work = partial(_run_on_card, fewest=FEWEST_LEFT) if self.on_card else _run_each
        self.process: SpawnProcess = context.Process(target=_serve, args=(theirs, work), daemon=True)
        with without_interrupts():  # which the process inherits, until it ignores them
            self.process.start()
        theirs.close()

    def give(self, jobs: list[Job]) -> None:
        if not jobs:
            return
        if not self.process.is_alive():
            self.start()
        self.jobs = dict(enumerate(jobs))
        with contextlib.suppress(OSError):  # it has just died: `take` will report it
            self.pipe.send([(job, job.version) for job in jobs])

    def take(self) -> list[tuple[Job, Done | Failed | None]]:
        """Return a job and its result; all jobs if the process died, none if it only says that it is ready.

        The result is None if the job is to be computed on a core, also if a process died that used a card.
        """
        try:
            answer: tuple[int, Done | Failed | None] | None = self.pipe.recv()
        except (EOFError, OSError):
            self.end()
            code = self.process.exitcode or 0
            if not self.ready and code > 0:
                raise RuntimeError(
                    "a process could not start, for the reason it has told above; in a script, call sweep or "
                    "compare under if __name__ == '__main__':"
                ) from None
            failed = Failed(f"its process died (exit code {code}); if it was killed, memory may be short")
            lost, self.jobs = self.jobs, {}
            return [(job, None if self.on_card else failed) for job in lost.values()]
        if answer is None:
            self.ready = True
            return []
        return [(self.jobs.pop(answer[0]), answer[1])]

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(pipe: Connection, work: Callable[[Given], Answers]) -> None:
    """Compute jobs in a worker until there are no more, or the process that started it has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes: the parent ends the others
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    parent: Any = parent_process()
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        pipe.send(None)
        while True:
            for answer in work(pipe.recv()):
                pipe.send(answer)


# ---- Ray -----------------------------------------------------------------------------------------------------


def ray_cluster(workers: int | None = None, address: str | None = None) -> Callable[[Sequence[Job]], Outcomes]:
    """Return an executor on a Ray cluster: the one at `address`, or one started on this machine for the sweep.

    The address is tried at once. A cluster that is started here listens on this machine only, unless Ray was
    imported before. Every node needs the same version of rlsvi. Results are sent back to this process, so no
    shared disk is needed.
    """
    if address is not None:
        check_address(address)

    def run(jobs: Sequence[Job]) -> Outcomes:
        ray, started = connect_ray(workers, address)
        task = ray.remote(num_cpus=1)(_ray_task)
        try:
            waiting: deque[Job] = deque(jobs)
            pending: dict[Any, Job] = {}
            while waiting or pending:
                room = 2 * max(int(ray.cluster_resources().get("CPU", 1)), 1)  # a cluster may grow
                while waiting and len(pending) < room:
                    job = waiting.popleft()
                    pending[task.remote(job, job.version, sys.path)] = job
                for reference in ray.wait(list(pending), num_returns=1)[0]:
                    try:
                        outcome = ray.get(reference)
                    except ray.exceptions.RayError as error:
                        outcome = Failed(f"Ray lost it ({type(error).__name__})", str(error))
                    yield pending.pop(reference), outcome
        finally:
            if started:
                ray.shutdown()

    run.dumps = lambda value: import_ray(address).cloudpickle.dumps(value)  # type: ignore[attr-defined]
    return run


def _ray_task(job: Job, expected: str, path: list[str]) -> Done | Failed:
    """Compute a job with the module search path of the process that sent it; Ray passes on only part of it."""
    sys.path.extend(folder for folder in path if folder not in sys.path)
    return run_job(job, expected)
