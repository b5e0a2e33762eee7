"""Randomized least-squares value iteration: deep exploration with few episodes.

    problem = rlsvi.problems.chain(length=50, features=10)
    runs = rlsvi.compare({"RLSVI": rlsvi.RLSVI(), "LSVI": rlsvi.LSVI()}, problem, episodes=2000, seeds=20)
    print(runs.summary())

Importing it is cheap: parts are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rlsvi.envs import register

__version__ = "0.1.0"

if TYPE_CHECKING:
    from rlsvi import bases, envs, mdp, paper, problems, simulate, simulate_tetris, tetris
    from rlsvi.agents import (
        LSVI,
        RLSVI,
        Boltzmann,
        DivergenceWarning,
        EpsilonGreedy,
        Exponential,
        Greedy,
        InverseGamma,
        Linear,
        StationaryLSVI,
        StationaryRLSVI,
    )
    from rlsvi.agents.saving import load
    from rlsvi.core.posterior import Posterior
    from rlsvi.mdp import FiniteMDP
    from rlsvi.problems import Problem
    from rlsvi.study.compare import compare
    from rlsvi.study.job import Job
    from rlsvi.study.runs import Runs
    from rlsvi.study.store import Store
    from rlsvi.study.sweep import sweep

_HOME = {
    "LSVI": "agents",
    "RLSVI": "agents",
    "Boltzmann": "agents",
    "DivergenceWarning": "agents",
    "EpsilonGreedy": "agents",
    "Exponential": "agents",
    "FiniteMDP": "mdp",
    "Greedy": "agents",
    "InverseGamma": "agents",
    "Job": "study.job",
    "Linear": "agents",
    "Posterior": "core.posterior",
    "Problem": "problems",
    "Runs": "study.runs",
    "StationaryLSVI": "agents",
    "StationaryRLSVI": "agents",
    "Store": "study.store",
    "compare": "study.compare",
    "load": "agents.saving",
    "sweep": "study.sweep",
}
_MODULES = ("bases", "envs", "mdp", "paper", "problems", "simulate", "simulate_tetris", "tetris")

__all__ = [
    "LSVI",
    "RLSVI",
    "Boltzmann",
    "DivergenceWarning",
    "EpsilonGreedy",
    "Exponential",
    "FiniteMDP",
    "Greedy",
    "InverseGamma",
    "Job",
    "Linear",
    "Posterior",
    "Problem",
    "Runs",
    "StationaryLSVI",
    "StationaryRLSVI",
    "Store",
    "bases",
    "compare",
    "envs",
    "load",
    "mdp",
    "paper",
    "problems",
    "simulate",
    "simulate_tetris",
    "sweep",
    "tetris",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"rlsvi.{name}")
    if name in _HOME:
        value = getattr(import_module(f"rlsvi.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'rlsvi' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


register()
