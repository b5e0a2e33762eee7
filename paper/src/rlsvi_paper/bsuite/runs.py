"""The runs of the suite: one job for each setting of an experiment, so that a killed suite goes on."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from rlsvi import agents
from rlsvi.agents.agent import Agent
from rlsvi.agents.contract import DivergenceWarning
from rlsvi.core.checks import instead, positive, whole
from rlsvi.core.compile import Floats
from rlsvi.study.compare import Comparison
from rlsvi.study.executors import Executor, executor
from rlsvi.study.job import Job, version
from rlsvi.study.store import Store
from rlsvi.study.sweep import SweepError, compute
from rlsvi_paper.bsuite.package import BehaviourEnv, episodes_of, ids_of, number_of, package_version
from rlsvi_paper.bsuite.scores import Score, score_run, write

SECONDS = {  # of an episode of the default agent, about
    "bandit": 0.001,
    "catch": 0.004,
    "mountain_car": 0.13,
    "cartpole": 0.1,
    "deep_sea": 0.02,
    "cartpole_swingup": 0.25,
    "umbrella_length": 0.06,
    "umbrella_distract": 0.05,
    "discounting_chain": 0.03,
    "memory_len": 0.006,
    "memory_size": 0.006,
}
SIMPLER = 0.1  # of these seconds, for the agents to compare with


def play_setting(
    *, bsuite_id: str, agent: str, episodes: int, seed: int, bsuite: str, sources: str
) -> Mapping[str, Any]:
    """Let an agent learn one setting, and return the rows that its environment logged.

    Parameters
    ----------
    bsuite, sources
        The versions of the package and of the user's own agent; results of others are not used.
    """
    env = BehaviourEnv(bsuite_id)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice on other settings: one is for all experiments here
        warnings.simplefilter("default", DivergenceWarning)
        Comparison({agent: player(agent)}, lambda: env, episodes).run(agent, seed)
    env.log()
    return {name: np.array([row[name] for row in env.rows]) for name in env.rows[0]}


def plan(
    agent: str, experiments: Sequence[str], *, settings: int | None = None, share: float = 1.0, seed: int = 0
) -> dict[str, list[Job]]:
    """Return the jobs of an agent, by experiment.

    Parameters
    ----------
    settings
        The largest number of settings of an experiment; None for all.
    share
        The part of the episodes that the suite asks for, in (0, 1].
    """
    if settings is not None:
        whole("settings", settings, 1)
    if positive("share", share) > 1:
        raise ValueError(f"share must be at most 1, got {share}")
    whole("seed", seed, 0, 10**9)
    player(agent)  # raises an error if there is none
    module, colon, _ = agent.partition(":")
    what = {"agent": agent, "bsuite": package_version(), "sources": version(module) if colon else ""}
    jobs: dict[str, list[Job]] = {}
    for experiment in experiments:
        episodes = max(round(share * episodes_of(experiment)), 1)
        kind = experiment.removesuffix("_noise").removesuffix("_scale").removesuffix("_stochastic")
        cost = episodes * SECONDS.get(kind, 0.1) * (SIMPLER if agent in SIMPLE and agent != "default" else 1)
        jobs[experiment] = [
            Job.of(
                play_setting,
                cost,
                bsuite_id=each,
                episodes=episodes,
                seed=1000 * seed + number_of(each),
                **what,
            )
            for each in ids_of(experiment, settings)
        ]
    return jobs


Plans = Mapping[str, Mapping[str, Sequence[Job]]]  # jobs by agent and experiment


def play(
    plans: Plans,
    folder: Path,
    *,
    workers: int | None = None,
    by: Executor | None = None,
    advance: Callable[[Job, bool], None] = lambda job, fresh: None,
    settings: Mapping[str, Any],
) -> list[Score]:
    """Compute the settings that have no results in `folder` yet, and write and return the scores of all.

    If settings fail, the scores of the others are written before the error is raised. An experiment has a score as
    soon as one of its settings is finished.
    """
    store = Store(folder / "store")
    wanted = {job.name: job for jobs in plans.values() for its in jobs.values() for job in its}
    failure = None
    try:
        compute(wanted, store, by or executor("processes", workers), advance=advance)
    except SweepError as error:
        failure = error
    scores = []
    for agent, experiments in plans.items():
        for experiment, jobs in experiments.items():
            if tables := [table for job in jobs if (table := store.read(job)) is not None]:
                scores.append(score_run(agent, experiment, tables))
    if scores:
        write(scores, folder, settings)
    if failure is not None:
        raise failure
    return scores


# ---- The agents that play, and two simple ones to compare with ------------------------------------------------


class RandomPlay:
    """Every action with the same probability."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def learn(self, env: Any, episodes: int) -> None:
        """Play."""
        for _ in range(episodes):
            play_episode(env, lambda observation: int(self.rng.integers(env.action_space.n)))


class QLearning:
    """Tabular Q-learning (Watkins 1989): a row for each observation that was seen, epsilon-greedy.

    Values begin at 0. The discount is 0.99, epsilon 0.05, and the learning rate of the n-th visit n^-0.6, at
    least 0.02.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.tables: dict[bytes, tuple[Floats, Floats]] = {}

    def learn(self, env: Any, episodes: int) -> None:
        """Play, and learn from every step."""
        for _ in range(episodes):
            play_episode(env, lambda observation: self._act(observation, env.action_space.n), self._update)

    def _row(self, observation: Any, actions: int) -> tuple[Floats, Floats]:
        """Return the values of an observation, and the number of visits."""
        return self.tables.setdefault(observation.tobytes(), (np.zeros(actions), np.zeros(actions)))

    def _act(self, observation: Any, actions: int) -> int:
        Q, _ = self._row(observation, actions)
        if self.rng.random() < 0.05:
            return int(self.rng.integers(actions))
        return int(self.rng.choice(np.flatnonzero(Q == Q.max())))

    def _update(self, observation: Any, action: int, reward: float, following: Any) -> None:
        Q, visits = self.tables[observation.tobytes()]
        visits[action] += 1
        later = 0.0 if following is None else self._row(following, len(Q))[0].max()
        Q[action] += max(visits[action] ** -0.6, 0.02) * (reward + 0.99 * later - Q[action])


def play_episode(
    env: Any,
    act: Callable[[Any], int],
    update: Callable[[Any, int, float, Any], None] = lambda observation, action, reward, following: None,
) -> None:
    """Play an episode; `update` is told each step, and None as the observation that follows the last one."""
    observation, _ = env.reset()
    over = False
    while not over:
        action = act(observation)
        following, reward, terminated, truncated, _ = env.step(action)
        update(observation, action, reward, None if terminated else following)
        observation, over = following, terminated or truncated


SIMPLE: dict[str, Any] = {"default": agents.agent_for, "random": RandomPlay, "q-learning": QLearning}


def player(name: str) -> Any:
    """Return the class, or the function of `env` and `seed`, that makes the agent of a name.

    A name is one of SIMPLE, an agent that this library exports, or module:name.
    """
    module, colon, thing = name.partition(":")
    if colon:
        return getattr(import_module(module), thing)
    kind = SIMPLE.get(name, getattr(agents, name, None))
    if name in SIMPLE or (isinstance(kind, type) and issubclass(kind, Agent)):
        return kind
    there = (
        f"there are {', '.join(SIMPLE)}, the agents of this library by their classes, such as DiscountedPSRL, and "
        "module:name of your own"
    )
    kinds = [each for each, kind in vars(agents).items() if isinstance(kind, type) and issubclass(kind, Agent)]
    raise ValueError(f"unknown agent {name!r} in --agents: {instead(name, [*SIMPLE, *kinds], there)}")
