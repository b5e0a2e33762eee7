"""The connection to a Ray cluster, for studies and logs: one started on this machine, or one that is joined."""

import os
import socket
from contextlib import AbstractContextManager
from typing import Any

from rlsvi.core.machine import cores, environment

RAY = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}  # no telemetry, no warnings
RAY_HERE = {**RAY, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # on every system: it listens on loopback only
RAY_ELSEWHERE = {**RAY, "RAY_NUM_REDIS_GET_RETRIES": "1"}  # by default it retries for 15 minutes


def connect_ray(workers: int | None, address: str | None) -> tuple[Any, bool]:
    """Return Ray, connected, and whether it was connected by this call."""
    ray = import_ray(address)
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


def import_ray(address: str | None) -> Any:
    """Return Ray, which reads its settings when it is imported."""
    with _settings(address):
        try:
            import ray
        except ImportError as error:
            raise ValueError("the executor 'ray' needs Ray: pip install ray") from error
        return ray


def _settings(address: str | None) -> AbstractContextManager[None]:
    return environment({**(RAY_HERE if address is None else RAY_ELSEWHERE), **os.environ})


def check_address(address: str, seconds: float = 5.0) -> None:
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
