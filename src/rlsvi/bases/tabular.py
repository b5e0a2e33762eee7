"""Phi = I: one weight for each state and action, learning without generalisation."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rlsvi.bases.basis import Features, from_table
from rlsvi.core.archive import storable
from rlsvi.core.checks import shown


@storable
@dataclass(frozen=True)
class Tabular:
    """One weight per state and action, for observations 0..S-1.

    Examples
    --------
    >>> import rlsvi
    >>> features = rlsvi.bases.Tabular().bind(states=10, actions=2, horizon=5, example=0)
    >>> features.blocks, features.dim
    (20, 1)
    """

    def bind(self, states: int | None, actions: int, horizon: int, example: Any) -> Features:
        """Return features with a block of one number for each state and action."""
        if states is None:
            raise ValueError(
                f"the tabular basis needs observations that are numbered 0..S-1, states (a Discrete space), "
                f"not {shown(example)}: use bases.StateFeatures, or wrap the environment"
            )
        block = np.arange(states * actions, dtype=np.int32).reshape(states, actions)
        return from_table(np.ones((1, states, actions, 1)), block, states * actions, "Tabular")
