"""Players who learn Tetris: their jobs, their levels, and how sure these are.

The score of one game is close to exponential, so a level is a mean over many games and several seeds. It is that
of the second half of the shortest runs on a board, which every player has.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.paper.results import chosen_by_the_others, having
from rlsvi.paper.tetris.games import learning_games
from rlsvi.study.job import Job
from rlsvi.study.statistics import Interval, bootstrap, median, multiple, ratio

Player = dict[str, Any]
AS_MUCH = 0.9  # times; two shares that are equal cannot be told to be so without some room


def player(agent: str, **changes: Any) -> Player:
    """The settings of a player: those of stationary RLSVI or LSVI in the afterstate form, except for `changes`."""
    usual = {"board": "20x10", "agent": agent, "form": "afterstate", "units": "scaled", "gamma": 0.99}
    more = {"memory": 100_000, "epsilon": 0.0, "decay": 1.0, "game_over": "top row"}
    return {**usual, **more, **changes}


def jobs_of(players: Sequence[Player], games: int, seeds: int, cost: float = 0.05) -> list[Job]:
    """A run of each player with each seed; `cost` is about that of a game."""
    return [
        Job.of(learning_games, cost * games, **who, games=games, seed=seed)
        for who in players
        for seed in range(seeds)
    ]


def scores(frame: pl.DataFrame, who: Player, games: int | None = None) -> Floats:
    """Rows removed, (seeds, games), in a player's runs of so many games; the shortest on its board by default."""
    mine = having(frame, **who, games=games or shortest(frame, who["board"])).sort("seed", "game")
    return mine["rows"].to_numpy().reshape(mine["seed"].n_unique(), -1).astype(np.float64)


def shortest(frame: pl.DataFrame, board: str = "20x10") -> int:
    """The games that every player on a board has played."""
    return int(frame.filter(pl.col("board") == board)["games"].min())  # type: ignore[arg-type]


def longest(frame: pl.DataFrame, board: str = "20x10") -> int:
    """The games of the longest runs on a board."""
    return int(frame.filter(pl.col("board") == board)["games"].max())  # type: ignore[arg-type]


def window(frame: pl.DataFrame, board: str = "20x10") -> str:
    """The games that a level is the mean of, in words."""
    games = shortest(frame, board)
    return f"games {games // 2 + 1} to {games}"


def level(frame: pl.DataFrame, who: Player) -> Floats:
    """Mean rows a game once it has learned, for each seed."""
    rows = scores(frame, who)
    return np.asarray(rows[:, rows.shape[1] // 2 :].mean(axis=1))


def beginning(frame: pl.DataFrame, who: Player) -> Floats:
    """Mean rows a game in the first half of the shortest runs, for each seed."""
    rows = scores(frame, who)
    return np.asarray(rows[:, : rows.shape[1] // 2].mean(axis=1))


def kept(frame: pl.DataFrame, who: Player, parts: int = 5, games: int | None = None) -> tuple[Floats, Floats]:
    """Mean rows a game in the best and in the last of so many parts of a run, for each seed."""
    rows = scores(frame, who, games)
    means = rows[:, : rows.shape[1] // parts * parts].reshape(len(rows), parts, -1).mean(axis=2)
    return means.max(axis=1), means[:, -1]


def spread(values: Floats) -> float:
    """The standard deviation of runs over their mean."""
    return multiple(float(values.std()), float(values.mean()))


def steadiness(frame: pl.DataFrame, who: Player, other: Player) -> tuple[Interval, Interval]:
    """How much a player's level varies between runs, and how much of the level in its best fifth a run has in its
    last: both as multiples of those of another player.
    """
    varies = bootstrap(
        lambda drawn: multiple(spread(drawn[0]), spread(drawn[1])), [level(frame, it) for it in (who, other)]
    )
    shares = []
    for it in (who, other):
        best, last = kept(frame, it)
        shares.append(np.divide(last, best, out=np.ones_like(best), where=best > 0))
    return varies, ratio(*shares)


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
    return float(having(frame, **who)["size"].to_numpy().max())


def schedule(who: Player) -> str:
    """How a player of LSVI explores, in game l."""
    if who["decay"] == 1:
        return f"ε = {who['epsilon']:g}"
    return f"ε = {who['epsilon']:g} × {who['decay']:g}ˡ"
