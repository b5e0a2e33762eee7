"""What the paper says about the levels that players of Tetris reach (section 6.2), and verdicts on it.

Every sentence is judged in the reading of Q that is printed, with all readings in a table.
"""

from functools import partial

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Row, Verdict, all_of, at_least, at_most, between, claim, mean_se
from rlsvi.paper.tetris import players
from rlsvi.paper.tetris.levels import best_of, games_told, kept, level, longest, passed, schedule, tuned, window
from rlsvi.paper.tetris.players import FROM_SCORING, LAMBDAS, PUBLISHED, RLSVI, SIDES, lspi
from rlsvi.paper.tetris.readings import MET, in_each_reading
from rlsvi.study.statistics import mean, proportion, ratio, ratio_of_medians

in_section = partial(claim, where="section 6.2", otherwise="reading")
ABOUT = 500.0  # rows; the paper's levels are whole multiples of it, and it is half of their distance
SIGNIFICANT = 1.1  # times; the least that the section calls significant is 3500 rows after 3183


def levels_of(frame: pl.DataFrame, reading: str) -> tuple[Floats, Floats]:
    """The levels of RLSVI and of tuned LSVI in a reading, for each seed."""
    rlsvi, schedules = SIDES[reading]
    return level(frame, rlsvi), tuned(frame, schedules)


def told(values: Floats, name: str) -> str:
    """A level in words."""
    return f"{name} gets {mean_se(values)} rows a game"


@in_section(
    "RLSVI reaches a final performance of about 4500 rows, LSVI with a tuned schedule about 3500", headline=True
)
def reach_their_levels(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is within 500 of 4500 and of 3500: the paper's
    figures are multiples of 500, and 500 is half of their distance. LSVI has the best of ε = .1 or 1 times .95
    or .98 to the power of the game, chosen by the other seeds.
    """

    def compared(ours: Floats, theirs: Floats, games: str) -> tuple[Verdict, Row]:
        parts = [
            between(mean(values), rows - ABOUT, rows + ABOUT, told(values, name))
            for values, rows, name in ((ours, 4500.0, "RLSVI"), (theirs, 3500.0, "LSVI"))
        ]
        return all_of(*parts, f"in {games}"), (games, mean_se(ours), mean_se(theirs))

    remarks: list[Row] = []
    for name, pair in players.LONG.items():
        all_games = longest(frame)
        last = f"games {all_games - all_games // 8 + 1} to {all_games}"
        ours, theirs = (kept(frame, who, 8, all_games)[1] for who in pair)
        verdict, cells = compared(ours, theirs, last)
        told_schedule = f"{cells[-1]} ({schedule(pair[1])})"  # the schedule of long runs is the same for all
        remarks.append((name, *cells[:-1], told_schedule, MET[verdict.outcome]))
    remarks.append(
        ("afterstate, raw features", window(frame), mean_se(level(frame, players.RAW)), "not tried", "")
    )
    headings = ("games", "RLSVI", "LSVI, tuned")
    return in_each_reading(
        headings, lambda reading: compared(*levels_of(frame, reading), window(frame)), remarks=remarks
    )


@in_section("Both reach a higher final performance than the best published level of LSPI, 3183", headline=True)
def above_published(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is at least 3183, for both."""

    def judged(reading: str) -> tuple[Verdict, Row]:
        both = levels_of(frame, reading)
        parts = [
            at_least(mean(it), PUBLISHED, told(it, name)) for it, name in zip(both, ("RLSVI", "LSVI"), strict=True)
        ]
        return all_of(*parts), tuple(str(mean(it)) for it in both)

    return in_each_reading(("RLSVI", "LSVI, tuned"), judged)


@in_section("Both make significant improvements over LSPI with the same basis functions, as computed here")
def above_lspi_here(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is at least 1.1 times that of LSPI's best players in
    new games, for both: the least that the section calls significant is 3500 rows after 3183.
    """
    found = {lam: lspi(frame, FROM_SCORING, lam)["best_anew"].to_numpy() for lam in LAMBDAS}
    theirs = max(found.values(), key=lambda values: float(values.mean()))

    def judged(reading: str) -> tuple[Verdict, Row]:
        more = [ratio(ours, theirs) for ours in levels_of(frame, reading)]
        parts = [
            at_least(it, SIGNIFICANT, f"{name} gets {it} times as many")
            for it, name in zip(more, ("RLSVI", "LSVI"), strict=True)
        ]
        return all_of(f"LSPI's best players get {mean_se(theirs)}", *parts), tuple(str(it) for it in more)

    best = [(f"LSPI's best players, λ = {lam:g}: {mean_se(it)} rows", "", "", "") for lam, it in found.items()]
    return in_each_reading(("RLSVI, times", "LSVI, times"), judged, remarks=best)


@in_section("They reach this performance after many fewer games")
def fewer_games(frame: pl.DataFrame) -> Verdict:
    """The median of games until 3183 rows a game is at most half that of LSPI from its scoring policy, for both;
    in means of as many games as LSPI plays at a time.
    """
    recent = players.lspi_games(frame)
    theirs = np.concatenate([players.lspi_passes(frame, PUBLISHED, lam) for lam in LAMBDAS])
    got = int(np.isfinite(theirs).sum())

    def judged(reading: str) -> tuple[Verdict, Row]:
        rlsvi, schedules = SIDES[reading]
        ours = [passed(frame, who, PUBLISHED, recent) for who in (rlsvi, best_of(frame, schedules))]
        parts = []
        for name, games in zip(("RLSVI", "LSVI"), ours, strict=True):
            share = ratio_of_medians(games, theirs)
            parts.append(at_most(share, 0.5, f"{name}: {games_told(games)}, {share} of that"))
        lspi_told = f"LSPI: {games_told(theirs)}, {got} of {len(theirs)} runs"
        return all_of(lspi_told, *parts), tuple(games_told(games) for games in ours)

    return in_each_reading(("RLSVI", "LSVI, best schedule"), judged)


@in_section("Unlike LSPI, they do not collapse after finding their peak performance")
def no_collapse(frame: pl.DataFrame) -> Verdict:
    """At least four of five long runs have in their last eighth at least half the score of their best eighth, for
    both; the last player of LSPI at least half of its best in at most half of the runs.
    """
    best, last = (players.lspi_anew(frame, FROM_SCORING, name) for name in ("best_anew", "last_anew"))
    keep = int((last >= 0.5 * best).sum())
    words = f"{keep} of {len(best)} of LSPI keep half of their best"
    lspi_collapses = at_most(proportion(keep, len(best)), 0.5, words)

    def judged(reading: str) -> tuple[Verdict, Row]:
        parts, cells = [], []
        for name, who in zip(("RLSVI", "LSVI"), players.LONG[reading], strict=True):
            best, last = kept(frame, who, 8, longest(frame))
            keep = int((last >= 0.5 * best).sum())
            parts.append(at_least(proportion(keep, len(best)), 0.8, f"{keep} of {len(best)} runs of {name}"))
            cells += [f"{mean_se(best)}, {mean_se(last)}", f"{keep} of {len(best)}"]
        return all_of(*parts, lspi_collapses), tuple(cells)

    lspi_row = ("LSPI", f"{mean_se(best)}, {mean_se(last)}", f"{keep} of {len(best)}", "", "", "")
    headings = ("RLSVI, best and last", "runs that keep half", "LSVI, best and last", "runs that keep half")
    return in_each_reading(headings, judged, players.LONG, [lspi_row])


@in_section(
    "These improvements are mostly due to the memory of past transitions (the paper's belief)",
    rows=players.few_runs,
)
def memory_matters(frame: pl.DataFrame) -> Verdict:
    """With a memory of 10⁴ transitions, about one game, RLSVI's level is at most half of that with 10⁵ (afterstate
    form, scaled features).
    """
    few, many = level(frame, players.FORGETFUL), level(frame, RLSVI)
    share = ratio(few, many)
    words = f"with the last 10⁴ transitions: {mean_se(few)}, {share} of that with 10⁵, {mean_se(many)}"
    return at_most(share, 0.5, words)
