"""The learner of continual agents: a memory with a single period, its posterior, and theta_t."""

from copy import deepcopy
from typing import Any, Self

import numpy as np

from rlsvi.agents.continual.step import Rule, Walk, explained_target, live, new_walk, place_values
from rlsvi.agents.contract import Place, Step, diverged
from rlsvi.agents.finite.rlsvi import FiniteLearner, FiniteMind, Values, known_values
from rlsvi.agents.task import Task
from rlsvi.bases import Features
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.compile import Floats, Words


class ContinualLearner(FiniteLearner):
    """The regression of one value function, repeated in every step; an episode of the contract is one step."""

    keeps_data = False  # its targets are discounted, which `evidence` does not support

    def __init__(self, task: Task, mind: FiniteMind, features: Features, rule: Rule) -> None:
        super().__init__(task, mind, features)
        self.rule, self.walk = rule, new_walk(features.blocks, features.dim)
        self.mind.values.theta[:] = self.walk.mean[:] = self.mind.prior.mean

    def look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """Return the row of an observation, and its features if it is not known; there is a single period."""
        return super().look(0, observation, mask, learning)

    def here(self) -> Place | None:
        """Where the agent is; None at the beginning of a life."""
        row = int(self.walk.row[0])
        if row < 0:
            return None
        state = np.flatnonzero(self.mind.rows[0] == row)  # empty if observations are not numbered
        legal = self.mind.memory.barred[0, self.pairs(row)] == 0.0
        return Place(0, int(state[0]) if len(state) else -1, legal, row)

    def watched(self) -> tuple[float, bool, float]:
        """The largest target over the explained one, whether it was ever too large, and the explained one."""
        excess, diverged = self.walk.watch
        return excess, diverged > 0.0, explained_target(self.walk, self.rule)

    def plan(self, sampled: bool, stream: Words, learning: bool = False) -> Values:
        """Return the values of theta_t from the last step, or of theta-bar_t."""
        if sampled:
            return self.mind.values
        mean = self.blank_values()
        mean.theta[:] = self.walk.mean
        known_values(self.mind.memory, mean, 0)
        return mean

    def values(self, plan: Values, place: Place) -> Floats:
        """Return Q under a plan, for seen and unseen states."""
        if place.block is None:
            return plan.Q[0, self.pairs(place.row)].copy()
        Q = np.empty(self.task.actions)
        place_values(plan.theta[0], place.block, place.x, Q)
        return Q

    def live(self, step: Step, over: bool, stream: Words) -> Self:
        """Learn from one step, in one compiled call; `over`: a new life begins after it."""
        self.make_room(2)
        episode = self.stacked([step])
        mind, walk = self.copies() if self._may_break(episode.phi) else (self.mind, self.walk)
        if not live(mind, walk, self.rule, episode, over, np.empty(2, np.int64), stream):
            raise diverged()
        self.mind, self.walk = mind, walk
        return self

    def copies(self) -> tuple[FiniteMind, Walk]:
        """Return copies of all that a step changes, to try steps on that may break."""
        mind, walk = self.mind, deepcopy(self.walk)
        rows, memory, factor, values = deepcopy((mind.rows, mind.memory, mind.factor, mind.values))
        return mind._replace(rows=rows, memory=memory, factor=factor, values=values), walk

    def _may_break(self, phi: Floats) -> bool:
        """Return whether numbers are so large that the next step could overflow float64."""
        theta, ridge = self.mind.values.theta, self.mind.prior.ridge
        largest = max(np.abs(theta).max(initial=0.0), np.abs(phi).max(initial=0.0) ** 2)
        return not max(largest, self.rule.spread, 1.0 / ridge) < 1e40

    def remember(self, steps: list[Step], plan: Values, ended: bool) -> Self:
        """Raise an error: this learner learns step by step, not from episodes."""
        raise NotImplementedError("a continual learner learns from one step at a time: call live")

    def state(self) -> dict[str, Any]:
        """Return the memory, the factor, theta, its noise, and where the agent is."""
        walk = {f"walk.{name}": array for name, array in self.walk._asdict().items() if name != "e"}
        return super().state() | walk | {"theta": self.mind.values.theta}

    def restore(self, file: Archive) -> None:
        """Restore the learner from a file, after checking all its arrays."""
        super().restore(file)
        memory, walk = self.mind.memory, self.walk
        for name in Walk._fields:
            if name != "e":
                part = getattr(walk, name)
                part[...] = file.take(f"walk.{name}", part.shape, part.dtype)
        if not -1 <= walk.row[0] < memory.states[0] or not 0 <= walk.begun[0] <= memory.lives[0]:
            raise ArchiveError("is damaged: an index in it points outside its tables")
        theta = self.mind.values.theta
        theta[:] = file.take("theta", theta.shape)
        known_values(memory, self.mind.values, 0)
