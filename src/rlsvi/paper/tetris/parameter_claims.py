"""What the paper says about the discount and the noise in Tetris (appendix D), and verdicts on it."""

import polars as pl

from rlsvi.paper.claim import Verdict, all_of, at_least, between, claim, mean_se
from rlsvi.paper.tetris.levels import Player, largest, level
from rlsvi.paper.tetris.players import (
    GREEDY,
    GREEDY_UNDISCOUNTED,
    LITERAL,
    LITERAL_PATIENT,
    LITERAL_SCHEDULES,
    RAW,
    RAW_UNKNOWN,
    RLSVI,
    UNDISCOUNTED,
    UNKNOWN_NOISE,
)
from rlsvi.study.means import ratio


def discount(frame: pl.DataFrame, *pairs: tuple[Player, Player]) -> Verdict:
    """The level at gamma = .99 as a multiple of that of a player who looks further."""
    verdicts = []
    for who, other in pairs:
        ours, theirs = level(frame, who), level(frame, other)
        more = ratio(ours, theirs)
        words = f"{who['agent']}: {mean_se(ours)} at .99, {mean_se(theirs)} at {other['gamma']:g}, {more} times"
        verdicts.append(at_least(more, 1.0, f"{words} ({largest(frame, who)}; {largest(frame, other)})"))
    return all_of(*verdicts)


@claim("A discount of .99 is helpful for stability in both: afterstate form", "appendix D")
def discounted_afterstates(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is larger than at gamma = 1, for RLSVI and for
    greedy LSVI.
    """
    return discount(frame, (RLSVI, UNDISCOUNTED), (GREEDY, GREEDY_UNDISCOUNTED))


@claim("A discount of .99 is helpful for stability in both: literal form", "appendix D")
def discounted_literally(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is larger than at gamma = .999, for RLSVI and for
    LSVI with epsilon = .1 x .95^l.
    """
    return discount(frame, (LITERAL, LITERAL_PATIENT[0]), (LITERAL_SCHEDULES[0], LITERAL_PATIENT[1]))


@claim("An inverse gamma prior over the variance is slightly better", "appendix D")
def unknown_noise(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is 1 to 1.25 times that with known noise
    (afterstate form, scaled features).
    """
    ours, theirs = level(frame, UNKNOWN_NOISE), level(frame, RLSVI)
    more = ratio(ours, theirs)
    return between(more, 1.0, 1.25, f"unknown noise: {mean_se(ours)}, known: {mean_se(theirs)}; {more} times")


@claim("A wider prior over the variance is more robust (the paper's belief): raw features", "appendix D")
def more_robust(frame: pl.DataFrame) -> Verdict:
    """The mean score of the second half of the shortest runs is larger than with known noise, with raw
    features: as if lambda were 400 times smaller.
    """
    ours, theirs = level(frame, RAW_UNKNOWN), level(frame, RAW)
    more = ratio(ours, theirs)
    words = f"raw features, unknown noise: {mean_se(ours)} ({largest(frame, RAW_UNKNOWN)})"
    return at_least(more, 1.0, f"{words}, known: {mean_se(theirs)} ({largest(frame, RAW)}); {more} times")
