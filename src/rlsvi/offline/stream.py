"""A log that is larger than memory: chunks of rows, and functions of all of them in this process or on Ray.

Each chunk can be read and checked without the others. The rows must be in the order of episodes and steps. A chunk
is read together with the first row of the next one: every pair of successive rows is checked, and this whenever it
is read, because a file may change.

The results of a function come in the order of the chunks, so that sums of them have the same bits wherever they
are computed. Ray's tasks are enough for this: a chunk is read by one task and stays in the memory of the cluster,
and each later pass is a task per chunk. Ray moves it to where there is room, and repeats what a worker has lost.
"""

import hashlib
import pickle
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rlsvi.bases.layout import is_exact
from rlsvi.core.checks import shown, whole
from rlsvi.core.compile import Bools, Floats, Longs
from rlsvi.envs.task import check_env
from rlsvi.offline.log import (
    OPTIONAL,
    REQUIRED,
    Columns,
    collect,
    episodes_of,
    files_in,
    is_csv,
    join_pieces,
    pieces_of,
    read_errors,
    read_observations,
    scan,
)
from rlsvi.ray_cluster import check_address, connect_ray

if TYPE_CHECKING:
    import polars as pl

CHUNK = 65_536  # rows


class Chunk(NamedTuple):
    """Successive steps. Rows 0 .. T - 1 are their observations; the others followed the last steps of episodes."""

    x: Floats  # (N, n) observations as vectors
    legal: Bools  # (N, A)
    action: Longs  # (T,) counted from 0
    reward: Floats  # (T,)
    next: Longs  # (T,) row of the next observation; -1 if the episode terminated
    last: Bools  # (T,) whether it is the last step of its episode
    first: int  # the row of the log that the chunk begins with


class Stream:
    """A log in chunks. Of the environment, only its spaces are used."""

    def __init__(self, log: Any, env: Any, names: Mapping[str, Any] | None, chunk: int = CHUNK) -> None:
        import polars as pl

        if env is None:
            raise ValueError(
                "a log that is read in chunks does not say which observations and actions there are: give the "
                "environment by fit(log, env), or rlsvi.envs.Spaces(observation_space, action_space)"
            )
        check_env(env)
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.chunk, self.names = whole("chunk", chunk, 1, 2**31), names
        self.frame = _lazy_frame(log, names)
        columns = self._columns(0, 0)
        used = (*REQUIRED, *(name for name in OPTIONAL if columns.has(name)))
        self.frame = self.frame.select([column for name in used for column in columns.of(name)])
        self.paid = columns.name("episode"), columns.name("reward")
        self.rows = int(collect(self.frame.select(pl.len())).item())
        if self.rows == 0:
            raise ValueError("the log is empty: it has no rows")

    def __len__(self) -> int:
        return -(-self.rows // self.chunk)

    def _columns(self, start: int, rows: int) -> Columns:
        return Columns(collect(self.frame.slice(start, rows)), self.names, start)

    def first_observation(self) -> Any:
        """Return the observation of the first row, checked."""
        needed = np.ones(1, np.bool_)
        return read_observations(self._columns(0, 1), "observation", self.observation_space, needed).at(0)

    def read(self, k: int) -> Chunk:
        """Return chunk k, or raise an error that names the column and row."""
        start = k * self.chunk
        columns, T = self._columns(start, self.chunk + 1), min(self.chunk, self.rows - start)
        if (found := columns.frame.height) != min(self.chunk + 1, self.rows - start):
            raise ValueError(
                f"the log had {self.rows} rows, now it ends at row {start + found}: it must not change"
            )
        log = episodes_of(columns, self, begins=start == 0)
        for name, observations in (("observation", log.observation), ("next_observation", log.following)):
            if not is_exact(observations.values):
                column = columns.of(name)[0]
                raise ValueError(f"the log is wrong in column {column!r}: it holds whole numbers beyond 2^53")
        last, terminated = log.last[:T], log.terminated[:T]
        cut = last | (np.arange(T) == T - 1)  # the next observation is not in another row of the chunk
        extra = np.flatnonzero(cut & ~terminated)
        following = np.where(terminated, -1, np.arange(1, T + 1))
        following[extra] = T + np.arange(len(extra))
        x = np.concatenate([log.observation.vectors()[:T], log.following.vectors()[extra]])
        legal = np.concatenate([log.mask.legal[:T], log.next_mask.legal[extra]])
        return Chunk(x, legal, log.action[:T], log.reward[:T], following, last, start)

    def rewards(self, k: int) -> tuple[Floats, Bools]:
        """Return the rewards of chunk k, and which steps are the last of their episodes."""
        frame = collect(self.frame.select(self.paid).slice(k * self.chunk, self.chunk + 1))
        episode, reward = frame.get_columns()
        last = np.append((episode[1:] != episode[:-1]).to_numpy(), True)
        return reward.to_numpy().astype(np.float64)[: self.chunk], last[: self.chunk]


def _lazy_frame(log: Any, names: Mapping[str, Any] | None) -> "pl.LazyFrame":
    """Return a log as a frame that is read when it is asked for rows."""
    import polars as pl

    if isinstance(log, pl.LazyFrame):
        return log
    if not isinstance(log, str | PathLike):
        return join_pieces(pieces_of(log)).lazy()
    return scan(_sorted_files(files_in(Path(log).absolute()), names))


def _sorted_files(files: list[Path], names: Mapping[str, Any] | None) -> list[Path]:
    """Return files in the order of the episode and step that each begins with, without those that are empty."""
    begin, first = [], list[str]()
    for file in files:
        with read_errors(str(file)):
            frame = scan([file]).head(1).collect()
        found = [name if is_csv(file) else f"{name} ({kind})" for name, kind in frame.schema.items()]
        first = first or found
        if found != first:
            raise ValueError(
                f"{file} has the columns {', '.join(found)}, {files[0]} has {', '.join(first)}: files that are "
                "read in chunks need the same columns in the same order, in Parquet files also of the same types"
            )
        columns = Columns(frame, names)
        if frame.height:
            begin.append((columns.one("episode")[0], columns.one("step")[0], file))
    if len({isinstance(episode, str) for episode, *_ in begin}) > 1:
        raise ValueError(
            "the episodes are numbers in some files of the log and text in others: make all of them text"
        )
    return [file for *_, file in sorted(begin)] or files[:1]


# ---- A function of every chunk -----------------------------------------------------------------------------


Each = Callable[..., Iterator[Any]]  # each(function, *arguments) yields function(chunk, *arguments) of all chunks


@contextmanager
def all_chunks(stream: Stream, executor: str | None = None) -> Iterator[Each]:
    """Yield the function that computes other functions of all chunks, one pass over the log each.

    The executor is None for this process, "ray" for a Ray cluster that is started on this machine, or the address
    of one to join: "HOST:PORT", "ray://HOST:PORT" or "auto". All its nodes must be able to read the log.
    """
    if executor is None:
        yield lambda function, *arguments: (function(stream.read(k), *arguments) for k in range(len(stream)))
        return
    if not isinstance(executor, str):
        raise TypeError(f'executor must be None, "ray" or the address of a Ray cluster, got {shown(executor)}')
    address = None if executor == "ray" else executor
    if address is not None:
        if not address.isprintable():
            raise ValueError(f'executor must be None, "ray" or the address of a Ray cluster, got {executor!r:.80}')
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
    compute = ray.remote(num_cpus=1)(_compute)
    head = ray.get_runtime_context().gcs_address if address in (None, "auto") else address
    read, chunks = ray.put(send((stream.read, ()))), dict[int, Any]()

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
            chunks[k] = chunks.get(k) or compute.remote(here, read, k)
            pending.append(compute.remote(here, work, chunks[k]))
            if len(pending) >= room:
                yield result(pending.popleft())
        while pending:
            yield result(pending.popleft())

    return each


def _compute(here: tuple[str, list[str]], work: bytes, given: Any) -> Any:
    """Task: compute a function of a chunk, or of its number, with the same sources and modules as here."""
    stamp, path = here
    if sources() != stamp:
        raise RuntimeError("a worker of Ray has other sources of rlsvi: have the same everywhere")
    sys.path.extend(folder for folder in path if folder not in sys.path)
    function, arguments = pickle.loads(work)
    return function(given, *arguments)


@cache
def sources() -> str:
    """Return a digest of the sources that chunks are read and computed with: all of this package."""
    folder, found = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        found.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()
