"""Scores between 0 and 1, as the suite defines them: of experiments, and of the abilities that they test."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from rlsvi.paper.bsuite.package import TAGS, arguments_of, episodes_of, ids_of, imported, tags_of

# The package's own function for these needs pandas 1, which does not go with NumPy 2. By experiment: the share of
# bad episodes below which a size is solved, and the first episode that counts.
DEEP_SEA = {"deep_sea": (0.9, 1), "deep_sea_stochastic": (0.8, 100)}
FORGIVEN = 100  # episodes more than 2^size in which a size may be solved


class Score(NamedTuple):
    """The score of an agent in an experiment, and what it is based on.

    settings, episodes : how many were played, and how many the suite asks for.
    seconds : the computing time of all settings.
    """

    agent: str
    experiment: str
    score: float
    tags: list[str]
    settings: tuple[int, int]
    episodes: tuple[int, int]
    seconds: float

    @property
    def complete(self) -> bool:
        """Whether all was played that the suite asks for."""
        return self.settings[0] == self.settings[1] and self.episodes[0] == self.episodes[1]


def scored(agent: str, experiment: str, tables: Sequence[tuple[pl.DataFrame, float]]) -> Score:
    """Return the score of an agent, of the tables of its settings and the seconds that each took."""
    frame = pl.concat([table for table, _ in tables], how="diagonal_relaxed")
    episodes, asked = int(frame["episode"].max()), episodes_of(experiment)  # type: ignore[arg-type]
    return Score(
        agent,
        experiment,
        score_of(experiment, frame),
        tags_of(experiment),
        (len(tables), len(ids_of(experiment))),
        (episodes, asked),
        sum(seconds for _, seconds in tables),
    )


def score_of(experiment: str, frame: pl.DataFrame) -> float:
    """Return the score of the logged rows of an experiment, which have a column `bsuite_id`."""
    if experiment in DEEP_SEA:
        return deep_sea_score(frame, *DEEP_SEA[experiment])
    import pandas

    logged = frame.drop("agent", "seed", "bsuite", "sources", "episodes", strict=False)
    rows: Any = [row | arguments_of(row["bsuite_id"]) for row in logged.to_dicts()]
    score = imported(f"experiments.{experiment}.analysis").score(pandas.DataFrame(rows))
    return float(score)


def deep_sea_score(frame: pl.DataFrame, bad: float, first: int) -> float:
    """Return the share of sizes that are solved sooner than by dithering, which needs 2^size episodes.

    A size is solved at the first logged episode at which less than a share `bad` of all episodes so far left the
    way to the treasure by a choice of the agent.
    """
    beaten = []
    for (bsuite_id,), rows in frame.group_by("bsuite_id", maintain_order=True):
        size, episode = arguments_of(str(bsuite_id))["size"], rows["episode"].to_numpy()
        solved = (episode >= first) & (rows["total_bad_episodes"].to_numpy() / episode < bad)
        beaten.append(bool(solved.any()) and bool(episode[solved].min() < 2.0**size + FORGIVEN))
    return float(np.mean(beaten))


def by_tag(scores: Sequence[Score]) -> dict[str, float]:
    """Return the mean score of the experiments with each tag, for tags that any experiment has."""
    found = {tag: [it.score for it in scores if tag in it.tags] for tag in TAGS}
    return {tag: float(np.mean(values)) for tag, values in found.items() if values}
