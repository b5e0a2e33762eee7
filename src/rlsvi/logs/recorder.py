"""An environment that writes down what happens in it."""

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import Env, Wrapper

from rlsvi.agents.task import begun, checked_reward, taken
from rlsvi.logs.columns import REQUIRED
from rlsvi.logs.observations import written

if TYPE_CHECKING:
    import polars as pl


NAMES = (*REQUIRED, "mask", "next_mask")  # in the order of `Recorder.rows`


class Recorder(Wrapper[Any, Any, Any, Any]):
    """Changes nothing of an environment, and keeps every step for `frame`."""

    def __init__(self, env: Env[Any, Any]) -> None:
        super().__init__(env)
        self.rows: list[tuple[Any, ...]] = []
        self._written = written(env.observation_space)
        self._episode, self._step = -1, 0
        self._here: tuple[Any, Any] = None, None

    @property
    def spec(self) -> Any:  # type: ignore[override]
        """How the environment was made; that it is recorded does not matter."""
        return self.env.spec

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode."""
        observation, info = begun(self.env, seed)  # type: ignore[arg-type]
        self._episode, self._step = self._episode + 1, 0
        self._here = self._written(observation), _mask(info)
        return observation, info

    def step(self, action: Any) -> Any:
        """Take an action, and write down what happened."""
        observation, reward, terminated, truncated, info = taken(self.env, action)
        before, self._here = self._here, (self._written(observation), _mask(info))
        where = self._episode, self._step, before[0], int(action), checked_reward(reward), self._here[0]
        self.rows.append((*where, terminated, truncated, before[1], self._here[1]))
        self._step += 1
        return observation, reward, terminated, truncated, info

    def frame(self, propensities: list[float] | None = None) -> "pl.DataFrame":
        """Return all steps. Masks are included if the environment has any."""
        import polars as pl

        columns: dict[str, Any] = dict(zip(NAMES, zip(*self.rows, strict=True), strict=True))
        masks = [columns.pop(name) for name in NAMES[-2:]]
        for name in ("observation", "next_observation"):
            columns[name] = column_of(columns[name])
        if any(mask is not None for mask in masks[0]):
            of_masks = pl.List(pl.Boolean)
            columns |= {name: pl.Series(m, dtype=of_masks) for name, m in zip(NAMES[-2:], masks, strict=True)}
        if propensities is not None:
            columns["propensity"] = propensities
        types = {"action": pl.Int64, "reward": pl.Float64, "terminated": pl.Boolean, "truncated": pl.Boolean}
        return pl.DataFrame(columns, schema_overrides=types)


def column_of(values: Any) -> Any:
    """Return observations that are written as a column: arrays as lists of numbers, of the same type."""
    return np.stack(values) if isinstance(values[0], np.ndarray) else list(values)


def _mask(info: Any) -> list[bool] | None:
    mask = info.get("action_mask")
    return None if mask is None else np.asarray(mask).astype(np.bool_).tolist()
