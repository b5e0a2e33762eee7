"""Finite MDPs as tables, their exact solution, and problems of the literature."""

from rlsvi.mdp.examples import chain, deep_sea, dirichlet, river_swim
from rlsvi.mdp.finite import FiniteMDP
from rlsvi.mdp.recommendation import Taste, draw_taste, myopic_products, recommendation
from rlsvi.mdp.solve import Solution, average_reward, backward_induction, evaluate, myopic_values
from rlsvi.mdp.toy_text import from_gymnasium
