"""Logs of any kind as an environment to learn in."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import Env, spaces

from rlsvi.core.compile import Longs
from rlsvi.envs.spaces import Spaces
from rlsvi.envs.task import check_env
from rlsvi.offline.columns import Columns, depth
from rlsvi.offline.episodes import checked, ordered
from rlsvi.offline.pieces import joined, naming_pieces, pieces_of
from rlsvi.offline.replay import Replay

ACTIONS, STATES = 10_000, 1_000_000  # the most that a log alone may number


def replay_of(log: Any, env: Env[Any, Any] | None = None, columns: Mapping[str, Any] | None = None) -> Replay:
    """Return a log as an environment, after checking it all.

    env : the environment that it comes from, or envs.Spaces; None: its spaces are those of the log.
    columns : the names of columns that are called otherwise; see `Agent.fit`.
    """
    if isinstance(log, Replay):
        return Replay(log.log, log.env)
    if env is not None:
        check_env(env)
    if env is None and all(hasattr(log, name) for name in ("observation_space", "action_space")):
        env = Spaces(log.observation_space, log.action_space)  # a Minari data set knows them, and often more
        env.spec = getattr(log, "env_spec", None)
        check_env(env)
    pieces = pieces_of(log)
    with naming_pieces(pieces):
        found = ordered(joined(pieces), columns)
        env = spaces_in(found) if env is None else env
        return Replay(checked(found, env), env)


def spaces_in(columns: Columns) -> Spaces:
    """Return the spaces of a log alone: numbers up to the largest one met, or vectors without bounds."""
    action = columns.whole("action")
    columns.refuse(columns.of("action")[0], action < 0, "actions count from 0")
    columns.refuse(columns.of("action")[0], action >= ACTIONS, _too_large("actions", ACTIONS))
    n = int(action.max()) + 1
    if columns.has("mask"):
        n = max(n, _width(columns, "mask") or 0)
    return Spaces(_observation_space(columns), spaces.Discrete(n))


def _observation_space(columns: Columns) -> Any:
    import polars as pl

    names = columns.of("observation")
    dtype: Any = columns.frame[names[0]].dtype
    if len(names) == 1 and dtype.is_integer():
        return spaces.Discrete(
            max(_largest_state(columns, name) for name in ("observation", "next_observation")) + 1
        )
    if len(names) == 1 and dtype == pl.String:
        return spaces.Text(2**20)
    width = _width(columns, "observation")
    if width is None or depth(dtype) > 1:
        raise ValueError(
            f"what is observed cannot be told from column {names[0]!r}, which holds {dtype}: give the "
            "environment by agent.fit(log, env), or rlsvi.envs.Spaces(observation_space, action_space)"
        )
    return spaces.Box(-np.inf, np.inf, (width,), np.float64)


def _largest_state(columns: Columns, name: str) -> int:
    """Return the largest number of a column of states; values that are missing are found out later."""
    import polars as pl

    series = columns.frame[columns.name(name)]
    if not (series.dtype.is_integer() or series.dtype == pl.Null):
        raise ValueError(
            f"the log is wrong in column {series.name!r}: it holds {series.dtype}, but observations are numbers "
            "of states"
        )
    states: Longs = series.cast(pl.Int64, strict=False).fill_null(0).to_numpy()
    columns.refuse(series.name, states < 0, "states count from 0")
    columns.refuse(series.name, states >= STATES, _too_large("states", STATES))
    return int(states.max(initial=0))


def _too_large(things: str, many: int) -> str:
    return (
        f"without an environment, {things} are numbered 0 to at most {many - 1}: number those that there are, or "
        "give env"
    )


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
