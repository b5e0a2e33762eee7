"""Bases: which weights a state and an action use, and with which features."""

from rlsvi.bases.basis import Basis, Features, FeatureTable, MeasuredBasis, RowBasis, bound
from rlsvi.bases.dense import Dense, agnostic, coherent
from rlsvi.bases.fourier import Fourier
from rlsvi.bases.functions import ActionFeatures, StateFeatures, Transformer
from rlsvi.bases.hashed_tiles import HashedTiles
from rlsvi.bases.observed import Observed, default, of
from rlsvi.bases.pixel_pairs import PixelPairs
from rlsvi.bases.polynomial import Polynomial
from rlsvi.bases.radial import Radial
from rlsvi.bases.recommendation import Recommendation
from rlsvi.bases.tabular import Tabular
from rlsvi.bases.tiles import Tiles
from rlsvi.bases.waves import Waves

__all__ = [
    "ActionFeatures",
    "Basis",
    "Dense",
    "FeatureTable",
    "Features",
    "Fourier",
    "HashedTiles",
    "MeasuredBasis",
    "Observed",
    "PixelPairs",
    "Polynomial",
    "Radial",
    "Recommendation",
    "RowBasis",
    "StateFeatures",
    "Tabular",
    "Tiles",
    "Transformer",
    "Waves",
    "agnostic",
    "bound",
    "coherent",
    "default",
    "of",
]
