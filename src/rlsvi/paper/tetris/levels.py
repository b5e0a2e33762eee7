"""Players who learn Tetris: their jobs, their levels, and how sure these are.

The score of one game is close to exponential, so a level is a mean over many games and several seeds. It is that
of the second half of the shortest runs on a board.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.paper.results import chosen_by_the_others, having
from rlsvi.paper.tetris.games import learning_games
from rlsvi.study.job import Job
from rlsvi.study.statistics import median

Player = dict[str, Any]


def player(agent: str, **changes: Any) -> Player:
    """The settings of a player: those of stationary RLSVI or LSVI in the afterstate form, except for `changes`."""
    usual = {"board": "20x10", "agent": agent, "form": "afterstate", "units": "scaled", "gamma": 0.99}
    more = {"memory": 100_000, "epsilon": 0.0, "decay": 1.0, "game_over": "top row"}
    return {**usual, **more, **changes}


def jobs_of(players: Sequence[Player], games: int, seeds: int, cost: float = 0.04) -> list[Job]:
    """A run of each player with each seed; `cost` is about that of a game."""
    return [
        Job.of(learning_games, cost * games, **who, games=games, seed=seed)
        for who in players
        for seed in range(seeds)
    ]


def runs_of(frame: pl.DataFrame, who: Player) -> pl.DataFrame:
    """The longest runs of a player."""
    mine = having(frame, **who)
    return mine.filter(pl.col("games") == pl.col("games").max()).sort("seed", "game")


def scores(frame: pl.DataFrame, who: Player) -> Floats:
    """Rows removed, (seeds, games), in the longest runs of a player."""
    mine = runs_of(frame, who)
    return mine["rows"].to_numpy().reshape(mine["seed"].n_unique(), -1).astype(np.float64)


def shortest(frame: pl.DataFrame, board: str = "20x10") -> int:
    """The games that every player on a board has played."""
    return int(frame.filter(pl.col("board") == board)["games"].min())  # type: ignore[arg-type]


def window(frame: pl.DataFrame, board: str = "20x10") -> str:
    """The games that a level is the mean of, in words."""
    games = shortest(frame, board)
    return f"games {games // 2 + 1} to {games}"


def level(frame: pl.DataFrame, who: Player) -> Floats:
    """Mean rows a game once it has learned, for each seed."""
    games = shortest(frame, who["board"])
    return np.asarray(scores(frame, who)[:, games // 2 : games].mean(axis=1))


def beginning(frame: pl.DataFrame, who: Player) -> Floats:
    """Mean rows a game in the first half of the shortest runs, for each seed."""
    return np.asarray(scores(frame, who)[:, : shortest(frame, who["board"]) // 2].mean(axis=1))


def passed(frame: pl.DataFrame, who: Player, rows: float, recent: int) -> Floats:
    """The game after which the mean of `recent` was first above `rows`, for each seed; infinite if never."""
    above = moving(scores(frame, who), recent) > rows
    return np.where(above.any(axis=1), above.argmax(axis=1) + float(recent), np.inf)


def games_told(passed: Floats) -> str:
    """The median number of games that seeds needed, in words."""
    games = median(passed)
    return f"{games:g} games" if np.isfinite(games) else "never"


def moving(values: Floats, width: int) -> Floats:
    """Means of `width` games in a row."""
    width = min(width, values.shape[1])
    sums = np.cumsum(np.pad(values, ((0, 0), (1, 0))), axis=1)
    return np.asarray((sums[:, width:] - sums[:, :-width]) / width)


def learning_curve(rows: Floats, width: int, points: int = 250) -> tuple[Floats, Floats]:
    """Games, and the mean of `width` games up to each, (seeds, points): few enough to draw."""
    values = moving(rows, width)
    at = np.unique(np.linspace(0, values.shape[1] - 1, points).round().astype(np.int64))
    return at.astype(np.float64) + (rows.shape[1] - values.shape[1] + 1), values[:, at]


def tuned(
    frame: pl.DataFrame, players: Sequence[Player], measure: Callable[[pl.DataFrame, Player], Floats] = level
) -> Floats:
    """What the best of some players has, for each seed: the player is chosen by the other seeds."""
    return chosen_by_the_others(np.stack([measure(frame, who) for who in players]))


def best_of(frame: pl.DataFrame, players: Sequence[Player]) -> Player:
    """The player of the greatest level, over all seeds."""
    return max(players, key=lambda who: level(frame, who).mean())


def largest(frame: pl.DataFrame, who: Player) -> float:
    """The largest norm that the weights of a player ever had."""
    return float(runs_of(frame, who)["size"].to_numpy().max())


def schedule(who: Player) -> str:
    """How a player of LSVI explores, in game l."""
    if who["decay"] == 1:
        return f"ε = {who['epsilon']:g}"
    return f"ε = {who['epsilon']:g} × {who['decay']:g}ˡ"
