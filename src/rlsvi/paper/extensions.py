"""What the figures on the extensions of appendix F measure: the functions of their jobs."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from rlsvi import problems
from rlsvi.agents import (
    LSVIUCB,
    RLSVI,
    ByEvidence,
    ContinualLSVI,
    ContinualRLSVI,
    DivergenceWarning,
    EpsilonGreedy,
    GradientRLSVI,
    IncrementalRLSVI,
    Linear,
)
from rlsvi.agents.continual.agent import ContinualAgent
from rlsvi.agents.explore import Schedule
from rlsvi.bases import Basis, Dense, StateFeatures
from rlsvi.core.compile import Floats
from rlsvi.core.regression import FactorError
from rlsvi.envs import FiniteMDPEnv
from rlsvi.mdp import river_swim
from rlsvi.mdp.average import average_reward
from rlsvi.paper.costs import multiplications
from rlsvi.paper.recommending import LAM, LIKES, SIGMA, instance
from rlsvi.problems import Problem
from rlsvi.simulate.endless import simulate_continual
from rlsvi.simulate.finite import simulate

GAMMA = 0.99
CHAIN = 8  # states
GUESSED = {"batch, sigma = .1": 0.1, "batch, sigma = 1": 1.0}
EVIDENCE = {"evidence from sigma = .1": 0.1, "evidence from sigma = 1": 1.0}
BONUSES = {"LSVI-UCB, scale 1": 1.0, "LSVI-UCB, scale .0003": 0.0003}


def learning_regret(*, task: str, agent: str, nu: float, episodes: int, runs: int, seed: int) -> dict[str, Any]:
    """Regret along the path of an agent, the mean of several runs, at some episodes.

    task : "engine", the instance number `seed` of the recommendation engine; or "chain", 8 states with a table.
    agent : "batch", with tuned lam and sigma; one of GUESSED, with lam = 1 and this sigma; one of EVIDENCE, which
        begins with these; "incremental", "incremental, literal", which forgets its prior too, "gradient"; or on
        the chain one of BONUSES.
    nu : the step size of the incremental agents.

    Also how many multiplications an episode takes after a tenth of the episodes, and after all: `work`, all blocks
    of weights counted, and `done`, without those that were skipped as nothing had touched them yet.
    """
    problem = instance(seed, LIKES) if task == "engine" else problems.chain(CHAIN)
    total, work, done = np.zeros(episodes), np.zeros(2), np.zeros(2)
    for run in range(runs):
        learner = _learner(task, agent, nu, episodes, 1000 * seed + run)
        first = _regret(learner, problem, episodes // 10)
        work[0] += multiplications(learner, skips=False)
        done[0] += multiplications(learner)
        rest = _regret(learner, problem, episodes - episodes // 10)
        work[1] += multiplications(learner, skips=False)
        done[1] += multiplications(learner)
        total += np.cumsum(np.concatenate([first, rest]))
    at = np.unique(np.ceil(np.linspace(0, episodes, 41)[1:]).astype(np.int64))
    return {
        "episode": at,
        "regret": total[at - 1] / runs,
        "work_early": work[0] / runs,
        "work_late": work[1] / runs,
        "done_early": done[0] / runs,
        "done_late": done[1] / runs,
    }


def _learner(task: str, agent: str, nu: float, episodes: int, seed: int) -> Any:
    usual: dict[str, Any] = {"lam": LAM, "sigma": SIGMA} if task == "engine" else {"lam": 1.0, "sigma": 0.1}
    if agent in BONUSES:
        return LSVIUCB(scale=BONUSES[agent], planned=episodes, seed=seed)
    if agent in GUESSED:
        return RLSVI(sigma=GUESSED[agent], seed=seed)
    if agent in EVIDENCE:
        return RLSVI(sigma=ByEvidence(EVIDENCE[agent]), seed=seed)
    if agent == "batch":
        return RLSVI(**usual, seed=seed)
    if agent == "gradient":
        return GradientRLSVI(**usual, seed=seed)
    return IncrementalRLSVI(**usual, nu=nu, keep_prior=agent == "incremental", seed=seed)


def _regret(agent: Any, problem: Problem, episodes: int) -> Floats:
    """What each of some more episodes loses along its path."""
    if not isinstance(agent, GradientRLSVI):
        return simulate(agent, problem, episodes, regret=False).path_regret
    agent.basis = agent.basis or problem.basis
    env = _Losing(problem)
    agent.learn(env, episodes=episodes)
    return np.array(env.lost)


class _Losing(FiniteMDPEnv):
    """A problem as an environment, that writes down what every action loses."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.mdp)
        self.lost: list[float] = []
        self._solution, self._at = problem.solution, (0, 0)

    def reset(self, **options: Any) -> Any:
        """A new episode."""
        found = super().reset(**options)
        self.lost.append(0.0)
        self._at = 0, int(found[0])
        return found

    def step(self, action: Any) -> Any:
        """One step of it."""
        h, s = self._at
        found = super().step(action)
        self.lost[-1] += float(self._solution.V[h, s] - self._solution.Q[h, s, int(action)])
        self._at = h + 1, int(found[0])
        return found


# ---- without end --------------------------------------------------------------------------------------------


DITHERING: dict[str, Callable[[int], Schedule]] = {
    "epsilon = .01": lambda steps: 0.01,
    "epsilon = .1": lambda steps: 0.1,
    "epsilon = .5": lambda steps: 0.5,
    "epsilon from 1 to 0": lambda steps: Linear(1.0, 0.0, max(steps // 2, 1)),
}


def living(*, agent: str, basis: str, states: int, steps: int, seed: int) -> dict[str, Any]:
    """Average reward in a river without end, as a share of the best, over ten parts of a life.

    agent : the noise of continual RLSVI ("paper", "whitened" or "independent"), or a name in DITHERING.
    basis : "table"; "places", 1, x and x^2 of the place x, for each action; or "random", six random functions of
        place and action, other ones for every seed, with which the regression may diverge.

    Also the step by which divergence was noticed, and at which a number ceased to be finite and life ended;
    infinite if never.
    """
    mdp = river_swim(states)
    creature = _creature(agent, basis, states, steps, seed)
    shares, noticed, ended = np.zeros(10), np.inf, np.inf
    for part in range(10):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DivergenceWarning)
            try:
                shares[part] = simulate_continual(creature, mdp, steps // 10).mean() / average_reward(mdp)
            except FactorError:
                ended = float(creature.steps)
        if caught and not np.isfinite(noticed):
            noticed = float(creature.steps)
        if np.isfinite(ended):
            break
    return {"part": np.arange(1, 11), "share": shares, "noticed": noticed, "ended": ended}


def _creature(agent: str, basis: str, states: int, steps: int, seed: int) -> ContinualAgent:
    usual: dict[str, Any] = {"gamma": GAMMA, "seed": seed}
    if basis != "table":
        usual["basis"] = features_of(basis, states, seed)
    if agent in DITHERING:
        return ContinualLSVI(explore=EpsilonGreedy(DITHERING[agent](steps)), **usual)
    noise: Any = agent
    return ContinualRLSVI(noise=noise, **usual)


def features_of(basis: str, states: int, seed: int) -> Basis:
    """Few functions of many places."""
    if basis == "random":
        return Dense(np.random.default_rng(seed).normal(size=(states, 2, 6)))
    return StateFeatures(lambda s: np.polynomial.legendre.legvander(2.0 * s / (states - 1) - 1.0, 2).ravel())


def wandering(*, noise: str, states: int, steps: int, seed: int) -> dict[str, Any]:
    """How consecutive perturbations are correlated, in units of their own standard deviation.

    Over the second half of `steps` steps of life, for by then Sigma changes slowly; the mean over the weights that
    were touched before.
    change : how much Sigma changes in a step, relative to itself: the largest change of a weight, on average over
        all steps of life, the first one too; largest : the largest of all.
    """
    mdp, kind, half = river_swim(states), noise, steps // 2
    creature = _creature(kind, "table", states, steps, seed)
    weights = 2 * states
    w, spread = np.zeros((steps, weights)), np.full((steps + 1, weights), creature.lam**-0.5)
    known = np.zeros(weights, dtype=np.bool_)
    for t in range(steps):
        simulate_continual(creature, mdp, 1)
        learner = creature._learner
        assert learner is not None
        if t == half:
            known = learner.memory.alive[0].copy()
        spread[t + 1] = creature.sigma * learner.factor.inv[0, :, 0]
        w[t] = (learner.values.theta[0] - learner.walk.mean[0]).ravel() / spread[t + 1]
    change = np.abs((spread[1:] / spread[:-1]) ** 2 - 1).max(axis=1)
    late = w[half:, known]
    return {
        "correlation": float((late[1:] * late[:-1]).mean() / (late**2).mean()),
        "variance": float((late**2).mean()),
        "change": float(change.mean()),
        "largest": float(change.max()),
    }
