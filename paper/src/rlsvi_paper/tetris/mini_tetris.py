"""Learning to play Tetris with four rows and only S and Z pieces."""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.study.job import Job
from rlsvi.study.statistics import Interval, multiple, ratio
from rlsvi_paper.claim import Row, Verdict, at_least, claim, mean_se, worst_of
from rlsvi_paper.degrees import much
from rlsvi_paper.drawing import DOTTED, Picture, curves, labelled, panels
from rlsvi_paper.figure import Figure
from rlsvi_paper.tetris import levels, solve
from rlsvi_paper.tetris.levels import FOUR, READINGS, WAYS, Player, board_of, lsvi, player
from rlsvi_paper.tetris.levels import SIDES as LARGE_BOARD

RULES = ("top row", "overflow")
ROWS = {"top row": 3, "overflow": 4}  # of use
in_appendix = partial(claim, where="appendix D.3", otherwise="reading")
Measure = Callable[[pl.DataFrame, Player], Floats]
WIDTH = 10  # blocks of games a point of a curve is the mean of


def usual(reading: str, game_over: str) -> Player:
    """What players in a reading have in common on the small board, with the paper's own features."""
    return {**READINGS[reading], "board": "mini", "scaled": 0.0, "game_over": game_over}


def both(frame: pl.DataFrame, reading: str, game_over: str) -> tuple[Player, list[Player]]:
    """RLSVI, and LSVI with each of the ways to dither, on the small board."""
    rlsvi = player(**usual(reading, game_over))
    return rlsvi, levels.tried(frame, rlsvi)


def jobs(games: int, ways: int, large: int, tuned: int, large_seeds: int, few: int, seeds: int) -> list[Job]:
    """All readings by both rules, with the first `ways` to dither; and runs of the figure `tetris-second`, `large`
    games and as many seeds as there, to compare with.
    """
    alike = [usual(reading, rule) for reading, rule in product(FOUR, RULES)]
    return [
        *levels.jobs_of([player(**it) for it in alike], games, seeds, 0.003),
        *levels.jobs_of([lsvi(**it, **way) for it in alike for way in WAYS[:ways]], games, few, 0.003),
        *levels.jobs_of([LARGE_BOARD[name][0] for name in FOUR], large, large_seeds),
        *levels.jobs_of([who for name in FOUR for who in LARGE_BOARD[name][1]], large, tuned),
        Job.of(mini_optimum, 5.0, seed=levels.FIRST_SEED),
    ]


def mini_optimum(*, seed: int) -> dict[str, Any]:
    """The rows a game of the best of all players on the small board with 3 usable rows, exactly."""
    found = solve(board_of({"board": "mini", "game_over": "top row"}))
    return {"optimum": found.rows, "boards": found.boards}


def optimum(frame: pl.DataFrame) -> float:
    """The most rows a game that any player can have on average, by the paper's rule."""
    return float(frame["optimum"].drop_nulls()[0])


def by_both_rules(headings: Row, judge: Callable[[str, str], tuple[Verdict, Row]]) -> Verdict:
    """The verdict of both rules as printed, the worse of the two, with a table of all readings.

    Parameters
    ----------
    judge
        For a reading and a rule, its verdict and its row under `headings`.
    """
    found, rows = {}, list[Row]()
    for reading in FOUR:
        parts = {rule: judge(reading, rule) for rule in RULES}
        rows += [(reading, f"{ROWS[rule]}", *row, str(it.outcome)) for rule, (it, row) in parts.items()]
        found[reading] = worst_of((), parts.values())
    outcomes = tuple((reading, it.outcome) for reading, it in found.items())
    table = ("reading", "usable rows", *headings, "verdict"), *rows
    return next(iter(found.values()))._replace(table=table, readings=outcomes)


def compared(frame: pl.DataFrame, measure: Measure, factor: float) -> Verdict:
    """RLSVI's rows as a multiple of tuned LSVI's by both rules, judged as printed; all readings in a table."""

    def judge(reading: str, rule: str) -> tuple[Verdict, Row]:
        rlsvi, dithering = both(frame, reading, rule)
        ours, theirs = measure(frame, rlsvi), levels.tuned(frame, dithering, measure)
        more, best = ratio(ours, theirs), max(dithering, key=lambda who: measure(frame, who).mean())
        verdict = at_least(more, factor, f"{ROWS[rule]} usable rows: {more} times the rows of LSVI")
        return verdict, (mean_se(ours, 2), levels.schedule(best), mean_se(theirs, 2), f"{more}")

    return by_both_rules(("RLSVI", "best way to dither", "LSVI, tuned", "times"), judge)


@in_appendix("RLSVI greatly outperforms LSVI even with a tuned schedule, and converges to a better policy")
def greatly_outperforms(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the games is at least twice as large, by both rules (Q and γ as
    printed).
    """
    best = f"the best possible is {optimum(frame):.4f} rows with {ROWS['top row']} usable ones"
    verdict = compared(frame, levels.level, much())
    return verdict._replace(measured=f"{verdict.measured}; {best}")


@in_appendix("RLSVI learns faster")
def faster(frame: pl.DataFrame) -> Verdict:
    """The mean score of the first half of the games is larger than that of the quickest schedule, by both rules
    (Q and γ as printed).
    """
    return compared(frame, levels.beginning, 1.0)


@in_appendix("The results are much more extreme than on the large board")
def more_extreme(frame: pl.DataFrame) -> Verdict:
    """The level of RLSVI is a multiple of that of tuned LSVI at least twice as large as on 20 × 10 in games 251 to
    500, by both rules (Q and γ as printed).
    """

    def times(rows: pl.DataFrame, rlsvi: Player, dithering: list[Player]) -> Interval:
        return ratio(levels.level(rows, rlsvi), levels.tuned(rows, dithering))

    large = levels.first_half(frame)
    on_large_board = {name: times(large, *LARGE_BOARD[name]) for name in FOUR}

    def judge(reading: str, rule: str) -> tuple[Verdict, Row]:
        here, there = times(frame, *both(frame, reading, rule)), on_large_board[reading]
        more = _over(here, there)
        words = f"{ROWS[rule]} usable rows: {more} times the multiple on 20 × 10, {there}"
        return at_least(more, much(), words), (f"{here}", f"{there}", f"{more}")

    return by_both_rules(("times LSVI here", "times LSVI on 20 × 10", "ratio"), judge)


def _over(here: Interval, there: Interval) -> Interval:
    """A ratio over another one, as if both were independent and even in their logarithms."""
    value = multiple(here.value, there.value)
    if not 0 < value < np.inf:
        return Interval(value, -np.inf, np.inf)
    down = [np.log(x.value / x.low) if x.low > 0 else np.inf for x in (here, there)]
    up = [np.log(x.high / x.value) for x in (here, there)]
    low, high = np.exp(-np.hypot(down[0], up[1])), np.exp(np.hypot(up[0], down[1]))
    return Interval(value, float(value * low), float(value * high))


def draw(frame: pl.DataFrame) -> Picture:
    """Learning curves in all readings by both rules."""
    figure, axes = panels(4, 3.6, rows=2)
    for place, (rule, reading) in zip(axes, product(RULES, FOUR), strict=True):
        rlsvi, dithering = both(frame, reading, rule)
        other = levels.best_of(frame, dithering)
        shown = {"RLSVI": rlsvi, f"LSVI, {levels.schedule(other)}": other}
        for index, (name, who) in enumerate(shown.items()):
            curves(place, *levels.learning_curve(levels.scores(frame, who), WIDTH), name, index)
        if rule == "top row":
            place.axhline(optimum(frame), **DOTTED)
        title = f"{reading}, {ROWS[rule]} rows"
        labelled(place, "games", "rows a game", title, key="upper left", ylim=(0, None))
    return figure


FIGURE = Figure.of(
    __name__,
    title="Tetris with four rows, S and Z",
    where="appendix D, figure 14",
    caption=(
        "Rows removed a game on a board of 4 × 10 with S and Z pieces alone (raw features, λ = σ = 1) in all "
        "readings of Q: means of 100 games of every seed, medians with 95% bands, and the optimum (dotted). The "
        "game is over when the top row is touched (3 usable rows, above) or overflows (4, below). LSVI has the "
        "best of all ways to dither that were tried."
    ),
    quick={"games": 300, "ways": 9, "large": 120, "tuned": 5, "large_seeds": 5, "few": 5, "seeds": 5},
    paper={
        **{"games": 2000, "ways": len(WAYS), "large": 1000},
        **{"tuned": 50, "large_seeds": 100, "few": 20, "seeds": 50},
    },
)
