"""What a comparison brought: a table of episodes, a summary, a figure."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsvi.core.compile import Floats
from rlsvi.simulate import History

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs of several agents on one problem, one a seed."""

    problem: str
    agents: tuple[str, ...]
    seeds: tuple[int, ...]
    histories: Mapping[tuple[str, int], History]

    @property
    def episodes(self) -> int:
        """Episodes a run."""
        return len(next(iter(self.histories.values())).reward)

    @cached_property
    def frame(self) -> "pl.DataFrame":
        """A row an episode: agent, seed, episode, reward, regret (expected) and realised (realised regret)."""
        import polars as pl

        episode = np.arange(self.episodes)
        return pl.concat(
            pl.DataFrame(
                {
                    "agent": pl.repeat(agent, self.episodes, eager=True),
                    "seed": pl.repeat(seed, self.episodes, dtype=pl.Int64, eager=True),
                    "episode": episode,
                    "reward": history.reward,
                    "regret": history.regret,
                    "realised": history.realised,
                }
            )
            for (agent, seed), history in self.histories.items()
        )

    def cumulative(self, agent: str) -> Floats:
        """Expected regret up to each episode, (seeds, episodes)."""
        return np.stack([np.cumsum(self.histories[agent, seed].regret) for seed in self.seeds])

    def learning_times(self, agent: str, rewards: float = 10.0) -> Floats:
        """Episodes until the rewards sum to `rewards`, for every seed; infinite if they never did."""
        totals = np.stack([np.cumsum(self.histories[agent, seed].reward) for seed in self.seeds])
        reached = totals >= rewards
        return np.where(reached.any(axis=1), reached.argmax(axis=1) + 1.0, np.inf)

    def summary(self) -> "pl.DataFrame":
        """A row an agent: median and quartiles of the total expected regret, and when it learned.

        `learned` counts the seeds that collected ten rewards; `episodes_to_10` is the median over all seeds
        of the episodes it took, null when half of them or more never did.
        """
        import polars as pl

        return pl.DataFrame(
            [self._row(agent) for agent in self.agents], schema_overrides={"episodes_to_10": pl.Float64}
        )

    def _row(self, agent: str) -> dict[str, Any]:
        histories = [self.histories[agent, seed] for seed in self.seeds]
        regret = np.array([history.regret.sum() for history in histories])
        times = np.sort(self.learning_times(agent))
        middle = times[(len(times) - 1) // 2 : len(times) // 2 + 1].mean()
        last = max(self.episodes // 10, 1)
        return {
            "agent": agent,
            "seeds": len(self.seeds),
            "regret": float(np.median(regret)),
            "regret_q25": float(np.quantile(regret, 0.25)),
            "regret_q75": float(np.quantile(regret, 0.75)),
            "regret_last_tenth": float(np.median([history.regret[-last:].mean() for history in histories])),
            "reward": float(np.median([history.reward.sum() for history in histories])),
            "learned": int(np.isfinite(times).sum()),
            "episodes_to_10": float(middle) if np.isfinite(middle) else None,
        }

    def plot(self, path: str | os.PathLike[str]) -> Path:
        """Draw the cumulative expected regret: medians, quartile bands and every run. Returns the path."""
        from rlsvi.study.plot import regret_figure

        figure = regret_figure(self)
        figure.savefig(path, dpi=200)
        return Path(path)
