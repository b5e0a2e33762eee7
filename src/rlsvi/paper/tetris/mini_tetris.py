"""Learning to play Tetris with four rows and only S and Z pieces."""

from itertools import product

import numpy as np
import polars as pl

from rlsvi.paper.claim import Verdict, Verdicts, all_of, at_least, claim_for_each, mean_se
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
FORMS = {"literal": "literal form", "afterstate": "afterstate form"}
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


def outperforms(frame: pl.DataFrame, form: str, factor: float) -> Verdicts:
    """RLSVI's level as a multiple of tuned LSVI's, by both rules."""
    yield levels.window(frame, "mini")
    for rule in RULES:
        rlsvi, dithering = both(form, rule)
        ours, theirs = levels.level(frame, rlsvi), levels.tuned(frame, dithering)
        best, more = levels.schedule(levels.best_of(frame, dithering)), ratio(ours, theirs)
        words = f'"{rule}" ends the game: RLSVI {mean_se(ours, 2)}, LSVI ({best}) {mean_se(theirs, 2)}'
        if rule == "top row":
            shares = (100 * values.mean() / optimum(frame) for values in (ours, theirs))
            words += " ({:.0f}% and {:.0f}% of the optimum, {:.4f})".format(*shares, optimum(frame))
        yield at_least(more, factor, f"{words}, {more} times")


@claim_for_each(FORMS, "RLSVI greatly outperforms LSVI even with a tuned schedule: {}", "appendix D.3")
def greatly_outperforms(frame: pl.DataFrame, form: str) -> Verdicts:
    """The mean score of the second half of the games is at least 1.5 times as large, by both rules."""
    return outperforms(frame, form, 1.5)


@claim_for_each(FORMS, "RLSVI reaches a higher convergent policy: {}", "appendix D.3")
def converges_higher(frame: pl.DataFrame, form: str) -> Verdicts:
    """The mean score of the second half of the games is larger, by both rules."""
    return outperforms(frame, form, 1.0)


@claim_for_each(FORMS, "RLSVI learns faster: {}", "appendix D.3")
def faster(frame: pl.DataFrame, form: str) -> Verdicts:
    """The mean score of the first half of the games is larger than that of the quickest schedule, by both
    rules.
    """
    for rule in RULES:
        rlsvi, dithering = both(form, rule)
        ours, theirs = levels.beginning(frame, rlsvi), levels.tuned(frame, dithering, levels.beginning)
        more = ratio(ours, theirs)
        words = f'"{rule}": RLSVI {mean_se(ours, 2)}, LSVI {mean_se(theirs, 2)}, {more} times'
        yield at_least(more, 1.0, words)


@claim_for_each(FORMS, "The results are much more extreme than on the large board: {}", "appendix D.3")
def more_extreme(frame: pl.DataFrame, form: str) -> Verdict:
    """The level of RLSVI is a multiple of that of tuned LSVI at least 1.5 times as large as on 20 x 10 (there with
    raw features in the literal form, scaled ones in the afterstate form), by both rules.
    """
    who, others = LARGE_BOARD[form]
    there = ratio(levels.level(frame, who), levels.tuned(frame, others))
    verdicts = []
    for rule in RULES:
        rlsvi, dithering = both(form, rule)
        here = ratio(levels.level(frame, rlsvi), levels.tuned(frame, dithering))
        more = _over(here, there)
        verdicts.append(at_least(more, 1.5, f'"{rule}": {here} times LSVI, {more} of that on 20 x 10'))
    return all_of(*verdicts).told(f"RLSVI on 20 x 10: {there} times the level of LSVI; here ")


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
        title = f"{form}, {3 if rule == 'top row' else 4} usable rows"
        labelled(place, "games", "rows a game", title, key="upper left", ylim=(0, None))
    return figure


FIGURE = Figure.of(
    __name__,
    title="Tetris with four rows, S and Z",
    where="appendix D, figure 14",
    caption=(
        "Rows removed a game on a board of 4 x 10 with only S and Z pieces, with raw features, lambda = sigma "
        "= 1 and gamma = .99; means of 100 games, every seed thin, medians bold with their 95% band. LSVI with "
        "the best of six schedules, epsilon = .1 or 1 x .98^l, .99^l or .997^l. In both forms of Q, and with a "
        "game over when a square of the top row is filled (3 usable rows; dotted: the optimum) or when "
        "something stands out above it (4 usable rows)."
    ),
    quick={"games": 300, "large": 100, "long": 120, "seeds": 5},
    paper={"games": 2000, "large": 500, "long": 2000, "seeds": 5},
    claims=[
        it for form in zip(greatly_outperforms, converges_higher, faster, more_extreme, strict=True) for it in form
    ],
)
