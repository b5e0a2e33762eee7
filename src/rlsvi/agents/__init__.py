"""Agents, one file an algorithm."""

from rlsvi.agents.explore import Boltzmann, EpsilonGreedy, Exponential, Greedy, Linear
from rlsvi.agents.lsvi import LSVI
from rlsvi.agents.noise import InverseGamma
from rlsvi.agents.rlsvi import RLSVI
from rlsvi.agents.stationary import DivergenceWarning
from rlsvi.agents.stationary_lsvi import StationaryLSVI
from rlsvi.agents.stationary_rlsvi import StationaryRLSVI

__all__ = [
    "LSVI",
    "RLSVI",
    "Boltzmann",
    "DivergenceWarning",
    "EpsilonGreedy",
    "Exponential",
    "Greedy",
    "InverseGamma",
    "Linear",
    "StationaryLSVI",
    "StationaryRLSVI",
]
