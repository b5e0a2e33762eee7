"""MDPs whose periods are alike: what agents gain that know it, and whether RLSVI stays close to PSRL."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from rlsvi import problems
from rlsvi.agents import PSRL, RLSVI, UCRL2
from rlsvi.agents.agent import Agent
from rlsvi.study.experiment import Play, Playing, experiment
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS
from rlsvi_paper.agents import HomogeneousRLSVI
from rlsvi_paper.claim import Parts, Verdict, at_most, claim, mean_se
from rlsvi_paper.drawing import LOGARITHMIC, Picture, labelled, panels
from rlsvi_paper.figure import Figure
from rlsvi_paper.results import having, paired_times, rows_where, seeds_of
from rlsvi_paper.theory import prior_regret as prior
from rlsvi_paper.theory import theorem
from rlsvi_paper.theory.prior_regret import REWARDS, Size, marks
from rlsvi_paper.theory.theorem import named

# By the name of an agent, and whether it knows that periods are alike. The scale is sigma^2 or that of the radii.
MAKERS: dict[tuple[str, bool], Callable[[float, int], Agent]] = {
    ("RLSVI", True): lambda scale, seed: HomogeneousRLSVI(lam=1.0, sigma=scale**0.5, seed=seed),
    ("RLSVI", False): lambda scale, seed: RLSVI(lam=1.0, sigma=scale**0.5, seed=seed),
    ("PSRL", True): lambda scale, seed: PSRL(reward_range=REWARDS, homogeneous=True, seed=seed),
    ("PSRL", False): lambda scale, seed: PSRL(reward_range=REWARDS, seed=seed),
    ("UCRL2", True): lambda scale, seed: UCRL2(scale=scale, reward_range=REWARDS, homogeneous=True, seed=seed),
    ("UCRL2", False): lambda scale, seed: UCRL2(scale=scale, reward_range=REWARDS, seed=seed),
}
AGENTS = ("RLSVI", "PSRL", "UCRL2")


def jobs(sizes: list[Size], episodes: int, seeds: int) -> list[Job]:
    """All agents at all their scales, on the same MDPs, with and without knowing that periods are alike."""
    players: list[dict[str, Any]] = [
        {"agent": agent, "pooled": pooled, "scale": scale, "episodes": episodes}
        for agent, pooled in MAKERS
        for scale in prior.SCALES[agent]
    ]
    return [
        Job.of(
            homogeneous_regret,
            prior.learning_cost((S, A, H), episodes),
            **who,
            states=S,
            actions=A,
            horizon=H,
            seed=seed,
        )
        for who, (S, A, H), seed in product(players, sizes, range(seeds))
    ]


@experiment
def homogeneous_regret(
    *, agent: str, pooled: bool, scale: float, states: int, actions: int, horizon: int, episodes: int, seed: int
) -> Playing:
    """Cumulative regret at some of the episodes, on an MDP drawn once for all periods.

    Parameters
    ----------
    pooled
        Whether the agent knows that periods are alike.
    """
    problem_seed, agent_seed = seeds_of(seed)
    problem = problems.dirichlet(states, actions, horizon, homogeneous=True, seed=problem_seed)
    history = yield Play(MAKERS[agent, pooled](scale, agent_seed), problem, episodes)
    regret, at = np.cumsum(history.regret), marks(episodes)
    return {"episode": at, "regret": regret[at - 1]}


@claim(
    "RLSVI bears a close connection to PSRL, also if both know that periods are alike",
    "section 4",
    rows_where(pooled=True),
    kind="ours",
)
def near_psrl(frame: pl.DataFrame) -> Verdict:
    """With pooled data its regret at its best σ, of some, is within a factor of two of PSRL's at every size."""
    return theorem.near_psrl.judge(frame)


@claim(
    "Agents that know that periods are alike have a lower regret",
    "section 4",
    kind="ours",
    table=("agent", "size", "each period by itself", "pooled", "times"),
)
def gains(frame: pl.DataFrame) -> Parts:
    """At every size the regret of each agent with pooled data is lower than without, each at its best scale."""
    together, apart = having(frame, pooled=True), having(frame, pooled=False)
    for agent in AGENTS:
        for size in prior.sizes_of(frame, agent):
            less, more = (prior.tuned(part, agent, size)[0] for part in (together, apart))
            share = paired_times(less, more)
            verdict = at_most(share, 1.0, f"at {named(size)} {agent} has {share} times the regret")
            yield verdict, (agent, named(size), mean_se(more), mean_se(less), f"{share}")


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
        "Mean regret on MDPs that are the same in all periods, each agent at its best scale. Solid lines are "
        "agents that pool the data of all periods; dashed ones learn each period by itself, as in the paper."
    ),
    quick={"sizes": [(5, 3, 5), (5, 3, 10)], "episodes": 1000, "seeds": 10},
    paper={"sizes": [(5, 3, 5), (5, 3, 10), (5, 3, 20)], "episodes": 10_000, "seeds": 100},
)
