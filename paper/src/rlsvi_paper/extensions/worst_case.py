"""RLSVI with the noise of worst-case bounds, clipped, and with bounded targets: what each is worth."""

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np
import polars as pl

from rlsvi import problems
from rlsvi.agents import PSRL, RLSVI, UCBVI
from rlsvi.agents.agent import Agent
from rlsvi.core.compile import Floats
from rlsvi.problems import Problem
from rlsvi.study.experiment import Play, Playing, experiment
from rlsvi.study.job import Job
from rlsvi.study.plot import INK
from rlsvi.study.statistics import Interval
from rlsvi_paper.agents import BoundedTargetRLSVI, WorstCaseRLSVI
from rlsvi_paper.claim import Parts, Row, at_least, at_most, between, choice, claim
from rlsvi_paper.degrees import much
from rlsvi_paper.drawing import LOGARITHMIC, Picture, labelled, legend, panels, style
from rlsvi_paper.figure import Figure
from rlsvi_paper.results import chosen_by_the_others, paired_times, seeds_of, total
from rlsvi_paper.theory.bounds import theorem_agent
from rlsvi_paper.theory.prior_regret import marks

# All agents know the range of the rewards. Their scale multiplies what their theory has: the standard deviation of
# the noise, or the bonus. That of RLSVI, with lambda = 1, and of RLSVI with bounded targets is sigma.
TUNED, BOUNDED, RUSSO, CLIPPED, THEOREM = "RLSVI", "bounded targets", "Russo", "clipped", "RLSVI, Theorem 1"
RANDOM = "random play"
DIRICHLET, CHAIN, RIVER = "random MDPs", "chain", "RiverSwim"

SIGMAS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
FACTORS = (0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 1.0)
SCALES: dict[str, tuple[float, ...]] = {
    TUNED: SIGMAS,
    BOUNDED: SIGMAS,
    RUSSO: FACTORS,
    CLIPPED: FACTORS,
    "UCBVI": FACTORS,
    "PSRL": (1.0,),
    THEOREM: (1.0,),
    RANDOM: (1.0,),
}
# By the name of a problem: how a seed draws it, and the range of its rewards.
PROBLEMS: dict[str, tuple[Callable[[int], Problem], tuple[float, float]]] = {
    DIRICHLET: (lambda seed: problems.dirichlet(5, 3, 5, seed=seed), (-1.0, 0.0)),
    CHAIN: (lambda seed: problems.chain(10), (0.0, 1.0)),
    RIVER: (lambda seed: problems.river_swim(6, 20), (0.0, 1.0)),
}
COMPARED = (RUSSO, CLIPPED, TUNED, BOUNDED, "UCBVI", "PSRL")


def jobs(episodes: int, seeds: int) -> list[Job]:
    """All agents at all their scales, on all problems."""
    each = {agent: episodes * (1e-4 if agent == "PSRL" else 3e-5) for agent in SCALES}
    return [
        Job.of(worst_case_regret, each[agent], task=task, agent=agent, episodes=episodes, scale=scale, seed=seed)
        for task, agent in product(PROBLEMS, SCALES)
        for scale, seed in product(SCALES[agent], range(seeds))
    ]


class Setting(NamedTuple):
    """What an agent is told."""

    scale: float
    rewards: tuple[float, float]
    states: int
    horizon: int
    episodes: int
    seed: int

    @property
    def bounds(self) -> Floats:
        """The lowest and the highest return of every period, (H, 2)."""
        left = np.arange(self.horizon, 0, -1)
        return np.outer(left, (min(self.rewards[0], 0.0), max(self.rewards[1], 0.0)))


def _worst_case(clip: bool) -> Callable[[Setting], Agent]:
    return lambda it: WorstCaseRLSVI(
        scale=it.scale, clip=clip, planned=it.episodes, reward_range=it.rewards, seed=it.seed
    )


MAKERS: dict[str, Callable[[Setting], Agent]] = {
    TUNED: lambda it: RLSVI(lam=1.0, sigma=it.scale, seed=it.seed),
    BOUNDED: lambda it: BoundedTargetRLSVI(lam=1.0, sigma=it.scale, bounds=it.bounds, seed=it.seed),
    RUSSO: _worst_case(False),
    CLIPPED: _worst_case(True),
    "UCBVI": lambda it: UCBVI(scale=it.scale, planned=it.episodes, reward_range=it.rewards, seed=it.seed),
    "PSRL": lambda it: PSRL(reward_range=it.rewards, seed=it.seed),
    THEOREM: lambda it: theorem_agent(it.states, it.horizon, seed=it.seed),
}


@experiment
def worst_case_regret(*, task: str, agent: str, scale: float, episodes: int, seed: int) -> Playing:
    """Cumulative regret at some of the episodes, on a problem that the seed may draw."""
    problem_seed, agent_seed = seeds_of(seed)
    make, rewards = PROBLEMS[task]
    problem, at = make(problem_seed), marks(episodes)
    if agent == RANDOM:
        return {"episode": at, "regret": at * problem.random_regret}
    table = problem.mdp.table
    told = Setting(scale, rewards, table.states, table.horizon, episodes, agent_seed)
    history = yield Play(MAKERS[agent](told), problem, episodes)
    return {"episode": at, "regret": np.cumsum(history.regret)[at - 1]}


def final(frame: pl.DataFrame, task: str, agent: str, scale: float = 1.0) -> Floats:
    """Regret of all episodes, of every seed, rounded so that sums in another order are equal."""
    return total(frame, task=task, agent=agent, scale=scale).round(6)


def at_all_scales(frame: pl.DataFrame, task: str, agent: str) -> Floats:
    """The same at every scale, (scales, seeds)."""
    return np.stack([final(frame, task, agent, scale) for scale in SCALES[agent]])


def best_scale(frame: pl.DataFrame, task: str, agent: str) -> float:
    """The scale of the lowest mean regret on a problem."""
    return SCALES[agent][int(at_all_scales(frame, task, agent).mean(axis=1).argmin())]


def tuned(frame: pl.DataFrame, task: str, agent: str) -> Floats:
    """Regret at the best scale; for every seed, the one that is best for the other seeds."""
    return -chosen_by_the_others(-at_all_scales(frame, task, agent))


def carried(frame: pl.DataFrame, task: str, agent: str) -> Floats:
    """Regret at the scale that is best on random MDPs; there, for every seed, on the others."""
    if task == DIRICHLET:
        return tuned(frame, task, agent)
    return final(frame, task, agent, best_scale(frame, DIRICHLET, agent))


@claim(
    "With the noise of its bounds of the worst case, RLSVI hardly learns in the time in which it learns with less",
    "section 5; Russo (2019), Theorem 1; Agrawal et al. (2021), Theorem 1",
    kind="ours",
    table=("problem", "noise", "regret over that of random play"),
)
def hardly_learns(frame: pl.DataFrame) -> Parts:
    """On every problem the regret with Russo's noise, and clipped, is at least four fifths of that of random play,
    and that of RLSVI, whose σ is the best on random MDPs, at most a half.
    """
    for task in PROBLEMS:
        chance, least = final(frame, task, RANDOM), choice("“hardly learns”, a share of", 0.8, 0.7, 0.9)
        for i, agent in enumerate((RUSSO, CLIPPED, THEOREM)):
            share = paired_times(final(frame, task, agent), chance)
            words = f"{agent} has {share} times the regret of random play, {task}"
            row = ("" if i else task, agent, f"{share}")
            yield at_least(share, least, words) if agent != THEOREM else None, row
        ours = paired_times(carried(frame, task, TUNED), chance)
        words = f"RLSVI has {ours} times the regret of random play, {task}"
        yield at_most(ours, 1 / much(), words), ("", f"{TUNED}, tuned", f"{ours}")


@claim(
    "A scale of the worst-case noise that was chosen on one problem is worse on another than RLSVI's σ",
    "section 5; Russo (2019); Agrawal et al. (2021)",
    kind="ours",
    table=("problem", "agent", "best scale on random MDPs", "regret over random play's", "over RLSVI's"),
)
def carries_over(frame: pl.DataFrame) -> Parts:
    """At the scales that are best on random MDPs, the regret with Russo's noise, and clipped, is at least twice
    that of RLSVI on the chain and on RiverSwim.
    """
    for task in (CHAIN, RIVER):
        for agent in COMPARED:
            theirs, scale = carried(frame, task, agent), best_scale(frame, DIRICHLET, agent)
            times, row = _compared(frame, task, agent, scale, theirs, carried(frame, task, TUNED))
            verdict = at_least(times, much(), f"{agent} has {times} times RLSVI's regret, {task}")
            yield verdict if agent in (RUSSO, CLIPPED) else None, row


@claim(
    "Clipping lowers the regret, if the noise is chosen for the problem",
    "section 5; Agrawal et al. (2021), Theorem 1",
    kind="ours",
    table=("problem", "agent", "best scale", "regret over random play's", "over Russo's"),
)
def clipping_helps(frame: pl.DataFrame) -> Parts:
    """On every problem the clipped agent has a lower regret than Russo's noise gives, each at its best scale."""
    for task in PROBLEMS:
        for agent in COMPARED:
            theirs, scale = tuned(frame, task, agent), best_scale(frame, task, agent)
            times, row = _compared(frame, task, agent, scale, theirs, tuned(frame, task, RUSSO))
            verdict = at_most(times, 1.0, f"clipped has {times} times the regret with Russo's noise, {task}")
            yield verdict if agent == CLIPPED else None, row


def _compared(
    frame: pl.DataFrame, task: str, agent: str, scale: float, theirs: Floats, others: Floats
) -> tuple[Interval, Row]:
    """An agent's regret as a multiple of another's, and a row of it, which says where the grid of scales ends."""
    times, share = paired_times(theirs, others), paired_times(theirs, final(frame, task, RANDOM))
    edge = ", the grid's edge" if len(SCALES[agent]) > 1 and scale in (SCALES[agent][0], SCALES[agent][-1]) else ""
    return times, (task if agent == RUSSO else "", agent, f"{scale:g}{edge}", f"{share}", f"{times}")


@claim(
    "Bounded targets change little, with a table and a good σ",
    "section 5",
    kind="ours",
    table=("problem", "regret of bounded targets over RLSVI's"),
)
def bounded_alike(frame: pl.DataFrame) -> Parts:
    """On every problem the regret of RLSVI with bounded targets is within a factor of 1.5 of that of RLSVI, each
    with the σ that is best on random MDPs.
    """
    factor = choice("“little”, a factor of", 1.5, 1.25, 2.0)
    for task in PROBLEMS:
        ratio = paired_times(carried(frame, task, BOUNDED), carried(frame, task, TUNED))
        words = f"bounded targets have {ratio} times RLSVI's regret, {task}"
        yield between(ratio, 1 / factor, factor, words), (task, f"{ratio}")


def draw(frame: pl.DataFrame) -> Picture:
    """The regret of all agents at all scales, over that of random play, on each problem."""
    figure, axes = panels(len(PROBLEMS), 4.6)
    for place, task in zip(axes, PROBLEMS, strict=True):
        chance = final(frame, task, RANDOM).mean()
        for i, agent in enumerate((RUSSO, CLIPPED, TUNED, BOUNDED, "UCBVI")):
            regret = at_all_scales(frame, task, agent).mean(axis=1)
            place.plot(SCALES[agent], regret / chance, **style(i), label=agent)
        for agent, dashes in (("PSRL", "--"), (THEOREM, ":")):
            place.axhline(final(frame, task, agent).mean() / chance, color=INK, linestyle=dashes, label=agent)
        labelled(place, "scale", "regret over that of random play", task, **LOGARITHMIC)
    axes[0].set_ylim(top=10.0)
    legend(axes[0], loc="upper left", ncols=2)
    return figure


FIGURE = Figure.of(
    __name__,
    title="Noise for the worst case",
    where="section 5",
    caption=(
        "Regret over that of random play against the scale of the noise: 1 is what the worst-case bounds of "
        "Russo (2019), of Agrawal et al. (2021, clipped) and of UCBVI need; for RLSVI (λ = 1), with and without "
        "bounded targets, the scale is σ. Random MDPs have 5 states, 3 actions and 5 periods, the chain 10 "
        "states, RiverSwim 6 states and 20 periods. Lines across are PSRL, and RLSVI with the λ and σ of Theorem "
        "1."
    ),
    quick={"episodes": 2000, "seeds": 10},
    paper={"episodes": 10_000, "seeds": 30},
)
