"""Robustness to the precision lambda of the prior, at sigma = .1."""

from typing import Any

import numpy as np
import polars as pl
from matplotlib import colormaps
from matplotlib.axes import Axes

from rlsvi import problems
from rlsvi.core.compile import Bools, Floats
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS, INK, LINES
from rlsvi.study.statistics import bootstrap, bootstrap_summaries, median
from rlsvi_paper.chain.learning import medians, phi_of, regret_curve, seconds, success
from rlsvi_paper.claim import Verdict, Verdicts, at_least, choice, claim, computed, exactly
from rlsvi_paper.degrees import most, much
from rlsvi_paper.drawing import LOGARITHMIC, Picture, labelled, legend, panels
from rlsvi_paper.figure import Figure
from rlsvi_paper.results import cells, having

N, K = 50, 10
SIGMA, LAMBDA = 0.1, 1.0
POINTS = 50  # of a curve
STRETCH = 4.0  # a power of two: exact in floating point


def jobs(powers: list[float], episodes: int, seeds: int) -> list[Job]:
    """λ = 10 to some powers, and one run in which basis and lambda are both rescaled."""
    grid = [10.0**power for power in powers]
    usual = [run(episodes, seed, lam, SIGMA) for lam in grid for seed in range(seeds)]
    return [*usual, run(episodes, 0, LAMBDA * STRETCH**2, SIGMA, STRETCH)]


def run(episodes: int, seed: int, lam: float, sigma: float, stretch: float = 1.0) -> Job:
    """Regret of RLSVI on the chain of the paper."""
    chain: dict[str, Any] = {"agent": "RLSVI", "length": N, "features": K, "episodes": episodes, "points": POINTS}
    settings = {"lam": lam, "sigma": sigma, "stretch": stretch}
    return Job.of(regret_curve, seconds(N, K, 2 * episodes), **chain, **settings, seed=seed)


def final_regret(frame: pl.DataFrame, parameter: str) -> dict[float, Floats]:
    """Regret of all episodes, the runs of each value of a parameter."""
    last = frame.filter(pl.col("episode") == pl.col("episodes"), pl.col("stretch") == 1.0)
    return cells(last, parameter, value="regret")


def stable(middle: Floats, reference: int, random: float = np.inf) -> Bools:
    """Which values of a parameter have at most twice the median regret of the reference, and learn.

    Parameters
    ----------
    random
        The regret of random play; who has more than half of it has not learned.
    """
    return np.asarray((middle <= much() * middle[reference]) & (middle <= random / much()))


def decades(values: Floats, fine: Bools, reference: int) -> float:
    """Orders of magnitude of the unbroken stable range around the reference."""
    sides = fine[:reference][::-1], fine[reference + 1 :]
    below, above = (int(np.logical_and.accumulate(side).sum()) for side in sides)
    return float(np.log10(values[reference + above] / values[reference - below]))


def robust(found: dict[float, Floats], episodes: int, parameter: str, reference: float) -> Verdicts:
    """The stable values of a parameter: at least three orders of magnitude, and half of those tried."""
    values, at, random = np.array(list(found)), list(found).index(reference), episodes * success(N)

    def fine(middle: Floats) -> Bools:
        return stable(middle, at, random)

    def width(middle: Floats) -> float:
        return decades(values, fine(middle), at) if fine(middle)[at] else 0.0

    magnitudes = bootstrap_summaries(width, list(found.values()))
    part = bootstrap_summaries(lambda middle: float(fine(middle).mean()), list(found.values()))
    regret, some = bootstrap(median, found[reference]), values[fine(medians(found))]
    ends = f"from {some.min():g} to {some.max():g}" if len(some) else "nowhere"
    yield at_least(
        magnitudes,
        choice("“several” orders of magnitude,", 3.0, 2.0, 4.0),
        f"stable {ends}: {magnitudes} orders of magnitude",
    )
    yield at_least(part, most(), f"for a share of {part}")
    yield f"regret {regret} at {parameter} = {reference:g}"


@claim(
    "The results are remarkably robust over several orders of magnitude in λ, and stable for most of its values",
    "section 6.1.1 and appendix C.2",
)
def robust_to_lambda(frame: pl.DataFrame) -> Verdicts:
    """The median regret is at most twice that at λ = 1, and at most half of random play's, over at least three
    orders of magnitude, and for at least half of the values tried, 10⁻⁴ to 10⁴.
    """
    return robust(final_regret(frame, "lam"), frame["episodes"][0], "λ", LAMBDA)


@claim("Any scaling of the basis can be exactly replicated by rescaling λ and σ", "appendix C.1")
def rescaling(frame: pl.DataFrame) -> Verdict:
    """A stretched basis with λ multiplied by the square of the factor gives the same episodes."""
    runs = [having(frame, stretch=stretch, lam=LAMBDA * stretch**2, seed=0) for stretch in (1.0, STRETCH)]
    same = runs[0].select("episode", "regret", "reward").equals(runs[1].select("episode", "regret", "reward"))
    words = f"basis times {STRETCH:g} and λ times {STRETCH**2:g}: the {frame['episodes'][0]:,} episodes are"
    return exactly(same and len(runs[0]) > 0, f"{words} {'the same, bit for bit' if same else 'others'}")


@computed(
    "Step 9 of the coherent basis puts the basis functions on a similar scale to Q*",
    "appendix C.1",
    otherwise="misprint",
)
def similar_scale() -> Verdict:
    """Their root mean squares are within a factor of two."""
    Q = problems.chain(N).solution.Q
    bases = [phi_of(problems.chain(N, K, scale=scale)) for scale in ("HSA", "sqrt(HSA)")]
    ratios = [float(np.sqrt(np.mean(phi**2) / np.mean(Q**2))) for phi in bases]
    return exactly(
        0.5 <= ratios[0] <= 2.0,
        f"a column scaled to the 2-norm HSA, as printed, is {ratios[0]:.0f} times the scale of Q*; scaled to "
        f"√(HSA) it would be {ratios[1]:.1f} times",
    )


def draw_sweep(left: Axes, right: Axes, frame: pl.DataFrame, parameter: str, fixed: str) -> None:
    """Regret curves for each order of magnitude, and the regret of all episodes against the parameter."""
    symbol = "lambda" if parameter == "lam" else parameter
    found = final_regret(frame, parameter)
    whole = [value for value in found if abs(np.log10(value) - round(np.log10(value))) < 1e-9]
    for i, value in enumerate(whole):
        chosen = having(frame, **{parameter: value, "stretch": 1.0}).sort("seed", "episode")
        middle = cells(chosen, "episode", value="regret")
        colour = colormaps["viridis"](0.15 + 0.75 * i / max(len(whole) - 1, 1))
        label = f"{symbol} = {value:g}"
        left.plot(list(middle), medians(middle), color=colour, linestyle=LINES[i % 4], label=label)
    labelled(left, "episode", "cumulative expected regret", fixed)
    legend(left, ncols=2)
    for value, runs in found.items():
        right.plot(np.full(len(runs), value), runs, ".", color=COLOURS[0], alpha=0.5)
    right.plot(list(found), medians(found), color=INK, linewidth=1.5)
    regret = f"regret of {frame['episodes'][0]:,} episodes"
    labelled(right, symbol, regret, "every run and medians", **LOGARITHMIC)


def draw(frame: pl.DataFrame) -> Picture:
    """The sweep over lambda."""
    figure, (left, right) = panels(2, 4.0)
    draw_sweep(left, right, frame, "lam", "sigma = .1")
    return figure


FIGURE = Figure.of(
    __name__,
    title="Robustness to λ",
    where="appendix C.2, figure 10",
    caption=(
        "Expected regret on the chain (N = 50, K = 10, σ = .1) against the prior's precision λ: medians on the "
        "left, every run on the right, with 60 seeds at the paper's scale."
    ),
    quick={"powers": [-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0], "episodes": 2000, "seeds": 5},
    paper={"powers": [0.5 * i for i in range(-8, 9)], "episodes": 10_000, "seeds": 60},
)
