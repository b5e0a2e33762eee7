"""Concurrent agents: regret per agent against their number, with own seeds, independent draws or a shared one."""

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import polars as pl

from rlsvi import problems
from rlsvi.agents import RLSVI, EnsembleRLSVI
from rlsvi.core.compile import Floats
from rlsvi.problems import Problem
from rlsvi.study.job import Job
from rlsvi.study.statistics import Interval, mean
from rlsvi_paper.claim import Parts, Verdict, at_least, at_most, claim, three_digits
from rlsvi_paper.degrees import as_good
from rlsvi_paper.drawing import DOTS, LOGARITHMIC, Picture, labelled, legend, means, panels, ticks_at
from rlsvi_paper.figure import Figure
from rlsvi_paper.loops.concurrent import simulate_concurrent
from rlsvi_paper.results import cells, having, seeds_of, times_as_much

SEEDS, INDEPENDENT, SHARED = "a seed for each agent", "independent draws", "one shared draw"
SCHEMES = SEEDS, INDEPENDENT, SHARED
WHERE = "section 7; Dimakopoulou and Van Roy (2018)"
# By the name of a problem: how a seed draws it, and the lambda and sigma of all schemes: on DeepSea those chosen
# for one agent, on the chain those of the paper, on RiverSwim the sigma that `worst-case` has for random MDPs.
PROBLEMS: dict[str, tuple[Callable[[int], Problem], float, float]] = {
    "DeepSea, N = 20": (lambda seed: problems.deep_sea(20, seed=seed), 10.0, 0.001),
    "chain, N = 20": (lambda seed: problems.chain(20), 1.0, 0.1),
    "RiverSwim": (lambda seed: problems.river_swim(6, 20), 1.0, 0.3),
}


def jobs(agents: list[int], rounds: int, seeds: int) -> list[Job]:
    """All schemes with so many agents each, on all problems."""
    return [
        Job.of(concurrent_regret, cost, task=task, scheme=scheme, agents=K, rounds=rounds, seed=seed)
        for task, scheme, K in product(PROBLEMS, SCHEMES, agents)
        for cost in [1e-3 * rounds * (1.0 if scheme == SHARED else 0.1 * K)]
        for seed in range(seeds)
    ]


def concurrent_regret(*, task: str, scheme: str, agents: int, rounds: int, seed: int) -> dict[str, float]:
    """The regret per agent: of all rounds, and the mean of one round among the last tenth of them."""
    problem_seed, agent_seed = seeds_of(seed)
    make, lam, sigma = PROBLEMS[task]
    prior: dict[str, Any] = {"lam": lam, "sigma": sigma, "seed": agent_seed}
    agent = EnsembleRLSVI(members=agents, **prior) if scheme == SEEDS else RLSVI(**prior)
    history = simulate_concurrent(agent, make(problem_seed), rounds, agents=agents, shared=scheme == SHARED)
    per_round = history.regret.reshape(rounds, agents).mean(axis=1)
    return {"regret": float(per_round.sum()), "late": float(per_round[-max(1, rounds // 10) :].mean())}


def regrets(frame: pl.DataFrame, task: str, scheme: str) -> dict[int, Floats]:
    """The regret per agent of every run, by the number of agents."""
    return cells(having(frame, task=task, scheme=scheme), "agents", value="regret")


def tasks_of(frame: pl.DataFrame, tasks: Iterable[str]) -> list[str]:
    """The problems of a figure that the results have, in their order."""
    return [task for task in tasks if task in frame["task"].unique()]


@claim(
    "With a seed for each agent, every agent gains from more agents",
    WHERE,
    kind="ours",
    table=("problem", "agents", "regret per agent", "of the most agents, over it"),
)
def more_agents(frame: pl.DataFrame) -> Parts:
    """On every problem, the mean regret per agent is lower with the most agents than with any smaller number.

    A single agent with one seed that never changes does not explore, so a single agent has independent draws here.
    """
    for task in tasks_of(frame, PROBLEMS):
        own, drawn = regrets(frame, task, SEEDS), regrets(frame, task, INDEPENDENT)
        found = {K: (drawn if K == 1 else own)[K] for K in own}
        most = max(found)
        for K, values in found.items():
            share = times_as_much(found[most], values)
            words = f"{task}: {most} agents have {share} times the regret per agent of {K}"
            row = task, f"{K}", three_digits(mean(values)), "" if K == most else f"{share}"
            yield None if K == most else at_most(share, 1.0, words), row


def over_independent(frame: pl.DataFrame, scheme: str, judge: Callable[[Interval, str], Verdict]) -> Parts:
    """The regret of a scheme over that of independent draws, judged with the most agents."""
    for task in tasks_of(frame, PROBLEMS):
        theirs, own = regrets(frame, task, scheme), regrets(frame, task, INDEPENDENT)
        for K in theirs:
            share = times_as_much(theirs[K], own[K])
            verdict = judge(share, f"{task}: {share} times the regret of independent draws")
            row = task, f"{K}", three_digits(mean(own[K])), three_digits(mean(theirs[K])), f"{share}"
            yield verdict if K == max(theirs) else None, row


@claim(
    "Agents that act on one shared draw gain less from one another than with independent draws",
    WHERE,
    kind="ours",
    table=("problem", "agents", INDEPENDENT, SHARED, "ratio"),
)
def shared_draws(frame: pl.DataFrame) -> Parts:
    """On every problem, with the most agents, the mean regret per agent is higher than with independent draws."""
    return over_independent(frame, SHARED, lambda share, words: at_least(share, 1.0, words))


@claim(
    "Seeds that never change explore as well as independent draws, which also last an episode",
    WHERE,
    kind="ours",
    table=("problem", "agents", INDEPENDENT, SEEDS, "ratio"),
)
def seeds_or_draws(frame: pl.DataFrame) -> Parts:
    """On every problem, with the most agents, the mean regret per agent is at most 1.25 times as high."""
    return over_independent(frame, SEEDS, lambda share, words: at_most(share, as_good(), words))


def picture(frame: pl.DataFrame, tasks: list[str], schemes: Iterable[str]) -> Picture:
    """Regret per agent against the number of agents, for each problem, with the key below the first."""
    figure, places = panels(len(tasks), height=4.8)
    for axes, task in zip(places, tasks, strict=True):
        for index, scheme in enumerate(schemes):
            found = {K: mean(values) for K, values in regrets(frame, task, scheme).items()}
            means(axes, found, scheme, index, positive=True, **DOTS)
        labelled(axes, "agents", "regret per agent", task, **LOGARITHMIC)
        ticks_at(axes, list(found))
    legend(places[0], loc="upper left", bbox_to_anchor=(0.0, -0.14))
    return figure


def draw(frame: pl.DataFrame) -> Picture:
    """Regret per agent against the number of agents, for each problem."""
    return picture(frame, tasks_of(frame, PROBLEMS), SCHEMES)


FIGURE = Figure.of(
    __name__,
    title="Concurrent agents",
    where="section 7",
    caption=(
        "Agents act at once on copies of a problem and learn from all episodes after each round, without "
        "planning in between. Lines are means of the regret per agent of all rounds, with 95% intervals as "
        "bands."
    ),
    quick={"agents": [1, 10], "rounds": 100, "seeds": 10},
    paper={"agents": [1, 10, 100], "rounds": 300, "seeds": 20},
)
