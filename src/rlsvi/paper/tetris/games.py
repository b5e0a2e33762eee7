"""What the figures on Tetris measure: the functions of their jobs."""

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from rlsvi.agents import EpsilonGreedy, Exponential, InverseGamma, StationaryLSVI, StationaryRLSVI
from rlsvi.agents.files import load
from rlsvi.agents.stationary.rlsvi import Form, StationaryAgent
from rlsvi.bases import Tetris
from rlsvi.core.archive import ArchiveError
from rlsvi.core.files import whole_file
from rlsvi.core.regression import FactorError
from rlsvi.simulate.tetris import Games, simulate_tetris
from rlsvi.study.checkpoint import checkpoint
from rlsvi.tetris import Rules, rules, solve
from rlsvi.tetris.game import GameOver

EVERY, AT_ONCE = 60.0, 10  # seconds between two checkpoints; games between two looks at the clock
LIMIT = 1_000_000  # pieces, at which a game is cut off


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

    board : "20x10" with all pieces, or "mini": 4 rows with S and Z.
    agent : "RLSVI" or "RLSVI, unknown noise" with lambda = sigma = 1, or "LSVI".
    epsilon, decay : LSVI places at random with probability epsilon decay^l in game l.
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


def mini_optimum(*, seed: int) -> dict[str, Any]:
    """The rows a game of the best of all players on the small board with 3 usable rows, exactly."""
    found = solve(board_of("mini", "top row"))
    return {"optimum": found.rows, "boards": found.boards}


def board_of(board: str, game_over: GameOver) -> Rules:
    """The rules of a board."""
    return rules(game_over=game_over) if board == "20x10" else rules(4, pieces="SZ", game_over=game_over)


def learned(agent: StationaryAgent, board: Rules, games: int, folder: Path | None, every: float = EVERY) -> Games:
    """So many games of an agent that learns, from where `folder` left off; it is kept there every few seconds."""
    agent, done = _resumed(agent, folder)
    last = time.monotonic()
    while agent.episodes < games:
        try:
            more = simulate_tetris(agent, board, min(AT_ONCE, games - agent.episodes), max_pieces=LIMIT)
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
    kept = [] if folder is None else [path for path in folder.glob("*.rlsvi") if path.stem.isdigit()]
    for path in sorted(kept, key=lambda path: -int(path.stem)):
        try:
            with open(path.with_suffix(".npz"), "rb") as file, np.load(file, allow_pickle=False) as columns:
                games = Games(*(columns[name] for name in Games._fields))
            found = load(path)
        except (OSError, ValueError, KeyError, BadZipFile, ArchiveError):
            continue
        assert isinstance(found, StationaryAgent)
        return found, games
    return agent, _no_more(0)
