"""Finite MDPs as tables, their exact solution, and one constructor a file."""

from rlsvi.mdp.chain import chain
from rlsvi.mdp.deep_sea import deep_sea
from rlsvi.mdp.dirichlet import dirichlet
from rlsvi.mdp.finite import FiniteMDP
from rlsvi.mdp.river_swim import river_swim
from rlsvi.mdp.solve import Solution, backward_induction, evaluate
from rlsvi.mdp.toy_text import from_gymnasium

__all__ = [
    "FiniteMDP",
    "Solution",
    "backward_induction",
    "chain",
    "deep_sea",
    "dirichlet",
    "evaluate",
    "from_gymnasium",
    "river_swim",
]
