"""Learning to play Tetris, 20 x 10, with the features of Bertsekas and Ioffe."""

from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from rlsvi.paper.claim import claims_in
from rlsvi.paper.drawing import curves, labelled, legend, panels
from rlsvi.paper.figure import Figure
from rlsvi.paper.tetris import exploration_claims, level_claims, parameter_claims, problem_claims
from rlsvi.paper.tetris.levels import (
    Player,
    best_of,
    jobs_of,
    learning_curve,
    level,
    schedule,
    scores,
    shortest,
    window,
)
from rlsvi.paper.tetris.players import (
    ALL_PLAYERS,
    FIXED,
    FROM_NOTHING,
    FROM_SCORING,
    LAMBDAS,
    LITERAL,
    LONG,
    PUBLISHED,
    RAW,
    RLSVI,
    SCHEDULES,
    lspi_games,
    lspi_means,
)
from rlsvi.paper.tetris.policies import policies, published_player
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS, INK

GAME_OVER = "top row"
CLAIMS = (problem_claims, level_claims, exploration_claims, parameter_claims)


def jobs(games: int, long: int, iterations: int, fresh: int, again: int, seeds: int) -> list[Job]:
    """All players for `games` games, two of them for `long`, and policy iteration on `fresh` games each time."""
    short = [who for who in ALL_PLAYERS if who not in LONG]
    settings: dict[str, Any] = {"iterations": iterations, "games": fresh, "again": again, "game_over": GAME_OVER}
    return [
        *jobs_of(LONG, long, seeds),
        *jobs_of(short, games, seeds),
        *(
            Job.of(policies, 0.006 * iterations * fresh, start=start, lam=lam, seed=seed, **settings)
            for start in (FROM_SCORING, FROM_NOTHING)
            for lam in LAMBDAS
            for seed in range(seeds)
        ),
        *(Job.of(published_player, 2.0, again=2, game_over=GAME_OVER, seed=seed) for seed in range(seeds)),
    ]


def draw(frame: pl.DataFrame) -> Picture:
    """Learning curves, short and long; policy iteration; the level of every player."""
    figure, (above, long, below, right) = panels(2, 4.4, rows=2)
    best, games = best_of(frame, SCHEDULES), shortest(frame)
    shown = {
        "RLSVI": RLSVI,
        f"LSVI, {schedule(best)}": best,
        f"LSVI, {schedule(FIXED[2])}": FIXED[2],
        "RLSVI, raw features": RAW,
        "RLSVI, literal form, raw features": LITERAL,
    }
    _curves(above, frame, shown, games, max(games // 20, 1))
    _curves(long, frame, {"RLSVI": RLSVI, f"LSVI, {schedule(LONG[1])}": LONG[1]}, None, max(games // 5, 1))
    _policies(below, frame)
    _levels(right, frame)
    return figure


def _curves(axes: Axes, frame: pl.DataFrame, shown: dict[str, Player], games: int | None, width: int) -> None:
    for index, (name, who) in enumerate(shown.items()):
        curves(axes, *learning_curve(scores(frame, who)[:, :games], width), name, index)
    _published(axes)
    axes.set_ylim(bottom=0)
    legend(axes, loc="best")
    labelled(axes, "games", "rows a game", f"Learning: means of {width} games")


def _policies(axes: Axes, frame: pl.DataFrame) -> None:
    index = 0
    for start in (FROM_SCORING, FROM_NOTHING):
        for lam in LAMBDAS:
            means = lspi_means(frame, start, lam)
            at = np.arange(float(means.shape[1])) * lspi_games(frame)
            curves(axes, at, means, f"from {start}, lambda = {lam:g}", index)
            index += 1
    _published(axes)
    axes.set_ylim(bottom=0)
    legend(axes, loc="best")
    labelled(axes, "games", "rows a game", "Policy iteration on fresh games (LSPI)")


def _published(axes: Axes) -> None:
    axes.axhline(PUBLISHED, color=INK, linewidth=0.8, linestyle=":")


def _levels(axes: Axes, frame: pl.DataFrame) -> None:
    """The level of each player, a dot per seed and a bar at the mean."""
    for place, who in enumerate(reversed(ALL_PLAYERS)):
        values = level(frame, who)
        colour = COLOURS[0 if who["agent"] != "LSVI" else 1]
        axes.plot(values, np.full(len(values), place), ".", color=colour, alpha=0.5, markersize=5)
        axes.plot([values.mean()], [place], "|", color=colour, markersize=9, markeredgewidth=2)
    axes.set_yticks(range(len(ALL_PLAYERS)), [_name(who) for who in reversed(ALL_PLAYERS)], fontsize=7)
    axes.axvline(PUBLISHED, color=INK, linewidth=0.8, linestyle=":")
    axes.set_xlim(left=0)
    labelled(axes, "rows a game", "player", f"Levels: {window(frame)}")


def _name(who: Player) -> str:
    """What tells a player from RLSVI as it is by default."""
    special = [
        *([schedule(who).removeprefix("epsilon = ")] if who["agent"] == "LSVI" else []),
        *([who["form"]] if who["form"] == "literal" else ["raw"] if who["units"] == "raw" else []),
        *([f"gamma {who['gamma']:g}"] if who["gamma"] != RLSVI["gamma"] else []),
        *(["10^4"] if who["memory"] != RLSVI["memory"] else []),
    ]
    return ", ".join([who["agent"], *special])


FIGURE = Figure(
    name="tetris",
    title="Learning to play Tetris",
    where="section 6.2, figure 7",
    caption=(
        "Rows removed a game on a board of 20 x 10 with the 22 features of Bertsekas and Ioffe; a game is over "
        "when a square of the top row is filled. Unless said otherwise Q is that of the board after the "
        "placement (afterstate: Q = r + gamma theta . phi, with r known), features are divided by 20, lambda = "
        "sigma = 1, gamma = .99, and the last 10^5 transitions are learned from. Left: learning curves, every "
        "seed thin, medians bold with their 95% band. Middle: least-squares policy iteration, the paper's "
        "LSPI, as described by Bertsekas and Ioffe (1996). Right: levels, a dot a seed. Dotted: 3183, the best "
        "published level of LSPI."
    ),
    sizes={
        "quick": {"games": 100, "long": 120, "iterations": 8, "fresh": 20, "again": 20, "seeds": 5},
        "paper": {"games": 500, "long": 2000, "iterations": 20, "fresh": 100, "again": 250, "seeds": 5},
    },
    jobs=jobs,
    claims=[it for module in CLAIMS for it in claims_in(module)],
    draw=draw,
)
