"""Claims of the paper, and verdicts on them.

A claim is a function from the table of results to a verdict, or to several of which the worst counts. Its
decorator holds what the paper says and where; its docstring is the criterion, what counts as reproduced::

    @claim("Learning time scales gracefully with K", "section 6.1.1")
    def graceful(frame: pl.DataFrame) -> Verdict:
        \"""It grows at most linearly: the exponent of a power law in K is at most 1.\"""
        ...
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from inspect import getdoc
from types import ModuleType
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar, Unpack

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from rlsvi.core.compile import Floats
from rlsvi.study.statistics import Interval, proportion


class Outcome(StrEnum):
    """The outcome of a claim."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    INCONCLUSIVE = "inconclusive"


Kind = Literal["experiment", "proof", "ours"]
Why = Literal["misprint", "reading", "finding"]
Row = tuple[str, ...]


class Verdict(NamedTuple):
    """The outcome of a claim.

    Parameters
    ----------
    measured
        What was measured, in a sentence or two.
    interval
        The estimate that decided with its 95% interval; None where no number of runs could change it.
    table
        Further numbers, the first row has the headings.
    readings
        Where the paper can be read in several ways, their names and outcomes, the one that decides first.
    caveat
        What a reader must know beside it, though the sentence does not speak of it.
    variants
        By other choices of the criterion, one at a time, the outcome: see `choice`.
    """

    outcome: Outcome
    measured: str
    interval: Interval | None = None
    table: tuple[Row, ...] = ()
    readings: tuple[tuple[str, str], ...] = ()
    caveat: str = ""
    variants: tuple[tuple[str, str], ...] = ()


Value = TypeVar("Value", int, float, str)
_OFFERED: dict[str, tuple[Any, ...]] = {}  # the other values of all choices of the verdict that is being computed
_CHOSEN: dict[str, Any] = {}


def choice(name: str, usual: Value, *others: Value) -> Value:
    """A choice of ours in a criterion, a threshold or a window, say; `varied` tries the other values too."""
    _OFFERED[name] = others
    found: Value = _CHOSEN.get(name, usual)
    return found


def varied(judge: Callable[[], Verdict]) -> Verdict:
    """The verdict, and what it would be if any one of its choices had another value."""
    _OFFERED.clear()
    verdict, variants = judge(), []
    for name, others in list(_OFFERED.items()):
        for value in others:
            _CHOSEN[name] = value
            try:
                told = value if isinstance(value, str) else f"{value:g}"
                variants.append((f"{name} {told}", str(judge().outcome)))
            finally:
                _CHOSEN.clear()
    return verdict._replace(variants=tuple(variants))


Part = tuple[Verdict | None, Row]  # of a table: a verdict, or None for a remark, and its row
Parts = Iterator[Part]
Judge = Callable[[pl.DataFrame], Verdict]
Verdicts = Iterator[Verdict | str]  # several, and remarks before, between and after them
Rows = Callable[[pl.DataFrame], pl.DataFrame]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper that states a result, and the function that judges it.

    Parameters
    ----------
    name
        The name of the function.
    words
        What the paper says, in short.
    where
        Its section or appendix.
    criterion
        What counts as reproduced.
    judge
        From rows that were selected already to the verdict.
    rows
        Selects the part of the table that `judge` is given; the seeds in it are counted.
    kind
        What the paper says about its experiments and results, a step of its proofs, or a check of ours.
    otherwise
        If it is not reproduced, why: the paper has a misprint, it can be read in another way, or neither.
    place
        Where the function is defined, as module:name.
    """

    name: str
    words: str
    where: str
    criterion: str
    judge: Judge
    rows: Rows = lambda frame: frame
    kind: Kind = "experiment"
    otherwise: Why = "finding"
    place: str = "__main__:"

    @property
    def headline(self) -> bool:
        """Whether it is a main claim: of the abstract, Theorem 1 among them, or the opening of section 6."""
        return self.kind == "experiment" and bool(re.search(r"abstract|sections? 6(?![.\d])", self.where))


def place_of(function: Callable[..., Any]) -> str:
    """The definition at the top level of a module that a function comes from, as module:name."""
    return f"{function.__module__}:{function.__qualname__.partition('.')[0]}"


class About(TypedDict, total=False):
    """What else the decorators take: see `Claim`."""

    kind: Kind
    otherwise: Why


def claim(
    words: str, where: str, rows: Rows = lambda frame: frame, *, table: Row = (), **about: Unpack[About]
) -> Callable[[Callable[[pl.DataFrame], Verdict | Verdicts | Parts]], Claim]:
    """Declare that the function below judges what the paper says at `where`, on some rows of the table.

    Parameters
    ----------
    words
        What the paper says, in short.
    where
        Its section or appendix.
    rows
        Selects the part of the table that the function is given; the seeds in it are counted.
    table
        The headings of a table. Then the function yields verdicts and their rows in it, as `worst_of` takes them;
        else it returns a verdict, or yields several.
    **about
        `kind` or `otherwise`, as in `Claim`.

    Returns
    -------
    Callable
        The decorator. The docstring of the function below it is the criterion.

    Examples
    --------
    >>> import polars as pl
    >>> from rlsvi_paper.claim import claim, exactly
    >>> @claim("no reward is negative", "section 2")
    ... def positive(frame):
    ...     "The least reward is at least 0."
    ...     return exactly(frame["reward"].min() >= 0, "looked at all rewards")
    >>> print(positive.judge(pl.DataFrame({"reward": [0.0, 1.0]})).outcome)
    reproduced
    """

    def declared(judge: Callable[[pl.DataFrame], Any]) -> Claim:
        def decide(frame: pl.DataFrame) -> Verdict:
            found = judge(frame)
            if isinstance(found, Verdict):
                return found
            return worst_of(table, found) if table else all_of(*found)

        return Claim(judge.__name__, words, where, _criterion(judge), decide, rows, **about, place=place_of(judge))

    return declared


def computed(words: str, where: str, **about: Unpack[About]) -> Callable[[Callable[[], Verdict]], Claim]:
    """Declare a claim that no run decides: the function takes no table, has no `choice`, and is called once."""

    def declared(step: Callable[[], Verdict]) -> Claim:
        once = cache(step)
        return Claim(
            step.__name__, words, where, _criterion(step), lambda frame: once(), **about, place=place_of(step)
        )

    return declared


def _criterion(judge: Callable[..., Any]) -> str:
    return " ".join((getdoc(judge) or "").split())


def claims_in(*modules: ModuleType) -> list[Claim]:
    """All claims that modules declare, in their order."""
    found = [it if isinstance(it, list) else [it] for module in modules for it in vars(module).values()]
    return [it for several in found for it in several if isinstance(it, Claim)]


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


def more_runs(values: Floats, runs: int, draws: int, seed: int) -> Floats:
    """What more runs might have, (runs, draws), by the Bayesian bootstrap: each is one of ours or repeats one."""
    rng, n = np.random.default_rng(seed), len(values)
    drawn = np.empty((runs, draws), np.int64)
    for k in range(runs):
        at = rng.integers(n + k, size=draws)
        drawn[k] = np.where(at < n, at, drawn[np.maximum(at - n, 0), np.arange(draws)])
    return np.asarray(values[drawn])


def printed(values: Floats, runs: int, figure: float, measured: str) -> Verdict:
    """Reproduced if a figure that the paper prints, of so many runs, lies in the prediction interval of as many.

    The figure of the paper is random too: the interval is that of the mean, or median, of so many runs more.
    """
    drawn, statistic = more_runs(values, runs, 10_000, 0), choice("statistic", "mean", "median")
    found = np.median(drawn, axis=0) if statistic == "median" else drawn.mean(axis=0)
    low, middle, high = (float(np.quantile(found, q, method="inverted_cdf")) for q in (0.025, 0.5, 0.975))
    words = f"{measured}; the {statistic} of {runs} runs is from {low:.0f} to {high:.0f} in 95% of cases"
    return exactly(low <= figure <= high, words)._replace(interval=Interval(middle, low, high))


def exactly(holds: bool, measured: str) -> Verdict:
    """A verdict on what is computed, not sampled."""
    return Verdict(Outcome.REPRODUCED if holds else Outcome.NOT_REPRODUCED, measured)


def all_of(*parts: Verdict | str) -> Verdict:
    """The worst of several verdicts, with the estimate that decided it, the words of all and remarks."""
    words = [part.measured if isinstance(part, Verdict) else part for part in parts]
    worst = _worst([part for part in parts if isinstance(part, Verdict)])
    return worst._replace(measured="; ".join(filter(None, words)))


def worst_of(headings: Row, parts: Iterable[Part]) -> Verdict:
    """The worst of several verdicts in its own words, with a table of all."""
    found = list(parts)
    verdicts = [verdict for verdict, _ in found if verdict is not None]
    held, worst = sum(it.outcome is Outcome.REPRODUCED for it in verdicts), _worst(verdicts)
    count = f"holds in {held} of {len(verdicts)} cases; " if len(verdicts) > 1 else ""
    return worst._replace(measured=count + worst.measured, table=(headings, *(row for _, row in found)))


def _worst(verdicts: list[Verdict]) -> Verdict:
    order = [Outcome.NOT_REPRODUCED, Outcome.INCONCLUSIVE, Outcome.REPRODUCED]
    return min(verdicts, key=lambda verdict: order.index(verdict.outcome))


def in_readings(headings: Row, found: Mapping[str, tuple[Verdict, Row]], remarks: Iterable[Row] = ()) -> Verdict:
    """The verdict in the first reading of the paper's text, with a table of all readings.

    Parameters
    ----------
    headings
        Of the table, for the names of readings, their rows, and their outcomes.
    found
        By the name of a reading, its verdict and row.
    """
    rows = [(name, *row, str(it.outcome)) for name, (it, row) in found.items()]
    outcomes = tuple((name, outcome) for name, *_, outcome in rows)
    return next(iter(found.values()))[0]._replace(table=(headings, *rows, *remarks), readings=outcomes)


def share_of(holds: ArrayLike) -> tuple[Interval, str]:
    """The share of runs in which something holds, with its interval, and their number in words."""
    found = np.asarray(holds, dtype=np.bool_)
    return proportion(int(found.sum()), len(found)), f"{found.sum()} of {len(found)}"


def three_digits(interval: Interval) -> str:
    """An estimate and its interval, with three digits or more."""
    value, low, high = (f"{x:.0f}" if abs(x) >= 100 else f"{x:.3g}" for x in interval)
    return f"{value} ({low} to {high})"


def mean_se(values: Floats, digits: int = 0) -> str:
    """The mean over runs and its standard error, in words."""
    if len(values) < 2:
        return f"{values.mean():.{digits}f}"
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1) / len(values) ** 0.5:.{digits}f}"
