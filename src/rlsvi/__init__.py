"""Randomized least-squares value iteration: deep exploration with few episodes.

    problem = rlsvi.problems.chain(length=50, features=10)
    runs = rlsvi.compare({"RLSVI": rlsvi.RLSVI(), "LSVI": rlsvi.LSVI()}, problem, episodes=2000, seeds=20)
    print(runs.summary())

Importing it is cheap: parts are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rlsvi.envs import register

__version__ = "0.2.0"

if TYPE_CHECKING:
    from rlsvi import (
        bases,
        envs,
        mdp,
        paper,
        problems,
        shop,
        simulate,
        tetris,
        theory,
    )
    from rlsvi.agents import (
        LSVI,
        LSVIUCB,
        PSRL,
        RLSVI,
        UCBVI,
        UCRL2,
        Boltzmann,
        BoundedRLSVI,
        ByEvidence,
        ContextualBandit,
        ContinualLSVI,
        ContinualRLSVI,
        DivergenceWarning,
        EpsilonGreedy,
        Exponential,
        GaussianPSRL,
        GradientRLSVI,
        Greedy,
        IncrementalRLSVI,
        InverseGamma,
        Linear,
        OptimalPolicy,
        StationaryLSVI,
        StationaryRLSVI,
        ThompsonSampling,
        agent_for,
        load,
    )
    from rlsvi.agents.evidence import evidence
    from rlsvi.core.posterior import Posterior
    from rlsvi.mdp import FiniteMDP
    from rlsvi.problems import Problem
    from rlsvi.study.compare import compare
    from rlsvi.study.evaluation import Evaluation, evaluate
    from rlsvi.study.job import Job
    from rlsvi.study.runs import Runs
    from rlsvi.study.store import Store
    from rlsvi.study.sweep import sweep
    from rlsvi.study.tensorboard import tensorboard

_HOME = {
    "LSVI": "agents",
    "LSVIUCB": "agents",
    "PSRL": "agents",
    "RLSVI": "agents",
    "UCBVI": "agents",
    "UCRL2": "agents",
    "Boltzmann": "agents",
    "BoundedRLSVI": "agents",
    "ByEvidence": "agents",
    "ContextualBandit": "agents",
    "ContinualLSVI": "agents",
    "ContinualRLSVI": "agents",
    "DivergenceWarning": "agents",
    "EpsilonGreedy": "agents",
    "Evaluation": "study.evaluation",
    "Exponential": "agents",
    "FiniteMDP": "mdp",
    "GaussianPSRL": "agents",
    "GradientRLSVI": "agents",
    "Greedy": "agents",
    "IncrementalRLSVI": "agents",
    "InverseGamma": "agents",
    "Job": "study.job",
    "Linear": "agents",
    "OptimalPolicy": "agents",
    "Posterior": "core.posterior",
    "Problem": "problems",
    "Runs": "study.runs",
    "StationaryLSVI": "agents",
    "StationaryRLSVI": "agents",
    "Store": "study.store",
    "ThompsonSampling": "agents",
    "agent_for": "agents",
    "compare": "study.compare",
    "evaluate": "study.evaluation",
    "evidence": "agents.evidence",
    "load": "agents",
    "sweep": "study.sweep",
    "tensorboard": "study.tensorboard",
}
_MODULES = (
    "bases",
    "envs",
    "mdp",
    "paper",
    "problems",
    "shop",
    "simulate",
    "tetris",
    "theory",
)

__all__ = [
    "LSVI",
    "LSVIUCB",
    "PSRL",
    "RLSVI",
    "UCBVI",
    "UCRL2",
    "Boltzmann",
    "BoundedRLSVI",
    "ByEvidence",
    "ContextualBandit",
    "ContinualLSVI",
    "ContinualRLSVI",
    "DivergenceWarning",
    "EpsilonGreedy",
    "Evaluation",
    "Exponential",
    "FiniteMDP",
    "GaussianPSRL",
    "GradientRLSVI",
    "Greedy",
    "IncrementalRLSVI",
    "InverseGamma",
    "Job",
    "Linear",
    "OptimalPolicy",
    "Posterior",
    "Problem",
    "Runs",
    "StationaryLSVI",
    "StationaryRLSVI",
    "Store",
    "ThompsonSampling",
    "agent_for",
    "bases",
    "compare",
    "envs",
    "evaluate",
    "evidence",
    "load",
    "mdp",
    "paper",
    "problems",
    "shop",
    "simulate",
    "sweep",
    "tensorboard",
    "tetris",
    "theory",
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
