"""RLSVI by a nonparametric bootstrap on the chain: another way to randomize value functions."""

from itertools import product
from typing import Any

import numpy as np
import polars as pl

from rlsvi import problems
from rlsvi.agents import RLSVI, BootstrapRLSVI
from rlsvi.agents.finite.rlsvi import FiniteHorizonAgent
from rlsvi.core.compile import Floats
from rlsvi.study.experiment import Playing, experiment
from rlsvi.study.job import Job
from rlsvi.study.statistics import median
from rlsvi_paper.chain.learning import LENGTH, TIME, below_the_bounds, draw_bounds, seconds, until_learned
from rlsvi_paper.claim import Parts, Verdict, Verdicts, at_most, claim, share_of
from rlsvi_paper.degrees import hardly_any, much
from rlsvi_paper.drawing import Picture, labelled, panels, runs
from rlsvi_paper.figure import Figure
from rlsvi_paper.results import cells, having, rows_where, seeds_of, times_as_much

NORMAL, BOOTSTRAP, DATA_ALONE = "RLSVI", "bootstrap", "bootstrap of the data alone"
K = 10
FAR_LENGTH = (
    20  # the length from which on random play finds no reward in these runs: once in 2 ** 19 episodes at most
)


def jobs(lengths: list[int], short: list[int], limit: int, seeds: int) -> list[Job]:
    """Learning times; those of the bootstrap of the data alone, whose runs are long, on `short` chains."""
    plan = [(agent, N) for agent in (NORMAL, BOOTSTRAP) for N in lengths] + [(DATA_ALONE, N) for N in short]
    cost = {(agent, N): 4 * seconds(N, K, limit if agent == DATA_ALONE else 5.0 * N) for agent, N in plan}
    return [
        Job.of(bootstrap_time, cost[agent, N], agent=agent, length=N, features=K, limit=limit, seed=seed)
        for (agent, N), seed in product(plan, range(seeds))
    ]


@experiment
def bootstrap_time(*, agent: str, length: int, features: int, limit: int, seed: int) -> Playing:
    """Episodes until ten rewards on the chain, infinite if not within `limit`."""
    problem_seed, agent_seed = seeds_of(seed)
    problem = problems.chain(length, features, seed=problem_seed)
    return {"time": (yield from until_learned(agent_called(agent, agent_seed), problem, limit))}


def agent_called(name: str, seed: int) -> FiniteHorizonAgent:
    """RLSVI as in section 6.1.1, or the bootstrap, whose artificial data are random unless of the data alone."""
    if name == NORMAL:
        return RLSVI(lam=1.0, sigma=0.1, seed=seed)
    return BootstrapRLSVI(lam=1.0, prior_weight=1.0, random_prior=name == BOOTSTRAP, seed=seed)


def times_of(frame: pl.DataFrame, agent: str) -> dict[Any, Floats]:
    """The learning times of an agent, by the length of the chain."""
    return cells(having(frame, agent=agent), "length")


@claim(
    "Exploration via randomized value functions is a concept beyond the specific implementation of RLSVI",
    "section 7",
    rows_where(agent=BOOTSTRAP),
    kind="ours",
)
def beyond(frame: pl.DataFrame) -> Verdicts:
    """The bootstrap passes the test of RLSVI in section 6.1.1: its median learning time is below 2ᴺ⁻¹ and H²SA/10
    at every length from 10 on.
    """
    yield from below_the_bounds(times_of(frame, BOOTSTRAP))


@claim(
    "RLSVI might instead take approximate posterior samples via a nonparametric bootstrap",
    "section 7",
    kind="ours",
    table=("N", "RLSVI", "bootstrap", "times as long"),
)
def instead(frame: pl.DataFrame) -> Parts:
    """With linear value functions, the median learning time is at most twice that of RLSVI at every length."""
    ours, theirs = times_of(frame, BOOTSTRAP), times_of(frame, NORMAL)
    for N in ours:
        share = times_as_much(ours[N], theirs[N], "median", frame["limit"][0])
        verdict = at_most(share, much(), f"at N = {N} the bootstrap takes {share} times as long")
        yield verdict, (f"{N}", f"{median(theirs[N]):.0f}", f"{median(ours[N]):.0f}", f"{share}")


@claim(
    "Random weights alone do not explore; random artificial data are needed",
    "section 7",
    rows_where(agent=DATA_ALONE),
    kind="ours",
)
def data_alone(frame: pl.DataFrame) -> Verdict:
    """Of the runs without random artificial data, at most a tenth learn within the limit on chains of 20 states or
    more, where random play rarely finds a reward.
    """
    times = np.concatenate([values for N, values in times_of(frame, DATA_ALONE).items() if N >= FAR_LENGTH])
    share, count = share_of(np.isfinite(times))
    return at_most(share, hardly_any(), f"{count} runs learn within {frame['limit'][0]:,} episodes")


def draw(frame: pl.DataFrame) -> Picture:
    """Learning times against the length of the chain, with the bounds."""
    figure, (axes,) = panels()
    limit = float(frame["limit"][0])
    for index, agent in enumerate((NORMAL, BOOTSTRAP, DATA_ALONE)):
        runs(axes, times_of(frame, agent), limit, agent, index)
    draw_bounds(axes, np.linspace(10, float(frame["length"].to_numpy().max()), 200))
    labelled(axes, LENGTH, TIME, key="upper right", yscale="log", ylim=(20, 1.5 * limit))
    return figure


FIGURE = Figure.of(
    __name__,
    title="RLSVI by a nonparametric bootstrap",
    where="section 7",
    caption=(
        "Episodes until ten rewards on the chain, with K = 10 coherent basis functions, for RLSVI (λ = 1, σ = "
        ".1) and a bootstrap that weights transitions at random, with and without random artificial prior data. "
        "Dots are runs, triangles runs that did not learn, and lines medians."
    ),
    quick={"lengths": [10, 20, 30], "short": [10, 20], "limit": 2000, "seeds": 5},
    paper={"lengths": list(range(10, 101, 10)), "short": [10, 15, 20, 30], "limit": 10_000, "seeds": 50},
)
