"""What figures have in common: seeds, how the table of results is read, and how runs are compared."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.study.statistics import (
    Interval,
    bootstrap,
    mean,
    median,
    multiple,
    paired_ratio,
    ratio,
    ratio_of_medians,
)
from rlsvi_paper.claim import choice


def seeds_of(seed: int) -> tuple[int, int]:
    """The seeds of the problem and of the agent of a run."""
    problem, agent = np.random.SeedSequence(seed).generate_state(2, np.uint64)
    return int(problem), int(agent)


def having(frame: pl.DataFrame, **settings: Any) -> pl.DataFrame:
    """The rows in which columns have these values."""
    return frame.filter(*(pl.col(name) == value for name, value in settings.items()))


def rows_where(**settings: Any) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """A function that selects the rows in which columns have these values."""
    return lambda frame: having(frame, **settings)


def rows_with(column: str) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """A function that selects the rows that have a value in this column: those of some of the jobs."""
    return lambda frame: frame.filter(pl.col(column).is_not_null())


def cells(frame: pl.DataFrame, *by: str, value: str = "time") -> dict[Any, Floats]:
    """The `value` of every run, by the settings in `by` (a tuple if there are several)."""
    groups = frame.group_by(by, maintain_order=True).agg(pl.col(value)).sort(by)
    keys = [row[0] if len(by) == 1 else row for row in groups.select(by).iter_rows()]
    return {key: np.array(values) for key, values in zip(keys, groups[value].to_list(), strict=True)}


def learning_curves(frame: pl.DataFrame, value: str = "regret", **settings: Any) -> tuple[Floats, Floats]:
    """The episodes of the curves of runs with these settings, and their `value`, (seeds, points)."""
    mine = having(frame, **settings).sort("seed", "episode")
    at = mine["episode"].unique().sort().to_numpy().astype(np.float64)
    return at, mine[value].to_numpy().reshape(-1, len(at))


def total(frame: pl.DataFrame, **settings: Any) -> Floats:
    """The regret of all episodes of runs with these settings, for every seed."""
    return learning_curves(frame, **settings)[1][:, -1]


def average(values: Floats) -> Interval:
    """The mean of runs; also tried: the median."""
    return mean(values) if choice("statistic", "mean", "median") == "mean" else bootstrap(median, values)


def times_as_much(values: Floats, others: Floats, usual: str = "mean", most: float = np.inf) -> Interval:
    """The ratio of the means of two sets of runs, or that of their medians if that is usual; both are tried.

    Parameters
    ----------
    most
        What a run counts in a mean if it is infinite.
    """
    means = choice("statistic", usual, "median" if usual == "mean" else "mean") == "mean"
    return ratio(np.minimum(values, most), np.minimum(others, most)) if means else ratio_of_medians(values, others)


def paired_times(values: Floats, others: Floats) -> Interval:
    """The ratio of two means over the same problems; also tried: the median over these of the ratio on each."""
    medians = choice("statistic", "mean", "median") == "median"
    return bootstrap(median, list(map(multiple, values, others))) if medians else paired_ratio(values, others)


def chosen_by_the_others(found: Floats) -> Floats:
    """For each seed the value of the option that is best for the other seeds, so that luck does not count.

    Parameters
    ----------
    found
        Values of which large ones are good, (options, seeds).
    """
    seeds = found.shape[1]
    others = (found.sum(axis=1, keepdims=True) - found) / (seeds - 1) if seeds > 1 else found
    return np.asarray(found[others.argmax(axis=0), np.arange(seeds)])


def unexplained(design: Floats, values: Floats) -> Floats:
    """What a least-squares fit on the columns of `design` leaves of `values`."""
    return np.asarray(values - design @ np.linalg.lstsq(design, values, rcond=None)[0])
