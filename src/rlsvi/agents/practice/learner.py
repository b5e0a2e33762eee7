"""What BoundedRLSVI has learned: the history, the design, and the values that the sweeps go on from."""

import logging
import warnings
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np

from rlsvi.agents.practice.cell_prior import cell_prior
from rlsvi.agents.practice.history import END, History
from rlsvi.agents.practice.regression import Dense, Design, Table
from rlsvi.agents.practice.value_iteration import Belief, Outcome, attainable, plan, targets, usual_reward
from rlsvi.agents.stationary.agent import DivergenceWarning
from rlsvi.agents.task import Task, checked_observation
from rlsvi.bases import Observed
from rlsvi.bases.layout import vector_of
from rlsvi.bases.observed import rows_of
from rlsvi.bases.scaling import grown, ranges_of
from rlsvi.core.checks import LARGEST
from rlsvi.core.compile import Bools, Floats, Words
from rlsvi.core.regression import FactorError

FAR = 10  # times the largest value that can be meant: larger ones have diverged
TRIALS = 6  # ridges, each ten times the one before, until values that diverge are given up
log = logging.getLogger("rlsvi")


class Place(NamedTuple):
    """An observation as a row of the history, with its legal actions."""

    x: Floats
    legal: Bools


Step = tuple[Place, int, float, Place | None]


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


class Prior(NamedTuple):
    """What is believed of the weights before anything has happened."""

    mean: float | None  # None: 0, or of a table by evidence what the cells tried so far have
    alike: float
    by_evidence: bool  # whether the ridge of a table is that of the evidence (cell_prior.py)
    in_usual_rewards: bool  # whether the scale of the noise counts in squares of the usual reward


class BoundedLearner:
    """One regression over all that has happened."""

    def __init__(self, lookup: Lookup, width: int, prior: Prior) -> None:
        self.lookup, self.prior, self.begin = lookup, prior, prior.mean or 0.0
        self.history = History(width, lookup.actions)
        self.design: Design | None = None
        self.theta: Floats | None = None  # (A, d), (A, rows) of a table; None: the prior mean
        self.Q = np.zeros((0, lookup.actions))  # of all rows: where the sweeps go on from
        self.rescalings = self.recoveries = 0

    def values(self, theta: Floats | None, place: Place) -> Floats:
        """Q of every action."""
        if theta is None:
            return np.full(self.lookup.actions, self.begin)
        if self.lookup.table:
            i = self.history.find(place.x)
            known = i is not None and i < theta.shape[1]
            return theta[:, i] if known else np.full(self.lookup.actions, self.begin)
        Q: Floats = theta @ self.lookup.features(place.x[None])[0]
        return Q

    def after(self, steps: list[Step]) -> "BoundedLearner":
        """A learner that has taken these transitions in; this one stays as it is, whatever happens on the way."""
        later = copy(self)
        later.lookup, later.history = copy(self.lookup), self.history.copy()
        later.design = self.design.copy() if self.design is not None else None
        later._learn(steps)
        return later

    def _learn(self, steps: list[Step]) -> None:
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
            return np.full((len(new), self.lookup.actions), self.begin)
        return self.lookup.features(new) @ self.theta.T

    def build(self) -> None:
        """The design, from the history alone."""
        actions, steps = self.lookup.actions, self.history.transitions
        phi = self.lookup.features(self.history.x)
        self.design = Table(actions) if self.lookup.table else Dense(actions, phi.shape[1], self.prior.alike)
        self.design.extend(phi)
        self.design.add(steps.row, steps.action, steps.times)

    def plan(self, noise: Any, bounds: Any, stream: Words | None, cap: int, tolerance: float) -> Outcome:
        """A sample of the posterior, or without a stream its mean. `noise`: ridge, sigma, shape, scale, gamma."""
        assert self.design is not None
        belief, gamma = self._belief(*noise), noise[-1]
        within = attainable(self.history, gamma) if bounds == "attainable" else bounds or (-np.inf, np.inf)
        largest = self._largest(gamma, within)
        belief, Q = self._by_evidence(belief, within), self.Q
        for trial in range(TRIALS):
            with np.errstate(over="ignore", invalid="ignore"):
                outcome = plan(self.history, self.design, belief, Q, stream, within, cap, tolerance)
            if not diverged(outcome, largest):
                return outcome._replace(recoveries=trial)
            least, most = outcome.span
            warnings.warn(
                f"the values diverged ({least:.3g} to {most:.3g}, which no policy has): planned anew with ten "
                "times the ridge; a larger lam, or bounds of the targets, would prevent it",
                DivergenceWarning,
                stacklevel=2,
            )
            belief, Q = belief._replace(ridge=10 * belief.ridge), np.full(Q.shape, self.begin)
        raise FactorError(
            f"the values diverge, with a ridge of {belief.ridge / 10:g} too: scale the features down, or put the "
            'targets into bounds="attainable"'
        )

    def _largest(self, gamma: float, bounds: tuple[float, float]) -> float:
        """The largest value that can be meant: as much as the largest reward in every step, or what was given."""
        steps = self.history.transitions
        longest = min(1 / max(1 - gamma, 1e-300), float(steps.times.sum()))
        size = float(np.abs(steps.reward).max()) or 1.0
        return max(abs(v) for v in (size * longest, self.begin, *bounds) if np.isfinite(v))

    def _belief(self, ridge: float, sigma: float, shape: float, scale: float, gamma: float) -> Belief:
        assert self.design is not None
        mean = np.full((self.lookup.actions, self.design.dim), self.begin)
        if self.prior.in_usual_rewards:
            scale *= usual_reward(self.history) ** 2
        return Belief(mean, ridge, sigma, shape, scale, gamma)

    def _by_evidence(self, belief: Belief, bounds: tuple[float, float]) -> Belief:
        """The belief, for a table with the prior that the data speak for."""
        if not (self.lookup.table and self.prior.by_evidence):
            return belief
        b = np.clip(targets(self.history, self.Q, belief.gamma), *bounds)
        noise, unit = (belief.sigma, belief.shape, belief.scale), usual_reward(self.history)
        level, ridge = cell_prior(self.history, b, self.prior.mean, unit, *noise)
        return belief._replace(mean=np.full_like(belief.mean, level), ridge=ridge)


def diverged(outcome: Outcome, largest: float) -> bool:
    """Whether values are no longer finite, or far larger than any that can be meant."""
    if not np.isfinite(outcome.theta).all() or not np.isfinite(outcome.Q).all():
        return True
    return max(abs(v) for v in outcome.span) > FAR * largest
