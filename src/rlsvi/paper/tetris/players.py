"""Who plays Tetris on the large board in the figures, and what is measured of them."""

from typing import Any

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.paper.results import having
from rlsvi.paper.tetris.levels import Player, player
from rlsvi.paper.tetris.readings import AFTERSTATE, PATIENT, PRINTED, READINGS

Sides = tuple[Player, list[Player]]

PUBLISHED = 3183.0  # the best level of LSPI that the paper quotes
LEARNED = 1000.0  # rows a game
LAMBDAS = (0.0, 0.3)
FROM_SCORING, FROM_NOTHING = "scoring", "nothing"
GRID = [{"epsilon": epsilon, "decay": decay} for epsilon in (0.1, 1.0) for decay in (0.95, 0.98)]


def sides(reading: dict[str, Any]) -> Sides:
    """RLSVI, and LSVI with each of the schedules, in a reading of Q."""
    return player("RLSVI", **reading), [player("LSVI", **reading, **schedule) for schedule in GRID]


SIDES = {name: sides(reading) for name, reading in READINGS.items()}
RLSVI, SCHEDULES = SIDES[AFTERSTATE]
UNKNOWN_NOISE = player("RLSVI, unknown noise")
RAW, RAW_UNKNOWN = player("RLSVI", units="raw"), player("RLSVI, unknown noise", units="raw")
FORGETFUL = player("RLSVI", memory=10_000)
FIXED = [player("LSVI", epsilon=epsilon) for epsilon in (0.0, 0.001, 0.01, 0.1)]
GREEDY = FIXED[0]
UNDISCOUNTED, GREEDY_UNDISCOUNTED = player("RLSVI", gamma=1.0), player("LSVI", gamma=1.0)

LONG = {name: (SIDES[name][0], SIDES[name][1][1]) for name in (PRINTED, PATIENT, AFTERSTATE)}
IN_RUNS = [who for rlsvi, schedules in SIDES.values() for who in (rlsvi, *schedules)]
IN_MANY_RUNS = [RAW, RAW_UNKNOWN]
IN_FEW_RUNS = [UNKNOWN_NOISE, FORGETFUL, *FIXED, UNDISCOUNTED, GREEDY_UNDISCOUNTED]
ALL_PLAYERS = [*IN_RUNS, *IN_MANY_RUNS, *IN_FEW_RUNS]


def few_runs(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of the seeds that every player has."""
    return frame.filter(pl.col("seed").is_in(having(frame, **FORGETFUL)["seed"].unique().to_list()))


def lspi(frame: pl.DataFrame, start: str, lam: float) -> pl.DataFrame:
    """The rows of policy iteration, one per seed."""
    return having(frame, start=start, lam=lam, iteration=0).sort("seed")


def lspi_anew(frame: pl.DataFrame, start: str, name: str) -> Floats:
    """What players of policy iteration have in new games (`name`: "best_anew", "last_anew"), with every lambda."""
    return np.concatenate([lspi(frame, start, lam)[name].to_numpy() for lam in LAMBDAS])


def lspi_means(frame: pl.DataFrame, start: str, lam: float) -> Floats:
    """Mean rows of each player of policy iteration, (seeds, players)."""
    rows = having(frame, start=start, lam=lam).sort("seed", "iteration")
    return np.asarray(rows["mean"].to_numpy().reshape(rows["seed"].n_unique(), -1))


def lspi_games(frame: pl.DataFrame) -> int:
    """Games that a player of policy iteration plays."""
    return int(frame.filter(pl.col("start").is_not_null())["games"][0])


def lspi_passes(frame: pl.DataFrame, rows: float, lam: float) -> Floats:
    """Games until a player of policy iteration had more than `rows`, for each seed; infinite if none had."""
    above = lspi_means(frame, FROM_SCORING, lam) > rows
    return np.where(above.any(axis=1), (above.argmax(axis=1) + 1.0) * lspi_games(frame), np.inf)
