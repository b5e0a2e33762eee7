"""What the paper says about exploration, discount and noise in Tetris (section 6.2, appendix D), and verdicts.

Sentences on RLSVI against LSVI are judged in the reading of Q that is printed, with all readings in a table; those
on what makes a good player good, in the afterstate form with scaled features, where the players are good.
"""

import numpy as np
import polars as pl

from rlsvi.core.compile import Bools
from rlsvi.paper.claim import Part, Row, Verdict, all_of, at_least, at_most, between, claim, mean_se, worst_of
from rlsvi.paper.tetris import players
from rlsvi.paper.tetris.level_claims import SIGNIFICANT, levels_of
from rlsvi.paper.tetris.levels import (
    AS_MUCH,
    Player,
    beginning,
    best_of,
    kept,
    largest,
    level,
    longest,
    passed,
    schedule,
    steadiness,
    tuned,
)
from rlsvi.paper.tetris.players import FIXED, FROM_NOTHING, GREEDY, LEARNED, SCHEDULES, SIDES
from rlsvi.paper.tetris.readings import ENDLESS, MET, PATIENT, PRINTED, in_each_reading
from rlsvi.study.statistics import Interval, proportion, ratio


def learned(frame: pl.DataFrame, who: Player) -> Bools:
    """Whether a player gets to 1000 rows a game, for each seed."""
    return np.isfinite(passed(frame, who, LEARNED, players.lspi_games(frame)))


def share_of(got: Bools) -> tuple[Interval, str]:
    """The share of runs that got there, and their number in words."""
    return proportion(int(got.sum()), len(got)), f"{got.sum()} of {len(got)}"


@claim(
    "Both learn from scratch, where LSPI required a scoring initial policy",
    "section 6.2",
    headline=True,
    otherwise="reading",
)
def from_scratch(frame: pl.DataFrame) -> Verdict:
    """RLSVI and LSVI get to 1000 rows a game in most runs, LSPI from weights of zero in at most half; LSVI's level
    is at least twice that of the best players of LSPI from there.
    """
    means = [players.lspi_means(frame, FROM_NOTHING, lam) for lam in players.LAMBDAS]
    share, runs = share_of(np.concatenate([mean.max(axis=1) > LEARNED for mean in means]))
    lspi = at_most(share, 0.5, f"{runs} of LSPI get to 1000 rows")

    def judged(reading: str) -> tuple[Verdict, Row]:
        rlsvi, schedules = SIDES[reading]
        parts, cells = [], []
        for name, who in (("RLSVI", rlsvi), ("LSVI", best_of(frame, schedules))):
            share, runs = share_of(learned(frame, who))
            parts.append(at_least(share, 0.5, f"{runs} runs of {name}"))
            cells.append(runs)
        more = ratio(tuned(frame, schedules), players.lspi_anew(frame, FROM_NOTHING, "best_anew"))
        twice = at_least(more, 2.0, f"LSVI's level is {more} times LSPI's")
        return all_of(*parts, lspi, twice), (*cells, f"{more}")

    return in_each_reading(("RLSVI learns", "LSVI learns", "LSVI, times LSPI"), judged)


@claim(
    "LSPI struggles from scratch because it is completely greedy (the paper's belief)",
    "section 6.2",
    rows=players.few_runs,
)
def greed_is_why(frame: pl.DataFrame) -> Verdict:
    """LSVI that never explores gets to 1000 rows a game in at most half of the runs (afterstate form, scaled
    features).
    """
    share, runs = share_of(learned(frame, GREEDY))
    words = f"greedy LSVI: {runs} runs get to 1000 rows a game"
    return at_most(share, 0.5, f"{words}; its level is {mean_se(level(frame, GREEDY))}")


@claim(
    "RLSVI improves significantly on the tuned schedule",
    "section 6.2",
    headline=True,
    otherwise="reading",
)
def better_than_tuned(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is at least 1.1 times as large, and so is that of the
    last eighth of the long runs, where there are some: the least that the section calls significant is 3500
    rows after 3183.
    """

    def judged(reading: str) -> tuple[Verdict, Row]:
        ours, theirs = levels_of(frame, reading)
        more, best = ratio(ours, theirs), schedule(best_of(frame, SIDES[reading][1]))
        parts = [at_least(more, SIGNIFICANT, f"RLSVI gets {more} times the rows of LSVI (best: {best})")]
        row, last = (mean_se(ours), f"{mean_se(theirs)} ({best})", f"{more}"), "not tried"
        if reading in players.LONG:
            late = ratio(*(kept(frame, who, 8, longest(frame))[1] for who in players.LONG[reading]))
            parts.append(at_least(late, SIGNIFICANT, f"{late} times in the end of long runs"))
            last = f"{late} ({schedule(players.LONG[reading][1])})"
        return all_of(*parts), (*row, last)

    headings = ("RLSVI", "LSVI (best schedule)", "times", "times, in the end of long runs (schedule)")
    return in_each_reading(headings, judged)


@claim(
    "RLSVI leads to faster learning, improved stability and a superior learned policy in a large-scale video game",
    "section 6",
    headline=True,
    otherwise="reading",
)
def faster_stabler_better(frame: pl.DataFrame) -> Verdict:
    """Compared with LSVI's best schedule. Faster: the mean score of the first half of the shortest runs is higher.
    Stabler: that of the second half, the level, varies less between runs (standard deviation over mean), and the
    last fifth of a run has at least .9 times LSVI's share of the score of its best fifth. Superior: the level is
    higher.
    """

    def judged(reading: str) -> tuple[Verdict, Row]:
        rlsvi, schedules = SIDES[reading]
        sooner = ratio(beginning(frame, rlsvi), tuned(frame, schedules, beginning))
        varies, keeps = steadiness(frame, rlsvi, best_of(frame, schedules))
        higher = ratio(*levels_of(frame, reading))
        verdict = all_of(
            at_least(sooner, 1.0, f"{sooner} times LSVI's rows at first"),
            at_most(varies, 1.0, f"{varies} its spread"),
            at_least(keeps, AS_MUCH, f"{keeps} its share kept"),
            at_least(higher, 1.0, f"{higher} its level"),
        )
        return verdict, tuple(str(it) for it in (sooner, varies, keeps, higher))

    return in_each_reading(("rows at first", "spread between runs", "share of the best kept", "level"), judged)


@claim("No fixed ε gives good performance", "section 6.2, footnote", rows=players.few_runs)
def fixed_epsilon(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs for the best of ε = 0, .001, .01, .1 is at most
    half of that of the tuned schedule (afterstate form, scaled features).
    """
    share = ratio(tuned(frame, FIXED), tuned(frame, SCHEDULES))
    table = (("ε", "rows a game"), *((f"{who['epsilon']:g}", mean_se(level(frame, who))) for who in FIXED))
    return at_most(share, 0.5, f"the best has {share} of the tuned schedule's")._replace(table=table)


@claim("A discount of .99 is helpful for stability in both", "appendix D")
def discounted(frame: pl.DataFrame) -> Verdict:
    """In the literal form the level varies less between runs than at γ = 1 (standard deviation over mean), and the
    last fifth of a run has at least .9 times the share of the score of its best fifth that it has at γ = 1; for
    RLSVI, and for LSVI with ε = .1 × .95 to the power of the game.
    """
    (ours, (theirs, *_)), others = SIDES[PRINTED], [SIDES[name] for name in (ENDLESS, PATIENT)]
    pairs = [(who, other) for rlsvi, (lsvi, *_) in others for who, other in ((ours, rlsvi), (theirs, lsvi))]
    pairs += [(players.RLSVI, players.UNDISCOUNTED), (GREEDY, players.GREEDY_UNDISCOUNTED)]
    rows: list[Part] = []
    for place, (who, other) in enumerate(pairs):
        varies, keeps = steadiness(frame, who, other)
        name = f"{who['agent']}, {who['form']}"
        words = f"{name}: {varies} times the spread at γ = {other['gamma']:g}"
        verdict = all_of(at_most(varies, 1.0, words), at_least(keeps, AS_MUCH, f"{keeps} times the share kept"))
        both = [f"{mean_se(level(frame, it))} (|θ| to {largest(frame, it):.2g})" for it in (who, other)]
        cells = (name, f"{other['gamma']:g}", *both, f"{varies}", f"{keeps}", MET[verdict.outcome])
        rows.append((verdict if place < 2 else None, cells))
    headings = ("player", "other γ", "rows at γ = .99", "rows at other γ", "spread, times", "kept, times", "met")
    return worst_of(headings, rows)


@claim("An inverse gamma prior over the variance is slightly better", "appendix D", rows=players.few_runs)
def unknown_noise(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is 1 to 1.25 times that with known noise (afterstate
    form, scaled features).
    """
    ours, theirs = level(frame, players.UNKNOWN_NOISE), level(frame, players.RLSVI)
    more = ratio(ours, theirs)
    return between(more, 1.0, 1.25, f"unknown noise: {mean_se(ours)}, known: {mean_se(theirs)}; {more} times")


@claim("A wider prior over the variance is more robust (the paper's belief)", "appendix D")
def more_robust(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is larger than with known noise, with raw
    features: as if λ were 400 times smaller (afterstate form).
    """
    sides = players.RAW_UNKNOWN, players.RAW
    more = ratio(*(level(frame, who) for who in sides))
    found = [f"{mean_se(level(frame, who))} (|θ| to {largest(frame, who):.2g})" for who in sides]
    return at_least(more, 1.0, f"unknown noise: {found[0]}, known: {found[1]}; {more} times")
