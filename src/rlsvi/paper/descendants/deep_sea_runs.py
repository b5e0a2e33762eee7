"""The experiments on DeepSea: the function that the jobs of its figure call, and the agents it knows."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rlsvi import problems
from rlsvi.agents import LSVI, PSRL, RLSVI, EnsembleRLSVI, EpsilonGreedy
from rlsvi.agents.agent import Agent
from rlsvi.paper.chain.experiments import seeds_of
from rlsvi.study.experiment import Play, Playing, experiment

CHUNK = 50  # episodes between two looks at the treasures found
TREASURES = 10  # as many as the rewards that count as learning on the chain
CHOSEN = {
    False: (10.0, 0.001),
    True: (1.0, 0.3),
}  # lam and sigma by whether the sea is stochastic, chosen at N = 10
RHO = 1e-4  # the variance of the noise of agnostic functions
TABLE, COHERENT, AGNOSTIC = "RLSVI, table", "RLSVI, coherent, K = N", "RLSVI, agnostic, K = N"
PLAIN, ENSEMBLE = "RLSVI, table, λ = 1, σ = .1", "ensemble of 20, table"
POSTERIOR, DITHERING, MORE = "PSRL", "ε-greedy, ε = .1", "ε-greedy, ε = .5"


class Diver(NamedTuple):
    """An agent, given lam, sigma and its seed, and the basis it uses."""

    agent: Callable[[float, float, int], Agent]
    features: bool = False
    rho: float | None = None


def sampling(lam: float, sigma: float, seed: int) -> Agent:
    """Return RLSVI."""
    return RLSVI(lam=lam, sigma=sigma, seed=seed)


DIVERS = {
    TABLE: Diver(sampling),
    PLAIN: Diver(lambda lam, sigma, seed: RLSVI(lam=1.0, sigma=0.1, seed=seed)),
    COHERENT: Diver(sampling, features=True),
    AGNOSTIC: Diver(sampling, features=True, rho=RHO),
    ENSEMBLE: Diver(lambda lam, sigma, seed: EnsembleRLSVI(members=20, lam=lam, sigma=sigma, seed=seed)),
    POSTERIOR: Diver(lambda lam, sigma, seed: PSRL(alpha_P=0.01, reward_range=(-0.01, 1.0), seed=seed)),
    DITHERING: Diver(lambda lam, sigma, seed: LSVI(lam=1.0, explore=EpsilonGreedy(0.1), seed=seed)),
    MORE: Diver(lambda lam, sigma, seed: LSVI(lam=1.0, explore=EpsilonGreedy(0.5), seed=seed)),
}


@experiment
def treasure_time(
    *, agent: str, size: int, stochastic: bool, limit: int, seed: int, lam: float, sigma: float
) -> Playing:
    """Episodes until the tenth that is worth half of the optimum or more, infinite if not within `limit`.

    In a still sea these are the episodes that find the treasure, whatever the policy: one that dithers can be
    worth less than half of the optimum though it is optimal otherwise. In a stochastic sea, where rewards are
    noisy, an episode is worth what its policy is.
    """
    problem_seed, agent_seed = seeds_of(seed)
    diver = DIVERS[agent]
    basis: dict[str, Any] = {"features": size, "rho": diver.rho} if diver.features else {}
    problem = problems.deep_sea(size, stochastic=stochastic, seed=problem_seed, **basis)
    player, best, found = diver.agent(lam, sigma, agent_seed), float(problem.solution.V[0, 0]), 0
    for played in range(0, limit, CHUNK):
        history = yield Play(player, problem, min(CHUNK, limit - played), regret=stochastic)
        lost = history.regret if stochastic else history.realised
        good = lost <= 0.5 * best
        reached = np.flatnonzero(found + np.cumsum(good) >= TREASURES)
        if len(reached):
            return {"time": float(played + reached[0] + 1)}
        found += int(good.sum())
    return {"time": math.inf}
