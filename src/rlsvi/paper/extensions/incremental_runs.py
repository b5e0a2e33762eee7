"""The experiments on incremental RLSVI: functions that the jobs of its figure call."""

from typing import Any

import numpy as np

from rlsvi import problems
from rlsvi.agents import LSVIUCB, RLSVI, ByEvidence, GradientRLSVI, IncrementalRLSVI
from rlsvi.agents.finite.rlsvi import FiniteLearner
from rlsvi.core.compile import Floats
from rlsvi.envs import FiniteMDPEnv
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
    counts = {"work_early": work[0], "work_late": work[1], "done_early": done[0], "done_late": done[1]}
    return {"episode": at, "regret": total[at - 1] / runs, **{name: x / runs for name, x in counts.items()}}


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
        self._solution = problem.solution

    def reset(self, **options: Any) -> Any:
        """A new episode."""
        self.lost.append(0.0)
        return super().reset(**options)

    def step(self, action: Any) -> Any:
        """One step of it."""
        found = super().step(action)
        h, s = len(self._actions) - 1, self._path[-2]
        self.lost[-1] += float(self._solution.V[h, s] - self._solution.Q[h, s, int(action)])
        return found


def multiplications(agent: Any, skips: bool = True) -> float:
    """How many the next episode of an agent takes, to leading order, by the sizes of what it has in memory.

    skips : blocks of weights that no state has touched yet are left out, as they are. False: as if they were not.
    """
    if isinstance(agent, LSVIUCB):
        assert agent._learner is not None
        return float((agent._learner.mind.counts.into > 0).sum())  # probabilities times values
    if isinstance(agent, GradientRLSVI):
        return _of_steps(agent)
    memory = agent._learner.mind.memory
    blocks = float(memory.lives.sum() if skips else memory.alive.size)
    return _of_plan(agent._learner, blocks) + _of_episode(agent, blocks)


def _of_plan(learner: FiniteLearner, blocks: float) -> float:
    """Two triangles a block, the sums over next states, and the values of known states (value_iteration)."""
    memory, d = learner.mind.memory, learner.features.dim
    states, sums = float(memory.states.sum()), float(memory.sums.sum())
    return blocks * d**2 + (sums + states * learner.task.actions) * d


def _of_episode(agent: Any, blocks: float) -> float:
    """A rank-one update a step; if incremental the values of its states, and all factors if it forgets."""
    learner: Any = agent._learner
    d, H = learner.features.dim, learner.task.horizon
    work = float(2 * H * d**2)
    if isinstance(agent, IncrementalRLSVI):
        work += H * learner.task.actions * d
        if agent.step_sizes(agent.episodes, 1)[0] > 0:
            work += blocks * (d**3 / 3 if agent.keep_prior else d**2 / 2)
    return work


def _of_steps(agent: GradientRLSVI) -> float:
    """Eight per feature of the transition replayed, one per feature of what follows; a mean over transitions."""
    learner: Any = agent._learner
    kept = [learner.transitions(h) for h in range(learner.task.horizon)]
    touched = [[8 * len(seen.phi.value) + len(seen.following.value) for seen in past] for past in kept]
    return agent.updates * float(sum(np.mean(period) for period in touched if period))
