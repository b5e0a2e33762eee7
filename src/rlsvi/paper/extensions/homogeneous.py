"""MDPs whose periods are alike: what agents gain that know it, and whether RLSVI stays close to PSRL."""

from typing import Any

import polars as pl

from rlsvi.paper.claim import Part, Verdict, at_most, claim, mean_se, worst_of
from rlsvi.paper.drawing import LOGARITHMIC, Picture, labelled, panels
from rlsvi.paper.extensions.homogeneous_runs import MAKERS, homogeneous_regret
from rlsvi.paper.figure import Figure
from rlsvi.paper.results import having, rows_where
from rlsvi.paper.theory import prior_regret as prior
from rlsvi.paper.theory import theorem
from rlsvi.paper.theory.prior_regret import Size
from rlsvi.paper.theory.theorem import named
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS
from rlsvi.study.statistics import paired_ratio

AGENTS = ("RLSVI", "PSRL", "UCRL2")


def jobs(sizes: list[Size], episodes: int, seeds: int) -> list[Job]:
    """All agents at all their scales, on the same MDPs, with and without knowing that periods are alike."""
    found = []
    for agent, pooled in MAKERS:
        for scale in prior.SCALES[agent]:
            for S, A, H in sizes:
                cost = episodes * (1e-6 + 5e-8 * S * A * H)
                what: Any = {"agent": agent, "pooled": pooled, "scale": scale, "episodes": episodes}
                what |= {"states": S, "actions": A, "horizon": H}
                found += [Job.of(homogeneous_regret, cost, **what, seed=seed) for seed in range(seeds)]
    return found


@claim(
    "RLSVI bears a close connection to PSRL, also if both know that periods are alike",
    "section 4",
    rows_where(pooled=True),
    kind="ours",
)
def near_psrl(frame: pl.DataFrame) -> Verdict:
    """With pooled data its regret at its best σ, of some, is within a factor of two of PSRL's at every size."""
    return theorem.near_psrl.judge(frame)


@claim("Agents that know that periods are alike have a lower regret", "section 4", kind="ours")
def gains(frame: pl.DataFrame) -> Verdict:
    """At every size the regret of each agent with pooled data is lower than without, each at its best scale."""
    together, apart, rows = having(frame, pooled=True), having(frame, pooled=False), list[Part]()
    for agent in AGENTS:
        for size in prior.sizes_of(frame, agent):
            less, more = (prior.tuned(part, agent, size)[0] for part in (together, apart))
            share = paired_ratio(less, more)
            words = f"at {named(size)} {agent} has {share} times the regret"
            rows.append(
                (at_most(share, 1.0, words), (agent, named(size), mean_se(more), mean_se(less), f"{share}"))
            )
    return worst_of(("agent", "size", "each period by itself", "pooled", "times"), rows)


def draw(frame: pl.DataFrame) -> Picture:
    """The regret of all agents at each size, at their best scales."""
    sizes = prior.sizes_of(frame, "PSRL")
    figure, axes = panels(len(sizes), 4.4)
    for place, size in zip(axes, sizes, strict=True):
        for colour, agent in zip(COLOURS, AGENTS, strict=False):
            for pooled, dashes in ((True, "-"), (False, "--")):
                mine = having(frame, pooled=pooled)
                _, best = prior.tuned(mine, agent, size)
                at, regret = prior.curves_of(mine, agent, size, best)
                label = f"{agent}, pooled" if pooled else agent
                place.plot(at, regret.mean(axis=0), color=colour, linestyle=dashes, linewidth=2, label=label)
        labelled(place, "episodes", "regret", named(size), "upper left", **LOGARITHMIC)
    return figure


FIGURE = Figure.of(
    __name__,
    title="Periods that are alike",
    where="section 4",
    caption=(
        "Regret on MDPs drawn once for all periods, mean over MDPs, at the best of some scales. Solid lines are "
        "agents that pool the data of all periods, dashed ones learn each period by itself, as in the paper."
    ),
    quick={"sizes": [(5, 3, 5), (5, 3, 10)], "episodes": 1000, "seeds": 10},
    paper={"sizes": [(5, 3, 5), (5, 3, 10), (5, 3, 20)], "episodes": 10_000, "seeds": 100},
)
