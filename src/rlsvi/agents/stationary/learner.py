"""The learner of stationary agents: one regression over the most recent transitions."""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

from rlsvi.agents.contract import Place, Step, diverged
from rlsvi.agents.stationary.features import BoundFeatures
from rlsvi.agents.stationary.mind import StationaryMind, fits, remember_episode, spread_of
from rlsvi.agents.stationary.ring import Ring, pairs_of, resized
from rlsvi.agents.stationary.sweeps import NO_FACTOR, NOT_FINITE, Model, new_work, plan
from rlsvi.agents.stationary.targets import action_values, set_weights
from rlsvi.agents.task import Task
from rlsvi.core.compile import Floats, Ints, Words
from rlsvi.core.regression import FactorError

Bind = Callable[[Any], BoundFeatures]  # the features of observations like an example


class StationaryPlan(NamedTuple):
    """One value function."""

    theta: Floats  # (B, d)
    w: Floats  # (P, B) the weights of the planes
    largest: float  # size of a target that it was regressed on


class StationaryLearner:
    """The ring, the prior, and theta. After loading, the first observation brings the features."""

    def __init__(
        self, task: Task, mind: StationaryMind, regressions: int, bind: Bind, features: BoundFeatures | None
    ) -> None:
        self.task, self.mind, self.regressions = task, mind, regressions
        self.bind, self.features = bind, features
        self.counters = mind.counters

    def look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """The features of an observation, checked."""
        observation, legal = self.task.checked(observation), self.task.legal(mask)
        if self.features is None:
            features = self.bind(observation)
            check_same(self.mind.ring, features)
            self.features = features
        block, x = self.features.at(observation)
        return Place(h, observation, legal, -1, block, x)

    def plan(self, sampled: bool, stream: Words, learning: bool = False) -> StationaryPlan:
        """From theta^- to a sample of the posterior or its mean; before the first data it is the prior mean."""
        mind, theta, largest = self.mind, self.mind.theta.copy(), 0.0
        if self.counters[0] > 0:
            status = plan(mind.ring, mind.model, mind.work, theta, sampled, self.regressions, stream)
            if status == NO_FACTOR:
                raise FactorError(
                    "the precision matrix is not positive definite, even in 106 bits: features are too large or "
                    "too much alike for this lam; scale them down, or use a larger lam"
                )
            if status == NOT_FINITE:
                raise diverged()
            largest = float(mind.work.largest[0])
        set_weights(mind.work.weights, mind.ring.units, theta, mind.model.gamma)
        return StationaryPlan(theta, mind.work.weights.w.copy(), largest)

    def values(self, plan: StationaryPlan, place: Place) -> Floats:
        """Q of every action."""
        Q = np.empty(len(place.block))
        action_values(plan.w, place.x, place.block, Q)
        return Q

    def remember(self, steps: list[Step], plan: StationaryPlan, ended: bool) -> Self:
        """Learn from an episode, in one compiled call."""
        ring = self.mind.ring
        d, x = len(ring.units), np.stack([step.place.x[step.action] for step in steps])
        nothing = np.zeros((0, ring.next_x.shape[0]), ring.x.dtype), np.zeros(0, np.int32)
        following = [
            (step.following.x[step.following.legal], step.following.block[step.following.legal])
            if step.following is not None
            else nothing
            for step in steps
        ]
        pairs = np.array([len(block) for _, block in following], np.int32)
        self.make_room(pairs)
        remember_episode(
            self.mind,
            plan.theta,
            plan.largest,
            np.ascontiguousarray(x[:, :d]),
            np.array([step.place.block[step.action] for step in steps], np.int32),
            np.array([step.reward for step in steps]),
            pairs,
            np.concatenate([next_x for next_x, _ in following]),
            np.concatenate([block for _, block in following]),
            np.empty(d, ring.gram.dtype),
        )
        return self

    def make_room(self, pairs: Ints) -> None:
        """See to it that more transitions fit, with so many next actions each."""
        A, starts = self.task.actions, np.empty(len(pairs), np.int64)
        while not fits(self.mind.ring, pairs, starts):
            ring = self.mind.ring
            room, columns, needed = len(ring.x), ring.next_x.shape[1], int(ring.size[0]) + len(pairs)
            larger = min(max(room + room // 4 + 64, needed), int(ring.limit[0]))
            if min(needed, int(ring.limit[0])) <= room:
                larger, columns = room, columns + columns // 4 + 2 * A
            columns = max(columns, pairs_of(ring) * larger // room + 2 * A)
            work = self.mind.work
            if len(work.b) < larger:
                work = work._replace(b=np.zeros(larger))
            self.mind = self.mind._replace(ring=resized(ring, larger, columns), work=work)

    def state(self) -> dict[str, Any]:
        """The ring without idle room, theta, counters and what is watched."""
        ring = self.mind.ring
        ring = resized(ring, max(int(ring.size[0]), 1), max(pairs_of(ring), 1))
        arrays = {f"ring.{name}": array for name, array in ring._asdict().items()}
        return arrays | {"theta": self.mind.theta, "counters": self.counters, "watch": self.mind.watch}


def mind_of(ring: Ring, model: Model, actions: int, diverged_above: float) -> StationaryMind:
    """A mind with this ring that has learned nothing else."""
    theta, counters, watch = model.mean.copy(), np.zeros(2, np.int64), np.zeros(3)
    spread = spread_of(model)
    return StationaryMind(
        ring, model, new_work(ring, actions), theta, counters, watch, spread, float(diverged_above)
    )


def check_same(ring: Ring, features: BoundFeatures) -> None:
    """Refuse features that are unlike those learned with."""
    learned, offered = (len(ring.gram), len(ring.units)), (features.blocks, len(features.units))
    if learned != offered:
        other = f"the basis gives {offered[0]} of {offered[1]}"
    elif ring.x.dtype != features.dtype:
        other = f"kept as {ring.x.dtype}, the basis gives {features.dtype}, as on a board of another size"
    elif not np.array_equal(ring.units, features.units):
        other = "but in other units than the basis gives, as on a board of another height or with other units="
    else:
        return
    raise ValueError(
        f"this agent has learned with {learned[0]} blocks of {learned[1]} features, {other}: keep to the "
        "basis and the board it has learned with, or use agent.clone() to learn anew"
    )
