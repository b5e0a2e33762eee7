"""Agents: one file per algorithm, in a folder where a family shares its store."""

from rlsvi.agents.contextual_bandit import ContextualBandit
from rlsvi.agents.continual import ContinualLSVI, ContinualRLSVI
from rlsvi.agents.contract import DivergenceWarning
from rlsvi.agents.default import agent_for
from rlsvi.agents.diagnosis import NoProgressWarning
from rlsvi.agents.explore import Boltzmann, EpsilonGreedy, Exponential, Greedy, Linear
from rlsvi.agents.files import load
from rlsvi.agents.finite.bootstrap import BootstrapRLSVI
from rlsvi.agents.finite.ensemble import EnsembleRLSVI
from rlsvi.agents.finite.gradient import GradientRLSVI
from rlsvi.agents.finite.incremental import IncrementalRLSVI
from rlsvi.agents.finite.rlsvi import LSVI, RLSVI
from rlsvi.agents.optimal_policy import OptimalPolicy
from rlsvi.agents.practice.bounded_rlsvi import BoundedRLSVI
from rlsvi.agents.stationary import StationaryLSVI, StationaryRLSVI
from rlsvi.agents.table_or_features import TableOrFeatures
from rlsvi.agents.tabular.discounted_psrl import DiscountedPSRL
from rlsvi.agents.tabular.lsvi_ucb import LSVIUCB
from rlsvi.agents.tabular.psrl import PSRL
from rlsvi.agents.tabular.ucbvi import UCBVI
from rlsvi.agents.tabular.ucrl2 import UCRL2
from rlsvi.agents.thompson_sampling import ThompsonSampling
from rlsvi.core.regression import ByEvidence, InverseGamma
