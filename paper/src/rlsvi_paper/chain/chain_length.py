"""Learning time against the length of the chain, beside the bounds for dithering and for tabular learning."""

import numpy as np
import polars as pl

from rlsvi.study.job import Job
from rlsvi_paper.chain.learning import (
    LENGTH,
    TIME,
    below_the_bounds,
    dithering_bound,
    draw_bounds,
    learning_jobs,
    tabular_bound,
)
from rlsvi_paper.claim import Verdicts, claim, exactly
from rlsvi_paper.drawing import Picture, labelled, panels, runs
from rlsvi_paper.figure import Figure
from rlsvi_paper.results import cells

K = 10


def jobs(lengths: list[int], seeds: int, limit: int) -> list[Job]:
    """Ten rewards, K = 10."""
    return learning_jobs(lengths, [K], seeds, limit)


@claim(
    "RLSVI outperforms the bounds for dithering (for N = 100 above 10²⁸) and for tabular learning (10⁶)",
    "section 6.1.1",
)
def outperforms(frame: pl.DataFrame) -> Verdicts:
    """The median learning time is below 2ᴺ⁻¹ and H²SA/10 at every length from 10 on; ten rewards alone take longer
    than that on shorter chains.
    """
    yield from below_the_bounds(cells(frame, "length"))
    dithering, tabular = dithering_bound(100), tabular_bound(100)
    words = f"at N = 100 the bounds are {dithering:.2g} and {tabular:,.0f}"
    yield exactly(dithering > 1e28 and tabular > 1e6, words)


def draw(frame: pl.DataFrame) -> Picture:
    """Learning times, and the bounds as far as they fit."""
    figure, (axes,) = panels()
    found = cells(frame, "length")
    times, limit = np.concatenate(list(found.values())), float(frame["limit"][0])
    top = 1.3 * float(times[np.isfinite(times)].max(initial=1.0)) if np.isfinite(times).all() else 1.05 * limit
    runs(axes, found, limit, "RLSVI, K = 10: runs and medians")
    draw_bounds(axes, np.linspace(2, max(found), 400))
    labelled(axes, LENGTH, TIME, key="upper right", xlim=(0, max(found) * 1.02), ylim=(0, top))
    return figure


FIGURE = Figure.of(
    __name__,
    title="Learning time against chain length",
    where="section 6.1.1, figure 3",
    caption=(
        "Episodes until ten rewards, the paper's proxy of the learning time, with K = 10 coherent basis "
        "functions: every run and medians, with 100 seeds at the paper's scale. The dashed line is the bound "
        "2ᴺ⁻¹ for dithering, the solid one H²SA/10 for tabular learning."
    ),
    quick={"lengths": list(range(10, 101, 10)), "seeds": 5, "limit": 10_000},
    paper={"lengths": list(range(10, 101, 5)), "seeds": 100, "limit": 20_000},
)
