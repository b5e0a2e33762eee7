"""Learning to play Tetris with four rows and only S and Z pieces."""

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Part, Verdict, at_least, claim, mean_se, worst_of
from rlsvi.paper.drawing import DOTTED, Picture, curves, labelled, panels
from rlsvi.paper.figure import Figure
from rlsvi.paper.tetris import levels
from rlsvi.paper.tetris.games import mini_optimum
from rlsvi.paper.tetris.levels import Player
from rlsvi.paper.tetris.players import FORMS as LARGE_BOARD
from rlsvi.paper.tetris.players import LONG
from rlsvi.study.job import Job
from rlsvi.study.means import multiple, ratio
from rlsvi.study.statistics import Interval

RULES = ("top row", "overflow")
ROWS = {"top row": 3, "overflow": 4}  # of use
FORMS = ("literal", "afterstate")
in_appendix = partial(claim, where="appendix D.3", otherwise="reading")
Measure = Callable[[pl.DataFrame, Player], Floats]
SCHEDULES = [(epsilon, decay) for epsilon in (0.1, 1.0) for decay in (0.98, 0.99, 0.997)]
WIDTH = 100  # games a point of a curve is the mean of


def both(form: str, game_over: str) -> tuple[Player, list[Player]]:
    """RLSVI, and LSVI with each of the schedules, on the small board with the paper's own features."""
    usual = {"board": "mini", "units": "raw", "form": form, "game_over": game_over}
    dithering = [levels.player("LSVI", **usual, epsilon=epsilon, decay=decay) for epsilon, decay in SCHEDULES]
    return levels.player("RLSVI", **usual), dithering


def jobs(games: int, large: int, long: int, seeds: int) -> list[Job]:
    """Both forms by both rules; and players of the figure `tetris`, `large` or `long` games, to compare with."""
    pairs = [both(form, rule) for form, rule in product(FORMS, RULES)], [LARGE_BOARD[form] for form in FORMS]
    small, others = ([who for rlsvi, dithering in part for who in (rlsvi, *dithering)] for part in pairs)
    return [
        *levels.jobs_of(small, games, seeds, 0.002),
        *levels.jobs_of([who for who in others if who in LONG], long, seeds),
        *levels.jobs_of([who for who in others if who not in LONG], large, seeds),
        Job.of(mini_optimum, 5.0, seed=0),
    ]


def optimum(frame: pl.DataFrame) -> float:
    """The most rows a game that any player can have on average, by the paper's rule."""
    return float(frame["optimum"].drop_nulls()[0])


def compared(frame: pl.DataFrame, measure: Measure, factor: float) -> Verdict:
    """RLSVI's rows as a multiple of tuned LSVI's by both rules, judged in the afterstate form; both forms in a
    table.
    """
    rows: list[Part] = []
    for form, rule in product(FORMS, RULES):
        rlsvi, dithering = both(form, rule)
        ours, theirs = measure(frame, rlsvi), levels.tuned(frame, dithering, measure)
        more = ratio(ours, theirs)
        verdict = at_least(more, factor, f"{ROWS[rule]} usable rows: {more} times the rows of LSVI")
        cells = (form, f"{ROWS[rule]}", mean_se(ours, 2), mean_se(theirs, 2), f"{more}")
        rows.append((verdict if form == "afterstate" else None, cells))
    return worst_of(("form", "usable rows", "RLSVI", "LSVI, tuned", "times"), rows)


@in_appendix("RLSVI greatly outperforms LSVI even with a tuned schedule, and converges to a better policy")
def greatly_outperforms(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the games is at least 1.5 times as large, by both rules (afterstate
    form).
    """
    verdict = compared(frame, levels.level, 1.5)
    return verdict.told("", f"; the best possible is {optimum(frame):.4f} rows with {ROWS['top row']} usable ones")


@in_appendix("RLSVI learns faster")
def faster(frame: pl.DataFrame) -> Verdict:
    """The mean score of the first half of the games is larger than that of the quickest schedule, by both rules
    (afterstate form).
    """
    return compared(frame, levels.beginning, 1.0)


@in_appendix("The results are much more extreme than on the large board")
def more_extreme(frame: pl.DataFrame) -> Verdict:
    """The level of RLSVI is a multiple of that of tuned LSVI at least 1.5 times as large as on 20 × 10 (there with
    raw features in the literal form, scaled ones in the afterstate form), by both rules (afterstate form).
    """
    rows: list[Part] = []
    for form, rule in product(FORMS, RULES):
        here, there = (
            ratio(levels.level(frame, who), levels.tuned(frame, others))
            for who, others in (both(form, rule), LARGE_BOARD[form])
        )
        more = _over(here, there)
        verdict = at_least(more, 1.5, f"{ROWS[rule]} usable rows: {more} times the multiple on 20 × 10, {there}")
        cells = (form, f"{ROWS[rule]}", f"{here}", f"{there}", f"{more}")
        rows.append((verdict if form == "afterstate" else None, cells))
    return worst_of(("form", "usable rows", "times LSVI here", "times LSVI on 20 × 10", "ratio"), rows)


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
    """Learning curves in both forms by both rules."""
    figure, axes = panels(4, 3.8)
    for place, (form, rule) in zip(axes, product(FORMS, RULES), strict=True):
        rlsvi, dithering = both(form, rule)
        other, games = levels.best_of(frame, dithering), levels.shortest(frame, "mini")
        shown = {"RLSVI": rlsvi, f"LSVI, {levels.schedule(other)}": other}
        for index, (name, who) in enumerate(shown.items()):
            curves(place, *levels.learning_curve(levels.scores(frame, who)[:, :games], WIDTH), name, index)
        if rule == "top row":
            place.axhline(optimum(frame), **DOTTED)
        title = f"{form}, {ROWS[rule]} usable rows"
        labelled(place, "games", "rows a game", title, key="upper left", ylim=(0, None))
    return figure


FIGURE = Figure.of(
    __name__,
    title="Tetris with four rows, S and Z",
    where="appendix D, figure 14",
    caption=(
        "Rows removed a game on a board of 4 × 10 with only S and Z pieces, raw features, λ = σ = 1 and γ = "
        ".99: means of 100 games of every seed, medians with their 95% band, and dotted the optimum. Both forms"
        " of Q are shown, with a game over when the top row is touched (3 usable rows) or when something stands"
        " out above it (4), LSVI with the best of six schedules."
    ),
    quick={"games": 300, "large": 100, "long": 120, "seeds": 5},
    paper={"games": 2000, "large": 500, "long": 2000, "seeds": 5},
)
