"""Executors, which compute the jobs of a sweep.

An executor is a function from jobs to an iterator of (job, result), in any order. It has no state: the store
determines which jobs are done. Jobs are computed by `attempt`, so all executors give the same bits.
"""

import contextlib
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any

from rlsvi.core.checks import whole
from rlsvi.core.machine import cores
from rlsvi.study.job import Done, Failed, Job, Outcomes, attempt
from rlsvi.study.ray_cluster import ray_cluster

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

Executor = Callable[[Sequence[Job]], Outcomes]
NAMES = ("processes", "serial", "ray")


def executor(name: str = "processes", workers: int | None = None, address: str | None = None) -> Executor:
    """Return an executor by name.

    name : "processes" (on this machine), "serial" (in this process) or "ray".
    workers : number of processes. If None, one per core. If a running Ray cluster is joined, the cluster decides.
    address : address of a Ray cluster to join, as for ray.init. None starts one on this machine.
    """
    if not isinstance(name, str) or name not in NAMES:
        raise ValueError(f"executor must be one of {', '.join(NAMES)}, got {name!r:.80}")
    if address is not None and name != "ray":
        raise ValueError(f"address is that of a Ray cluster, and goes with the executor 'ray', not {name!r}")
    if name == "serial":
        return serial
    if name == "processes":
        return processes(workers)
    return ray_cluster(None if workers is None else whole("workers", workers, 1, 10**4), address)


def serial(jobs: Sequence[Job]) -> Outcomes:
    """Compute one job after the other, in this process."""
    for job in jobs:
        yield job, attempt(job, job.version)


def processes(workers: int | None = None) -> Callable[[Sequence[Job]], Outcomes]:
    """Return an executor that uses processes on this machine, by default one per core.

    If a process dies, only its own job is lost; if this process dies, the others end too.
    """
    if workers is not None:
        whole("workers", workers, 1, 10**4)

    def run(jobs: Sequence[Job]) -> Outcomes:
        waiting: deque[Job] = deque(jobs)
        crew: list[_Worker] = []
        try:
            for _ in range(min(workers or cores(), len(jobs))):
                crew.append(_Worker())
                crew[-1].give(waiting.popleft())
            while busy := [worker for worker in crew if worker.job is not None]:
                ready = set(wait([worker.pipe for worker in busy]))
                for worker in (worker for worker in busy if worker.pipe in ready):
                    if (taken := worker.take()) is not None:
                        if waiting:
                            worker.give(waiting.popleft())
                        yield taken
        finally:
            for worker in crew:
                worker.end()

    return run


class _Worker:
    """A process that computes one job at a time, and is replaced if it dies."""

    job: Job | None = None

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        if parent_process() is not None:
            raise RuntimeError(
                "processes cannot start processes: in a script, call sweep under if __name__ == '__main__':"
            )
        self.ready = False
        context = get_context("spawn")  # threads of numerical libraries do not survive a fork
        self.pipe, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def give(self, job: Job) -> None:
        if not self.process.is_alive():
            self.start()
        self.job = job
        with contextlib.suppress(OSError):  # it has just died: `take` will report it
            self.pipe.send((job, job.version))

    def take(self) -> tuple[Job, Done | Failed] | None:
        """Return the job and its result, or None if the process has only reported that it is ready."""
        try:
            outcome: Done | Failed | None = self.pipe.recv()
        except (EOFError, OSError):
            self.end()
            code = self.process.exitcode or 0
            if not self.ready and code > 0:
                raise RuntimeError(
                    "a process could not start, for the reason it has told above; in a script, call sweep under "
                    "if __name__ == '__main__':"
                ) from None
            outcome = Failed(f"its process died (exit code {code}); if it was killed, memory may be short")
        if outcome is None:
            self.ready = True
            return None
        job, self.job = self.job, None
        assert job is not None
        return job, outcome

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(pipe: Connection) -> None:
    """Compute jobs in a worker until there are no more, or the process that started it has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes: the parent ends the others
    parent: Any = parent_process()
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        pipe.send(None)
        while True:
            pipe.send(attempt(*pipe.recv()))
