"""Learning MDPs drawn from the prior of Theorem 1: the function of the jobs, and what is read from its results.

The seed draws the MDP; all agents of a size meet the same ones. Rewards are -1 and 0, and agents are told so.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import polars as pl

from rlsvi import problems
from rlsvi.agents import LSVI, PSRL, RLSVI, UCBVI, UCRL2, EpsilonGreedy
from rlsvi.agents.agent import Agent
from rlsvi.bases import Tabular
from rlsvi.core.compile import Floats, Longs
from rlsvi.study.experiment import Play, Playing, experiment
from rlsvi.study.job import Job
from rlsvi.study.statistics import Interval, paired_ratio
from rlsvi_paper.agents import GaussianPSRL
from rlsvi_paper.claim import choice
from rlsvi_paper.results import chosen_by_the_others, having, learning_curves, seeds_of
from rlsvi_paper.theory.bounds import theorem_agent

THEOREM, RANDOM, DITHERING, FALLING = "RLSVI, theorem", "random play", "epsilon-greedy", "falling epsilon"
REWARDS = (-1.0, 0.0)
Size = tuple[int, int, int]  # states, actions, horizon

# By the name of an agent, the scales it is tried at. RLSVI: lambda = 1, sigma^2 = scale. 1 is the others' theory.
SCALES: dict[str, tuple[float, ...]] = {
    "RLSVI": (0.01, 0.03, 0.1, 0.3),
    "PSRL": (1.0,),
    "Gaussian PSRL": (0.03, 0.1, 0.3, 1.0),
    "UCRL2": (0.01, 0.03, 0.1, 0.3, 1.0),
    "UCBVI": (0.0003, 0.001, 0.003, 1.0),
}
# Controls of linear regret, with their scale; that of epsilon-greedy LSVI is epsilon.
CONTROLS = {RANDOM: 1.0, DITHERING: 0.1}
HALVED = 100.0  # the scale of LSVI whose epsilon falls to 0: the episode in which it is 1/2
MAKERS: dict[str, Callable[[float, int, int], Agent]] = {
    "RLSVI": lambda scale, episodes, seed: RLSVI(lam=1.0, sigma=scale**0.5, basis=Tabular(), seed=seed),
    DITHERING: lambda scale, episodes, seed: LSVI(explore=EpsilonGreedy(scale), basis=Tabular(), seed=seed),
    FALLING: lambda scale, episodes, seed: LSVI(
        explore=EpsilonGreedy(lambda episode: scale / (scale + episode)), basis=Tabular(), seed=seed
    ),
    "PSRL": lambda scale, episodes, seed: PSRL(reward_range=REWARDS, seed=seed),
    "Gaussian PSRL": lambda scale, episodes, seed: GaussianPSRL(scale=scale, reward_range=REWARDS, seed=seed),
    "UCRL2": lambda scale, episodes, seed: UCRL2(scale=scale, reward_range=REWARDS, seed=seed),
    "UCBVI": lambda scale, episodes, seed: UCBVI(scale=scale, planned=episodes, reward_range=REWARDS, seed=seed),
}


@experiment
def prior_regret(
    *, agent: str, scale: float, states: int, actions: int, horizon: int, episodes: int, seed: int
) -> Playing:
    """Cumulative regret at some of the episodes, on one MDP of the prior."""
    problem_seed, agent_seed = seeds_of(seed)
    problem = problems.dirichlet(states, actions, horizon, seed=problem_seed)
    at = marks(episodes)
    if agent == RANDOM:
        return {"episode": at, "regret": at * problem.random_regret}
    made = partial(theorem_agent, states, horizon) if agent == THEOREM else partial(MAKERS[agent], scale, episodes)
    history = yield Play(made(agent_seed), problem, episodes)
    regret = np.cumsum(history.regret)
    return {"episode": at, "regret": regret[at - 1]}


def marks(episodes: int) -> Longs:
    """Episodes at which a curve is kept: four a factor of ten, the end of the first quarter, and the last."""
    at = np.logspace(0, np.log10(episodes), 1 + round(4 * np.log10(episodes)))
    return np.unique([*at.round().astype(np.int64), max(episodes // 4, 1)])


def learning_cost(size: Size, episodes: int) -> float:
    """About how long a run takes, for progress bars."""
    S, A, H = size
    return episodes * (1e-6 + 5e-8 * S * A * H)


def prior_jobs(agent: str, scale: float, sizes: Sequence[Size], episodes: int, seeds: int) -> list[Job]:
    """One agent on MDPs of some sizes."""
    run = partial(Job.of, prior_regret, agent=agent, scale=scale)
    return [
        run(learning_cost((S, A, H), episodes), states=S, actions=A, horizon=H, episodes=episodes, seed=seed)
        for S, A, H in sizes
        for seed in range(seeds)
    ]


def sizes_of(frame: pl.DataFrame, agent: str) -> list[Size]:
    """The sizes an agent has learned."""
    rows = having(frame, agent=agent).select("states", "actions", "horizon").unique().sort(pl.all()).iter_rows()
    return [(S, A, H) for S, A, H in rows]


def curves_of(frame: pl.DataFrame, agent: str, size: Size, scale: float = 1.0) -> tuple[Floats, Floats]:
    """The episodes of a curve, and its regret on every MDP, (MDPs, points)."""
    S, A, H = size
    return learning_curves(frame, agent=agent, scale=scale, states=S, actions=A, horizon=H)


def growth(frame: pl.DataFrame, agent: str, size: Size, scale: float = 1.0) -> Interval:
    """By what regret / sqrt(T) is multiplied over the last factor of four of T, of the means over MDPs.

    2 for a regret that is linear in T, 1 for one as sqrt(T); below 1 the ratio is past its peak.
    """
    at, regret = curves_of(frame, agent, size, scale)
    rise = np.sqrt(at[-1] / at[quarter(at)])
    return Interval(*(float(x / rise) for x in paired_ratio(regret[:, -1], regret[:, quarter(at)])))


def quarter(at: Floats) -> int:
    """The place of the end of the first quarter among the episodes of a curve."""
    return int(np.searchsorted(at, max(at[-1] // choice("the last factor of T,", 4.0, 2.0, 16.0), 1)))


def final(frame: pl.DataFrame, agent: str, size: Size, scale: float = 1.0) -> Floats:
    """Regret of all episodes, on every MDP."""
    return curves_of(frame, agent, size, scale)[1][:, -1]


def tuned(frame: pl.DataFrame, agent: str, size: Size) -> tuple[Floats, float]:
    """Regret of all episodes at the best scale, on every MDP, and that scale.

    On each MDP the scale is the one that is best on the others, so that luck does not count.
    """
    found = np.stack([final(frame, agent, size, scale) for scale in SCALES[agent]])
    return -chosen_by_the_others(-found), SCALES[agent][int(found.mean(axis=1).argmin())]


def told_scale(agent: str, best: float) -> str:
    """A best scale in words, which say where the grid ends there: a better one may lie beyond."""
    ends = SCALES[agent][0], SCALES[agent][-1]
    return f"{best:g}, the grid's edge" if len(SCALES[agent]) > 1 and best in ends else f"{best:g}"
