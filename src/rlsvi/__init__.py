"""Randomized least-squares value iteration: deep exploration with few episodes.

    problem = rlsvi.problems.chain(length=50, features=10)
    runs = rlsvi.compare({"RLSVI": rlsvi.RLSVI(), "LSVI": rlsvi.LSVI()}, problem, episodes=2000, seeds=20)
    print(runs)

Importing it is cheap: its parts are loaded on first use.
"""

# ruff: noqa: F403, F405
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rlsvi.envs import register

__version__ = "0.2.0"

if TYPE_CHECKING:
    from rlsvi import bases, callbacks, envs, mdp, paper, problems, shop, simulate, tetris, theory
    from rlsvi.agents import *
    from rlsvi.agents.finite.rlsvi import evidence
    from rlsvi.core.regression import Posterior
    from rlsvi.mdp import FiniteMDP
    from rlsvi.offline.recorder import record
    from rlsvi.offline.value import OfflineValue, value_of
    from rlsvi.problems import Problem
    from rlsvi.study.compare import compare
    from rlsvi.study.evaluation import Evaluation, evaluate
    from rlsvi.study.job import Job
    from rlsvi.study.runs import Runs
    from rlsvi.study.store import Store
    from rlsvi.study.sweep import sweep

__all__ = [
    "LSVI",
    "LSVIUCB",
    "PSRL",
    "RLSVI",
    "UCBVI",
    "UCRL2",
    "Boltzmann",
    "BootstrapRLSVI",
    "BoundedRLSVI",
    "BoundedTargetRLSVI",
    "ByEvidence",
    "ContextualBandit",
    "ContinualLSVI",
    "ContinualRLSVI",
    "DiscountedPSRL",
    "DivergenceWarning",
    "EnsembleRLSVI",
    "EpsilonGreedy",
    "Evaluation",
    "Exponential",
    "FiniteMDP",
    "GaussianPSRL",
    "GradientRLSVI",
    "Greedy",
    "HomogeneousRLSVI",
    "IncrementalRLSVI",
    "InverseGamma",
    "Job",
    "Linear",
    "NoProgressWarning",
    "OfflineValue",
    "OptimalPolicy",
    "Posterior",
    "Problem",
    "Runs",
    "StationaryLSVI",
    "StationaryRLSVI",
    "Store",
    "TableOrFeatures",
    "ThompsonSampling",
    "WorstCaseRLSVI",
    "agent_for",
    "bases",
    "callbacks",
    "compare",
    "envs",
    "evaluate",
    "evidence",
    "learn_concurrently",
    "load",
    "mdp",
    "paper",
    "problems",
    "record",
    "shop",
    "simulate",
    "sweep",
    "tetris",
    "theory",
    "value_of",
]

_MODULES = ("bases", "callbacks", "envs", "mdp", "paper", "problems", "shop", "simulate", "tetris", "theory")
_HOME = {name: "agents" for name in __all__ if name not in _MODULES} | {
    "Evaluation": "study.evaluation",
    "FiniteMDP": "mdp",
    "Job": "study.job",
    "OfflineValue": "offline.value",
    "Posterior": "core.regression",
    "Problem": "problems",
    "Runs": "study.runs",
    "Store": "study.store",
    "compare": "study.compare",
    "evaluate": "study.evaluation",
    "evidence": "agents.finite.rlsvi",
    "record": "offline.recorder",
    "sweep": "study.sweep",
    "value_of": "offline.value",
}


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
