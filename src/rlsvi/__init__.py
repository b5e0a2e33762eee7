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
    from rlsvi import bases, envs, mdp, problems, simulate
    from rlsvi.agents import LSVI, RLSVI, Boltzmann, EpsilonGreedy, Exponential, Greedy, Linear
    from rlsvi.agents.saving import load
    from rlsvi.core.posterior import Posterior
    from rlsvi.mdp import FiniteMDP
    from rlsvi.problems import Problem
    from rlsvi.study.compare import compare
    from rlsvi.study.runs import Runs

_HOME = {
    "LSVI": "agents",
    "RLSVI": "agents",
    "Boltzmann": "agents",
    "EpsilonGreedy": "agents",
    "Exponential": "agents",
    "FiniteMDP": "mdp",
    "Greedy": "agents",
    "Linear": "agents",
    "Posterior": "core.posterior",
    "Problem": "problems",
    "Runs": "study.runs",
    "compare": "study.compare",
    "load": "agents.saving",
}
_MODULES = ("bases", "envs", "mdp", "problems", "simulate")

__all__ = [
    "LSVI",
    "RLSVI",
    "Boltzmann",
    "EpsilonGreedy",
    "Exponential",
    "FiniteMDP",
    "Greedy",
    "Linear",
    "Posterior",
    "Problem",
    "Runs",
    "bases",
    "compare",
    "envs",
    "load",
    "mdp",
    "problems",
    "simulate",
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
