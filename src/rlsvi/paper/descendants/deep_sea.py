"""DeepSea: episodes to learn against its size, where dithering needs about 2^N."""

from typing import Any

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Part, Verdict, Verdicts, at_most, claim, worst_of
from rlsvi.paper.descendants.deep_sea_runs import (
    AGNOSTIC,
    CHOSEN,
    COHERENT,
    DITHERING,
    ENSEMBLE,
    PLAIN,
    POSTERIOR,
    TABLE,
    treasure_time,
)
from rlsvi.paper.drawing import Picture, labelled, panels, runs
from rlsvi.paper.figure import Figure
from rlsvi.paper.results import cells, having, rows_where
from rlsvi.study.job import Job
from rlsvi.study.means import ratio_of_medians
from rlsvi.study.plot import INK
from rlsvi.study.statistics import bootstrap, median, power_law, proportion

SIZE, TIME = "size N", "episodes until the tenth treasure"  # names of axes
LEARNING = TABLE, PLAIN, COHERENT, AGNOSTIC, ENSEMBLE
FAR = 20  # the size from which on dithering finds no treasure in these runs


def jobs(sizes: list[int], stochastic: list[int], short: list[int], limit: int, seeds: int) -> list[Job]:
    """Learning times in still and in stochastic seas.

    short : the sizes of dithering, whose runs reach the limit.

    Agnostic functions, whose runs are long, are drawn up to N = 50. PSRL keeps every successor of every state: it
    plays at the smallest size alone, a few episodes, and in a still sea, for its rewards are bounded.
    """
    plan = [(agent, N, False, limit) for agent in LEARNING for N in sizes if agent != AGNOSTIC or N <= 50]
    plan += [(agent, N, True, limit) for agent in LEARNING if agent != PLAIN for N in stochastic]
    plan += [(DITHERING, N, False, limit) for N in short] + [(POSTERIOR, sizes[0], False, limit // 25)]
    found = []
    for agent, N, random, most in plan:
        lam, sigma = CHOSEN[random]
        setting: dict[str, Any] = {"agent": agent, "size": N, "stochastic": random, "lam": lam, "sigma": sigma}
        for seed in range(seeds):
            found.append(Job.of(treasure_time, seconds(agent, N), **setting, limit=most, seed=seed))
    return found


def seconds(agent: str, size: int) -> float:
    """About how long a run takes, for progress bars."""
    return 8.0 if agent == POSTERIOR else 2e-6 * size**3 * (size / 10 if agent in (COHERENT, AGNOSTIC) else 1.0)


def times_of(frame: pl.DataFrame, agent: str, stochastic: bool = False) -> dict[Any, Floats]:
    """The learning times of an agent, by the size."""
    return cells(having(frame, agent=agent, stochastic=stochastic), "size")


@claim(
    "RLSVI learns in a time that is polynomial in N, where dithering needs about 2ᴺ episodes",
    "section 7; Osband et al. (2019)",
    rows_where(agent=TABLE, stochastic=False),
    kind="ours",
)
def polynomial(frame: pl.DataFrame) -> Verdicts:
    """With a table, the median learning time is below 2ᴺ at every size, and the exponent of a power law in N is at
    most 3.
    """
    found, rows = times_of(frame, TABLE), list[Part]()
    for N, times in found.items():
        row = (f"{N}", f"{median(times):.0f}", f"{2.0**N:.2g}")
        rows.append((at_most(bootstrap(median, times), 2.0**N, f"{row[1]} episodes at N = {N}"), row))
    yield worst_of(("N", "episodes", "2ᴺ"), rows)
    exponent = power_law(list(found), list(found.values()))
    yield at_most(exponent, 3.0, f"N to the power {exponent}")


def compared(frame: pl.DataFrame, agent: str, most: float, words: str) -> Verdict:
    """The median learning time of an agent as a multiple of that of RLSVI with a table, at every size."""
    theirs, ours, rows = times_of(frame, agent), times_of(frame, TABLE), list[Part]()
    for N in theirs:
        share = ratio_of_medians(theirs[N], ours[N])
        row = (f"{N}", f"{median(ours[N]):.0f}", f"{median(theirs[N]):.0f}", f"{share}")
        rows.append((at_most(share, most, f"at N = {N}, {words} takes {share} times as long"), row))
    return worst_of(("N", "RLSVI, table", words, "times as long"), rows)


@claim(
    "An ensemble of 20 members approximates posterior sampling well enough",
    "section 7; Lu and Van Roy (2017), Osband et al. (2019)",
    kind="ours",
)
def ensembles(frame: pl.DataFrame) -> Verdict:
    """Its median learning time is at most twice that of exact RLSVI at every size."""
    return compared(frame, ENSEMBLE, 2.0, "an ensemble")


@claim("A coherent basis of N functions learns faster than a table", "section 6.1.1", kind="ours")
def coherent(frame: pl.DataFrame) -> Verdict:
    """Its median learning time is lower at every size."""
    return compared(frame, COHERENT, 1.0, "a coherent basis")


@claim(
    "Dithering does not find the treasure of a deep sea",
    "section 7; Osband et al. (2019)",
    rows_where(agent=DITHERING),
    kind="ours",
)
def dithering(frame: pl.DataFrame) -> Verdict:
    """Of the runs with N of 20 or more, at most a tenth learn within the limit."""
    times = np.concatenate([values for N, values in times_of(frame, DITHERING).items() if N >= FAR])
    learned = int(np.isfinite(times).sum())
    words = f"{learned} of {len(times)} runs learn within {frame['limit'][0]:,} episodes"
    return at_most(proportion(learned, len(times)), 0.1, words)


def draw(frame: pl.DataFrame) -> Picture:
    """Learning times against the size, in still and in stochastic seas, with 2^N."""
    figure, both = panels(2)
    limit = float(frame["limit"].to_numpy().max())
    for axes, stochastic in zip(both, (False, True), strict=True):
        for index, agent in enumerate((*LEARNING, POSTERIOR, DITHERING)):
            found = times_of(frame, agent, stochastic)
            if found:
                runs(axes, found, limit, agent, index)
        at = np.linspace(5, np.log2(limit), 50)
        axes.plot(at, 2.0**at, "--", color=INK, linewidth=1, label="$2^N$")
        title = "stochastic" if stochastic else "deterministic"
        labelled(axes, SIZE, TIME, title, "lower right", yscale="log", ylim=(10, 1.5 * limit))
    return figure


FIGURE = Figure.of(
    __name__,
    title="DeepSea at scale",
    where="section 7",
    caption=(
        "The problem of Osband et al. (2019): episodes until the tenth whose policy is worth half of the optimum, "
        "with λ = 10 and σ = .001, or λ = 1 and σ = .3 in a stochastic sea, which were chosen at N = 10. Dots are "
        "runs, triangles runs that did not learn within the limit, and lines medians."
    ),
    quick={"sizes": [10, 20, 30], "stochastic": [10, 15], "short": [10, 20], "limit": 4000, "seeds": 5},
    paper={
        "sizes": [10, 20, 50, 100],
        "stochastic": [10, 20, 30],
        "short": [10, 15, 20, 25],
        "limit": 5000,
        "seeds": 20,
    },
)
