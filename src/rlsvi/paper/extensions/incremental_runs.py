"""The experiments on incremental RLSVI: functions that the jobs of its figure call."""

from typing import Any

import numpy as np

from rlsvi import problems
from rlsvi.agents import LSVIUCB, RLSVI, ByEvidence, GradientRLSVI, IncrementalRLSVI
from rlsvi.core.compile import Floats
from rlsvi.envs import FiniteMDPEnv
from rlsvi.paper.extensions.costs import multiplications
from rlsvi.paper.recommendation.experiments import LAM, LIKES, SIGMA, instance
from rlsvi.problems import Problem
from rlsvi.simulate import simulate

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
        learner, lost = _learner(task, agent, nu, episodes, 1000 * seed + run), []
        for part, count in enumerate((episodes // 10, episodes - episodes // 10)):
            lost.append(_regret(learner, problem, count))
            work[part] += multiplications(learner, skips=False)
            done[part] += multiplications(learner)
        total += np.cumsum(np.concatenate(lost))
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
