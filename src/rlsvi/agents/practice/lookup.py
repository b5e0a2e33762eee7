"""How the practice agent represents observations: as rows that a history can store, and as features of these rows.

The resulting policy can be exported as plain arrays.
"""

from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from rlsvi.agents.contract import warn
from rlsvi.bases import Fourier, Observed, PixelPairs, Radial, Waves
from rlsvi.bases.basis import bound
from rlsvi.bases.fourier import frequencies
from rlsvi.bases.layout import Layout, vector_of
from rlsvi.bases.observed import CROSSED, rows_of
from rlsvi.bases.pixel_pairs import SINGLE, pairs_of
from rlsvi.bases.radial import centres_of
from rlsvi.bases.scaling import Seen, grown, ranges_of, seen_in, spread
from rlsvi.bases.waves import directions
from rlsvi.core.compile import Floats
from rlsvi.core.machine import blocks
from rlsvi.envs.task import Task

TOLERATED = 1e-3  # how far beyond a bound a number may lie without a warning, as a part of the width
OWN = Fourier | PixelPairs | Radial | Waves
Policy = tuple[Layout, dict[str, Any]]  # the layout of an observation, and arrays


class Lookup:
    """The mapping from observations to rows, and from rows to features.

    With an `Observed` basis, a row is the observation itself; with any other, it is its features. The bounds of
    a `given` basis are used as they are; those of the environment's space only limit the observed range.
    """

    def __init__(self, basis: Any, table: bool, task: Task, given: bool) -> None:
        self.basis, self.table, self.task, self.actions = basis, table, task, task.actions
        scaled = isinstance(basis, Observed) and not table
        low, high = (basis.low, basis.high) if scaled else ([], [])
        self.ranges = ranges_of(low, high, observed=not given)
        self.waves = basis.basis if scaled and isinstance(basis.basis, Waves) and basis.layout.measured else None
        self.threads = scaled and isinstance(basis.basis, OWN)  # a user's function may not be made for threads
        self.pixels = basis.basis if scaled and isinstance(basis.basis, PixelPairs) else None
        self._at: Any = None

    @property
    def centred(self) -> bool:
        """Whether numbers are scaled by what all data have in common, which changes when the data have doubled."""
        return self.waves is not None or self.pixels is not None

    def row(self, observation: Any) -> Floats:
        """Return an observation as a row, after checking it."""
        if isinstance(self.basis, Observed):
            x = np.array(vector_of(self.basis.layout, observation))  # environments may reuse their array
            if not self.centred:  # these do not stop at the bounds
                warn_outside(x[: len(self.ranges.least)], self.ranges.least, self.ranges.most)
            return x
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
        """Return the features of rows, (N, d)."""
        if self.table or not isinstance(self.basis, Observed):
            return x
        return rows_of(self.basis.layout, self.waves or self.basis.basis, self.ranges, x)

    def values(self, theta: Floats, x: Floats) -> Floats:
        """Return the values of rows and all actions, (N, A), by weights (A, d)."""
        return np.concatenate([self.features(x[rows]) @ theta.T for rows in blocks(len(x))])

    def tried(self, x: Floats) -> int:
        """Return the number of features of x, or raise an error before the first step if there are none."""
        trial = copy(self)
        trial.follow(x[None])
        trial.rescale(trial.seen(x[None]))
        return int(trial.features(x[None]).shape[1])

    def follow(self, x: Floats) -> bool:
        """Extend the ranges to contain new rows. Return whether they changed, and with them all features."""
        if self.centred:
            return False
        ranges = grown(self.ranges, x[:, : len(self.ranges.low)])
        self.ranges = ranges or self.ranges
        return ranges is not None

    def seen(self, x: Floats) -> Seen:
        """Return what scaling depends on, of all rows x."""
        return seen_in(x[:, : len(self.ranges.low)])

    def rescale(self, seen: Seen) -> None:
        """Scale waves and pictures by the mean and spread of all rows, as far as no bounds were given."""
        spreading = self.pixels.spread if self.pixels is not None else spread
        if self.centred:
            self.ranges = spreading(self.ranges, seen)

    def with_waves(self, features: int, length: float) -> Self:
        """Return a lookup with other waves."""
        assert self.waves is not None
        other = copy(self)
        other.waves = replace(self.waves, features=features, length=length)
        return other


def warn_outside(x: Floats, least: Floats, most: Floats) -> None:
    """Warn if numbers lie beyond the bounds that their space declares, by more than a thousandth of the width."""
    if (x >= least).all() and (x <= most).all():
        return
    slack = TOLERATED * np.where(np.isfinite(most - least), most - least, 0.0)
    if ((x < least - slack) | (x > most + slack)).any():
        warn(  # the same words every time, so that Python shows them once
            "observations lie outside of the bounds of the observation space, and are taken as if they lay on the "
            "bounds: correct observation_space, or give the environment another one by "
            "gymnasium.wrappers.TransformObservation(env, lambda x: x, space)",
        )


def counted_policy(task: Task, lookup: Lookup, history: Any, theta: Floats) -> Policy:
    """Return the policy of a table over several discrete numbers."""
    layout = lookup.basis.layout
    actions = np.full((1, int(np.prod(layout.counts))), task.first_action, dtype=np.int64)  # if unknown
    for x, legal, Q in zip(history.x, history.legal, theta.T, strict=False):
        cell = np.ravel_multi_index(tuple(x.astype(np.int64)), tuple(layout.counts))
        actions[0, cell] = task.first_action + int(np.argmax(np.where(legal, Q, -np.inf)))
    return layout, {"actions": actions}


def feature_policy(task: Task, lookup: Lookup, history: Any, theta: Floats) -> Policy:
    """Return the weights and everything needed to compute the features."""
    basis = lookup.basis
    if not isinstance(basis, Observed) or (basis.layout.measured and not isinstance(basis.basis, OWN)):
        shown = basis.basis if isinstance(basis, Observed) else basis
        raise ValueError(
            f"the basis {shown!r} cannot be exported, only a table, bases.Fourier(), PixelPairs(), Radial() or "
            "Waves(): save the agent instead, and load it by rlsvi.load"
        )
    layout, ranges = basis.layout, lookup.ranges
    count, made = _functions(layout.measured, lookup.waves or basis.basis)
    crossed = count * float(np.prod([float(k) for k in layout.counts])) <= CROSSED or not layout.counts
    if not (layout.measured or crossed):
        made = {"waves": np.zeros((0, 0)), "scale": np.ones(0)}
    arrays = {"low": ranges.low, "high": ranges.high, **made, "crossed": crossed}
    return layout, arrays | {"weights": theta, "first_action": task.first_action}


def _functions(measured: int, basis: Any) -> tuple[int, dict[str, Any]]:
    """Return the number of functions of the measured numbers, and their arrays; without numbers, a constant."""
    if not measured:
        return 1, {"waves": np.zeros((0, 1)), "scale": np.ones(1)}
    if isinstance(basis, Radial):
        centres, apart = centres_of(measured, basis.features, basis.seed)
        return len(centres) + 1, {"centres": centres, "width": basis.width or apart}
    if isinstance(basis, Waves):
        waves, phase = directions(measured, basis.features, basis.seed)
        length = measured / 4 if basis.length is None else basis.length
        made = {"waves": waves / length, "phase": phase, "scale": np.sqrt(2 / basis.features)}
        return 1 + measured + basis.features, made
    if isinstance(basis, PixelPairs):
        pairs = pairs_of(basis)
        return 1 + measured + len(pairs.scale), {**pairs._asdict(), "single": SINGLE}
    waves, divisor = frequencies(measured, basis.order, basis.features, basis.together, basis.smoothness)
    return len(divisor), {"waves": 2 * np.pi * waves, "scale": 1 / divisor}
