"""Concurrent agents that share their data: the function that the jobs of the figure call, and its schemes.

All schemes have the same lambda and sigma: those chosen for one agent on DeepSea, those of the paper on the chain,
and on RiverSwim the sigma that the figure `worst-case` found best on random MDPs.
"""

from collections.abc import Callable

from rlsvi import problems
from rlsvi.agents import RLSVI, EnsembleRLSVI
from rlsvi.paper.chain.experiments import seeds_of
from rlsvi.problems import Problem
from rlsvi.simulate import simulate_concurrent

SEEDS, INDEPENDENT, SHARED = "a seed for each agent", "independent draws", "one shared draw"
SCHEMES = SEEDS, INDEPENDENT, SHARED
# By the name of a problem: how a seed draws it, lambda and sigma.
PROBLEMS: dict[str, tuple[Callable[[int], Problem], float, float]] = {
    "DeepSea, N = 20": (lambda seed: problems.deep_sea(20, seed=seed), 10.0, 0.001),
    "chain, N = 20": (lambda seed: problems.chain(20), 1.0, 0.1),
    "RiverSwim": (lambda seed: problems.river_swim(6, 20), 1.0, 0.3),
}


def concurrent_regret(*, task: str, scheme: str, agents: int, rounds: int, seed: int) -> dict[str, float]:
    """The regret per agent: of all rounds, and the mean of one round among the last tenth of them."""
    problem_seed, agent_seed = seeds_of(seed)
    draw, lam, sigma = PROBLEMS[task]
    agent = (
        EnsembleRLSVI(members=agents, lam=lam, sigma=sigma, seed=agent_seed)
        if scheme == SEEDS
        else RLSVI(lam=lam, sigma=sigma, seed=agent_seed)
    )
    history = simulate_concurrent(agent, draw(problem_seed), rounds, agents=agents, shared=scheme == SHARED)
    per_round = history.regret.reshape(rounds, agents).mean(axis=1)
    return {"regret": float(per_round.sum()), "late": float(per_round[-max(1, rounds // 10) :].mean())}
