"""The runs of the suite: one job for each setting of an experiment, so that a killed suite goes on."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rlsvi.agents.contract import DivergenceWarning
from rlsvi.core.checks import positive, whole
from rlsvi.paper.bsuite.environment import BehaviourEnv
from rlsvi.paper.bsuite.package import episodes_of, ids_of, number_of, package_version
from rlsvi.paper.bsuite.players import SIMPLE, player
from rlsvi.study.compare import Comparison
from rlsvi.study.job import Job, version

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

    bsuite, sources : the versions of the package and of the user's own agent; results of others are not used.
    """
    env = BehaviourEnv(bsuite_id)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice on other settings: one is for all experiments here
        warnings.simplefilter("default", DivergenceWarning)
        Comparison({agent: player(agent)}, lambda: env, episodes).run(agent, seed)
    env.log()
    return {name: np.array([row[name] for row in env.rows]) for name in env.rows[0]}


def planned(
    agent: str, experiments: Sequence[str], *, settings: int | None = None, share: float = 1.0, seed: int = 0
) -> dict[str, list[Job]]:
    """Return the jobs of an agent, by experiment.

    settings : the largest number of settings of an experiment; None for all.
    share : the part of the episodes that the suite asks for, in (0, 1].
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
