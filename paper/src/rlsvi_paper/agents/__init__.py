"""Agents that only figures of this package use; `rlsvi` finds them by name through entry points."""

from rlsvi_paper.agents.bounded_target import BoundedTargetRLSVI
from rlsvi_paper.agents.concurrent import learn_concurrently
from rlsvi_paper.agents.gaussian_psrl import GaussianPSRL
from rlsvi_paper.agents.homogeneous_rlsvi import HomogeneousRLSVI
from rlsvi_paper.agents.worst_case_rlsvi import WorstCaseRLSVI
