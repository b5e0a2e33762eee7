"""Players who learn Tetris: the readings of Q, their games, and the levels they reach.

The paper prints Q = theta . phi, calls every feature a whole number, and found a discount of .99 helpful. It
does not say when phi looks at the board: here after the placement and the removal of full rows, which hides the
rows removed. This reading changes nothing in the text, and is the one that is judged. Two others discount less.
The last adds the reward at hand, Q = r + gamma theta . phi, with features divided by the height of the board.

The score of one game is close to exponential, so a level is a mean over many games and several seeds. It is that
of the second half of the shortest runs on a board, which every player has.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import polars as pl

from rlsvi.agents import EpsilonGreedy, Exponential, InverseGamma, StationaryLSVI, StationaryRLSVI
from rlsvi.agents.files import load
from rlsvi.agents.stationary import Form, StationaryAgent
from rlsvi.core.archive import ArchiveError
from rlsvi.core.compile import Floats
from rlsvi.core.files import whole_file
from rlsvi.core.regression import FactorError
from rlsvi.study.checkpoint import checkpoint
from rlsvi.study.job import Job
from rlsvi.study.statistics import Interval, bootstrap, mean, median, multiple, ratio
from rlsvi_paper.claim import Row, Verdict, all_of, at_least, in_readings, three_digits
from rlsvi_paper.results import chosen_by_the_others
from rlsvi_paper.tetris import Rules, Tetris, rules
from rlsvi_paper.tetris.game import GameOver
from rlsvi_paper.tetris.loop import Games, simulate_tetris

CHECKPOINT_SECONDS, AT_ONCE = 60.0, 10  # seconds between two checkpoints; games between two looks at the clock
MOST_PIECES = 1_000_000  # pieces, at which a game is cut off
Player = dict[str, Any]
PLAYERS = ("RLSVI", "LSVI")
PUBLISHED, LEARNED = 3183.0, 1000.0  # rows: the best level of LSPI that the paper quotes, and one of who plays
LITERAL: dict[str, Any] = {"form": "literal", "units": "raw"}
PRINTED, PATIENT, ENDLESS = "as printed, γ = .99", "literal, γ = .999", "literal, γ = 1"
AFTERSTATE = "afterstate, γ = .99"
READINGS: dict[str, dict[str, Any]] = {
    PRINTED: {**LITERAL, "gamma": 0.99},
    PATIENT: {**LITERAL, "gamma": 0.999},
    ENDLESS: {**LITERAL, "gamma": 1.0},
    AFTERSTATE: {"form": "afterstate", "units": "scaled", "gamma": 0.99},
}


def player(agent: str, **changes: Any) -> Player:
    """The settings of a player: those of stationary RLSVI or LSVI in the afterstate form, except for `changes`."""
    usual = {"board": "20x10", "agent": agent, "form": "afterstate", "units": "scaled", "gamma": 0.99}
    more = {"memory": 100_000, "epsilon": 0.0, "decay": 1.0, "game_over": "top row"}
    return {**usual, **more, **changes}


# Of LSVI: in game l it places at random with probability epsilon decay^l.
GRID = [{"epsilon": epsilon, "decay": decay} for epsilon in (0.1, 1.0) for decay in (0.95, 0.98)]
# RLSVI, and LSVI with each of these schedules, in each reading on the large board.
SIDES = {
    name: (player("RLSVI", **reading), [player("LSVI", **reading, **schedule) for schedule in GRID])
    for name, reading in READINGS.items()
}


def jobs_of(players: Sequence[Player], games: int, seeds: int, cost: float = 0.05) -> list[Job]:
    """A run of each player with each seed; `cost` is about that of a game."""
    return [
        Job.of(learning_games, cost * games, **who, games=games, seed=seed)
        for who in players
        for seed in range(seeds)
    ]


def learning_games(
    *,
    board: str,
    agent: str,
    form: Form,
    units: str,
    games: int,
    seed: int,
    gamma: float = 0.99,
    memory: int = 100_000,
    epsilon: float = 0.0,
    decay: float = 1.0,
    game_over: GameOver = "top row",
) -> dict[str, Any]:
    """Rows removed in every game that an agent learns from, with the largest size of its weights and its targets.

    These say whether it diverges; the agent's own warning is off. One whose numbers break plays no more.

    Parameters
    ----------
    board
        "20x10" with all pieces, or "mini": 4 rows with S and Z.
    agent
        "RLSVI" or "RLSVI, unknown noise" with lambda = sigma = 1, or "LSVI".
    epsilon, decay
        LSVI places at random with probability epsilon decay^l in game l.
    """
    basis = Tetris(units=units)
    common: dict[str, Any] = {"form": form, "gamma": gamma, "memory": memory, "seed": seed}
    player: StationaryAgent
    if agent == "LSVI":
        explore = EpsilonGreedy(epsilon if decay == 1 else Exponential(epsilon, decay))
        player = StationaryLSVI(basis=basis, explore=explore, diverged_above=1e300, **common)
    else:
        sigma = InverseGamma() if agent == "RLSVI, unknown noise" else 1.0
        player = StationaryRLSVI(basis=basis, sigma=sigma, diverged_above=1e300, **common)
    found = learned(player, board_of(board, game_over), games, checkpoint())
    played = {"game": np.arange(1, games + 1), "rows": found.rows, "pieces": found.pieces, "over": found.over}
    return {**played, "size": float(found.size.max()), "excess": float(found.excess.max())}


def board_of(board: str, game_over: GameOver) -> Rules:
    """The rules of a board."""
    return rules(game_over=game_over) if board == "20x10" else rules(4, pieces="SZ", game_over=game_over)


def learned(
    agent: StationaryAgent, board: Rules, games: int, folder: Path | None, every: float = CHECKPOINT_SECONDS
) -> Games:
    """So many games of an agent that learns, from where `folder` left off; it is kept there every few seconds."""
    agent, done = _resumed(agent, folder)
    last = time.monotonic()
    while agent.episodes < games:
        try:
            more = simulate_tetris(agent, board, min(AT_ONCE, games - agent.episodes), max_pieces=MOST_PIECES)
        except FactorError:  # it has diverged beyond all numbers, and plays no more
            return _joined(done, _no_more(games - len(done.rows), board.game_over))
        done = _joined(done, more)
        if folder is not None and time.monotonic() - last >= every and agent.episodes < games:
            with contextlib.suppress(OSError):  # another sweep was faster, or the disk is full: go on without
                _keep(agent, done, folder)
            last = time.monotonic()
    return done


def _no_more(games: int, game_over: str = "") -> Games:
    """Games that were not played, with infinite weights."""
    rows, pieces = np.zeros((2, games), np.int64)
    size, excess = np.full((2, games), np.inf)
    return Games(rows, pieces, np.ones(games, np.bool_), size, excess, np.full(games, game_over))


def _joined(first: Games, second: Games) -> Games:
    return Games(*(np.concatenate(columns) for columns in zip(first, second, strict=True)))


def _keep(agent: StationaryAgent, games: Games, folder: Path) -> None:
    """Write the games and then the agent, named by their number, and remove those before."""
    with whole_file(folder / f"{agent.episodes}.npz") as file:
        columns: Mapping[str, Any] = games._asdict()
        np.savez(file, **columns)
    agent.save(folder / f"{agent.episodes}.rlsvi")
    for path in folder.iterdir():
        if path.stem.isdigit() and int(path.stem) < agent.episodes:
            path.unlink(missing_ok=True)


def _resumed(agent: StationaryAgent, folder: Path | None) -> tuple[StationaryAgent, Games]:
    """The agent and its games as they were last kept; from the beginning if nothing was, or it cannot be read."""
    saved = [] if folder is None else [path for path in folder.glob("*.rlsvi") if path.stem.isdigit()]
    for path in sorted(saved, key=lambda path: -int(path.stem)):
        try:
            with open(path.with_suffix(".npz"), "rb") as file, np.load(file, allow_pickle=False) as columns:
                games = Games(*(columns[name] for name in Games._fields))
            found = load(path)
        except (OSError, ValueError, KeyError, BadZipFile, ArchiveError):
            continue
        assert isinstance(found, StationaryAgent)
        return found, games
    return agent, _no_more(0)


def scores(frame: pl.DataFrame, who: Player, games: int | None = None) -> Floats:
    """Rows removed, (seeds, games), in a player's runs of so many games; the shortest on its board by default."""
    names = (*sorted(who), "games")
    runs: dict[Any, Floats] = _once(frame, names, lambda: _runs(frame, names))
    return runs[*(who[name] for name in sorted(who)), games or shortest(frame, who["board"])]


def shortest(frame: pl.DataFrame, board: str = "20x10") -> int:
    """The games that every player on a board has played."""
    return min(_lengths(frame, board))


def longest(frame: pl.DataFrame, board: str = "20x10") -> int:
    """The games of the longest runs on a board."""
    return max(_lengths(frame, board))


def _lengths(frame: pl.DataFrame, board: str) -> list[int]:
    """The games of the runs on a board."""
    found = _once(frame, ("board",), lambda: frame.select("board", "games").unique().rows())
    return [games for name, games in found if name == board]


def _runs(frame: pl.DataFrame, names: Row) -> dict[Any, Floats]:
    """The scores of all players, (seeds, games), by settings of these names."""
    played = (
        frame.filter(pl.col("board").is_not_null()).select(*names, "seed", "game", "rows").sort("seed", "game")
    )
    groups = played.group_by(names, maintain_order=True).agg("rows", pl.col("seed").n_unique())
    return {
        tuple(key): rows.to_numpy().reshape(seeds, -1).astype(np.float64)
        for *key, rows, seeds in zip(*groups.get_columns(), strict=True)
    }


def _once(frame: pl.DataFrame, name: Row, make: Callable[[], Any]) -> Any:
    """What is made of a table, kept for the last one: it may have millions of rows, and claims ask many times."""
    if _MADE.get(()) is not frame:
        _MADE.clear()
        _MADE[()] = frame
    if name not in _MADE:
        _MADE[name] = make()
    return _MADE[name]


_MADE: dict[Row, Any] = {}


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
    parts = min(parts, rows.shape[1])
    means = rows[:, : rows.shape[1] // parts * parts].reshape(len(rows), parts, -1).mean(axis=2)
    return means.max(axis=1), means[:, -1]


def spread(values: Floats) -> float:
    """The standard deviation of runs over their mean."""
    return multiple(float(values.std()), float(values.mean()))


def varies(values: Floats, others: Floats) -> Interval:
    """How much some runs vary, as a multiple of others."""
    return bootstrap(lambda drawn: multiple(spread(drawn[0]), spread(drawn[1])), [values, others])


def above(*both: Floats) -> Verdict:
    """Whether the levels of RLSVI and of LSVI are above the best published one of LSPI."""
    named = zip(PLAYERS, map(mean, both), strict=True)
    return all_of(*(at_least(it, PUBLISHED, f"{name} gets {three_digits(it)} rows a game") for name, it in named))


def steadiness(frame: pl.DataFrame, who: Player, other: Player) -> tuple[Interval, Interval]:
    """How much a player's level varies between runs, and how much of the level in its best fifth a run has in its
    last: both as multiples of those of another player.
    """
    shares = []
    for it in (who, other):
        best, last = kept(frame, it)
        shares.append(np.divide(last, best, out=np.ones_like(best), where=best > 0))
    return varies(*(level(frame, it) for it in (who, other))), ratio(*shares)


def passed(frame: pl.DataFrame, who: Player, rows: float, recent: int) -> Floats:
    """The game after which the mean of `recent` was first above `rows`, for each seed; infinite if never."""
    above = moving(scores(frame, who), recent) > rows
    return np.where(above.any(axis=1), above.argmax(axis=1) + float(recent), np.inf)


def words_of_games(passed: Floats) -> str:
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


def schedule(who: Player) -> str:
    """How a player of LSVI explores, in game l."""
    if who["decay"] == 1:
        return f"ε = {who['epsilon']:g}"
    return f"ε = {who['epsilon']:g} × {who['decay']:g}ˡ"


def in_each_reading(
    headings: Row,
    judge: Callable[[str], tuple[Verdict, Row]],
    readings: Iterable[str] = READINGS,
    remarks: Iterable[Row] = (),
    why: str = "not run",
) -> Verdict:
    """The verdict in the reading that is printed, and a table of all with whether they meet the criterion.

    Parameters
    ----------
    judge
        For the name of a reading, its verdict and its row under `headings`.
    readings
        Those that can be judged.
    why
        The others cannot.
    """
    found = {name: judge(name) for name in readings}
    others = {name: why for name in READINGS if name not in found}
    return in_readings(("reading", *headings, "verdict"), found, remarks, others)
