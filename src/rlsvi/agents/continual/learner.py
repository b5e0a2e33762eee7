"""What a continual agent knows: a memory of which all periods are one, its posterior, and theta_t."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from rlsvi.agents.continual.step import Walk, advance, new_walk, row_values
from rlsvi.agents.finite.learner import Learner, broken
from rlsvi.agents.finite.value_iteration import Values, known_values
from rlsvi.core.compile import Bools, Floats, Words


@dataclass
class ContinualLearner(Learner):
    """The regression of one value function, for finitely many states or for observations of any kind."""

    walk: Walk = field(default_factory=lambda: new_walk(1, 1))
    gamma: float = 0.0
    prior_reach: float = 0.0  # the largest |prior mean|

    def begun(self, gamma: float) -> Self:
        """Begin with theta_0, the prior mean."""
        self.gamma, self.walk = gamma, new_walk(self.features.blocks, self.features.dim)
        self.values.theta[:] = self.walk.mean[:] = self.prior.mean
        self.prior_reach = float(np.abs(self.prior.mean).max())
        self.forget_mean()
        return self

    def row(self, observation: Any, legal: Bools) -> int:
        """The row of an observation, which becomes known if it was not."""
        place = self.look(0, observation, legal)
        if place.block is None:
            return place.row
        self.make_room()
        row = self._add(place)
        row_values(self.memory, self.values, row)
        return row

    def at(self, row: int) -> tuple[Floats, Bools]:
        """Q under theta_t of a known state, and which actions are legal."""
        return self.values.Q[0, self._pairs(row)], self.memory.barred[0, self._pairs(row)] == 0.0

    def advance(self, row: int, action: int, reward: float, following: int, kind: int, stream: Words) -> None:
        """Learn from a transition to the row `following`, or to the end if it is -1."""
        self.make_room()
        fine = advance(
            self.memory,
            self.factor,
            self.prior,
            self.values,
            self.walk,
            self.gamma,
            kind,
            np.array([row, following]),
            np.array([action]),
            np.array([reward]),
            following >= 0,
            np.empty(self.features.dim),
            stream,
        )
        if not fine:
            raise broken()

    def values_of(self, observation: Any, mean: bool) -> Floats:
        """Q under theta_t, or theta-bar_t, at an observation, also where nothing has been seen."""
        return self.action_values(self.mean_values() if mean else self.values, 0, observation)

    def forget_mean(self) -> None:
        """Forget the values of a mean that is no longer the latest."""
        self._mean: Values | None = None

    def mean_values(self) -> Values:
        """The values of theta-bar_t."""
        if self._mean is None:
            self._mean = self.blank_values()
            self._mean.theta[:] = self.walk.mean
            known_values(self.memory, self._mean, 0)
        return self._mean
