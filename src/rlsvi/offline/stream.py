"""A log that is read in chunks of rows, each of which can be read and checked without the others.

The rows must be in the order of episodes and steps. A chunk is read together with the first row of the next one:
every pair of successive rows is checked, and this whenever it is read, because a file may change.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rlsvi.bases.layout import is_exact
from rlsvi.core.checks import whole
from rlsvi.core.compile import Bools, Floats, Longs
from rlsvi.envs.task import check_env
from rlsvi.offline.columns import OPTIONAL, REQUIRED, Columns
from rlsvi.offline.episodes import actions_of, masks_of, places_in, propensities_of
from rlsvi.offline.observations import Observations, read
from rlsvi.offline.pieces import files_in, frame_of

if TYPE_CHECKING:
    import polars as pl

CHUNK = 65_536  # rows
END = -1
SORT = (
    "rows that are read in chunks must be in the order of episodes and steps: sort the log once, such as by "
    "polars.scan_parquet(log).sort('episode', 'step').sink_parquet('sorted.parquet')"
)
APART = "it is not the observation of the next step of the episode: a step is missing, or out of order"


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
        self.frame = _scanned(log, names)
        columns = self._columns(0, 0)
        used = (*REQUIRED, *(name for name in OPTIONAL if columns.has(name)))
        self.frame = self.frame.select([column for name in used for column in columns.of(name)])
        self.paid = columns.name("episode"), columns.name("reward")
        self.rows = int(_collected(self.frame.select(pl.len())).item())
        if self.rows == 0:
            raise ValueError("the log is empty: it has no rows")

    def __len__(self) -> int:
        return -(-self.rows // self.chunk)

    def _columns(self, start: int, rows: int) -> Columns:
        return Columns(_collected(self.frame.slice(start, rows)), self.names, start)

    def first_observation(self) -> Any:
        """Return the observation of the first row, checked."""
        return read(self._columns(0, 1), "observation", self.observation_space, np.ones(1, np.bool_)).at(0)

    def read(self, k: int) -> Chunk:
        """Return chunk k, or raise an error that names the column and row."""
        start = k * self.chunk
        columns, T = self._columns(start, self.chunk + 1), min(self.chunk, self.rows - start)
        if (found := columns.frame.height) != min(self.chunk + 1, self.rows - start):
            raise ValueError(
                f"the log had {self.rows} rows, now it ends at row {start + found}: it must not change"
            )
        last = _check_order(columns)[:T]
        propensities_of(columns)  # which are not used, and wrong ones are refused as everywhere
        action, reward = actions_of(columns, self.action_space)[:T], columns.real("reward")[:T]
        mask, next_mask = (masks_of(columns, name, int(self.action_space.n))[0] for name in ("mask", "next_mask"))
        barred = ~mask[np.arange(T), action]
        columns.refuse(columns.name("action"), _padded(barred, found), "the mask does not allow this action")
        terminated = columns.flags("terminated")
        seen = self._observed(columns, "observation", np.ones(found, np.bool_))
        followed = self._observed(columns, "next_observation", ~terminated)
        apart = ~seen.continues(followed) & ~last[: found - 1]
        columns.refuse(columns.of("next_observation")[0], _padded(apart, found), APART)
        cut = last | (np.arange(T) == T - 1)  # the next observation is not in another row of the chunk
        extra = np.flatnonzero(cut & ~terminated[:T])
        following = np.where(terminated[:T], END, np.arange(1, T + 1))
        following[extra] = T + np.arange(len(extra))
        if not last[-1]:
            next_mask[T - 1] = mask[T]  # the next chunk continues the episode
        x = np.concatenate([seen.vectors()[:T], followed.vectors()[extra]])
        return Chunk(x, np.concatenate([mask[:T], next_mask[extra]]), action, reward, following, last, start)

    def _observed(self, columns: Columns, name: str, needed: Bools) -> Observations:
        """Return observations that float64 holds exactly."""
        found = read(columns, name, self.observation_space, needed)
        if not is_exact(found.values):
            column = columns.of(name)[0]
            raise ValueError(f"the log is wrong in column {column!r}: it holds whole numbers beyond 2^53")
        return found

    def rewards(self, k: int) -> tuple[Floats, Bools]:
        """Return the rewards of chunk k, and which steps are the last of their episodes."""
        frame = _collected(self.frame.select(self.paid).slice(k * self.chunk, self.chunk + 1))
        episode, reward = frame.get_columns()
        last = np.append((episode[1:] != episode[:-1]).to_numpy(), True)
        return reward.to_numpy().astype(np.float64)[: self.chunk], last[: self.chunk]


def _check_order(columns: Columns) -> Bools:
    """Return whether a row is the last one of its episode, after checking that rows are in order, without gaps."""
    episode, step = places_in(columns)
    new = np.append(columns.rows[0] == 0, (episode[1:] != episode[:-1]).to_numpy())
    back = np.append(False, (episode[1:] < episode[:-1]).to_numpy())
    before = np.append(step[0] - 1, step[:-1])
    columns.refuse(episode.name, back, SORT)
    columns.refuse(columns.name("step"), ~new & (step == before), "this step of the episode is there twice")
    columns.refuse(columns.name("step"), ~new & (step < before), SORT)
    wrong = step != np.where(new, 0, before + 1)
    columns.refuse(columns.name("step"), wrong, "a step before it is missing: steps must be 0, 1, 2, ..")
    last = np.append(new[1:], True)
    ended = (columns.flags("terminated") | columns.flags("truncated")) & ~last
    columns.refuse(columns.name("step"), np.append(False, ended[:-1]), "it comes after the end of its episode")
    return last


def _padded(wrong: Bools, rows: int) -> Bools:
    """Return flags for all rows, False where there are none."""
    return np.append(wrong, np.zeros(rows - len(wrong), np.bool_))


def _scanned(log: Any, names: Mapping[str, Any] | None) -> "pl.LazyFrame":
    """Return a log as a frame that is read when it is asked for rows."""
    import polars as pl

    if isinstance(log, pl.LazyFrame):
        return log
    if not isinstance(log, str | PathLike):
        return frame_of(log).lazy()
    return pl.scan_parquet(_ordered(files_in(Path(log).absolute()), names), hive_partitioning=False)


def _ordered(files: list[Path], names: Mapping[str, Any] | None) -> list[Path]:
    """Return files in the order of the episode and step that each begins with, without those that are empty."""
    import polars as pl

    begin, first = [], None
    for file in files:
        with _readable(str(file)):
            frame = pl.scan_parquet(file, hive_partitioning=False).head(1).collect()
        first = frame if first is None else first
        if frame.schema != first.schema:
            raise ValueError(
                f"{file} has the columns {frame.schema}, {files[0]} has {first.schema}: files that are read in "
                "chunks need the same columns, in the same order and of the same types"
            )
        columns = Columns(frame, names)
        if frame.height:
            begin.append((columns.one("episode")[0], columns.one("step")[0], file))
    return [file for *_, file in sorted(begin)] or files[:1]


def _collected(frame: "pl.LazyFrame") -> "pl.DataFrame":
    with _readable("the log"):
        return frame.collect()


@contextmanager
def _readable(what: str) -> Iterator[None]:
    """Context manager that turns errors of reading into ours."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise ValueError(f"{what} cannot be read, is it a whole Parquet file? {error!s:.200}") from error
