"""The experiment on the number of members of an ensemble: the function that the jobs of its figure call."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rlsvi import problems
from rlsvi.agents import RLSVI, EnsembleRLSVI
from rlsvi.paper.chain.experiments import seeds_of
from rlsvi.paper.descendants.deep_sea_runs import CHOSEN, TREASURES
from rlsvi.problems import Problem
from rlsvi.study.experiment import Play, Playing, experiment

SHALLOW, DEEP, STOCHASTIC, RIVER = "DeepSea, N = 10", "DeepSea, N = 20", "stochastic DeepSea, N = 10", "RiverSwim"
EXACT, TARGETS, WEIGHTS = "RLSVI", "noise", "random weights"
TARGETS_ALONE, WEIGHTS_ALONE = "noise, no prior draw", "random weights, no prior draw"


class Sampled(NamedTuple):
    """A problem, given its seed, and the lam and sigma of all agents on it."""

    problem: Callable[[int], Problem]
    lam: float
    sigma: float


class Kind(NamedTuple):
    """A kind of ensemble: how its members differ, and the scale of their prior draws."""

    perturb: str
    prior_scale: float


PROBLEMS = {
    SHALLOW: Sampled(lambda seed: problems.deep_sea(10, seed=seed), *CHOSEN[False]),
    DEEP: Sampled(lambda seed: problems.deep_sea(20, seed=seed), *CHOSEN[False]),
    STOCHASTIC: Sampled(lambda seed: problems.deep_sea(10, stochastic=True, seed=seed), *CHOSEN[True]),
    RIVER: Sampled(lambda seed: problems.river_swim(6, 20), 1.0, 0.3),
}
KINDS = {
    TARGETS: Kind("targets", 1.0),
    WEIGHTS: Kind("weights", 1.0),
    TARGETS_ALONE: Kind("targets", 0.0),
    WEIGHTS_ALONE: Kind("weights", 0.0),
}


@experiment
def ensemble_regret(*, task: str, agent: str, episodes: int, seed: int, members: int | None = None) -> Playing:
    """Regret of all episodes over that of random play, and the episodes until one has learned.

    members : of an ensemble; None for RLSVI, which samples anew in every episode.
    time : episodes until the tenth whose policy is worth half of the optimum or more, infinite if there are fewer.
    """
    problem_seed, agent_seed = seeds_of(seed)
    make, lam, sigma = PROBLEMS[task]
    problem = make(problem_seed)
    prior: dict[str, Any] = {"lam": lam, "sigma": sigma, "seed": agent_seed}
    if members is None:
        history = yield Play(RLSVI(**prior), problem, episodes)
    else:
        perturb, prior_scale = KINDS[agent]
        player = EnsembleRLSVI(members=members, perturb=perturb, prior_scale=prior_scale, **prior)
        history = yield Play(player, problem, episodes)
    best = float(problem.mdp.table.start @ problem.solution.V[0])
    reached = np.flatnonzero(np.cumsum(history.regret <= 0.5 * best) >= TREASURES)
    return {
        "time": float(reached[0] + 1) if len(reached) else math.inf,
        "regret": float(history.regret.sum() / (episodes * problem.random_regret)),
    }
