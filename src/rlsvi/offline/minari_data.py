"""The episodes of a Minari data set as pieces of a log: pip install ".[minari]"."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsvi.envs.task import one_observation
from rlsvi.offline.observations import written
from rlsvi.offline.recorder import column_of

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
        seen = [copied(one_observation(episode.observations, i)) for i in range(steps + 1)]
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
                **_masks(episode, steps),
            }
        )


def _masks(episode: Any, steps: int) -> dict[str, Any]:
    """Return the columns of legal actions, if the data were recorded with record_infos=True and have them."""
    given = (episode.infos or {}).get("action_mask")
    if given is None:
        return {}
    masks = np.asarray(given).astype(np.bool_)
    if masks.ndim != 2 or len(masks) != steps + 1:
        raise ValueError(
            f"episode {episode.id} of the data set has action masks of shape {masks.shape}, there must be one for "
            f"each of its {steps + 1} observations"
        )
    return {"mask": masks[:-1], "next_mask": masks[1:]}
