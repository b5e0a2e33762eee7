"""Incremental RLSVI: what is saved by summary statistics, and what it costs in regret."""

from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure as Picture

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Claim, Verdict, all_of, at_least, exactly, spoken
from rlsvi.paper.drawing import averaged, from_zero, labelled, legend, panels
from rlsvi.paper.extensions import learning_regret
from rlsvi.paper.figure import Figure
from rlsvi.paper.recommending import compared
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS, LINES

STEPS = (0.0, 0.001, 0.01, 0.1)
AGENTS = [("batch", 0.0), *(("incremental", nu) for nu in STEPS), ("incremental, literal", 0.01)]


def jobs(episodes: int, runs: int, seeds: int) -> list[Job]:
    """All agents on `seeds` instances of the recommendation engine."""
    return [
        Job.of(
            learning_regret, 1e-4 * episodes * runs, agent=agent, nu=nu, episodes=episodes, runs=runs, seed=seed
        )
        for agent, nu in AGENTS
        for seed in range(seeds)
    ]


def regret(frame: pl.DataFrame, agent: str, nu: float) -> tuple[Floats, Floats]:
    """The episodes of a curve, and its regret on every instance, (instances, points)."""
    mine = frame.filter(pl.col("agent") == agent, pl.col("nu") == nu).sort("seed", "episode")
    at = mine["episode"].unique().sort().to_numpy().astype(np.float64)
    return at, mine["regret"].to_numpy().reshape(-1, len(at))


def name_of(agent: str, nu: float) -> str:
    """An agent in a legend."""
    return f"{agent}, nu = {nu:g}" if agent.startswith("incremental") else agent


def lower_regret(frame: pl.DataFrame) -> Verdict:
    """The regret of each incremental agent as a multiple of the batch agent's."""
    ours = regret(frame, "batch", 0.0)[1][:, -1]
    verdicts = []
    for agent, nu in AGENTS[1:]:
        theirs = regret(frame, agent, nu)[1][:, -1]
        more = compared(theirs, ours)
        verdicts.append(at_least(more, 1.0, f"{name_of(agent, nu)}: {spoken(theirs)}, {more} times"))
    decided = all_of(*verdicts)
    return decided._replace(measured=f"batch: {spoken(ours)}; {decided.measured}")


def same_cost(frame: pl.DataFrame) -> Verdict:
    """What the incremental agents keep of the past, early and late."""
    mine = frame.filter(pl.col("agent").str.starts_with("incremental"))
    early, late = (float(mine[name].max()) for name in ("kept_early", "kept_late"))  # type: ignore[arg-type]
    batch = frame.filter(pl.col("agent") == "batch")
    kept = [float(batch[name].mean()) for name in ("kept_early", "kept_late")]  # type: ignore[arg-type]
    return exactly(
        early == late == 0,
        f"besides its statistics it keeps {early:.0f} numbers of past episodes after a tenth of the episodes "
        f"and {late:.0f} after all; batch, which here keeps sums over distinct states, {kept[0]:.0f} and "
        f"{kept[1]:.0f} states and sums",
    )


def draw(frame: pl.DataFrame) -> Picture:
    """Cumulative regret, mean and standard error over instances."""
    figure, (axes,) = panels(1, 4.4)
    for index, (agent, nu) in enumerate(AGENTS):
        at, values = regret(frame, agent, nu)
        line: Any = LINES[index % len(LINES)]
        averaged(axes, at, values, name_of(agent, nu), COLOURS[index % len(COLOURS)], line)
    from_zero([axes])
    labelled(axes, "customers", "cumulative regret", "")
    legend(axes, loc="upper left")
    return figure


FIGURE = Figure(
    name="incremental",
    title="Incremental RLSVI",
    where="appendix F.1",
    caption=(
        "Cumulative regret on the recommendation engine (N = 10, J = 5, lambda = .2, sigma^2 = .001) of RLSVI, "
        "of its incremental version with several step sizes nu (literal: the prior is forgotten too, as "
        "printed); mean and standard error over problem instances."
    ),
    sizes={
        "quick": {"episodes": 300, "runs": 1, "seeds": 5},
        "paper": {"episodes": 1200, "runs": 3, "seeds": 30},
    },
    jobs=jobs,
    claims=[
        Claim(
            "The batch version of RLSVI is more data efficient and thus incurs lower regret",
            "appendix F.1",
            "the regret of every incremental version is larger",
            lower_regret,
        ),
        Claim(
            "The cost an episode of incremental algorithms does not depend on the episode",
            "appendix F.1",
            "nothing is kept of past episodes but statistics of constant size",
            same_cost,
        ),
    ],
    draw=draw,
)
