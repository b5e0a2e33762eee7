"""What BoundedRLSVI has learned: the history, the design, and the values that the sweeps go on from."""

import logging
from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.designs import Dense, Design, Table
from rlsvi.agents.gymnasium import Task, checked_observation
from rlsvi.agents.held_sweeps import Belief, Outcome, attainable, plan
from rlsvi.agents.history import END, History
from rlsvi.bases import Observed
from rlsvi.bases.layout import vector_of
from rlsvi.bases.observed import rows_of
from rlsvi.bases.scaling import grown, ranges_of
from rlsvi.core.checks import LARGEST
from rlsvi.core.compile import Bools, Floats, Words

log = logging.getLogger("rlsvi")


class Place(NamedTuple):
    """An observation as a row of the history, with its legal actions."""

    x: Floats
    legal: Bools


Step = tuple[Place, int, float, Place | None]


class Lookup:
    """Observations to rows, rows to features.

    With an `Observed` basis a row is the observation as it was; with any other it is its features.
    """

    def __init__(self, basis: Any, table: bool, task: Task) -> None:
        self.basis, self.table, self.task, self.actions = basis, table, task, task.actions
        observed = basis if isinstance(basis, Observed) and not table else None
        self.ranges = ranges_of(observed.low, observed.high) if observed else ranges_of([], [])
        self._at: Any = None

    def row(self, observation: Any) -> Floats:
        """An observation as a row, checked."""
        if isinstance(self.basis, Observed):
            return vector_of(self.basis.layout, observation)
        state = checked_observation(self.task, observation)
        if self._at is None:
            features = self.basis.bind(self.task.states, self.actions, 1, state)
            if features.blocks != self.actions:
                raise ValueError(
                    f"BoundedRLSVI needs a basis with one block of weights an action, {self.basis!r} has "
                    f"{features.blocks}: use bases.StateFeatures, or StationaryRLSVI(basis=...)"
                )
            self._at = features.at
        x = np.array(self._at(0, state)[1][0], dtype=np.float64)
        if not (np.abs(x) <= LARGEST).all():
            raise ValueError(
                f"features must be finite, got NaN, infinity or more than {LARGEST:g}: clean the data"
            )
        return x

    def features(self, x: Floats) -> Floats:
        """The features of rows, (N, d)."""
        if self.table or not isinstance(self.basis, Observed):
            return x
        return rows_of(self.basis.layout, self.basis.basis, self.ranges, x)

    def follow(self, x: Floats) -> bool:
        """Let the ranges hold new rows; whether they changed, and with them all features."""
        ranges = grown(self.ranges, x[:, : len(self.ranges.low)])
        self.ranges = ranges or self.ranges
        return ranges is not None


class BoundedLearner:
    """One regression over all that has happened."""

    def __init__(self, lookup: Lookup, width: int, prior_mean: float, alike: float) -> None:
        self.lookup, self.prior_mean, self.alike = lookup, prior_mean, alike
        self.history = History(width, lookup.actions)
        self.design: Design | None = None
        self.theta: Floats | None = None  # (A, d), (A, rows) of a table; None: the prior mean
        self.Q = np.zeros((0, lookup.actions))  # of all rows: where the sweeps go on from
        self.rescalings = 0

    def values(self, theta: Floats | None, place: Place) -> Floats:
        """Q of every action."""
        if theta is None:
            return np.full(self.lookup.actions, self.prior_mean)
        if self.lookup.table:
            i = self.history.find(place.x)
            known = i is not None and i < theta.shape[1]
            return theta[:, i] if known else np.full(self.lookup.actions, self.prior_mean)
        Q: Floats = theta @ self.lookup.features(place.x[None])[0]
        return Q

    def learn(self, steps: list[Step]) -> None:
        """Take transitions in. The design is then as if the ranges had always been what they are now."""
        history, before = self.history, len(self.history.x)
        places = []
        for place, action, reward, following in steps:
            row = history.row(*place)
            places.append(history.add(row, action, reward, END if following is None else history.row(*following)))
        new = history.x[before:]
        self.Q = np.concatenate([self.Q, self._begin(new)])
        if self.lookup.follow(new):
            self.rescalings += before > 0
            if before:
                log.info("the observed range grew: features of %d observations worked out anew", len(history.x))
            self.design = None
        if self.design is None:
            self.build()
        else:
            self.design.extend(self.lookup.features(new))
            at, kept = np.array(places, dtype=np.int64), history.transitions
            self.design.add(kept.row[at], kept.action[at], np.ones(len(places)))

    def _begin(self, new: Floats) -> Floats:
        """What the weights acted on say of new rows."""
        if self.theta is None or self.lookup.table or not len(new):
            return np.full((len(new), self.lookup.actions), self.prior_mean)
        return self.lookup.features(new) @ self.theta.T

    def build(self) -> None:
        """The design, from the history alone."""
        actions, steps = self.lookup.actions, self.history.transitions
        phi = self.lookup.features(self.history.x)
        self.design = Table(actions) if self.lookup.table else Dense(actions, phi.shape[1], self.alike)
        self.design.extend(phi)
        self.design.add(steps.row, steps.action, steps.times)

    def plan(self, noise: Any, bounds: Any, stream: Words | None, cap: int, tolerance: float) -> Outcome:
        """A sample of the posterior, or without a stream its mean. `noise`: ridge, sigma, shape, scale, gamma."""
        assert self.design is not None
        belief = Belief(np.full((self.lookup.actions, self.design.dim), self.prior_mean), *noise)
        if bounds == "attainable":
            bounds = attainable(self.history, belief.gamma)
        return plan(self.history, self.design, belief, self.Q, stream, bounds or (-np.inf, np.inf), cap, tolerance)
