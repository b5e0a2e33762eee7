"""Learning time against the number of basis functions on chains of several lengths."""

from collections.abc import Callable

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS
from rlsvi.study.statistics import Interval, bootstrap_summaries
from rlsvi_paper.chain.chain_features import trend
from rlsvi_paper.chain.learning import TIME, in_time, learning_jobs
from rlsvi_paper.claim import Verdicts, at_most, claim
from rlsvi_paper.degrees import about, little
from rlsvi_paper.drawing import Picture, labelled, panels, runs
from rlsvi_paper.figure import Figure
from rlsvi_paper.results import cells

SHARES = (0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.2, 1.5)  # K as a share of SA = 2N


def jobs(lengths: list[int], seeds: int, limit: int) -> list[Job]:
    """K from a tenth to one and a half of SA for each length."""
    return [
        job
        for N in lengths
        for job in learning_jobs([N], sorted({max(2, round(share * 2 * N)) for share in SHARES}), seeds, limit)
    ]


@claim("For few basis functions the learning time grows about linearly with K", "appendix C.3")
def linear(frame: pl.DataFrame) -> Verdicts:
    """The slope of the median learning time from SA/4 to SA/2 is about that up to SA/4, within a factor of 1.1;
    and most runs learn in every setting.
    """
    share = bootstrap_ratio(frame, 1, 0)
    words = f"from K = SA/4 to SA/2 one more function costs {share} times as much as before"
    yield about(share, 1.0, words)
    yield in_time(cells(frame, "length", "features"))


@claim("The marginal increase decreases and almost plateaus from K = SA on", "appendix C.3")
def plateau(frame: pl.DataFrame) -> Verdicts:
    """Almost none of the slope is left: that of the median learning time from SA on is at most 1/11 of that up to
    SA/2; and most runs learn in every setting.
    """
    share = bootstrap_ratio(frame, 3, 2)
    words = f"from K = SA on one more function costs {share} times what it costs up to SA/2"
    yield at_most(share, little(), words)
    yield in_time(cells(frame, "length", "features"))


def bootstrap_ratio(frame: pl.DataFrame, above: int, below: int) -> Interval:
    """The ratio of two of the `slopes`, each averaged over the lengths."""
    found = cells(frame, "length", "features")
    length, features = np.array(list(found), dtype=np.float64).T
    parts = [(length == N, slopes(N, features[length == N])) for N in np.unique(length)]

    def ratio(middle: Floats) -> float:
        mean = np.mean([of_times(middle[mine]) for mine, of_times in parts], axis=0)
        return float(mean[above] / mean[below]) if mean[below] > 0 else np.inf

    return bootstrap_summaries(ratio, list(found.values()))


def slopes(N: float, K: Floats) -> Callable[[Floats], Floats]:
    """Of times at K: their slopes up to SA/4, from there to SA/2, up to SA/2, and from SA on, where SA = 2N.

    In units of SA and of the time at SA, so that lengths can be averaged.
    """
    parts = [K <= N / 2, (K >= N / 2) & (K <= N), K <= N, K >= 2 * N]
    weights = np.zeros((len(parts), len(K)))
    for row, part in zip(weights, parts, strict=True):
        away = K[part] - K[part].mean()
        row[part] = away / (away @ away)  # of the least-squares line

    def of_times(time: Floats) -> Floats:
        return np.asarray(2 * N / time[K == 2 * N][0] * (weights @ time))

    return of_times


def draw(frame: pl.DataFrame) -> Picture:
    """One colour a length."""
    figure, (axes,) = panels(1, 4.6)
    for i, N in enumerate(sorted(frame["length"].unique())):
        found = cells(frame.filter(pl.col("length") == N), "features")
        runs(axes, found, frame["limit"][0], f"N = {N}", i)
        trend(axes, found, None, i)
        axes.axvline(2 * N, color=COLOURS[i], linewidth=0.8, linestyle=":")
    labelled(axes, "number of basis functions K", TIME, key="best", ylim=(0, None))
    return figure


FIGURE = Figure.of(
    __name__,
    title="Basis functions on chains of several lengths",
    where="appendix C.3, figure 12",
    caption=(
        "Episodes until ten rewards: every run, medians, and a local polynomial regression of the medians for "
        "each chain length N, with 100 seeds at the paper's scale. Beyond the dotted K = SA the basis spans all "
        "functions of states and actions."
    ),
    quick={"lengths": [10, 20, 30], "seeds": 5, "limit": 10_000},
    paper={"lengths": [10, 20, 30, 40, 50], "seeds": 100, "limit": 20_000},
)
