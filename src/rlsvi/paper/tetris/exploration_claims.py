"""What the paper says about exploration, discount and noise in Tetris (section 6.2, appendix D), and verdicts."""

import numpy as np
import polars as pl

from rlsvi.core.compile import Bools
from rlsvi.paper.claim import Verdict, Verdicts, at_least, at_most, between, claim, claim_for_each, mean_se
from rlsvi.paper.tetris import players
from rlsvi.paper.tetris.levels import Player, best_of, largest, level, passed, schedule, tuned
from rlsvi.paper.tetris.players import FIXED, FORMS, FROM_NOTHING, GREEDY, HERE, LEARNED, SCHEDULES
from rlsvi.study.means import ratio, ratio_of_medians
from rlsvi.study.statistics import Interval, median, proportion


def learned(frame: pl.DataFrame, who: Player) -> Bools:
    """Whether a player gets to 1000 rows a game, for each seed."""
    return np.isfinite(passed(frame, who, LEARNED, players.lspi_games(frame)))


def share_of(got: Bools) -> tuple[Interval, str]:
    """The share of runs that got there, and their number in words."""
    return proportion(int(got.sum()), len(got)), f"{got.sum()} of {len(got)}"


@claim_for_each(HERE, "Both learn from scratch, where LSPI required a scoring initial policy: {}", "section 6.2")
def from_scratch(frame: pl.DataFrame, form: str) -> Verdicts:
    """RLSVI and LSVI get to 1000 rows a game in most runs, LSPI from weights of zero in at most half."""
    for name, who in (("RLSVI", FORMS[form][0]), ("LSVI", best_of(frame, FORMS[form][1]))):
        share, runs = share_of(learned(frame, who))
        yield at_least(share, 0.5, f"{name}: {runs} runs get to 1000 rows a game")
    means = [players.lspi_means(frame, FROM_NOTHING, lam) for lam in players.LAMBDAS]
    share, runs = share_of(np.concatenate([mean.max(axis=1) > LEARNED for mean in means]))
    yield at_most(share, 0.5, f"LSPI: {runs}")


@claim("LSPI struggles from scratch because it is completely greedy (the paper's belief)", "section 6.2")
def greed_is_why(frame: pl.DataFrame) -> Verdict:
    """LSVI that never explores gets to 1000 rows a game in at most half of the runs (afterstate form)."""
    share, runs = share_of(learned(frame, GREEDY))
    words = f"greedy LSVI: {runs} runs get to 1000 rows a game"
    return at_most(share, 0.5, f"{words}; its level is {mean_se(level(frame, GREEDY))}")


@claim("LSVI with a tuned schedule is much better than LSPI, from scratch", "section 6.2")
def better_than_greedy(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is at least twice that of the best players of
    LSPI from weights of zero (afterstate form).
    """
    ours, theirs = tuned(frame, SCHEDULES), players.lspi_anew(frame, FROM_NOTHING, "best_anew")
    more = ratio(ours, theirs)
    words = f"LSVI: {mean_se(ours)}; LSPI's best players from scratch: {mean_se(theirs)}"
    return at_least(more, 2.0, f"{words}; {more} times")


@claim_for_each(
    HERE, "RLSVI improves significantly on the tuned schedule, in final performance: {}", "section 6.2"
)
def better_than_tuned(frame: pl.DataFrame, form: str) -> Verdict:
    """The mean score of the second half of the shortest runs is larger."""
    who, schedules = FORMS[form]
    ours, theirs, best = level(frame, who), tuned(frame, schedules), best_of(frame, schedules)
    more = ratio(ours, theirs)
    words = f"LSVI, the best of {len(schedules)} schedules ({schedule(best)}): {mean_se(theirs)}"
    return at_least(more, 1.0, f"RLSVI: {mean_se(ours)}; {words}; {more} times")


@claim("RLSVI improves significantly on the tuned schedule, in games until it plays well", "section 6.2")
def learns_faster(frame: pl.DataFrame) -> Verdict:
    """1000 rows a game (mean of a fifth of the games LSPI plays at a time) after fewer games than the quickest
    of all schedules and fixed epsilons (afterstate form).
    """
    recent = max(players.lspi_games(frame) // 5, 1)
    found = {schedule(who): passed(frame, who, LEARNED, recent) for who in (*SCHEDULES, *FIXED)}
    best = min(found, key=lambda name: median(found[name]))
    ours, raw = (passed(frame, who, LEARNED, recent) for who in (players.RLSVI, players.RAW))
    share = ratio_of_medians(ours, found[best])
    words = f"RLSVI after a median of {median(ours):g} games, LSVI at best ({best}) after {median(found[best]):g}"
    return at_most(share, 1.0, f"{words}: {share} of it; RLSVI with raw features after {median(raw):g}")


@claim("No fixed epsilon gives good performance", "section 6.2, footnote")
def fixed_epsilon(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs for the best of epsilon = 0, .001, .01, .1 is at
    most half of that of the tuned schedule (afterstate form).
    """
    share = ratio(tuned(frame, FIXED), tuned(frame, SCHEDULES))
    found = ", ".join(f"{who['epsilon']:g}: {mean_se(level(frame, who))}" for who in FIXED)
    return at_most(share, 0.5, f"levels for epsilon = {found}; the best has {share} of the tuned schedule's")


def discount(frame: pl.DataFrame, *pairs: tuple[Player, Player]) -> Verdicts:
    """The level at gamma = .99 as a multiple of that of a player who looks further."""
    for who, other in pairs:
        ours, theirs = level(frame, who), level(frame, other)
        more = ratio(ours, theirs)
        words = f"{who['agent']}: {mean_se(ours)} at .99, {mean_se(theirs)} at {other['gamma']:g}, {more} times"
        yield at_least(more, 1.0, f"{words} ({largest(frame, who)}; {largest(frame, other)})")


@claim("A discount of .99 is helpful for stability in both: afterstate form", "appendix D")
def discounted_afterstates(frame: pl.DataFrame) -> Verdicts:
    """The mean score of the second half of the shortest runs is larger than at gamma = 1, for RLSVI and for
    greedy LSVI.
    """
    return discount(frame, (players.RLSVI, players.UNDISCOUNTED), (players.GREEDY, players.GREEDY_UNDISCOUNTED))


@claim("A discount of .99 is helpful for stability in both: literal form", "appendix D")
def discounted_literally(frame: pl.DataFrame) -> Verdicts:
    """The mean score of the second half of the shortest runs is larger than at gamma = .999, for RLSVI and for
    LSVI with epsilon = .1 x .95^l.
    """
    ours = players.LITERAL, players.LITERAL_SCHEDULES[0]
    return discount(frame, *zip(ours, players.LITERAL_PATIENT, strict=True))


@claim("An inverse gamma prior over the variance is slightly better", "appendix D")
def unknown_noise(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is 1 to 1.25 times that with known noise
    (afterstate form, scaled features).
    """
    ours, theirs = level(frame, players.UNKNOWN_NOISE), level(frame, players.RLSVI)
    more = ratio(ours, theirs)
    return between(more, 1.0, 1.25, f"unknown noise: {mean_se(ours)}, known: {mean_se(theirs)}; {more} times")


@claim("A wider prior over the variance is more robust (the paper's belief): raw features", "appendix D")
def more_robust(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is larger than with known noise, with raw
    features: as if lambda were 400 times smaller.
    """
    ours, theirs = level(frame, players.RAW_UNKNOWN), level(frame, players.RAW)
    more = ratio(ours, theirs)
    words = f"raw features, unknown noise: {mean_se(ours)} ({largest(frame, players.RAW_UNKNOWN)})"
    return at_least(more, 1.0, f"{words}, known: {mean_se(theirs)} ({largest(frame, players.RAW)}); {more} times")
