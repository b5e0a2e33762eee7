"""What the figures on the extensions of appendix F measure: the functions of their jobs."""

from typing import Any

import numpy as np

from rlsvi.agents import RLSVI, ContinualLSVI, ContinualRLSVI, EpsilonGreedy, IncrementalRLSVI
from rlsvi.agents.agent import FiniteHorizonAgent
from rlsvi.agents.continual import ContinualAgent
from rlsvi.mdp import river_swim
from rlsvi.mdp.average import average_reward
from rlsvi.paper.recommending import LAM, LIKES, SIGMA, instance
from rlsvi.simulate import simulate
from rlsvi.simulate_continual import simulate_continual

GAMMA = 0.99


def learning_regret(*, agent: str, nu: float, episodes: int, runs: int, seed: int) -> dict[str, Any]:
    """Regret on the instance number `seed` of the recommendation engine, the mean of several runs.

    agent : "batch", "incremental", or "incremental, literal", which forgets its prior too.
    nu : the step size of the incremental agents.

    Also how many states and sums of the past the agent keeps after a tenth of the episodes, and after all.
    """
    problem = instance(seed, LIKES)
    total, kept = np.zeros(episodes), np.zeros(2)
    for run in range(runs):
        learner = _learner(agent, nu, 1000 * seed + run)
        first = simulate(learner, problem, episodes // 10, regret=False)
        kept[0] += _kept(learner)
        rest = simulate(learner, problem, episodes - episodes // 10, regret=False)
        kept[1] += _kept(learner)
        total += np.cumsum(np.concatenate([first.path_regret, rest.path_regret]))
    at = np.unique(np.ceil(np.linspace(0, episodes, 41)[1:]).astype(np.int64))
    return {
        "episode": at,
        "regret": total[at - 1] / runs,
        "kept_early": kept[0] / runs,
        "kept_late": kept[1] / runs,
    }


def _learner(agent: str, nu: float, seed: int) -> FiniteHorizonAgent:
    usual: dict[str, Any] = {"lam": LAM, "sigma": SIGMA, "seed": seed}
    if agent == "batch":
        return RLSVI(**usual)
    return IncrementalRLSVI(**usual, nu=nu, keep_prior=agent == "incremental")


def _kept(agent: FiniteHorizonAgent) -> int:
    """States and sums of past transitions in the memory of an agent."""
    assert agent._learner is not None
    return int(agent._learner.memory.states.sum() + agent._learner.memory.sums.sum())


def living(*, agent: str, states: int, steps: int, seed: int) -> dict[str, Any]:
    """Average reward in a river without end, as a share of the best, over ten parts of a life.

    agent : the noise of continual RLSVI ("paper", "whitened" or "independent"), or "epsilon-greedy".
    """
    mdp = river_swim(states)
    rewards = simulate_continual(_creature(agent, seed), mdp, steps)
    parts = rewards[: steps // 10 * 10].reshape(10, -1).mean(axis=1)
    return {"part": np.arange(1, 11), "share": parts / average_reward(mdp)}


def _creature(agent: str, seed: int) -> ContinualAgent:
    if agent == "epsilon-greedy":
        return ContinualLSVI(gamma=GAMMA, explore=EpsilonGreedy(0.1), seed=seed)
    noise: Any = agent
    return ContinualRLSVI(gamma=GAMMA, noise=noise, seed=seed)
