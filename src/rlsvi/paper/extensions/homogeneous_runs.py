"""Learning MDPs whose periods are alike: the function that the jobs of the figure call."""

from collections.abc import Callable

import numpy as np

from rlsvi import problems
from rlsvi.agents import PSRL, RLSVI, UCRL2, HomogeneousRLSVI
from rlsvi.agents.agent import Agent
from rlsvi.paper.chain.experiments import seeds_of
from rlsvi.paper.theory.prior_regret import REWARDS, marks
from rlsvi.study.experiment import Play, Playing, experiment

# By the name of an agent, and whether it knows that periods are alike. The scale is sigma^2 or that of the radii.
MAKERS: dict[tuple[str, bool], Callable[[float, int], Agent]] = {
    ("RLSVI", True): lambda scale, seed: HomogeneousRLSVI(lam=1.0, sigma=scale**0.5, seed=seed),
    ("RLSVI", False): lambda scale, seed: RLSVI(lam=1.0, sigma=scale**0.5, seed=seed),
    ("PSRL", True): lambda scale, seed: PSRL(reward_range=REWARDS, homogeneous=True, seed=seed),
    ("PSRL", False): lambda scale, seed: PSRL(reward_range=REWARDS, seed=seed),
    ("UCRL2", True): lambda scale, seed: UCRL2(scale=scale, reward_range=REWARDS, homogeneous=True, seed=seed),
    ("UCRL2", False): lambda scale, seed: UCRL2(scale=scale, reward_range=REWARDS, seed=seed),
}


@experiment
def homogeneous_regret(
    *, agent: str, pooled: bool, scale: float, states: int, actions: int, horizon: int, episodes: int, seed: int
) -> Playing:
    """Cumulative regret at some of the episodes, on an MDP drawn once for all periods.

    pooled : whether the agent knows that periods are alike.
    """
    problem_seed, agent_seed = seeds_of(seed)
    problem = problems.dirichlet(states, actions, horizon, homogeneous=True, seed=problem_seed)
    history = yield Play(MAKERS[agent, pooled](scale, agent_seed), problem, episodes)
    regret, at = np.cumsum(history.regret), marks(episodes)
    return {"episode": at, "regret": regret[at - 1]}
