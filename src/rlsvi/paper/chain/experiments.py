"""The experiments on the chain: functions that the jobs of its figures call."""

import math
from collections.abc import Generator
from typing import Any

import numpy as np

from rlsvi import problems
from rlsvi.agents import LSVI, RLSVI, Boltzmann, EpsilonGreedy
from rlsvi.agents.finite.rlsvi import FiniteHorizonAgent
from rlsvi.bases.dense import Dense
from rlsvi.core.compile import Floats, Longs
from rlsvi.paper.results import unexplained
from rlsvi.problems import Problem
from rlsvi.simulate.stepped import History
from rlsvi.study.experiment import Play, Playing, experiment

CHUNK = 100  # episodes between two looks at the rewards collected
REWARDS = 10  # the paper's proxy of the learning time: episodes until ten rewards


@experiment
def learning_time(
    *,
    length: int,
    features: int | None,
    seed: int,
    limit: int,
    lam: float = 1.0,
    sigma: float = 0.1,
    rho: float | None = None,
    rho_is: Any = "variance",
    deterministic: bool = False,
) -> Playing:
    """Episodes until RLSVI has ten rewards, infinite if not within `limit`.

    With `rho` also the misfit, the share of Q* that the basis leaves out.
    """
    problem_seed, agent_seed = seeds_of(seed)
    reading: dict[str, Any] = {"rho": rho, "rho_is": rho_is, "deterministic": deterministic}
    problem = problems.chain(length, features, **reading, seed=problem_seed)
    agent = RLSVI(lam=lam, sigma=sigma, seed=agent_seed)
    found = {} if rho is None else {"misfit": _misfit(problem)}
    return {"time": (yield from until_learned(agent, problem, limit)), **found}


def until_learned(agent: FiniteHorizonAgent, problem: Problem, limit: int) -> Generator[Play, History, float]:
    """Play until ten rewards; return the number of episodes, infinite if not within `limit`."""
    rewards = 0.0
    for played in range(0, limit, CHUNK):
        history = yield Play(agent, problem, min(CHUNK, limit - played), regret=False)
        reached = np.flatnonzero(rewards + np.cumsum(history.reward) >= REWARDS)
        if len(reached):
            return float(played + reached[0] + 1)
        rewards += history.reward.sum()
    return math.inf


@experiment
def regret_curve(
    *,
    agent: str,
    length: int,
    features: int,
    episodes: int,
    seed: int,
    points: int,
    stretch: float = 1.0,
    per_period: bool = False,
    **settings: float,
) -> Playing:
    """Regret and rewards up to some of the episodes of a run, and what became of it.

    points : how many episodes at most, of the first 2000 and again of all.
    stretch : a factor of all basis functions.
    per_period : whether the basis functions of each period are drawn on their own.
    time : episodes until ten rewards, infinite if never.
    last_mistake : the last episode whose policy was not optimal.
    """
    problem_seed, agent_seed = seeds_of(seed)
    problem = problems.chain(length, features, per_period=per_period, seed=problem_seed)
    if stretch != 1.0:
        problem = Problem(problem.mdp, Dense(stretch * phi_of(problem)))
    history = yield Play(agent_called(agent, agent_seed, **settings), problem, episodes)
    best = problem.solution.V[0, 0]
    reached = np.flatnonzero(np.cumsum(history.reward) >= REWARDS)
    mistakes = np.flatnonzero(history.regret > 1e-9 * best)
    at = np.union1d(_marks(min(episodes, 2000), points), _marks(episodes, points))
    return {
        "episode": at + 1,
        "regret": np.cumsum(history.regret)[at],
        "reward": np.cumsum(history.reward)[at],
        "time": reached[0] + 1.0 if len(reached) else math.inf,
        "last_mistake": mistakes[-1] + 1 if len(mistakes) else 0,
        "best": best,
    }


@experiment
def first_reward(
    *, agent: str, length: int, features: int | None, seed: int, limit: int, **settings: float
) -> Playing:
    """Episodes until the first reward, infinite if not within `limit`.

    regret : expected regret of these episodes, the one with the reward included.
    uneven : the largest difference, relative, between the value of a policy played in them and of random play.
    """
    problem_seed, agent_seed = seeds_of(seed)
    problem = problems.chain(length, features, seed=problem_seed)
    player = agent_called(agent, agent_seed, **settings)
    regret, uneven, chunk = 0.0, 0.0, 2 ** min(length - 1, 14)
    for played in range(0, limit, chunk):
        history = yield Play(player, problem, min(chunk, limit - played))
        reached = np.flatnonzero(history.reward)
        until = reached[0] + 1 if len(reached) else len(history.reward)
        regret += float(history.regret[:until].sum())
        off = np.abs(history.regret[:until] / problem.random_regret - 1.0)
        uneven = max(uneven, float(off.max()))
        if len(reached):
            return {"time": float(played + until), "regret": regret, "uneven": uneven}
    return {"time": math.inf, "regret": regret, "uneven": uneven}


@experiment
def noisy_deep_sea(*, size: int, lam: float, sigma: float, episodes: int, seed: int) -> Playing:
    """RLSVI with a table on DeepSea with noisy rewards and transitions: its regret, and whether it is stuck.

    It is stuck (1) if in the last tenth of the episodes more than half of random play's regret is left.
    """
    problem_seed, agent_seed = seeds_of(seed)
    problem = problems.deep_sea(size, stochastic=True, seed=problem_seed)
    history = yield Play(RLSVI(lam=lam, sigma=sigma, seed=agent_seed), problem, episodes)
    left = history.regret[-(episodes // 10 or 1) :].mean()
    return {"total": float(history.regret.sum()), "stuck": float(left > 0.5 * problem.random_regret)}


def agent_called(name: str, seed: int, **settings: float) -> FiniteHorizonAgent:
    """An agent of the chain's figures."""
    if name == "RLSVI":
        return RLSVI(lam=settings["lam"], sigma=settings["sigma"], seed=seed)
    if name == "epsilon-greedy":
        return LSVI(lam=1.0, explore=EpsilonGreedy(settings["epsilon"]), seed=seed)
    if name == "Boltzmann":
        return LSVI(lam=1.0, explore=Boltzmann(settings["eta"]), seed=seed)
    raise ValueError(f"unknown agent {name!r}")


def _marks(episodes: int, points: int) -> Longs:
    """At most so many of the episodes, evenly, the first and the last among them."""
    return np.unique(np.linspace(0, episodes - 1, min(points, episodes)).round().astype(np.int64))


def seeds_of(seed: int) -> tuple[int, int]:
    """The seeds of the problem and of the agent."""
    problem, agent = np.random.SeedSequence(seed).generate_state(2, np.uint64)
    return int(problem), int(agent)


def phi_of(problem: Problem) -> Floats:
    """The basis functions of a problem with a coherent basis."""
    assert isinstance(problem.basis, Dense)
    return problem.basis.phi


def _misfit(problem: Problem) -> float:
    """The share of Q* that the basis leaves out, as a ratio of 2-norms."""
    Q, left = problem.solution.Q, 0.0
    for phi, q in zip(phi_of(problem), Q, strict=True):
        left += float(np.square(unexplained(phi.reshape(q.size, -1), q.ravel())).sum())
    return math.sqrt(left / float(np.square(Q).sum()))
