"""Executors: who computes the jobs of a sweep.

An executor is a function from jobs to an iterator of (job, what it brought), in any order. It keeps nothing:
the store decides what is done. Jobs are computed by `attempt`, so all executors give the same bits.
"""

from collections.abc import Callable, Sequence

from rlsvi.core.checks import whole
from rlsvi.study.job import Job, Outcomes, attempt
from rlsvi.study.processes import processes
from rlsvi.study.ray_cluster import ray_cluster

Executor = Callable[[Sequence[Job]], Outcomes]
NAMES = ("processes", "serial", "ray")


def executor(name: str = "processes", workers: int | None = None, address: str | None = None) -> Executor:
    """An executor by name.

    name : "processes" (on this machine), "serial" (in this process) or "ray".
    workers : how many processes; None: one a core. With a Ray cluster that is joined, the cluster decides.
    address : of a Ray cluster to join, as ray.init takes it; None starts one on this machine.
    """
    if not isinstance(name, str) or name not in NAMES:
        raise ValueError(f"executor must be one of {', '.join(NAMES)}, got {name!r:.80}")
    if workers is not None:
        whole("workers", workers, 1, 10**4)
    if address is not None and name != "ray":
        raise ValueError(f"address is that of a Ray cluster, and goes with the executor 'ray', not {name!r}")
    if name == "serial":
        return serial
    if name == "processes":
        return processes(workers)
    return ray_cluster(workers, address)


def serial(jobs: Sequence[Job]) -> Outcomes:
    """One job after the other, in this process."""
    for job in jobs:
        yield job, attempt(job, job.version)
