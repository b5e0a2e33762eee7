"""Learning with noise that worst-case bounds need, and with less: the function that the jobs of the figure call.

All agents know the range of the rewards. Their scale multiplies what their theory has: the standard deviation of
the noise, or the bonus. That of RLSVI, with lambda = 1, and of RLSVI with bounded targets is sigma.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rlsvi import problems
from rlsvi.agents import PSRL, RLSVI, UCBVI, BoundedTargetRLSVI, WorstCaseRLSVI
from rlsvi.agents.agent import Agent
from rlsvi.core.compile import Floats
from rlsvi.paper.chain.experiments import seeds_of
from rlsvi.paper.theory.bounds import theorem_agent
from rlsvi.paper.theory.prior_regret import marks
from rlsvi.problems import Problem
from rlsvi.study.experiment import Play, Playing, experiment

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
    draw, rewards = PROBLEMS[task]
    problem, at = draw(problem_seed), marks(episodes)
    if agent == RANDOM:
        return {"episode": at, "regret": at * problem.random_regret}
    table = problem.mdp.table
    told = Setting(scale, rewards, table.states, table.horizon, episodes, agent_seed)
    history = yield Play(MAKERS[agent](told), problem, episodes)
    return {"episode": at, "regret": np.cumsum(history.regret)[at - 1]}
