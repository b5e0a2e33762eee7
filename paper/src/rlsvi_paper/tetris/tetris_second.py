"""Tetris once more: ten readings of the text and four windows of games, fixed before, with whole curves.

docs/preregistration.md has the criterion and its power. The paper's figures are means of five runs, and random
too: the question is whether they could be means of five of ours.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from matplotlib.patches import Rectangle

from rlsvi.core.compile import Floats
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS, INK, LINES
from rlsvi.study.statistics import Interval
from rlsvi_paper.claim import (
    Outcome,
    Row,
    Verdict,
    all_of,
    at_least,
    at_most,
    choice,
    claim,
    exactly,
    in_readings,
    more_runs,
    share_of,
    three_digits,
)
from rlsvi_paper.degrees import about_factor, far, nearly_all, significant
from rlsvi_paper.drawing import Picture, averaged, labelled, panels
from rlsvi_paper.figure import Figure
from rlsvi_paper.results import times_as_much
from rlsvi_paper.tetris import levels
from rlsvi_paper.tetris.levels import (
    BLOCK,
    FORMS,
    LEARNED,
    LITERAL,
    PLAYERS,
    PRINTED,
    READINGS,
    SIDES,
    Player,
    in_each_reading,
    jobs_of,
    tuned,
)

Window = tuple[float, float]
# Of a run, as shares: games 251 to 500, 401 to 500, 451 to 550 and 751 to 1,000.
SECOND, *_, LAST = WINDOWS = ((0.25, 0.5), (0.4, 0.5), (0.45, 0.55), (0.75, 1.0))
FIRST = (0.0, 0.25)
ARGUED, AS_PRINTED = (
    (4500.0, 3500.0),
    (3500.0, 4500.0),
)  # rows of RLSVI and LSVI: what the argument needs, and prints
PAPER_RUNS, DRAWS = 5, 20_000  # runs of a mean in the paper, and means that are drawn
ALPHA, HYPOTHESES = 0.05, 2 * len(READINGS)  # every reading with either order
NEAR = 250.0  # rows: the paper has multiples of 500
RECENT = 100  # games
GRID = np.arange(500.0, 7001.0, 500.0)  # figures that might have been printed
in_section = partial(claim, where="section 6.2", otherwise="reading")


def jobs(games: int, tuned: int, seeds: int) -> list[Job]:
    """RLSVI in every reading, and LSVI with each schedule for at most `tuned` of the seeds."""
    return [
        job
        for rlsvi, schedules in SIDES.values()
        for job in (*jobs_of([rlsvi], games, seeds), *jobs_of(schedules, games, min(tuned, seeds)))
    ]


# ---- Levels, and means of five of them -----------------------------------------------------------------------


def during(frame: pl.DataFrame, who: Player, window: Window) -> Floats:
    """Mean rows a game in a window, for each seed."""
    rows = levels.scores(frame, who)
    first, last = (round(share * rows.shape[1]) for share in window)
    first = min(first, rows.shape[1] - 1)
    return np.asarray(rows[:, first : max(last, first + 1)].mean(axis=1))


def both(frame: pl.DataFrame, reading: str, window: Window) -> tuple[Floats, Floats]:
    """What RLSVI and tuned LSVI have in a window, for each seed."""
    rlsvi, schedules = SIDES[reading]
    measure = partial(during, window=window)
    return measure(frame, rlsvi), tuned(frame, schedules, measure)


def means_of_five(values: Floats, seed: int) -> Floats:
    """Sorted means of five more runs; also tried: their medians."""
    statistic = np.mean if choice("statistic", "mean", "median") == "mean" else np.median
    return np.sort(statistic(more_runs(values, PAPER_RUNS, DRAWS, seed), axis=0))


def unlikely(means: Floats, rows: Any) -> Any:
    """Twice the share of means that are as far from their middle as `rows`, on the same side."""
    below, above = np.searchsorted(means, rows, "right"), DRAWS - np.searchsorted(means, rows, "left")
    return np.minimum(1.0, 2.0 * (np.minimum(below, above) + 1.0) / (DRAWS + 1.0))


Means = dict[tuple[str, Window], list[Floats]]


def all_means(frame: pl.DataFrame) -> Means:
    """Means of five runs, of RLSVI and of LSVI, in every reading and window."""
    return {
        (name, window): [means_of_five(it, i) for i, it in enumerate(both(frame, name, window))]
        for name, window in product(READINGS, WINDOWS)
    }


def p_value(means: Sequence[Floats], pair: Any) -> Any:
    """How unlikely both figures are: the less likely one, which had two chances."""
    least = np.minimum(*(unlikely(it, rows) for it, rows in zip(means, pair, strict=True)))
    return 1.0 - (1.0 - least) ** 2


def limits(means: Floats) -> Interval:
    """What 1 - sqrt(.95) of the means are outside of: two such intervals have both figures in 95% of cases."""
    tail = (1.0 - (1.0 - ALPHA) ** 0.5) / 2.0
    return Interval(float(means.mean()), *(float(np.quantile(means, q)) for q in (tail, 1.0 - tail)))


def judged_pair(frame: pl.DataFrame, pair: tuple[float, float]) -> Verdict:
    """The verdict on two figures, in the reading in which they are least unlikely, and a table of all."""
    found, means, games = {}, all_means(frame), BLOCK * levels.shortest(frame)
    named = {"of any window": WINDOWS} | {in_games(it, games): (it,) for it in WINDOWS}
    windows, alpha = named[choice("games", *named)], choice("p at least", ALPHA, 0.01, 0.1)
    for name in READINGS:
        p = {it: float(p_value(means[name, it], pair)) for it in WINDOWS}
        window = max(windows, key=lambda it: p[it])
        best, most = means[name, window], p[window]
        inside, out = most >= alpha, HYPOTHESES * most < alpha
        outcome = Outcome.REPRODUCED if inside else Outcome.NOT_REPRODUCED if out else Outcome.INCONCLUSIVE
        ranges = [limits(it) for it in best]
        told = " and ".join(f"{it.low:.0f} to {it.high:.0f}" for it in ranges)
        words = f"means of five runs of RLSVI and LSVI lie in {told} rows (p = {most:.2g}; {name})"
        found[name] = Verdict(outcome, words, ranges[0]), (told, *(f"{it:.2g}" for it in p.values())), most
    ranked = sorted(found, key=lambda name: -found[name][2])
    pairs = np.array(list(product(GRID, GRID))).T
    held = np.any([p_value(it, pairs) >= alpha for it in means.values()], axis=0).mean()
    headings = "reading", "RLSVI and LSVI, best window", *(in_games(it, games) for it in WINDOWS), "verdict"
    verdict = in_readings(headings, {name: found[name][:2] for name in ranked})
    told = f"{held:.0%} of all pairs of figures up to 7000 would be compatible with one of the readings"
    return verdict._replace(caveat=f"{told}; by the printed one, {PRINTED}, it is {found[PRINTED][0].outcome}")


def in_games(window: tuple[float, float], games: int) -> str:
    """A window in words."""
    first, last = (round(share * games) for share in window)
    return f"{first + 1} to {last}"


@claim(
    "RLSVI reaches a final performance of about 4500 rows, LSVI with a tuned schedule about 3500 "
    "(printed the other way round)",
    "section 6.2",
)
def argued_figures(frame: pl.DataFrame) -> Verdict:
    """In one of ten readings and four windows that were fixed before the runs, both figures lie in the region that
    holds 95% of the means of five more runs. Not reproduced if all readings are excluded at 5%, corrected for ten
    readings and two orders. The order is that of the argument; the paper prints the other one.
    """
    return judged_pair(frame, ARGUED)


@claim("RLSVI and LSVI reach about 3500 and 4500 rows, respectively", "section 6.2", kind="ours")
def printed_figures(frame: pl.DataFrame) -> Verdict:
    """The same with the figures in the order that is printed, against which the argument goes."""
    return judged_pair(frame, AS_PRINTED)


@claim(
    "The figures are likelier with a discount of .999 or 1 than with that of .99, which is printed",
    "section 6.2",
    kind="ours",
)
def likelier(frame: pl.DataFrame) -> Verdict:
    """With literal Q the probability that means of five runs are within 250 rows of 4500 and 3500 is at least ten
    times as large at γ = .999 or 1 as at .99, each in its best window. The table has all readings and both orders.
    """
    means, games = all_means(frame), BLOCK * levels.shortest(frame)

    def near(key: Any, pair: tuple[float, float]) -> float:
        shares = [np.mean(abs(it - rows) <= NEAR) for it, rows in zip(means[key], pair, strict=True)]
        return float(np.prod(shares))

    found = {
        (order, *key): near(key, pair)
        for order, pair in (("argued", ARGUED), ("printed", AS_PRINTED))
        for key in means
    }
    rows = [
        (name, order, *(f"{found[order, name, it]:.2g}" for it in WINDOWS))
        for name, order in product(READINGS, ("argued", "printed"))
    ]
    best = {
        gamma: max(found["argued", f"{LITERAL}, γ = {gamma}", it] for it in WINDOWS)
        for gamma in (".99", ".999", "1")
    }
    other = max(best[".999"], best["1"])
    likeliest = max(found, key=lambda key: found[key])
    order, name, _ = likeliest
    words = f"{other:.2g} against {best['.99']:.2g}; most, {found[likeliest]:.2g}: {name}, order {order}"
    table = (("reading", "order", *(in_games(it, games) for it in WINDOWS)), *rows)
    return exactly(other > 0 and other >= far() * best[".99"], words)._replace(table=table)


# ---- The other sentences -------------------------------------------------------------------------------------


def by_windows(frame: pl.DataFrame, usual: Sequence[Window], judge: Callable[[str, Window], Verdict]) -> Verdict:
    """The verdict in the usual windows, with a table of all readings by window, and how many meet it in each.

    Parameters
    ----------
    judge
        For the name of a reading and a window, the verdict.
    """
    games = {it: in_games(it, BLOCK * levels.shortest(frame)) for it in WINDOWS}
    named = {" and ".join(games[it] for it in some): some for some in (usual, *([it] for it in WINDOWS))}
    chosen = named[choice("games", *named)]
    found = {name: {it: judge(name, it) for it in WINDOWS} for name in READINGS}
    rows = {
        name: (all_of(*(alone[it] for it in chosen)), tuple(it.measured for it in alone.values()))
        for name, alone in found.items()
    }
    verdict = in_readings(("reading", *(f"games {it}" for it in games.values()), "verdict"), rows)
    held = {it: sum(alone[it].outcome is Outcome.REPRODUCED for alone in found.values()) for it in WINDOWS}
    return verdict._replace(
        measured=f"{verdict.measured}; of {len(READINGS)} readings it holds in "
        + ", ".join(f"{count} by games {games[it]}" for it, count in held.items()),
        caveat="LSVI has the better of two schedules, and in the figure tetris the best of all that were tried",
    )


@in_section("Both reach a higher final performance than the best published level of LSPI, 3183")
def above_published(frame: pl.DataFrame) -> Verdict:
    """The mean score in games 251 to 500 is at least 3183, for both."""
    return by_windows(frame, [SECOND], lambda reading, window: levels.above(*both(frame, reading, window)))


@in_section("Both learn from scratch")
def from_scratch(frame: pl.DataFrame) -> Verdict:
    """A mean of 100 games of RLSVI, and of LSVI with its best schedule, exceeds 1000 rows within 1,000 games in at
    least four of five runs. That LSPI needs a scoring policy is judged with the runs of LSPI.
    """

    def judged(reading: str) -> tuple[Verdict, Row]:
        rlsvi, schedules = SIDES[reading]
        players = zip(PLAYERS, (rlsvi, levels.best_of(frame, schedules)), strict=True)
        rows, recent = choice("rows", LEARNED, 500.0, 2000.0), choice("a mean of games,", RECENT, 50, 200)
        games = [(name, levels.passed(frame, who, rows, recent)) for name, who in players]
        shares = [(name, *share_of(np.isfinite(it))) for name, it in games]
        parts = [at_least(share, nearly_all(), f"{runs} runs of {name} learn") for name, share, runs in shares]
        return all_of(*parts), tuple(runs for *_, runs in shares)

    return in_each_reading(("RLSVI learns", "LSVI learns"), judged, READINGS)


@in_section("RLSVI improves significantly on the tuned schedule")
def better_than_tuned(frame: pl.DataFrame) -> Verdict:
    """The mean score in games 251 to 500 is at least 1.1 times as large, and so is that in games 751 to 1000."""

    def judged(reading: str, window: Window) -> Verdict:
        more, games = times_as_much(*both(frame, reading, window)), BLOCK * levels.shortest(frame)
        words = f"{three_digits(more)} times LSVI's rows in games {in_games(window, games)}"
        return at_least(more, significant(), words)

    return by_windows(frame, [SECOND, LAST], judged)


@claim(
    "RLSVI leads to faster learning, improved stability and a superior learned policy in a large-scale video game",
    "section 6",
    otherwise="reading",
)
def faster_stabler_better(frame: pl.DataFrame) -> Verdict:
    """Compared with LSVI's best schedule in the first 500 games. Faster: the mean score of games 1 to 250 is
    higher. Stabler: that of games 251 to 500, the level, varies less between runs (standard deviation over mean),
    and games 401 to 500 have at least LSVI's share of the best hundred, over 1.1. Superior: the level is higher.
    """

    def judged(reading: str, window: Window) -> Verdict:
        rlsvi, schedules = SIDES[reading]
        best = max(schedules, key=lambda who: during(frame, who, window).mean())
        sooner, higher = (times_as_much(*both(frame, reading, it)) for it in (FIRST, window))
        varies, keeps = levels.steadiness(frame, rlsvi, best, window)
        return all_of(
            at_least(sooner, 1.0, f"{sooner} times LSVI's rows at first"),
            at_most(varies, 1.0, f"{varies} its spread"),
            at_least(keeps, 1 / about_factor(), f"{keeps} its share kept"),
            at_least(higher, 1.0, f"{higher} its level"),
        )

    return by_windows(frame, [SECOND], judged)


def draw(frame: pl.DataFrame) -> Picture:
    """Mean learning curves by the form of Q, and where means of five runs lie in games 251 to 500."""
    figure, (*places, right) = panels(2, 4.2, rows=2)
    colours = dict(zip((0.99, 0.999, 1.0), COLOURS, strict=False))
    for axes, form in zip(places, FORMS, strict=True):
        for name, (rlsvi, (lsvi, *_)) in SIDES.items():
            if name.startswith(f"{form}, γ"):
                for player, who, line in zip(PLAYERS, (rlsvi, lsvi), LINES, strict=False):
                    rows, gamma = levels.scores(frame, who), who["gamma"]
                    at = BLOCK * np.arange(1.0, rows.shape[1] + 1)
                    averaged(axes, at, rows, f"{player}, γ = {gamma:g}", colours[gamma], line)
        labelled(axes, "games", "rows a game", form, key="best", ylim=(0, None))
    for name, reading in READINGS.items():
        x, y = (limits(means_of_five(it, i)) for i, it in enumerate(both(frame, name, SECOND)))
        corner = (x.low, y.low), x.high - x.low, y.high - y.low
        right.add_patch(Rectangle(*corner, fill=False, edgecolor=colours[reading["gamma"]]))
        right.annotate(name, (x.low, y.high), fontsize=6)
    for pair, mark in ((ARGUED, "o"), (AS_PRINTED, "s")):
        right.plot(*pair, mark, color=INK)
    labelled(right, "rows of RLSVI", "rows of tuned LSVI", "Means of five runs", xlim=(0, 8000), ylim=(0, 8000))
    return figure


FIGURE = Figure.of(
    __name__,
    title="Tetris, preregistered again",
    where="section 6.2, appendix D",
    caption=(
        "Mean rows removed a game on a board of 20 × 10 with standard errors, in readings of the text that were "
        "fixed before the runs: Q = θ·φ with raw features of the board after full rows are removed (literal), "
        "before that, or Q = r + γθ·φ (afterstate), each with three discounts; LSVI with ε = .1 × .95ˡ. In the "
        "last picture a box holds 95% of the means of five runs in games 251 to 500; the circle is the paper's "
        "pair of figures in the order of its argument, the square in the order in which it is printed."
    ),
    quick={"games": 120, "tuned": 5, "seeds": 5},
    paper={"games": 1000, "tuned": 50, "seeds": 100},
)
