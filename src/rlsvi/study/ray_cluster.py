"""Jobs on a Ray cluster."""

import os
import socket
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from rlsvi.core.machine import cores
from rlsvi.study.attempt import attempt, environment
from rlsvi.study.job import Done, Failed, Job, Outcomes

RAY = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}  # no telemetry, no warnings
RAY_HERE = {**RAY, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # on every system: it listens on loopback only
RAY_ELSEWHERE = {**RAY, "RAY_NUM_REDIS_GET_RETRIES": "1"}  # by default it retries for 15 minutes


def ray_cluster(workers: int | None = None, address: str | None = None) -> Callable[[Sequence[Job]], Outcomes]:
    """Return an executor on a Ray cluster: the one at `address`, or one started on this machine for the sweep.

    The address is tried at once. A cluster that is started here listens on this machine only, unless Ray was
    imported before. Every node needs the same version of rlsvi. Results are sent back to this process, so no
    shared disk is needed.
    """
    if address is not None:
        _answers(address)

    def run(jobs: Sequence[Job]) -> Outcomes:
        ray, started = _connected(workers, address)
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

    run.dumps = lambda value: _imported(address).cloudpickle.dumps(value)  # type: ignore[attr-defined]
    return run


def _ray_task(job: Job, expected: str, path: list[str]) -> Done | Failed:
    """Compute a job with the module search path of the process that sent it; Ray passes on only part of it."""
    sys.path.extend(folder for folder in path if folder not in sys.path)
    return attempt(job, expected)


def _connected(workers: int | None, address: str | None) -> tuple[Any, bool]:
    """Return Ray, connected, and whether it was connected by this call."""
    ray = _imported(address)
    with _settings(address):
        if ray.is_initialized():
            return ray, False
        quiet: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
        if address is None:
            ray.init("local", num_cpus=workers or cores(), include_dashboard=False, **quiet)
            return ray, True
        try:
            ray.init(address, **quiet)
        except (OSError, ValueError, RuntimeError) as error:
            raise ConnectionError(f"no Ray cluster answers at {address!r}: {error}") from error
        return ray, True


def _imported(address: str | None) -> Any:
    """Return Ray, which reads its settings when it is imported."""
    with _settings(address):
        try:
            import ray
        except ImportError as error:
            raise ValueError("the executor 'ray' needs Ray: pip install ray") from error
        return ray


def _settings(address: str | None) -> AbstractContextManager[None]:
    return environment({**(RAY_HERE if address is None else RAY_ELSEWHERE), **os.environ})


def _answers(address: str, seconds: float = 5.0) -> None:
    """Check that a server listens: Ray itself keeps trying for minutes, and may end the process."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if address == "auto":
        return
    try:
        if not colon or not port.isdigit():
            raise ValueError("an address is HOST:PORT, ray://HOST:PORT or auto")
        socket.create_connection((host.strip("[]"), int(port)), timeout=seconds).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ConnectionError(f"no Ray cluster answers at {address!r}: {error}") from error
