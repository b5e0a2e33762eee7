"""Who plays Tetris on the large board in the figures, and what is measured of them."""

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.paper.results import having
from rlsvi.paper.tetris.levels import player

PUBLISHED = 3183.0  # the best level of LSPI that the paper quotes
LEARNED = 1000.0  # rows a game
LAMBDAS = (0.0, 0.3)
FROM_SCORING, FROM_NOTHING = "scoring", "nothing"
GRID = [{"epsilon": epsilon, "decay": decay} for epsilon in (0.1, 1.0) for decay in (0.95, 0.98)]

RLSVI = player("RLSVI")
UNKNOWN_NOISE = player("RLSVI, unknown noise")
RAW, RAW_UNKNOWN = player("RLSVI", units="raw"), player("RLSVI, unknown noise", units="raw")
FORGETFUL = player("RLSVI", memory=10_000)
SCHEDULES = [player("LSVI", **settings) for settings in GRID]
LSVI = SCHEDULES[1]
FIXED = [player("LSVI", epsilon=epsilon) for epsilon in (0.0, 0.001, 0.01, 0.1)]
GREEDY = FIXED[0]
UNDISCOUNTED, GREEDY_UNDISCOUNTED = player("RLSVI", gamma=1.0), player("LSVI", gamma=1.0)

# as printed: Q = theta . phi, raw features
PRINTED = {"form": "literal", "units": "raw"}
LITERAL = player("RLSVI", **PRINTED)
LITERAL_SCHEDULES = [player("LSVI", **PRINTED, **settings) for settings in GRID]
LITERAL_PATIENT = [player("RLSVI", **PRINTED, gamma=0.999), player("LSVI", **PRINTED, gamma=0.999, **GRID[0])]

# by the form of Q: RLSVI and the schedules of LSVI
FORMS = {"afterstate": (RLSVI, SCHEDULES), "literal": (LITERAL, LITERAL_SCHEDULES)}

LONG = [RLSVI, LSVI]
ALL_PLAYERS = [
    *(RLSVI, UNKNOWN_NOISE, RAW, RAW_UNKNOWN, FORGETFUL, UNDISCOUNTED),
    *(*SCHEDULES, *FIXED, GREEDY_UNDISCOUNTED),
    *(LITERAL, *LITERAL_SCHEDULES, *LITERAL_PATIENT),
]


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
