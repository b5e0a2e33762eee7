"""Seed sampling: agents that share every step keep a seed, draw anew at every step, or once for an episode."""

from itertools import product

import polars as pl

from rlsvi.mdp.solve import backward_induction
from rlsvi.study.job import Job
from rlsvi.study.statistics import mean
from rlsvi_paper.claim import Parts, at_least, claim, three_digits
from rlsvi_paper.descendants.concurrent import PROBLEMS, WHERE, picture, regrets, tasks_of
from rlsvi_paper.drawing import Picture
from rlsvi_paper.figure import Figure
from rlsvi_paper.loops.staggered import Scheme, SharedTable, layers_of
from rlsvi_paper.results import seeds_of, times_as_much

SEEDS, PLANNED_ONCE = (
    "a seed for each agent, planning at every step",
    "a seed for each agent, planning once an episode",
)
ONE_SEED, REDRAWN = "one seed for all, planning at every step", "a draw at every step"
SHARED, EPISODES = "one shared draw at every step", "a draw for every episode"
SCHEMES = {
    SEEDS: Scheme(seeds=True, replan=True),
    PLANNED_ONCE: Scheme(seeds=True, replan=False),
    ONE_SEED: Scheme(seeds=True, replan=True, shared=True),
    REDRAWN: Scheme(seeds=False, replan=True),
    SHARED: Scheme(seeds=False, replan=True, shared=True),
    EPISODES: Scheme(seeds=False, replan=False),
}
TASKS = ("DeepSea, N = 20", "RiverSwim")


def jobs(agents: list[int], rounds: int, seeds: int) -> list[Job]:
    """All schemes with so many agents each, on both problems."""
    return [
        Job.of(staggered_regret, 2e-4 * rounds * K, task=task, scheme=scheme, agents=K, rounds=rounds, seed=seed)
        for task, scheme, K, seed in product(TASKS, SCHEMES, agents, range(seeds))
    ]


def staggered_regret(*, task: str, scheme: str, agents: int, rounds: int, seed: int) -> dict[str, float]:
    """The regret per agent of so many episodes of each."""
    problem_seed, agent_seed = seeds_of(seed)
    make, lam, sigma = PROBLEMS[task]
    mdp = make(problem_seed).mdp
    best = float(mdp.start @ backward_induction(mdp).V[0])
    shared = SharedTable(layers_of(mdp), agents, SCHEMES[scheme], lam, sigma, agent_seed)
    return {"regret": rounds * best - shared.play(rounds) / agents}


def more_regret(frame: pl.DataFrame, scheme: str) -> Parts:
    """Whether a scheme has more regret than seeds, on every problem and for every number of agents."""
    for task in tasks_of(frame, TASKS):
        kept, other = regrets(frame, task, SEEDS), regrets(frame, task, scheme)
        for K in kept:
            share = times_as_much(other[K], kept[K])
            verdict = at_least(share, 1.0, f"{task}, {K} agents: {share} times the regret of seeds")
            both = (three_digits(mean(values[K])) for values in (kept, other))
            yield verdict, (task, f"{K}", *both)


@claim(
    "Agents must commit: a draw at every step explores worse than seeds that are kept",
    WHERE,
    kind="ours",
    table=("problem", "agents", SEEDS, REDRAWN),
)
def commitment(frame: pl.DataFrame) -> Parts:
    """On every problem, with every number of agents, draws at every step have more regret than seeds."""
    return more_regret(frame, REDRAWN)


@claim(
    "Agents must adapt: to plan once an episode is worse than at every step",
    WHERE,
    kind="ours",
    table=("problem", "agents", SEEDS, PLANNED_ONCE),
)
def adaptivity(frame: pl.DataFrame) -> Parts:
    """On every problem, with every number of agents, seeds have more regret if they plan once an episode."""
    return more_regret(frame, PLANNED_ONCE)


@claim(
    "Agents must differ: one seed for all explores worse than one for each",
    WHERE,
    kind="ours",
    table=("problem", "agents", SEEDS, ONE_SEED),
)
def diversity(frame: pl.DataFrame) -> Parts:
    """On every problem, with every number of agents, one seed has more regret than many."""
    return more_regret(frame, ONE_SEED)


def draw(frame: pl.DataFrame) -> Picture:
    """Regret per agent against the number of agents, for each problem."""
    return picture(frame, tasks_of(frame, TASKS), SCHEMES)


FIGURE = Figure.of(
    __name__,
    title="Seed sampling",
    where="section 7",
    caption=(
        "Agents begin episodes at different times and learn from every step of all others at once; they plan "
        "anew at every step, or once an episode. Lines are means of the regret per agent of all episodes, with "
        "95% intervals as bands."
    ),
    quick={"agents": [10, 30], "rounds": 40, "seeds": 10},
    paper={"agents": [10, 30, 100], "rounds": 100, "seeds": 40},
)
