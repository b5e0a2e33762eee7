"""Learning times over lengths and basis functions, with a quadratic in the length for each number of functions."""

import numpy as np
import polars as pl
from matplotlib.figure import Figure as Picture

from rlsvi.core.compile import Floats
from rlsvi.paper.chain.learning import learning_jobs, power_over_exponential
from rlsvi.paper.claim import Verdict, at_least, claim
from rlsvi.paper.drawing import labelled, legend, panels, runs
from rlsvi.paper.figure import Figure
from rlsvi.paper.results import cells
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS
from rlsvi.study.statistics import median, power_laws, proportion, r_squared


def jobs(lengths: list[int], features: list[int], seeds: int, limit: int) -> list[Job]:
    """Every length with every number of basis functions."""
    return learning_jobs(lengths, features, seeds, limit)


def quadratic(lengths: Floats, times: Floats) -> Floats:
    """The fitted values of a + b N + c N^2."""
    return np.asarray(np.polyval(np.polyfit(lengths, times, 2), lengths), dtype=np.float64)


@claim("The quadratic model in N, fitted for each K, seems to fit the data pretty well", "appendix C.4")
def fits_well(frame: pl.DataFrame) -> Verdict:
    """For most K it explains at least .8 of the variance of the median learning times."""
    shares = {}
    for K in sorted(frame["features"].unique()):
        found = cells(frame.filter(pl.col("features") == K), "length")
        shares[K] = _explained(np.array(list(found), dtype=float), np.array([median(t) for t in found.values()]))
    good = proportion(sum(share >= 0.8 for share in shares.values()), len(shares))
    each = ", ".join(f"{share:.2f} for K = {K}" for K, share in shares.items())
    return at_least(
        good,
        0.5,
        f"a quadratic in N explains this share of the variance of the medians: {each}; enough for {good} of the K",
    )


def _explained(lengths: Floats, times: Floats) -> float:
    """Of times that are all the same there is nothing left to explain."""
    if not np.isfinite(times).all():
        return -np.inf
    return r_squared(times, quadratic(lengths, times)) if np.ptp(times) > 0 else 1.0


@claim("Learning appears to be polynomial in both N and K", "appendix C.4")
def polynomial(frame: pl.DataFrame) -> Verdict:
    """A power law in N and K fits the median learning times better than an exponential."""
    found = cells(frame, "length", "features")
    better = power_over_exponential(found)
    in_length, in_features = power_laws(list(found), list(found.values()))
    return at_least(
        better,
        0.0,
        f"over {len(found)} settings T grows as N to the power {in_length} times K to the power {in_features}; "
        f"the mean squared error of log T is {better} less than for an exponential in both",
    )


def draw(frame: pl.DataFrame) -> Picture:
    """One colour a number of basis functions, with its quadratic."""
    figure, (axes,) = panels(1, 4.6)
    for i, K in enumerate(sorted(frame["features"].unique())):
        found = cells(frame.filter(pl.col("features") == K), "length")
        runs(axes, found, frame["limit"][0], f"K = {K}", i)
        N, time = np.array(list(found), dtype=float), np.array([median(times) for times in found.values()])
        if np.isfinite(time).all():
            axes.plot(N, quadratic(N, time), color=COLOURS[i], linewidth=3, alpha=0.4)
    axes.set_yscale("log")
    labelled(axes, "chain length N", "episodes until 10 rewards")
    legend(axes)
    return figure


FIGURE = Figure(
    name="chain-quadratic",
    title="Approximate polynomial learning",
    where="appendix C.4, figure 13",
    caption=(
        "Episodes until ten rewards: every run, medians, and (broad and pale) a quadratic in the chain length "
        "fitted to the medians for each number K of basis functions."
    ),
    sizes={
        "quick": {"lengths": list(range(10, 61, 10)), "features": [2, 5, 10, 20], "seeds": 5, "limit": 10_000},
        "paper": {
            "lengths": list(range(10, 101, 10)),
            "features": [2, 5, 10, 20, 50, 100],
            "seeds": 5,
            "limit": 20_000,
        },
    },
    jobs=jobs,
    claims=[polynomial, fits_well],
    draw=draw,
)
