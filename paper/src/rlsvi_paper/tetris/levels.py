"""Players who learn Tetris: the readings of Q, their games, and the levels they reach.

The paper prints Q = theta . phi, calls every feature a whole number, and found a discount of .99 helpful. It does
not say when phi looks at the board: after the placement and the removal of full rows, which hides the rows
removed, changes nothing in the text, and is the reading that is judged. Others discount less, look before full
rows are removed, or add the reward at hand, Q = r + gamma theta . phi.

The score of one game is close to exponential, so a level is a mean over many games and several seeds. It is that
of the second half of the shortest runs on a board, which every player has.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.study.job import Job
from rlsvi.study.statistics import Interval, bootstrap, median, multiple, ratio
from rlsvi_paper.claim import Row, Verdict, all_of, at_least, choice, in_readings, three_digits
from rlsvi_paper.results import average, chosen_by_the_others
from rlsvi_paper.schedules import GRID
from rlsvi_paper.tetris.game import GameOver, Rules, rules
from rlsvi_paper.tetris.runs import Player as Run
from rlsvi_paper.tetris.runs import RunScores, learn_tetris

Player = dict[str, Any]
PLAYERS = ("RLSVI", "LSVI")
FIRST_SEED = 2000
BLOCK = 10  # games whose mean is kept
PUBLISHED, LEARNED = 3183.0, 1000.0  # rows: the best level of LSPI that the paper quotes, and one of who plays
# All numbers are real, so that a card computes all players on a board together.
USUAL: Player = {
    **{"board": "20x10", "game_over": "top row", "memory": 1e5, "gamma": 0.99, "sigma": 1.0, "unknown": 0.0},
    **{"known": 0.0, "before": 0.0, "scaled": 0.0, "epsilon": 0.0, "eta": 0.0, "decay": 1.0, "delay": 0.0},
}
LITERAL, BEFORE, AFTER = "literal", "before removal", "afterstate"
FORMS: dict[str, Player] = {LITERAL: {}, BEFORE: {"before": 1.0}, AFTER: {"known": 1.0}}
# What differs from Q = theta . phi with raw features of the board without its full rows.
READINGS: dict[str, Player] = {
    f"{form}, γ = {gamma}": {**FORMS[form], "gamma": float(gamma)}
    for form, gamma in product(FORMS, (".99", ".999", "1"))
}
AFTERSTATE = "afterstate, scaled, γ = .99"
READINGS[AFTERSTATE] = {"known": 1.0, "scaled": 1.0, "gamma": 0.99}
PRINTED, PATIENT, ENDLESS = f"{LITERAL}, γ = .99", f"{LITERAL}, γ = .999", f"{LITERAL}, γ = 1"
FOUR = (PRINTED, PATIENT, ENDLESS, AFTERSTATE)  # the readings in which all sentences are judged


def player(**changes: Any) -> Player:
    """The settings of a player: those of the paper's RLSVI, except for `changes`."""
    return {**USUAL, **changes}


def lsvi(**changes: Any) -> Player:
    """The settings of a player of LSVI."""
    return player(sigma=0.0, **changes)


# RLSVI, and LSVI with each of two schedules, in each reading, as in docs/preregistration.md.
SIDES = {
    name: (player(**reading), [lsvi(**reading, epsilon=epsilon, decay=0.95) for epsilon in (0.1, 1.0)])
    for name, reading in READINGS.items()
}
# Every way to dither that is tried: greedily, the grid of other figures, and epsilon or 1 times decay^l.
FIXED_EPSILON = [{"epsilon": epsilon} for epsilon in (0.0, 0.001, 0.01, 0.02, 0.05, 0.1, 0.2)]
WAYS: list[Mapping[str, float]] = [
    *FIXED_EPSILON,
    *({"epsilon": epsilon, "decay": decay} for epsilon in (0.1, 1.0) for decay in (0.95, 0.98, 0.99, 0.997)),
    *(way for way in GRID.values() if way not in FIXED_EPSILON),
]


def jobs_of(players: Iterable[Player], games: int, seeds: int, cost: float = 0.05) -> list[Job]:
    """A run of each player with each seed; `cost` is about that of a game."""
    return [
        Job.of(learning_games, cost * games, **who, games=games, seed=FIRST_SEED + i)
        for who in players
        for i in range(seeds)
    ]


def learning_games(**settings: Any) -> dict[str, Any]:
    """A learning curve: mean rows, and the largest norm of theta, of every ten games up to `game`.

    The settings are those of a player, the number of games and the seed.
    """
    return curve(learn_tetris([run_of(settings)], board_of(settings), settings["games"]), 0)


def run_together(settings: Sequence[Mapping[str, Any]], fewest: int = 1) -> list[dict[str, Any]]:
    """Many runs on a board, in all readings, on a graphics card."""
    runs, board = [run_of(it) for it in settings], board_of(settings[0])
    found = learn_tetris(runs, board, settings[0]["games"], device="cuda")
    return [curve(found, r) for r in range(len(runs))]


learning_games.play_together = run_together  # type: ignore[attr-defined]


def run_of(settings: Mapping[str, Any]) -> Run:
    """The run of a job."""
    numbers = {name: settings[name] for name in ("seed", "gamma", "sigma", "epsilon", "eta", "decay", "delay")}
    flags = {name: settings[name] > 0 for name in ("known", "scaled", "before", "unknown")}
    return Run(**numbers, **flags, memory=int(settings["memory"]))


def board_of(settings: Mapping[str, Any]) -> Rules:
    """The rules of a job: 20 x 10 with all pieces, or "mini": 4 rows with S and Z."""
    game_over: GameOver = settings["game_over"]
    small = settings["board"] == "mini"
    return rules(4, pieces="SZ", game_over=game_over) if small else rules(game_over=game_over)


def curve(found: RunScores, r: int) -> dict[str, Any]:
    """What is kept of a run."""
    rows, size = (it[r].reshape(-1, BLOCK) for it in (found.rows, found.size))
    return {"game": BLOCK * np.arange(1, len(rows) + 1), "rows": rows.mean(axis=1), "size": size.max(axis=1)}


# ---- Scores in the table of a figure -------------------------------------------------------------------------


Key = tuple[Any, ...]
_LAST: list[Any] = []  # the last table and its runs: it may have millions of rows, and claims ask many times


def runs_in(frame: pl.DataFrame) -> dict[Key, Floats]:
    """The scores of all players, (seeds, blocks of games), by their settings."""
    if not _LAST or _LAST[0] is not frame:
        played = frame.filter(pl.col("board").is_not_null()).sort("seed", "game")
        groups = played.group_by(*USUAL, maintain_order=True).agg("rows", pl.col("seed").n_unique())
        _LAST[:] = (
            frame,
            {
                tuple(key): rows.to_numpy().reshape(seeds, -1).astype(np.float64)
                for *key, rows, seeds in zip(*groups.get_columns(), strict=True)
            },
        )
    found: dict[Key, Floats] = _LAST[1]
    return found


def scores(frame: pl.DataFrame, who: Player) -> Floats:
    """Mean rows of every ten games of a player, (seeds, blocks)."""
    return runs_in(frame)[tuple(who[name] for name in USUAL)]


def tried(frame: pl.DataFrame, who: Player) -> list[Player]:
    """The ways to dither that a table has in the reading and on the board of a player."""
    found = [{**who, "sigma": 0.0, **way} for way in WAYS]
    return [it for it in found if tuple(it[name] for name in USUAL) in runs_in(frame)]


def shortest(frame: pl.DataFrame, board: str = "20x10") -> int:
    """The blocks of games that every player on a board has played."""
    return min(len(rows[0]) for (name, *_), rows in runs_in(frame).items() if name == board)


def level(frame: pl.DataFrame, who: Player) -> Floats:
    """Mean rows a game once it has learned, for each seed: from the middle of the shortest runs on, or later."""
    blocks, start = shortest(frame, who["board"]), choice("the level begins after a share of", 0.5, 0.8)
    return np.asarray(scores(frame, who)[:, int(blocks * start) : blocks].mean(axis=1))


def first_half(frame: pl.DataFrame) -> pl.DataFrame:
    """The runs on the large board in the first half of their games."""
    half = BLOCK * shortest(frame) // 2
    return frame.filter(pl.col("board") == USUAL["board"], pl.col("game") <= half)


def beginning(frame: pl.DataFrame, who: Player) -> Floats:
    """Mean rows a game in the first half of the shortest runs, for each seed."""
    return np.asarray(scores(frame, who)[:, : shortest(frame, who["board"]) // 2].mean(axis=1))


def kept(rows: Floats, parts: int = 5) -> tuple[Floats, Floats]:
    """Mean rows a game in the best and in the last of so many parts of a run, for each seed."""
    parts = min(parts, rows.shape[1])
    means = rows[:, : rows.shape[1] // parts * parts].reshape(len(rows), parts, -1).mean(axis=2)
    return means.max(axis=1), means[:, -1]


def varies(values: Floats, others: Floats) -> Interval:
    """How much some runs vary, their standard deviation over their mean, as a multiple of others."""

    def of(drawn: list[Floats]) -> float:
        return multiple(*(multiple(float(it.std()), float(it.mean())) for it in drawn))

    return bootstrap(of, [values, others])


def above(*both: Floats) -> Verdict:
    """Whether the levels of RLSVI and of LSVI are above the best published one of LSPI."""
    named = zip(PLAYERS, map(average, both), strict=True)
    return all_of(*(at_least(it, PUBLISHED, f"{name} gets {three_digits(it)} rows a game") for name, it in named))


def steadiness(
    frame: pl.DataFrame, who: Player, other: Player, window: tuple[float, float] = (0.5, 1.0)
) -> tuple[Interval, Interval]:
    """How much a player's level varies between runs, and how much of the score of its best fifth a run has in its
    last: both as multiples of those of another player. The level is that of a window, in shares of the shortest
    runs, and runs end with it.
    """
    first, last = (int(share * shortest(frame, who["board"])) for share in window)
    both, shares = [scores(frame, it)[:, :last] for it in (who, other)], []
    for rows in both:
        best, end = kept(rows)
        shares.append(np.divide(end, best, out=np.ones_like(best), where=best > 0))
    return varies(*(rows[:, first:].mean(axis=1) for rows in both)), ratio(*shares)


def passed(frame: pl.DataFrame, who: Player, rows: float, recent: int) -> Floats:
    """The game after which the mean of `recent` was first above `rows`, for each seed; infinite if never."""
    blocks = max(recent // BLOCK, 1)
    above = moving(scores(frame, who), blocks) > rows
    return np.where(above.any(axis=1), BLOCK * (above.argmax(axis=1) + float(blocks)), np.inf)


def words_of_games(passed: Floats) -> str:
    """The median number of games that seeds needed, in words."""
    games = median(passed)
    return f"{games:g} games" if np.isfinite(games) else "never"


def moving(values: Floats, width: int) -> Floats:
    """Means of `width` values in a row."""
    width = min(width, values.shape[1])
    sums = np.cumsum(np.pad(values, ((0, 0), (1, 0))), axis=1)
    return np.asarray((sums[:, width:] - sums[:, :-width]) / width)


def learning_curve(rows: Floats, width: int) -> tuple[Floats, Floats]:
    """Games, and the mean of `width` blocks of games up to each, (seeds, points)."""
    values = moving(rows, width)
    return BLOCK * np.arange(rows.shape[1] - values.shape[1] + 1.0, rows.shape[1] + 1.0), values


def tuned(
    frame: pl.DataFrame, players: Sequence[Player], measure: Callable[[pl.DataFrame, Player], Floats] = level
) -> Floats:
    """What the best of some players has, for each seed that all have: the player is chosen by the other seeds."""
    found = [measure(frame, who) for who in players]
    seeds = min(map(len, found))
    return chosen_by_the_others(np.stack([it[:seeds] for it in found]))


def best_of(frame: pl.DataFrame, players: Sequence[Player]) -> Player:
    """The player of the greatest level, over all seeds."""
    return max(players, key=lambda who: level(frame, who).mean())


def schedule(who: Player) -> str:
    """How a player of LSVI explores, in game l."""
    name, scale = ("η", who["eta"]) if who["eta"] else ("ε", who["epsilon"])
    falls = f" × {who['decay']:g}ˡ" * (who["decay"] < 1) + f"/({who['delay']:g} + l)" * (who["delay"] > 0)
    return f"{name} = {scale:g}{falls}"


def in_each_reading(
    headings: Row,
    judge: Callable[[str], tuple[Verdict, Row]],
    readings: Iterable[str] = FOUR,
    remarks: Iterable[Row] = (),
) -> Verdict:
    """The verdict in the reading that is printed, and a table of all with whether they meet the criterion.

    Parameters
    ----------
    judge
        For the name of a reading, its verdict and its row under `headings`.
    """
    return in_readings(("reading", *headings, "verdict"), {name: judge(name) for name in readings}, remarks)
