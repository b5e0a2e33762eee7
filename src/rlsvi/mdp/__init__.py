"""Finite MDPs as tables, their exact solution, and one constructor a file."""

from rlsvi.mdp.chain import chain
from rlsvi.mdp.finite import FiniteMDP
from rlsvi.mdp.solve import Solution, backward_induction, evaluate

__all__ = ["FiniteMDP", "Solution", "backward_induction", "chain", "evaluate"]
