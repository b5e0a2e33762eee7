"""Bases: which weights a state and an action touch, and through which features."""

from rlsvi.bases.basis import Basis, Features, FeatureTable
from rlsvi.bases.dense import Dense, agnostic, coherent
from rlsvi.bases.functions import ActionFeatures, StateFeatures, Transformer
from rlsvi.bases.tabular import Tabular
from rlsvi.bases.tetris import Tetris

__all__ = [
    "ActionFeatures",
    "Basis",
    "Dense",
    "FeatureTable",
    "Features",
    "StateFeatures",
    "Tabular",
    "Tetris",
    "Transformer",
    "agnostic",
    "coherent",
]
