"""Learning to play Tetris, 20 x 10, with the features of Bertsekas and Ioffe."""

from itertools import product
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from rlsvi.paper.claim import claims_in
from rlsvi.paper.drawing import DOTTED, Picture, curves, labelled, panels
from rlsvi.paper.figure import Figure
from rlsvi.paper.tetris import exploration_claims, level_claims, levels, players, problem_claims
from rlsvi.paper.tetris.levels import Player
from rlsvi.paper.tetris.policies import policies, published_player
from rlsvi.paper.tetris.readings import AFTERSTATE, PRINTED
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS

GAME_OVER = "top row"
STARTS = (players.FROM_SCORING, players.FROM_NOTHING)  # of policy iteration
Pair = tuple[Player, Player]


def jobs(
    games: int, long: int, iterations: int, fresh: int, again: int, few: int, more: int, seeds: int
) -> list[Job]:
    """Learning for `games` and for `long` games, and policy iteration on `fresh` games each time.

    Where `few` seeds decide a claim no more are taken, and `more` times as many where runs differ most.
    """
    many = more * seeds
    settings: dict[str, Any] = {"iterations": iterations, "games": fresh, "again": again, "game_over": GAME_OVER}
    return [
        *(
            job
            for name, (rlsvi, lsvi) in players.LONG.items()
            for who, runs in ((rlsvi, many if name == PRINTED else seeds), (lsvi, seeds))
            for job in levels.jobs_of([who], long, min(few, seeds) if name == AFTERSTATE else runs)
        ),
        *levels.jobs_of(players.IN_FEW_RUNS, games, min(few, seeds)),
        *levels.jobs_of(players.IN_RUNS, games, seeds),
        *levels.jobs_of(players.IN_MANY_RUNS, games, many),
        *(
            Job.of(policies, 0.006 * iterations * fresh, start=start, lam=lam, seed=seed, **settings)
            for start, lam, seed in product(STARTS, players.LAMBDAS, range(seeds))
        ),
        *(Job.of(published_player, 6.0, again=2, game_over=GAME_OVER, seed=seed) for seed in range(seeds)),
    ]


def draw(frame: pl.DataFrame) -> Picture:
    """Learning curves in the readings of Q, short and long; policy iteration; the level of every player."""
    figure, (above, long, below, right) = panels(2, 4.6, rows=2)
    short, longest = levels.shortest(frame), levels.longest(frame)
    tuned = {
        name: (rlsvi, levels.best_of(frame, players.SIDES[name][1])) for name, (rlsvi, _) in players.LONG.items()
    }
    _curves(above, frame, tuned, short, max(short // 10, 1))
    _curves(long, frame, players.LONG, longest, max(longest // 20, 1))
    _policies(below, frame)
    _levels(right, frame)
    return figure


def _curves(axes: Axes, frame: pl.DataFrame, pairs: dict[str, Pair], games: int, width: int) -> None:
    shown = [(f"{who['agent']}, {name}", who) for name, pair in pairs.items() for who in pair]
    for index, (name, who) in enumerate(shown):
        curves(axes, *levels.learning_curve(levels.scores(frame, who, games), width), name, index)
    axes.axhline(players.PUBLISHED, **DOTTED)
    labelled(axes, "games", "rows a game", f"Learning: means of {width} games", key="best", ylim=(0, None))


def _policies(axes: Axes, frame: pl.DataFrame) -> None:
    for index, (start, lam) in enumerate(product(STARTS, players.LAMBDAS)):
        means = players.lspi_means(frame, start, lam)
        at = np.arange(float(means.shape[1])) * players.lspi_games(frame)
        curves(axes, at, means, f"from {start}, λ = {lam:g}", index)
    axes.axhline(players.PUBLISHED, **DOTTED)
    title = "Policy iteration on fresh games (LSPI)"
    labelled(axes, "games", "rows a game", title, key="best", ylim=(0, None))


def _levels(axes: Axes, frame: pl.DataFrame) -> None:
    """The level of each player, a dot per seed and a bar at the mean."""
    everyone = players.ALL_PLAYERS[::-1]
    for place, who in enumerate(everyone):
        values = levels.level(frame, who)
        colour = COLOURS[0 if who["agent"] != "LSVI" else 1]
        axes.plot(values, np.full(len(values), place), ".", color=colour, alpha=0.5, markersize=5)
        axes.plot([values.mean()], [place], "|", color=colour, markersize=9, markeredgewidth=2)
    axes.set_yticks(range(len(everyone)), [_name(who) for who in everyone], fontsize=7)
    axes.axvline(players.PUBLISHED, **DOTTED)
    labelled(axes, "rows a game", "player", f"Levels: {levels.window(frame)}", xlim=(0, None))


def _name(who: Player) -> str:
    """What tells a player from RLSVI as it is by default."""
    special = [
        *([levels.schedule(who).removeprefix("ε = ")] if who["agent"] == "LSVI" else []),
        *([who["form"]] if who["form"] == "literal" else ["raw"] if who["units"] == "raw" else []),
        *([f"γ = {who['gamma']:g}"] if who["gamma"] != players.RLSVI["gamma"] else []),
        *(["10⁴"] if who["memory"] != players.RLSVI["memory"] else []),
    ]
    return ", ".join([who["agent"], *special])


FIGURE = Figure.of(
    __name__,
    title="Learning to play Tetris",
    where="section 6.2, figure 7",
    caption=(
        "Rows removed a game on a board of 20 × 10 with the 22 features of Bertsekas and Ioffe: learning curves "
        "in the readings of Q, in short and in long runs, least-squares policy iteration (the paper's LSPI), and "
        "the level of every player, a dot a seed. There Q = r + γθ·φ of the board after the placement with "
        "features divided by 20, unless a name says literal (Q = θ·φ, raw features) or raw; λ = σ = 1, γ = .99, "
        "and the last 10⁵ transitions unless said otherwise, and dotted is 3183, the best published level of LSPI."
    ),
    quick={"games": 100, "long": 120, "iterations": 8, "fresh": 20, "again": 20, "few": 5, "more": 1, "seeds": 5},
    paper={
        "games": 500,
        "long": 1000,
        "iterations": 20,
        "fresh": 100,
        "again": 250,
        "few": 5,
        "more": 4,
        "seeds": 20,
    },
    claims=claims_in(problem_claims, level_claims, exploration_claims),
)
