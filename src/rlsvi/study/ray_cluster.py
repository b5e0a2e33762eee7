"""Jobs on a Ray cluster."""

import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from rlsvi.core.ray_connection import answers, connected, imported
from rlsvi.study.attempt import attempt
from rlsvi.study.job import Done, Failed, Job, Outcomes


def ray_cluster(workers: int | None = None, address: str | None = None) -> Callable[[Sequence[Job]], Outcomes]:
    """Return an executor on a Ray cluster: the one at `address`, or one started on this machine for the sweep.

    The address is tried at once. A cluster that is started here listens on this machine only, unless Ray was
    imported before. Every node needs the same version of rlsvi. Results are sent back to this process, so no
    shared disk is needed.
    """
    if address is not None:
        answers(address)

    def run(jobs: Sequence[Job]) -> Outcomes:
        ray, started = connected(workers, address)
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

    run.dumps = lambda value: imported(address).cloudpickle.dumps(value)  # type: ignore[attr-defined]
    return run


def _ray_task(job: Job, expected: str, path: list[str]) -> Done | Failed:
    """Compute a job with the module search path of the process that sent it; Ray passes on only part of it."""
    sys.path.extend(folder for folder in path if folder not in sys.path)
    return attempt(job, expected)
