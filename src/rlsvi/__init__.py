"""Randomized least-squares value iteration: deep exploration with few episodes.

    problem = rlsvi.problems.chain(length=50, features=10)
    runs = rlsvi.compare({"RLSVI": rlsvi.RLSVI(), "LSVI": rlsvi.LSVI()}, problem, episodes=2000, seeds=20)
    print(runs)

Importing it is cheap: its parts are loaded on first use.
"""

# ruff: noqa: F403
from typing import TYPE_CHECKING

from rlsvi._lazy import lazy_exports

__version__ = "0.3.0.dev0"

if TYPE_CHECKING:
    from rlsvi import bases, callbacks, envs, mdp, problems, simulate
    from rlsvi.agents import *
    from rlsvi.agents.finite.evidence import evidence
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

__getattr__, __dir__, __all__ = lazy_exports(__name__)
__getattr__("envs").register()
