"""How the practice agent sees observations: as rows that a history can keep, and as features of these rows."""

from copy import copy
from typing import Any, Self

import numpy as np

from rlsvi.agents.task import Task
from rlsvi.bases import Observed
from rlsvi.bases.binding import bound
from rlsvi.bases.layout import vector_of
from rlsvi.bases.observed import rows_of
from rlsvi.bases.scaling import grown, ranges_of
from rlsvi.core.compile import Floats


class Lookup:
    """Observations to rows, rows to features.

    With an `Observed` basis a row is the observation as it was; with any other it is its features. The bounds of
    a `given` basis are taken as they are; those of the environment's space only limit what is observed.
    """

    def __init__(self, basis: Any, table: bool, task: Task, given: bool) -> None:
        self.basis, self.table, self.task, self.actions = basis, table, task, task.actions
        scaled = isinstance(basis, Observed) and not table
        low, high = (basis.low, basis.high) if scaled else ([], [])
        self.ranges = ranges_of(low, high, observed=not given)
        self._at: Any = None

    def row(self, observation: Any) -> Floats:
        """An observation as a row, checked."""
        if isinstance(self.basis, Observed):
            return np.array(vector_of(self.basis.layout, observation))  # environments may use theirs again
        state = self.task.checked(observation)
        if self._at is None:
            features = bound(self.basis, self.task.states, self.actions, 1, state)
            if features.blocks != self.actions:
                raise ValueError(
                    f"BoundedRLSVI needs a basis with one block of weights per action, {self.basis!r} has "
                    f"{features.blocks}: use bases.StateFeatures, or StationaryRLSVI(basis=...)"
                )
            self._at = features.at
        return np.array(self._at(0, state)[1][0], dtype=np.float64)

    def features(self, x: Floats) -> Floats:
        """The features of rows, (N, d)."""
        if self.table or not isinstance(self.basis, Observed):
            return x
        return rows_of(self.basis.layout, self.basis.basis, self.ranges, x)

    def tried(self, x: Floats) -> Self:
        """Itself, if features of a row can be made: else an error says so, before anything is played."""
        trial = copy(self)
        trial.follow(x[None])
        trial.features(x[None])
        return self

    def follow(self, x: Floats) -> bool:
        """Let the ranges hold new rows; whether they changed, and with them all features."""
        ranges = grown(self.ranges, x[:, : len(self.ranges.low)])
        self.ranges = ranges or self.ranges
        return ranges is not None
