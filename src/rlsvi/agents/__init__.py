"""Agents, one file an algorithm."""

from rlsvi.agents.bounded_rlsvi import BoundedRLSVI
from rlsvi.agents.contextual import ContextualBandit
from rlsvi.agents.continual import ContinualLSVI, ContinualRLSVI
from rlsvi.agents.explore import Boltzmann, EpsilonGreedy, Exponential, Greedy, Linear
from rlsvi.agents.gaussian_psrl import GaussianPSRL
from rlsvi.agents.gradient import GradientRLSVI
from rlsvi.agents.incremental import IncrementalRLSVI
from rlsvi.agents.known import OptimalPolicy
from rlsvi.agents.lsvi import LSVI
from rlsvi.agents.lsvi_ucb import LSVIUCB
from rlsvi.agents.noise import ByEvidence, InverseGamma
from rlsvi.agents.psrl import PSRL
from rlsvi.agents.rlsvi import RLSVI
from rlsvi.agents.stationary import DivergenceWarning
from rlsvi.agents.stationary_lsvi import StationaryLSVI
from rlsvi.agents.stationary_rlsvi import StationaryRLSVI
from rlsvi.agents.thompson import ThompsonSampling
from rlsvi.agents.ucbvi import UCBVI
from rlsvi.agents.ucrl2 import UCRL2
from rlsvi.agents.which import agent_for

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
    "Exponential",
    "GaussianPSRL",
    "GradientRLSVI",
    "Greedy",
    "IncrementalRLSVI",
    "InverseGamma",
    "Linear",
    "OptimalPolicy",
    "StationaryLSVI",
    "StationaryRLSVI",
    "ThompsonSampling",
    "agent_for",
]
