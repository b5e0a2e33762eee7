"""The scaling in N and in K on logarithmic axes: is learning polynomial?"""

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.study.job import Job
from rlsvi.study.plot import INK
from rlsvi.study.statistics import line, power_law
from rlsvi_paper.chain import chain_features, chain_length
from rlsvi_paper.chain.learning import LENGTH, TIME, in_time, medians, power_over_exponential
from rlsvi_paper.claim import Verdicts, at_least, claim
from rlsvi_paper.drawing import LOGARITHMIC, Picture, labelled, panels, runs
from rlsvi_paper.figure import Figure
from rlsvi_paper.results import cells


def jobs(lengths: list[int], features: list[int], seeds: int, limit: int) -> list[Job]:
    """Those of the two figures before; what has been computed for them is not computed again."""
    both = chain_length.jobs(lengths, seeds, limit) + chain_features.jobs(features, seeds, limit)
    return list({job.name: job for job in both}.values())


def by_length(frame: pl.DataFrame) -> dict[float, Floats]:
    """Times at K = 10, for each length."""
    return cells(frame.filter(pl.col("features") == chain_length.K), "length")


def by_features(frame: pl.DataFrame) -> dict[float, Floats]:
    """Times at N = 50, for each number of basis functions."""
    return cells(frame.filter(pl.col("length") == chain_features.N), "features")


@claim("The data are consistent with polynomial learning", "section 6.1.1")
def polynomial(frame: pl.DataFrame) -> Verdicts:
    """The mean squared error of log T, of median times T, is less for a power law than for an exponential: in N as
    well as in K; and most runs learn in every setting.
    """
    for symbol, found in (("N", by_length(frame)), ("K", by_features(frame))):
        better, exponent = power_over_exponential(found), power_law(list(found), list(found.values()))
        yield at_least(better, 0.0, f"{symbol} to the power {exponent}, error lower by {better}")
        yield in_time(found)


def draw(frame: pl.DataFrame) -> Picture:
    """Both on logarithmic axes, with the power laws."""
    figure, both = panels(2, 3.8)
    names = LENGTH, "number of basis functions K"
    for i, (axes, name, found) in enumerate(zip(both, names, (by_length(frame), by_features(frame)), strict=True)):
        fixed = "K = 10" if i == 0 else "N = 50"
        runs(axes, found, frame["limit"][0], f"{fixed}: runs and medians", i)
        if np.isfinite(medians(found)).all():
            x = np.array(list(found), dtype=float)
            slope, intercept = line(np.log(x), np.log(medians(found)))
            fit = np.exp(intercept) * x**slope
            axes.plot(x, fit, color=INK, linewidth=1, linestyle="--", label=f"power {slope:.2f}")
        labelled(axes, name, TIME, key="best", **LOGARITHMIC)
    return figure


FIGURE = Figure.of(
    __name__,
    title="Support for polynomial learning",
    where="section 6.1.1, figure 5",
    caption="The learning times of the two figures before, on logarithmic axes: a power law is a straight line.",
    quick={**chain_length.FIGURE.sizes["quick"], "features": chain_features.FIGURE.sizes["quick"]["features"]},
    paper={**chain_length.FIGURE.sizes["paper"], "features": chain_features.FIGURE.sizes["paper"]["features"]},
)
