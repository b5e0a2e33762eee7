"""Finite MDPs as tables, their exact solution, and one constructor per file."""

from rlsvi.mdp.chain import chain
from rlsvi.mdp.deep_sea import deep_sea
from rlsvi.mdp.dirichlet import dirichlet
from rlsvi.mdp.finite import FiniteMDP
from rlsvi.mdp.recommendation import Taste, draw_taste, myopic_products, recommendation
from rlsvi.mdp.river_swim import river_swim
from rlsvi.mdp.solve import Solution, average_reward, backward_induction, evaluate, myopic_values
from rlsvi.mdp.toy_text import from_gymnasium
