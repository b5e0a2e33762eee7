"""The learner of stationary agents: one regression over the most recent transitions."""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

from rlsvi.agents.contract import Place, Step, diverged
from rlsvi.agents.stationary.features import BoundFeatures
from rlsvi.agents.stationary.mind import StationaryMind, explained_target, remember_episode
from rlsvi.agents.stationary.ring import Ring, pairs_of, resized, used_columns
from rlsvi.agents.stationary.sweeps import NO_FACTOR, NOT_FINITE, plan
from rlsvi.agents.stationary.targets import action_values, set_weights
from rlsvi.agents.task import Task
from rlsvi.core.compile import Floats, Ints, Words
from rlsvi.core.regression import FactorError

Bind = Callable[[Any], BoundFeatures]  # the features of observations like an example


class StationaryPlan(NamedTuple):
    """One value function."""

    theta: Floats  # (B, d)
    w: Floats  # (P, B) the weights of the planes
    largest: float  # largest absolute target of its regression


class StationaryLearner:
    """The ring, the prior, and theta. After loading, the features are bound with the first observation."""

    def __init__(
        self, task: Task, mind: StationaryMind, regressions: int, bind: Bind, features: BoundFeatures | None
    ) -> None:
        self.task, self.mind, self.regressions = task, mind, regressions
        self.bind, self.features = bind, features
        self.counters = mind.counters

    def watched(self) -> tuple[float, bool, float]:
        """The largest target over the explained one, whether it was ever too large, and the explained one."""
        _, excess, diverged = self.mind.watch
        return excess, diverged > 0.0, explained_target(self.mind)

    def look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """Return the features of an observation, checked."""
        observation, legal = self.task.checked(observation), self.task.legal(mask)
        if self.features is None:
            features = self.bind(observation)
            check_same(self.mind.ring, features)
            self.features = features
        block, x = self.features.at(observation)
        return Place(h, observation, legal, -1, block, x)

    def plan(self, sampled: bool, stream: Words, learning: bool = False) -> StationaryPlan:
        """Compute a sample of the posterior or its mean from theta^-; without data it is the prior mean."""
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
        """Return Q of every action."""
        Q = np.empty(len(place.block))
        action_values(plan.w, place.x, place.block, Q)
        return Q

    def remember(self, steps: list[Step], plan: StationaryPlan, ended: bool) -> Self:
        """Learn from an episode, in one compiled call."""
        ring = self.mind.ring
        d, x = len(ring.units), np.stack([step.place.x[step.action] for step in steps])
        pairs = np.array([0 if step.following is None else step.following.legal.sum() for step in steps], np.int32)
        ahead = [step.following for step in steps if step.following is not None]
        nothing = np.zeros((0, len(ring.next_x)), ring.x.dtype), np.zeros(0, np.int32)
        self.make_room(pairs)
        remember_episode(
            self.mind,
            plan.theta,
            plan.largest,
            np.ascontiguousarray(x[:, :d]),
            np.array([step.place.block[step.action] for step in steps], np.int32),
            np.array([step.reward for step in steps]),
            pairs,
            np.concatenate([nothing[0], *(place.x[place.legal] for place in ahead)]),
            np.concatenate([nothing[1], *(place.block[place.legal] for place in ahead)]),
            np.empty(d, ring.gram.dtype),
        )
        return self

    def make_room(self, pairs: Ints) -> None:
        """Make room for more transitions, given the number of next actions of each.

        Columns are used in a circle. Fewer than A may be wasted at its end, and fewer than A before the oldest
        transition, so 2 A more than are used are always enough.
        """
        ring, work, A, limit = self.mind.ring, self.mind.work, self.task.actions, int(self.mind.ring.limit[0])
        needed, room = min(int(ring.size[0]) + len(pairs), limit), len(ring.x)
        columns = min(used_columns(ring) + int(pairs.sum()), limit * A) + 2 * A
        if needed <= room and columns <= ring.next_x.shape[1]:
            return
        if needed > room:
            room = min(max(room + room // 4 + 64, needed), limit)
            work = work._replace(b=np.zeros(room))
        columns = max(columns + columns // 4, ring.next_x.shape[1])
        self.mind = self.mind._replace(ring=resized(ring, room, columns), work=work)

    def state(self) -> dict[str, Any]:
        """Return the ring without unused room, theta, counters and what is monitored."""
        ring = self.mind.ring
        ring = resized(ring, max(int(ring.size[0]), 1), max(pairs_of(ring), 1))
        arrays = {f"ring.{name}": array for name, array in ring._asdict().items()}
        return arrays | {"theta": self.mind.theta, "counters": self.counters, "watch": self.mind.watch}


def check_same(ring: Ring, features: BoundFeatures) -> None:
    """Raise an error if features differ from those learned with."""
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
