"""Learning times over lengths and basis functions, with a quadratic in the length for each number of functions."""

from collections.abc import Callable

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS
from rlsvi.study.statistics import bootstrap_summaries, power_laws
from rlsvi_paper.chain.learning import LENGTH, TIME, in_time, learning_jobs, medians, power_over_exponential
from rlsvi_paper.claim import Parts, Verdicts, all_of, at_least, choice, claim
from rlsvi_paper.drawing import Picture, labelled, panels, runs
from rlsvi_paper.figure import Figure
from rlsvi_paper.results import cells, having

FEW_FUNCTIONS = 20  # basis functions: up to so many a run is short


def jobs(
    lengths: list[int], features: list[int], seeds: int, limit: int, short_runs: int | None = None
) -> list[Job]:
    """Every length with every number of basis functions.

    Parameters
    ----------
    short_runs
        The number of seeds where there are few basis functions; None: as many as elsewhere.
    """
    few, many = ([K for K in features if (K <= FEW_FUNCTIONS) is short] for short in (True, False))
    return learning_jobs(lengths, few, short_runs or seeds, limit) + learning_jobs(lengths, many, seeds, limit)


@claim("Learning appears to be polynomial in both N and K", "appendix C.4")
def polynomial(frame: pl.DataFrame) -> Verdicts:
    """The mean squared error of log T is less for a power law in N and K than for an exponential in both, of
    median times T; and most runs learn in every setting.
    """
    found = cells(frame, "length", "features")
    better = power_over_exponential(found)
    in_length, in_features = power_laws(list(found), list(found.values()))
    words = f"the exponents of N and K are {in_length} and {in_features}"
    yield at_least(better, 0.0, f"{words}; the power law's squared error is lower by {better}")
    yield in_time(found)


@claim(
    "The quadratic model in N, fitted for each K, seems to fit the data pretty well",
    "appendix C.4",
    table=("K", "share of the variance explained"),
)
def fits_well(frame: pl.DataFrame) -> Parts:
    """For every K it explains at least .8 of the variance of the median learning times, and most runs learn."""
    for K in sorted(frame["features"].unique()):
        found = cells(having(frame, features=K), "length")
        share = bootstrap_summaries(explained(np.array(list(found), dtype=float)), list(found.values()))
        fits = at_least(
            share, choice("a share explained of", 0.8, 0.7, 0.9), f"for K = {K} it explains a share of {share}"
        )
        yield all_of(fits, in_time(found)), (f"{K}", f"{share}")


def explained(lengths: Floats) -> Callable[[Floats], float]:
    """The share of the variance of times at these lengths that a quadratic explains; all if there is none."""
    design = np.vander(lengths / lengths.max(), 3)
    left = np.eye(len(lengths)) - design @ np.linalg.pinv(design)

    def share(times: Floats) -> float:
        total = float(np.square(times - times.mean()).sum())
        return 1.0 - float(np.square(left @ times).sum()) / total if total > 0 else 1.0

    return share


def draw(frame: pl.DataFrame) -> Picture:
    """One colour a number of basis functions, with its quadratic."""
    figure, (axes,) = panels(1, 4.6)
    for i, K in enumerate(sorted(frame["features"].unique())):
        found = cells(having(frame, features=K), "length")
        runs(axes, found, frame["limit"][0], f"K = {K}", i)
        N, time = np.array(list(found), dtype=float), medians(found)
        if np.isfinite(time).all():
            axes.plot(N, np.polyval(np.polyfit(N, time, 2), N), color=COLOURS[i], linewidth=3, alpha=0.4)
    labelled(axes, LENGTH, TIME, key="best", yscale="log")
    return figure


FIGURE = Figure.of(
    __name__,
    title="Approximate polynomial learning",
    where="appendix C.4, figure 13",
    caption=(
        "Episodes until ten rewards: every run and medians, with 20 seeds at the paper's scale, 100 up to K = "
        "20. The broad pale lines are quadratics in N, fitted to the medians for each K."
    ),
    quick={"lengths": list(range(10, 61, 10)), "features": [2, 5, 10, 20], "seeds": 5, "limit": 10_000},
    paper={
        "lengths": list(range(10, 101, 10)),
        "features": [2, 5, 10, 20, 50, 100],
        "seeds": 20,
        "limit": 20_000,
        "short_runs": 100,
    },
)
