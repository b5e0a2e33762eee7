"""Seed sampling: agents that share every step keep a seed, draw anew at every step, or once for an episode."""

import polars as pl

from rlsvi.paper.claim import Part, Verdict, at_least, claim, worst_of
from rlsvi.paper.descendants.per_agent import picture, regrets, shown, tasks_of
from rlsvi.paper.descendants.seed_sampling_runs import (
    ONE_SEED,
    PLANNED_ONCE,
    PROBLEMS,
    REDRAWN,
    SCHEMES,
    SEEDS,
    staggered_regret,
)
from rlsvi.paper.drawing import Picture
from rlsvi.paper.figure import Figure
from rlsvi.study.job import Job
from rlsvi.study.statistics import mean, ratio

WHERE = "section 7; Dimakopoulou and Van Roy (2018)"


def jobs(agents: list[int], rounds: int, seeds: int) -> list[Job]:
    """All schemes with so many agents each, on both problems."""
    return [
        Job.of(
            staggered_regret,
            2e-4 * rounds * K,
            task=task,
            scheme=scheme,
            agents=K,
            rounds=rounds,
            seed=seed,
        )
        for task in PROBLEMS
        for scheme in SCHEMES
        for K in agents
        for seed in range(seeds)
    ]


def more_regret(frame: pl.DataFrame, scheme: str) -> Verdict:
    """Whether a scheme has more regret than seeds, on every problem and for every number of agents."""
    rows = list[Part]()
    for task in tasks_of(frame, PROBLEMS):
        kept, other = regrets(frame, task, SEEDS), regrets(frame, task, scheme)
        for K in kept:
            share = ratio(other[K], kept[K])
            words = f"{task}, {K} agents: {share} times the regret of seeds"
            rows.append((at_least(share, 1.0, words), (task, f"{K}", shown(mean(kept[K])), shown(mean(other[K])))))
    return worst_of(("problem", "agents", SEEDS, scheme), rows)


@claim("Agents must commit: a draw at every step explores worse than seeds that are kept", WHERE, kind="ours")
def commitment(frame: pl.DataFrame) -> Verdict:
    """On every problem, with every number of agents, draws at every step have more regret than seeds."""
    return more_regret(frame, REDRAWN)


@claim("Agents must adapt: to plan once an episode is worse than at every step", WHERE, kind="ours")
def adaptivity(frame: pl.DataFrame) -> Verdict:
    """On every problem, with every number of agents, seeds have more regret if they plan once an episode."""
    return more_regret(frame, PLANNED_ONCE)


@claim("Agents must differ: one seed for all explores worse than one for each", WHERE, kind="ours")
def diversity(frame: pl.DataFrame) -> Verdict:
    """On every problem, with every number of agents, one seed has more regret than many."""
    return more_regret(frame, ONE_SEED)


def draw(frame: pl.DataFrame) -> Picture:
    """Regret per agent against the number of agents, for each problem."""
    return picture(frame, tasks_of(frame, PROBLEMS), SCHEMES)


FIGURE = Figure.of(
    __name__,
    title="Seed sampling",
    where="section 7",
    caption=(
        "Agents begin episodes at different times and learn from every step of one another at once; they plan "
        "anew at every step, or at the beginning of an episode. Lines are means of the regret per agent of all "
        "episodes, and bands 95% intervals."
    ),
    quick={"agents": [10, 30], "rounds": 40, "seeds": 10},
    paper={"agents": [10, 30, 100], "rounds": 100, "seeds": 40},
)
