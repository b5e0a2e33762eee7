"""What a stationary agent has learned: the ring, the prior, and theta; and features as the ring keeps them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.stationary.ring import Numbers, Ring, add_transition, empty_ring, pairs_of, resized
from rlsvi.agents.stationary.sweeps import NO_FACTOR, NOT_FINITE, Model, Work, new_work, plan
from rlsvi.agents.stationary.targets import action_values, set_weights
from rlsvi.agents.task import Task
from rlsvi.bases import Basis
from rlsvi.core.checks import LARGEST, finite
from rlsvi.core.compile import Bools, Floats, Ints, Words
from rlsvi.core.regression import FactorError

KEPT = (np.dtype(np.uint8), np.dtype(np.int16))  # as they are; all other features as float64


class BoundFeatures(NamedTuple):
    """A basis bound to a task, for a ring: numbers of one type, times units."""

    blocks: int
    units: Floats  # (d,)
    dtype: Any
    known: bool  # the last column holds the reward of each action
    at: Callable[[Any], tuple[Ints, Numbers]]  # the blocks (A,) and the numbers (A, P) of all actions
    setting: Mapping[str, Any]  # what else the features depend on


def bound_features(basis: Basis, task: Task, known: bool, example: Any) -> BoundFeatures:
    """Bind a basis; small whole numbers are kept as such where it gives them. `known`: with rewards."""
    features = basis.bind(task.states, task.actions, 1, example)
    shape = task.actions, features.dim
    numbers, rewards = features.numbers if features.blocks == 1 else None, features.rewards
    given = features.units if numbers else None
    units = finite("units", np.ones(features.dim) if given is None else given)
    if units.shape != (features.dim,) or (units == 0).any():
        raise ValueError(f"units must be {features.dim} numbers other than 0, one a feature; got {units!r}")
    if known and rewards is None:
        raise ValueError(
            'form="afterstate" needs a basis that knows the reward of every action, whose Features have rewards; '
            f'{basis!r} knows none: use form="literal"'
        )
    zeros = np.zeros(task.actions, np.int32)

    def at(observation: Any) -> tuple[Ints, Numbers]:
        block, phi = (zeros, numbers(observation)) if numbers else features.at(0, observation)
        phi = np.asarray(phi)
        if phi.shape != shape:
            raise ValueError(f"the basis must give features of shape {shape}, got {phi.shape}")
        if known and rewards:
            paid = np.asarray(rewards(observation))
            if paid.shape != shape[:1]:
                raise ValueError(f"rewards must give one number an action, {shape[0]}, got shape {paid.shape}")
            fits = np.can_cast(paid.dtype, phi.dtype)
            phi = np.hstack([phi, paid[:, None]], dtype=phi.dtype if fits else np.float64)
        return np.asarray(block, dtype=np.int32), phi

    dtype = at(example)[1].dtype
    kept = dtype if dtype in KEPT else np.dtype(np.float64)
    return BoundFeatures(features.blocks, np.array(units), kept, known, at, features.setting or {})


class Place(NamedTuple):
    """An observation as the learner sees it."""

    legal: Bools
    block: Ints
    x: Numbers

    def values(self, w: Floats) -> Floats:
        """Q of every action, for the weights of the planes."""
        Q = np.empty(len(self.block))
        action_values(w, self.x, self.block, Q)
        return Q


@dataclass
class StationaryLearner:
    """One regression over the ring. Without `features`, as after loading, the first observation brings them."""

    features: BoundFeatures | None
    actions: int
    model: Model
    ring: Ring
    work: Work
    theta: Floats  # (B, d) of the last episode: theta^-

    @classmethod
    def new(
        cls, features: BoundFeatures, actions: int, model: Model, prior_mean: Any, memory: int | None
    ) -> "StationaryLearner":
        """A learner that has seen nothing."""
        shape = features.blocks, len(features.units)
        mean = prior_mean_of(prior_mean, shape)
        ring = empty_ring(actions, features.blocks, features.units, features.dtype, features.known, memory)
        return cls(features, actions, model._replace(mean=mean), ring, new_work(ring, actions), mean.copy())

    def take(self, features: BoundFeatures) -> None:
        """Take features on, if they are like those learned with."""
        ring = self.ring
        learned, offered = (len(ring.gram), len(ring.units)), (features.blocks, len(features.units))
        if learned != offered:
            other = f"the basis gives {offered[0]} of {offered[1]}"
        elif ring.x.dtype != features.dtype:
            other = f"kept as {ring.x.dtype}, the basis gives {features.dtype}, as on a board of another size"
        elif not np.array_equal(ring.units, features.units):
            other = "but in other units than the basis gives, as on a board of another height or with other units="
        else:
            self.features = features
            return
        raise ValueError(
            f"this agent has learned with {learned[0]} blocks of {learned[1]} features, {other}: keep to the "
            "basis and the board it has learned with, or use agent.clone() to learn anew"
        )

    def plan(self, theta: Floats, sampled: bool, sweeps: int, stream: Words) -> None:
        """From theta^- to a sample of the posterior, or its mean, in place."""
        status = plan(self.ring, self.model, self.work, theta, sampled, sweeps, stream)
        if status == NO_FACTOR:
            raise FactorError(
                "the precision matrix is not positive definite, even in 106 bits: features are too large or too "
                "much alike for this lam; scale them down, or use a larger lam"
            )
        if status == NOT_FINITE:
            raise unusable()

    def weights(self, theta: Floats) -> Floats:
        """The weights of Q for theta."""
        set_weights(self.work.weights, self.ring.units, theta, self.model.gamma)
        return self.work.weights.w.copy()

    def look(self, observation: Any, legal: Bools) -> Place:
        """The features of an observation, checked."""
        assert self.features is not None
        block, x = self.features.at(observation)
        if x.dtype != self.features.dtype:
            if self.features.dtype in KEPT:
                raise ValueError(
                    f"the basis must always give {self.features.dtype} features, now they are {x.dtype}"
                )
            x = x.astype(np.float64)
        if not (np.abs(x[legal]) <= LARGEST).all():
            raise ValueError(
                f"features must be finite, got NaN, infinity or more than {LARGEST:g}: clean the data"
            )
        if block.shape != legal.shape or not ((block >= 0) & (block < self.features.blocks)).all():
            raise ValueError(f"the basis must give one block of 0..{self.features.blocks - 1} for every action")
        return Place(legal, block, np.array(x, order="C"))

    def remember(self, place: Place, action: int, reward: float, following: Place | None) -> None:
        """Learn from a transition, to the next place or to the end."""
        then = following or place
        x, d = place.x[action], len(self.ring.units)
        row = np.empty(d, self.ring.gram.dtype)
        while not add_transition(
            self.ring,
            x[:d],
            place.block[action],
            reward,
            following is not None,
            then.x,
            then.block,
            then.legal,
            row,
        ):
            self.make_room()

    def make_room(self) -> None:
        """Room for more transitions, or for more next actions; a quarter more, and at most what can be needed."""
        room, pairs = len(self.ring.x), self.ring.next_x.shape[1]
        if self.ring.size[0] == room:
            room = min(room + room // 4 + 64, int(self.ring.limit[0]))
        else:
            pairs += pairs // 4 + 2 * self.actions
        used = pairs_of(self.ring)
        self.ring = resized(self.ring, room, max(pairs, used * room // len(self.ring.x) + 2 * self.actions))
        if len(self.work.b) < room:
            self.work = self.work._replace(b=np.zeros(room))


def prior_mean_of(given: Any, shape: tuple[int, int]) -> Floats:
    """The prior mean of the weights (B, d), from a number or a vector of all weights."""
    mean, weights = np.asarray(given, dtype=np.float64), shape[0] * shape[1]
    if mean.shape not in ((), (weights,)):
        raise ValueError(
            f"prior_mean must be a number, or of shape ({weights},): one mean a weight; got {mean.shape}"
        )
    return np.array(np.broadcast_to(mean, weights)).reshape(shape)


def unusable() -> FactorError:
    """What to raise when weights or values are not finite."""
    return FactorError(
        "the values diverged: a weight or value is no longer a finite number; use a smaller gamma, features and "
        "rewards of a smaller scale, or a larger lam"
    )
