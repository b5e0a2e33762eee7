"""Executors, which compute the jobs of a sweep.

An executor is a function from jobs to an iterator of (job, result), in any order. It has no state: the store
determines which jobs are done. Jobs are computed by `attempt`, so all executors give the same bits.
"""

import contextlib
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any

from rlsvi.core.card import cuda
from rlsvi.core.checks import shown, whole
from rlsvi.core.machine import cores
from rlsvi.study.attempt import Answers, Given, attempt, attempt_each, attempt_together, together
from rlsvi.study.job import Done, Failed, Job, Outcomes
from rlsvi.study.ray_cluster import ray_cluster

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

Executor = Callable[[Sequence[Job]], Outcomes]
NAMES = ("processes", "serial", "ray", "gpu")
FEWEST, MOST = 256, 8192  # jobs that a card computes together; a few are faster on a core
FEWEST_LEFT = 64  # with fewer that go on, a card is given other jobs


def executor(name: str = "processes", workers: int | None = None, address: str | None = None) -> Executor:
    """Return an executor by name.

    name : "processes" (on this machine), "gpu" (these and a graphics card), "serial" (in this process) or "ray".
    workers : number of processes. If None, one per core. If a running Ray cluster is joined, the cluster decides.
    address : address of a Ray cluster to join, as for ray.init. None starts one on this machine.
    """
    if not isinstance(name, str) or name not in NAMES:
        raise ValueError(f"executor must be one of {', '.join(NAMES)}, got {shown(name)}")
    if address is not None and name != "ray":
        raise ValueError(f"address is that of a Ray cluster, and goes with the executor 'ray', not {shown(name)}")
    if name == "serial":
        return serial
    if name in ("processes", "gpu"):
        return processes(workers, card=name == "gpu")
    return ray_cluster(None if workers is None else whole("workers", workers, 1, 10**4), address)


def serial(jobs: Sequence[Job]) -> Outcomes:
    """Compute one job after the other, in this process."""
    for job in jobs:
        yield job, attempt(job, job.version)


def processes(workers: int | None = None, card: bool = False) -> Callable[[Sequence[Job]], Outcomes]:
    """Return an executor that uses processes on this machine, by default one per core.

    card : one more process computes experiments on a graphics card, those of the same kind and size together if
        there are hundreds; the others compute the rest, and then what the card has not begun.
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
            groups.setdefault(together(job) if card else None, []).append(job)
        small = [key for key, each in groups.items() if key is None or len(each) < FEWEST]
        self.others = deque(job for key in small for job in groups.pop(key))
        self.groups = deque(sorted(_parts(groups.values()), key=lambda part: -sum(job.cost for job in part)))

    def next(self, on_card: bool) -> list[Job]:
        """Return the next jobs of a worker, none if there are no more; the card begins with the largest groups."""
        while on_card and self.groups:
            group = self.groups.popleft()
            if len(group) >= FEWEST:
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
    """Divide groups into equal parts of at most MOST jobs."""
    counts = [(each, -(-len(each) // MOST)) for each in groups]
    return [each[i::count] for each, count in counts for i in range(count)]


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
        work = partial(attempt_together, fewest=FEWEST_LEFT) if self.on_card else attempt_each
        self.process: SpawnProcess = context.Process(target=_serve, args=(theirs, work), daemon=True)
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
    parent: Any = parent_process()
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        pipe.send(None)
        while True:
            for answer in work(pipe.recv()):
                pipe.send(answer)
