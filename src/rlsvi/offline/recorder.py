"""An environment that writes down what happens in it."""

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import Env, Wrapper

from rlsvi.agents.task import checked_reward, reset_env, step_env
from rlsvi.offline.columns import REQUIRED
from rlsvi.offline.observations import written

if TYPE_CHECKING:
    import polars as pl

NAMES = (*REQUIRED, "truncated", "mask", "next_mask")  # in the order of `Recorder._rows`
PIECE = 10_000  # rows that are kept before they become a frame, which takes less memory


class Recorder(Wrapper[Any, Any, Any, Any]):
    """Changes nothing of an environment, and keeps every step for `frame`."""

    def __init__(self, env: Env[Any, Any]) -> None:
        super().__init__(env)
        self._rows: list[tuple[Any, ...]] = []
        self._pieces: list[pl.DataFrame] = []
        self._written = written(env.observation_space)
        self._episode, self._step = -1, 0
        self._here: tuple[Any, Any] = None, None
        self.finished = 0  # episodes that have ended, or were left for another one

    @property
    def spec(self) -> Any:  # type: ignore[override]
        """How the environment was made; that it is recorded does not matter."""
        return self.env.spec

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode."""
        self.finished = self._episode + 1
        observation, info = reset_env(self.env, seed)  # type: ignore[arg-type]
        self._episode, self._step = self._episode + 1, 0
        self._here = self._written(observation), _mask(info)
        return observation, info

    def step(self, action: Any) -> Any:
        """Take an action, and write down what happened."""
        observation, reward, terminated, truncated, info = step_env(self.env, action)
        before, self._here = self._here, (self._written(observation), _mask(info))
        where = self._episode, self._step, before[0], int(action), checked_reward(reward), self._here[0]
        self._rows.append((*where, terminated, truncated, before[1], self._here[1]))
        self._step += 1
        if terminated or truncated:
            self.finished = self._episode + 1
        if len(self._rows) >= PIECE:
            self._pieces, self._rows = [*self._pieces, _frame(self._rows)], []
        return observation, reward, terminated, truncated, info

    @property
    def steps(self) -> int:
        """The number of steps so far."""
        return len(self._rows) + sum(piece.height for piece in self._pieces)

    def frame(self) -> "pl.DataFrame":
        """Return all steps. Masks are included if the environment has any."""
        import polars as pl

        pieces = [*self._pieces, _frame(self._rows)] if self._rows else self._pieces
        log = pl.concat(pieces, how="vertical_relaxed")
        return log.drop(NAMES[-2:]) if log["mask"].null_count() == log.height else log


def _frame(rows: list[tuple[Any, ...]]) -> "pl.DataFrame":
    """Return steps as a frame."""
    import polars as pl

    columns: dict[str, Any] = dict(zip(NAMES, zip(*rows, strict=True), strict=True))
    for name in ("observation", "next_observation"):
        columns[name] = column_of(columns[name])
    types: dict[str, Any] = {
        "action": pl.Int64,
        "reward": pl.Float64,
        "terminated": pl.Boolean,
        "truncated": pl.Boolean,
    }
    types |= {name: pl.List(pl.Boolean) for name in NAMES[-2:]}
    return pl.DataFrame(columns, schema_overrides=types)


def column_of(values: Any) -> Any:
    """Return observations that are written as a column: arrays as lists of numbers, of the same type."""
    return np.stack(values) if isinstance(values[0], np.ndarray) else list(values)


def _mask(info: Any) -> list[bool] | None:
    mask = info.get("action_mask")
    return None if mask is None else np.asarray(mask).astype(np.bool_).tolist()
