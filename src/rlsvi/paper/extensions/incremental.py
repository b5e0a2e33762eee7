"""Incremental RLSVI: what is saved by summary statistics, and what it costs in regret."""

from typing import Any

import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Part, Row, Verdict, at_least, at_most, claim, mean_se, worst_of
from rlsvi.paper.drawing import Picture, averaged, from_zero, labelled, panels
from rlsvi.paper.extensions.incremental_runs import BONUSES, CHAIN, EVIDENCE, GUESSED, learning_regret
from rlsvi.paper.figure import Figure
from rlsvi.paper.results import having, learning_curves, rows_where
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS, LINES
from rlsvi.study.statistics import Interval, paired_ratio

STEPS = (0.0, 0.001, 0.01, 0.1)
INCREMENTAL = [*(("incremental", nu) for nu in STEPS), ("incremental, literal", 0.01), ("gradient", 0.0)]
DRAWN = [("batch", 0.0), *INCREMENTAL]
AGENTS = [*DRAWN, *((agent, 0.0) for agent in (*GUESSED, *EVIDENCE))]
on_engine = rows_where(task="engine")
HEADINGS = ("agent", "regret", "times the batch agent's")
WORK = {
    "work_early": "after a tenth of the episodes",
    "work_late": "after all",
    "done_early": "carried out after a tenth",
    "done_late": "carried out after all",
}
NEAR = ("batch", next(iter(EVIDENCE)))
SPARE = (1, 5)  # colours of agents that are not on the chain
ON_CHAIN = [("batch", 0.0), ("incremental", 0.01), ("gradient", 0.0), *((agent, 0.0) for agent in BONUSES)]


def jobs(episodes: int, runs: int, chain: int, few: int, more: int, seeds: int) -> list[Job]:
    """All agents on `seeds` instances of the recommendation engine, and on a chain for `chain` episodes.

    few : the gradient agent has no compiled loop: it plays one run of a part of the instances, 1 of `few`.
    more : times as many instances for the two agents whose ratio is near the limit that it is judged by.
    """
    found = []
    plan = [("engine", agent, nu, episodes, runs) for agent, nu in AGENTS]
    plan += [("chain", agent, nu, chain, 1) for agent, nu in ON_CHAIN]
    for task, agent, nu, count, times in plan:
        slow = agent == "gradient"
        cost = (2e-2 if slow else 1e-4) * count * times
        size = {"episodes": count, "runs": 1 if slow else times}
        many = more * seeds if task == "engine" and agent in NEAR else seeds
        for seed in range(0, many, few if slow else 1):
            found.append(Job.of(learning_regret, cost, task=task, agent=agent, nu=nu, **size, seed=seed))
    return found


def _final(frame: pl.DataFrame, agent: str, nu: float) -> Floats:
    """Regret of all episodes on every instance of the recommendation engine."""
    return learning_curves(frame, task="engine", agent=agent, nu=nu)[1][:, -1]


def name_of(agent: str, nu: float) -> str:
    """An agent in a legend."""
    return f"{agent}, ν = {nu:g}" if agent.startswith("incremental") else agent.replace("sigma", "σ")


@claim("The batch version of RLSVI is more data efficient and thus incurs lower regret", "appendix F.1", on_engine)
def lower_regret(frame: pl.DataFrame) -> Verdict:
    """On the recommendation engine the regret of every incremental version is larger."""
    rows: list[Part] = [(None, ("batch", mean_se(_final(frame, "batch", 0.0)), ""))]
    for agent, nu in INCREMENTAL:
        more, row = times_batch(frame, agent, nu)
        rows.append((at_least(more, 1.0, f"{row[0]} has {row[1]}, {more} times the regret of batch"), row))
    return worst_of(HEADINGS, rows)


def times_batch(frame: pl.DataFrame, agent: str, nu: float = 0.0) -> tuple[Interval, Row]:
    """The regret of an agent as a multiple of the batch agent's on the same instances, and a row of a table."""
    mine = having(frame, agent=agent)["seed"].unique()
    ours = _final(frame.filter(pl.col("seed").is_in(mine.implode())), "batch", 0.0)
    theirs = _final(frame, agent, nu)
    more = paired_ratio(theirs, ours)
    return more, (name_of(agent, nu), mean_se(theirs), f"{more}")


@claim("The cost an episode of incremental algorithms does not depend on the episode", "appendix F.1", on_engine)
def same_cost(frame: pl.DataFrame) -> Verdict:
    """On the recommendation engine an episode of every incremental version takes at most 1.05 times the
    multiplications after all episodes that it takes after a tenth of them, counted by sizes in memory; fewer are
    carried out while some blocks of weights are untouched.
    """
    rows: list[Part] = []
    for agent, nu in DRAWN:
        mine = having(frame, agent=agent, nu=nu).filter(pl.col("episode") == pl.col("episodes")).sort("seed")
        early, late = (mine[name].to_numpy() for name in ("work_early", "work_late"))
        more, numbers = paired_ratio(late, early), [f"{mine[name].to_numpy().mean():.0f}" for name in WORK]
        words = f"an episode of {name_of(agent, nu)} takes {more} times the multiplications in the end"
        verdict = at_most(more, 1.05, words) if agent != "batch" else None
        rows.append((verdict, (name_of(agent, nu), *numbers, f"{more}")))
    return worst_of(("multiplications an episode", *WORK.values(), "times"), rows)


@claim(
    "The evidence finds λ and σ from the data, so that they need not be guessed",
    "appendix D",
    on_engine,
    kind="ours",
)
def found_by_evidence(frame: pl.DataFrame) -> Verdict:
    """On the recommendation engine RLSVI with ByEvidence, which begins with λ = 1 and σ = .1, has at most
    1.5 times the regret of tuned λ and σ.
    """
    near, far = EVIDENCE
    more, row = times_batch(frame, near)
    others = [times_batch(frame, agent)[1] for agent in (far, *GUESSED)]
    found = at_most(more, 1.5, f"it has {row[1]}, {more} times the regret of tuned ones")
    return found._replace(table=(HEADINGS, row, *others))


def draw(frame: pl.DataFrame) -> Picture:
    """Cumulative regret, mean and standard error over instances or seeds."""
    figure, (left, right) = panels(2, 4.4)
    for axes, task, agents in ((left, "engine", DRAWN), (right, "chain", ON_CHAIN)):
        for agent, nu in agents:
            index = DRAWN.index((agent, nu)) if (agent, nu) in DRAWN else SPARE[[*BONUSES].index(agent)]
            at, values = learning_curves(frame, task=task, agent=agent, nu=nu)
            line: Any = LINES[index % len(LINES)]
            averaged(axes, at, values, name_of(agent, nu), COLOURS[index % len(COLOURS)], line)
    from_zero([left, right])
    labelled(left, "customers", "cumulative regret", "recommendation engine", key="upper left")
    labelled(right, "episodes", "cumulative regret", f"chain of {CHAIN} states", key="upper left")
    return figure


FIGURE = Figure.of(
    __name__,
    title="Incremental RLSVI",
    where="appendix F.1",
    caption=(
        "Cumulative regret of RLSVI, of its incremental version with step sizes ν (literal: the prior is "
        "forgotten too, as printed) and of stochastic gradients, on the recommendation engine (N = 10, J = 5, λ"
        " = .2, σ² = .001) and on a chain with a table (λ = 1, σ = .1), there also of LSVI-UCB, as its theory "
        "has it and tuned by hand. Mean and standard error over problem instances, or seeds; fewer of them for "
        "gradients."
    ),
    quick={"episodes": 300, "runs": 1, "chain": 200, "few": 1, "more": 2, "seeds": 5},
    paper={"episodes": 1200, "runs": 3, "chain": 1000, "few": 5, "more": 16, "seeds": 30},
)
