"""Validation of arguments that several families of agents share."""

from typing import Any

import numpy as np

from rlsvi.core.checks import shown
from rlsvi.core.compile import Floats


def checked_basis(basis: Any) -> None:
    """Raise an error if this is not a basis."""
    if basis is not None and (isinstance(basis, type) or not hasattr(basis, "bind")):
        raise TypeError(f"basis must be a basis such as rlsvi.bases.Tabular(), got {shown(basis)}")


def weights_shaped(prior_mean: float | Floats, shape: tuple[int, int, int]) -> Floats:
    """Return the prior mean of H x B x d weights, given a number, (weights,) or (H, weights)."""
    weights = shape[1] * shape[2]
    given = np.asarray(prior_mean, dtype=np.float64)
    try:
        return np.array(np.broadcast_to(given, (shape[0], weights))).reshape(shape)
    except ValueError:
        one = f"or of shape ({weights},)" + (f" or {(shape[0], weights)}" if shape[0] > 1 else "")
        raise ValueError(
            f"prior_mean must be a number, {one}: one mean per weight; got shape {given.shape}"
        ) from None
