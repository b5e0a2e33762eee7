"""Logs of any kind as one frame, and as an environment to learn in."""

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import Env, spaces

from rlsvi.agents.task import checked_env
from rlsvi.envs.spaces import Spaces
from rlsvi.logs.columns import Columns, depth
from rlsvi.logs.episodes import checked, ordered
from rlsvi.logs.replay import Replay

if TYPE_CHECKING:
    import polars as pl

KINDS = (
    "a polars frame, the path of a Parquet file or of a folder of such files, a pandas or Arrow table, a Minari "
    "data set, or an iterator of such pieces"
)


def replay_of(log: Any, env: Env[Any, Any] | None = None, columns: Mapping[str, Any] | None = None) -> Replay:
    """Return a log as an environment, after checking it all.

    env : the environment that it comes from, or envs.Spaces; None: its spaces are those of the log.
    columns : the names of columns that are called otherwise; see `Agent.fit`.
    """
    if isinstance(log, Replay):
        return Replay(log.log, log.env)
    if env is not None:
        checked_env(env)
    if env is None and all(hasattr(log, name) for name in ("observation_space", "action_space")):
        env = Spaces(log.observation_space, log.action_space)  # a Minari data set knows them, and often more
        env.spec = getattr(log, "env_spec", None)
        checked_env(env)
    found = ordered(frame_of(log), columns)
    env = spaces_in(found) if env is None else env
    return Replay(checked(found, env), env)


def frame_of(log: Any) -> "pl.DataFrame":
    """Return a log as one frame, with its rows in the order in which they are given."""
    import polars as pl

    if isinstance(log, pl.DataFrame):
        return log
    if isinstance(log, pl.LazyFrame):
        return log.collect()
    if isinstance(log, str | PathLike):
        return _from_path(Path(log))
    if type(log).__module__.split(".")[0] == "minari":
        from rlsvi.logs.minari_data import episodes_of

        return _joined(episodes_of(log))
    if hasattr(log, "iloc") and hasattr(log, "columns"):  # pandas
        return pl.from_pandas(log)
    if hasattr(log, "__arrow_c_stream__"):
        return pl.DataFrame(log)
    if isinstance(log, Iterable) and not isinstance(log, bytes | Mapping | np.ndarray):
        return _joined(log)
    raise TypeError(f"log must be {KINDS}, got {type(log).__name__}")


def _from_path(path: Path) -> "pl.DataFrame":
    import polars as pl

    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise FileNotFoundError(f"there is no Parquet file in the folder {path}")
    if not files[0].exists():
        raise FileNotFoundError(f"there is no log {path}: give {KINDS}")
    pieces = []
    for file in files:
        try:
            pieces.append(pl.read_parquet(file, hive_partitioning=False))
        except (pl.exceptions.PolarsError, OSError) as error:
            raise ValueError(f"{file} is not a whole Parquet file: {error!s:.200}") from error
    return _joined(pieces)


def _joined(pieces: Iterable[Any]) -> "pl.DataFrame":
    """Return pieces one below another; they must have the same columns."""
    import polars as pl

    frames = [frame_of(piece) for piece in pieces]
    if not frames:
        raise ValueError("the log is empty: it has no pieces")
    for i, frame in enumerate(frames):
        if sorted(frame.columns) != sorted(frames[0].columns):
            raise ValueError(
                f"piece {i} of the log has the columns {', '.join(frame.columns)}, piece 0 has "
                f"{', '.join(frames[0].columns)}: all pieces need the same"
            )
    try:
        return pl.concat([frame.select(frames[0].columns) for frame in frames], how="vertical_relaxed")
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"the pieces of the log have columns of different types: {error!s:.200}") from error


def spaces_in(columns: Columns) -> Spaces:
    """Return the spaces of a log alone: numbers up to the largest one met, or vectors without bounds."""
    action = columns.whole("action")
    columns.refuse(columns.of("action")[0], action < 0, "actions count from 0")
    n = int(action.max()) + 1
    if columns.has("mask"):
        n = max(n, _width(columns, "mask") or 0)
    return Spaces(_observation_space(columns), spaces.Discrete(n))


def _observation_space(columns: Columns) -> Any:
    import polars as pl

    names = columns.of("observation")
    dtype: Any = columns.frame[names[0]].dtype
    if len(names) == 1 and dtype.is_integer():
        both = [columns.frame[columns.of(name)[0]].drop_nulls() for name in ("observation", "next_observation")]
        met = np.concatenate([series.cast(pl.Int64, strict=False).drop_nulls().to_numpy() for series in both])
        columns.refuse(names[0], columns.frame[names[0]].to_numpy() < 0, "states count from 0")
        return spaces.Discrete(int(met.max(initial=0)) + 1)
    if len(names) == 1 and dtype == pl.String:
        return spaces.Text(2**20)
    width = _width(columns, "observation")
    if width is None or depth(dtype) > 1:
        raise ValueError(
            f"what is observed cannot be told from column {names[0]!r}, which holds {dtype}: give the "
            "environment by agent.fit(log, env), or rlsvi.envs.Spaces(observation_space, action_space)"
        )
    return spaces.Box(-np.inf, np.inf, (width,), np.float64)


def _width(columns: Columns, name: str) -> int | None:
    """Return how many numbers a row of a column has; None if that cannot be told."""
    import polars as pl

    names = columns.of(name)
    series = columns.frame[names[0]].drop_nulls()
    if isinstance(series.dtype, pl.List):
        return int(series.list.len()[0]) if len(series) else None
    if isinstance(series.dtype, pl.Array):
        return int(series.dtype.size)
    if not (series.dtype.is_numeric() or series.dtype == pl.Boolean):
        return None
    return len(columns.equal_parts(name, len(names)))
