"""Learning time against the number of basis functions, on a chain of 50 states."""

from collections.abc import Mapping

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from rlsvi.core.compile import Floats
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS
from rlsvi.study.statistics import bootstrap, bootstrap_summaries, line, local_polynomial, median, power_law
from rlsvi_paper.chain.learning import TIME, dithering_bound, in_time, learning_jobs, medians, tabular_bound
from rlsvi_paper.claim import Verdicts, at_least, at_most, choice, claim, exactly
from rlsvi_paper.degrees import far
from rlsvi_paper.drawing import Picture, labelled, panels, runs
from rlsvi_paper.figure import Figure
from rlsvi_paper.results import cells

N = 50


def jobs(features: list[int], seeds: int, limit: int) -> list[Job]:
    """Ten rewards, N = 50."""
    return learning_jobs([N], features, seeds, limit)


@claim("Learning time scales gracefully with K", "section 6.1.1")
def graceful(frame: pl.DataFrame) -> Verdicts:
    """It grows at most linearly: the exponent of a power law in K is at most 1; and most runs learn at every K."""
    found = cells(frame, "features")
    exponent = power_law(list(found), list(found.values()))
    yield at_most(
        exponent, choice("an exponent of", 1.0, 0.5, 2.0), f"learning time grows as K to the power {exponent}"
    )
    yield in_time(found)


@claim("The marginal effect of K decreases as K approaches SA = 100", "section 6.1.1")
def marginal(frame: pl.DataFrame) -> Verdicts:
    """The slope of the median learning time is larger for K up to 50 than from 50 on; and most runs learn."""
    found, bend = cells(frame, "features"), choice("a bend at K =", N, 30, 70)
    K = np.array(list(found), dtype=float)

    def slopes(middle: Floats) -> tuple[float, float]:
        return line(K[K <= bend], middle[K <= bend])[0], line(K[K >= bend], middle[K >= bend])[0]

    difference = bootstrap_summaries(lambda it: slopes(it)[0] - slopes(it)[1], list(found.values()))
    below, beyond = slopes(medians(found)) if np.isfinite(difference.value) else (np.inf, np.inf)
    words = f"one more function costs {below:.1f} episodes up to K = {bend} and {beyond:.1f} beyond"
    yield at_least(difference, 0.0, f"{words}: {difference} less")
    yield in_time(found)


@claim(
    "Even for large K far superior to the dithering (above 10¹⁴) and the tabular bound (above 10⁵)",
    "section 6.1.1 and its footnote",
)
def superior(frame: pl.DataFrame) -> Verdicts:
    """At the largest K at least ten times faster than H²SA."""
    found = cells(frame, "features")
    largest = max(found)
    dithering, tabular = dithering_bound(N), tabular_bound(N)
    times = bootstrap(lambda drawn: tabular / median(drawn), found[largest])
    words = f"at K = {largest} it takes {bootstrap(median, found[largest])} episodes"
    yield at_least(times, far(), f"{words}, H²SA is {times} times as long")
    yield exactly(dithering > 1e14 and tabular > 1e5, f"2ᴺ⁻¹ = {dithering:.3g}, H²SA = {tabular:,.0f}")


def draw(frame: pl.DataFrame) -> Picture:
    """Learning times with a local polynomial regression of the medians."""
    figure, (axes,) = panels()
    found = cells(frame, "features")
    runs(axes, found, frame["limit"][0], "RLSVI, N = 50: runs and medians", 1)
    trend(axes, found, "local polynomial regression", 0)
    labelled(axes, "number of basis functions K", TIME, key="upper left", ylim=(0, None))
    return figure


def trend(axes: Axes, found: Mapping[float, Floats], label: str | None, index: int) -> None:
    """A local polynomial regression through the medians, as far as they are finite."""
    middle = {K: median(times) for K, times in found.items()}
    K = np.array([K for K, value in middle.items() if np.isfinite(value)], dtype=float)
    if len(K) >= 6:
        at = np.linspace(K.min(), K.max(), 100)
        fit = local_polynomial(K, [middle[k] for k in K], at, degree=1 if len(K) < 10 else 2)
        axes.plot(at, fit, color=COLOURS[index % len(COLOURS)], linewidth=3, alpha=0.5, label=label)


FIGURE = Figure.of(
    __name__,
    title="Learning time against the number of basis functions",
    where="section 6.1.1, figure 4",
    caption=(
        "Episodes until ten rewards on a chain of 50 states, where SA = 100: every run, medians, and a local "
        "polynomial regression (loess) of the medians, with 100 seeds at the paper's scale."
    ),
    quick={"features": [2, 5, 10, 20, 30, 40, 50, 60, 80, 100], "seeds": 5, "limit": 10_000},
    paper={"features": [2, *range(5, 101, 5)], "seeds": 100, "limit": 20_000},
)
