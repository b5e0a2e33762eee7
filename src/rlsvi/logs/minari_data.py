"""The episodes of a Minari data set as pieces of a log: pip install rlsvi[minari]."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsvi.agents.predicting import row_of
from rlsvi.logs.observations import written
from rlsvi.logs.recorder import column_of

if TYPE_CHECKING:
    import polars as pl


def episodes_of(data: Any) -> "Iterator[pl.DataFrame]":
    """Yield the episodes of a data set, one frame each."""
    import polars as pl

    if not hasattr(data, "iterate_episodes"):
        raise TypeError(f"log must be a Minari data set, as minari.load_dataset returns it, got {type(data)}")
    copied = written(data.observation_space)
    for episode in data.iterate_episodes():
        steps = len(episode.rewards)
        seen = [copied(row_of(episode.observations, i)) for i in range(steps + 1)]
        yield pl.DataFrame(
            {
                "episode": np.full(steps, int(episode.id), np.int64),
                "step": np.arange(steps),
                "observation": column_of(seen[:-1]),
                "action": np.asarray(episode.actions).reshape(steps),
                "reward": np.asarray(episode.rewards, np.float64),
                "next_observation": column_of(seen[1:]),
                "terminated": np.asarray(episode.terminations, np.bool_),
                "truncated": np.asarray(episode.truncations, np.bool_),
            }
        )
