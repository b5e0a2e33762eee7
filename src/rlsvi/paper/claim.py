"""Claims of the paper, and verdicts on them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import NamedTuple

import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.study.statistics import Interval


class Outcome(StrEnum):
    """What came of a claim."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    INCONCLUSIVE = "inconclusive"


class Verdict(NamedTuple):
    """The outcome, what was measured in words, and the figure that decided with its 95% interval."""

    outcome: Outcome
    measured: str
    interval: Interval | None = None


def _all(frame: pl.DataFrame) -> pl.DataFrame:
    return frame


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper that states a result.

    words : what it says, in short.
    where : where it stands.
    criterion : what counts as reproduced.
    judge : from the table of results to the verdict.
    rows : the part of the table that `judge` is given; its seeds are counted.
    """

    words: str
    where: str
    criterion: str
    judge: Callable[[pl.DataFrame], Verdict]
    rows: Callable[[pl.DataFrame], pl.DataFrame] = _all


def between(interval: Interval, low: float, high: float, measured: str) -> Verdict:
    """Reproduced if all of the interval is between `low` and `high`, not reproduced if nothing of it is.

    Anything else is inconclusive: the runs are too few to tell.
    """
    if interval.inside(low, high):
        outcome = Outcome.REPRODUCED
    elif not interval.overlaps(low, high):
        outcome = Outcome.NOT_REPRODUCED
    else:
        outcome = Outcome.INCONCLUSIVE
    return Verdict(outcome, measured, interval)


def at_least(interval: Interval, low: float, measured: str) -> Verdict:
    """Reproduced if all of the interval is at least `low`."""
    return between(interval, low, math.inf, measured)


def at_most(interval: Interval, high: float, measured: str) -> Verdict:
    """Reproduced if all of the interval is at most `high`."""
    return between(interval, -math.inf, high, measured)


def exactly(holds: bool, measured: str) -> Verdict:
    """For what is computed, not sampled."""
    return Verdict(Outcome.REPRODUCED if holds else Outcome.NOT_REPRODUCED, measured)


def computed(step: Callable[[], Verdict]) -> Callable[[pl.DataFrame], Verdict]:
    """A judge of what no run decides: computed once."""
    once = cache(step)
    return lambda frame: once()


def all_of(first: Verdict, *others: Verdict) -> Verdict:
    """The worst of several verdicts, with the figure that decided it and the words of all."""
    order = [Outcome.NOT_REPRODUCED, Outcome.INCONCLUSIVE, Outcome.REPRODUCED]
    verdicts = [first, *others]
    worst = min(verdicts, key=lambda verdict: order.index(verdict.outcome))
    return Verdict(
        worst.outcome, "; ".join(verdict.measured for verdict in verdicts if verdict.measured), worst.interval
    )


def spoken(values: Floats, digits: int = 0) -> str:
    """A mean over runs with its standard error."""
    if len(values) < 2:
        return f"{values.mean():.{digits}f}"
    return f"{values.mean():.{digits}f} +- {values.std(ddof=1) / len(values) ** 0.5:.{digits}f}"
