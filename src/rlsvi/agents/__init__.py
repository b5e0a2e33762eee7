"""Agents, one file an algorithm."""

from rlsvi.agents.explore import Boltzmann, EpsilonGreedy, Exponential, Greedy, Linear
from rlsvi.agents.lsvi import LSVI
from rlsvi.agents.rlsvi import RLSVI

__all__ = ["LSVI", "RLSVI", "Boltzmann", "EpsilonGreedy", "Exponential", "Greedy", "Linear"]
