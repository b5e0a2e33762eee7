"""Concurrent agents: regret per agent against their number, with own seeds, independent draws or a shared one."""

import polars as pl

from rlsvi.paper.claim import Part, Verdict, at_least, at_most, claim, worst_of
from rlsvi.paper.descendants.concurrent_runs import (
    INDEPENDENT,
    PROBLEMS,
    SCHEMES,
    SEEDS,
    SHARED,
    concurrent_regret,
)
from rlsvi.paper.descendants.per_agent import picture, regrets, shown, tasks_of
from rlsvi.paper.drawing import Picture
from rlsvi.paper.figure import Figure
from rlsvi.study.job import Job
from rlsvi.study.statistics import mean, ratio

MOST = 1.25  # times the regret of independent draws that counts as equally good
WHERE = "section 7; Dimakopoulou and Van Roy (2018)"


def jobs(agents: list[int], rounds: int, seeds: int) -> list[Job]:
    """All schemes with so many agents each, on all problems."""
    return [
        Job.of(
            concurrent_regret,
            1e-3 * rounds * (1.0 if scheme == SHARED else 0.1 * K),
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


@claim("With a seed for each agent, every agent gains from more agents", WHERE, kind="ours")
def more_agents(frame: pl.DataFrame) -> Verdict:
    """On every problem, the mean regret per agent is lower with the most agents than with any smaller number.

    A single agent with one seed that never changes does not explore, so a single agent has independent draws here.
    """
    rows = list[Part]()
    for task in tasks_of(frame, PROBLEMS):
        own, drawn = regrets(frame, task, SEEDS), regrets(frame, task, INDEPENDENT)
        found = {K: (drawn if K == 1 else own)[K] for K in own}
        most = max(found)
        for K in found:
            share = ratio(found[most], found[K])
            row = (task, f"{K}", shown(mean(found[K])), "" if K == most else f"{share}")
            words = f"{task}: {most} agents have {share} times the regret per agent of {K}"
            rows.append((None if K == most else at_most(share, 1.0, words), row))
    return worst_of(("problem", "agents", "regret per agent", "of the most agents, over it"), rows)


@claim(
    "Agents that act on one shared draw gain less from one another than with independent draws", WHERE, kind="ours"
)
def shared_draws(frame: pl.DataFrame) -> Verdict:
    """On every problem, with the most agents, the mean regret per agent is higher than with independent draws."""
    rows = list[Part]()
    for task in tasks_of(frame, PROBLEMS):
        one, own = regrets(frame, task, SHARED), regrets(frame, task, INDEPENDENT)
        for K in one:
            share = ratio(one[K], own[K])
            row = (task, f"{K}", shown(mean(own[K])), shown(mean(one[K])), f"{share}")
            words = f"{task}: {share} times the regret of independent draws"
            rows.append((at_least(share, 1.0, words) if K == max(one) else None, row))
    return worst_of(("problem", "agents", INDEPENDENT, SHARED, "ratio"), rows)


@claim(
    "Seeds that never change explore as well as independent draws, which also last an episode", WHERE, kind="ours"
)
def seeds_or_draws(frame: pl.DataFrame) -> Verdict:
    """On every problem, with the most agents, the mean regret per agent is at most 1.25 times as high."""
    rows = list[Part]()
    for task in tasks_of(frame, PROBLEMS):
        fixed, own = regrets(frame, task, SEEDS), regrets(frame, task, INDEPENDENT)
        for K in fixed:
            share = ratio(fixed[K], own[K])
            row = (task, f"{K}", shown(mean(own[K])), shown(mean(fixed[K])), f"{share}")
            words = f"{task}: {share} times the regret of independent draws"
            rows.append((at_most(share, MOST, words) if K == max(fixed) else None, row))
    return worst_of(("problem", "agents", INDEPENDENT, SEEDS, "ratio"), rows)


def draw(frame: pl.DataFrame) -> Picture:
    """Regret per agent against the number of agents, for each problem."""
    return picture(frame, tasks_of(frame, PROBLEMS), SCHEMES)


FIGURE = Figure.of(
    __name__,
    title="Concurrent agents",
    where="section 7",
    caption=(
        "Agents act at once on copies of a problem, and learn from all their episodes after each round; "
        "nobody plans anew within an episode, where Dimakopoulou and Van Roy (2018) expect most of fixed "
        "seeds. Lines are means of the regret per agent of all rounds, and bands 95% intervals."
    ),
    quick={"agents": [1, 10], "rounds": 100, "seeds": 10},
    paper={"agents": [1, 10, 100], "rounds": 300, "seeds": 20},
)
