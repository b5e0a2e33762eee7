"""A function of every chunk of a log: in this process, or by tasks of Ray.

The results come in the order of the chunks, so that sums of them have the same bits wherever they are computed.
Ray's tasks are enough for this: a chunk is read by one task and stays in the memory of the cluster, and each later
pass is a task per chunk. Ray moves it to where there is room, and repeats what was lost with a worker.
"""

import pickle
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from rlsvi.core.files import source_digest
from rlsvi.offline.stream import Stream
from rlsvi.ray_cluster import check_address, connect_ray

Each = Callable[..., Iterator[Any]]  # each(function, *arguments) yields function(chunk, *arguments) of all chunks


@contextmanager
def all_chunks(stream: Stream, executor: str | None = None) -> Iterator[Each]:
    """Yield the function that computes other functions of all chunks, one pass over the log each.

    executor : None for this process; "ray" for a Ray cluster that is started on this machine; or the address of
        one to join: "HOST:PORT", "ray://HOST:PORT" or "auto". All its nodes must be able to read the log.
    """
    if executor is None:
        yield lambda function, *arguments: (function(stream.read(k), *arguments) for k in range(len(stream)))
        return
    if not isinstance(executor, str):
        raise TypeError(f'executor must be None, "ray" or the address of a Ray cluster, got {executor!r:.80}')
    address = None if executor == "ray" else executor
    if address is not None:
        check_address(address)
    ray, started = connect_ray(None, address)
    try:
        yield _tasks(ray, stream, address)
    finally:
        if started:
            ray.shutdown()


def _tasks(ray: Any, stream: Stream, address: str | None) -> Each:
    """Return the function that computes other functions of all chunks by tasks of Ray."""
    here, send = (sources(), list(sys.path)), ray.cloudpickle.dumps
    reading, computing = (ray.remote(num_cpus=1)(task) for task in (_read, _computed))
    head = ray.get_runtime_context().gcs_address if address in (None, "auto") else address
    source, chunks = ray.put(send(stream)), dict[int, Any]()

    def result(reference: Any) -> Any:
        """Wait only as long as there is a cluster: without one, Ray would wait too, and then end this process."""
        try:
            while not ray.wait([reference], timeout=1.0)[0]:
                check_address(head)
            check_address(head)
            return ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except (ray.exceptions.RayError, ConnectionError) as error:
            lost = f"{type(error).__name__}: {error!s:.200}"
            raise ConnectionError(f"the Ray cluster was lost while it computed from the log ({lost})") from error

    def each(function: Any, *arguments: Any) -> Iterator[Any]:
        work, pending = ray.put(send((function, arguments))), deque[Any]()
        room = 2 * max(int(ray.cluster_resources().get("CPU", 1)), 1)
        for k in range(len(stream)):
            chunks[k] = chunks.get(k) or reading.remote(here, source, k)
            pending.append(computing.remote(here, work, chunks[k]))
            if len(pending) >= room:
                yield result(pending.popleft())
        while pending:
            yield result(pending.popleft())

    return each


def _read(here: tuple[str, list[str]], source: bytes, k: int) -> Any:
    """Task: read a chunk."""
    stream: Stream = _received(here, source)
    return stream.read(k)


def _computed(here: tuple[str, list[str]], work: bytes, chunk: Any) -> Any:
    """Task: compute a function of a chunk."""
    function, arguments = _received(here, work)
    return function(chunk, *arguments)


@cache
def sources() -> str:
    """Return a digest of the sources that chunks are read and computed with."""
    return source_digest("core", "mdp", "tetris", "bases", "agents", "simulate", "offline")


def _received(here: tuple[str, list[str]], sent: bytes) -> Any:
    """Return what was sent to a worker, whose sources must be the same, and which must find the same modules."""
    stamp, path = here
    if sources() != stamp:
        raise RuntimeError("a worker of Ray has other sources of rlsvi: have the same everywhere")
    sys.path.extend(folder for folder in path if folder not in sys.path)
    return pickle.loads(sent)
