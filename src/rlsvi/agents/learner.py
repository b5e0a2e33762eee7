"""A learner whose mind compiled code uses to plan, evaluate and learn; most families add only what differs."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from rlsvi.agents.contract import Place, Step, broken
from rlsvi.agents.mind import Episode, new_workspace, plan, remember, values
from rlsvi.agents.task import Task
from rlsvi.core.compile import Floats, Longs, Words

Failure = Callable[[Floats], Exception]  # returns the error for an episode with these rewards


class MindLearner:
    """Everything that changes in learning is in `mind`; compiled code updates its arrays episode by episode."""

    def __init__(
        self, task: Task, mind: Any, features: Any = None, failure: Failure = lambda rewards: broken()
    ) -> None:
        self.task, self.mind, self.features, self.failure = task, mind, features, failure

    @property
    def counters(self) -> Longs:
        """The episodes and steps learned from, (2,)."""
        counters: Longs = self.mind.counters
        return counters

    def look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """Return an observation and its legal actions, checked."""
        return Place(h, self.task.checked(observation), self.task.legal(mask))

    def plan(self, sampled: bool, stream: Words, learning: bool = False) -> Any:
        """Return the mind with a sample of its posterior, or with the mean."""
        mind = self.mind if learning else self.another_plan()
        if not plan(mind, sampled, stream):
            raise broken()
        return mind

    def another_plan(self) -> Any:
        """Return the mind with arrays for one more plan."""
        return self.mind

    def values(self, plan: Any, place: Place) -> Floats:
        """Return the value of every action in a numbered state."""
        Q = np.empty(self.task.actions)
        values(plan, place.h, place.observation, Q, np.empty(4, np.uint64))
        return Q

    def remember(self, steps: list[Step], plan: Any, ended: bool) -> Self:
        """Learn from an episode, in one compiled call."""
        episode, work = self.stacked(steps), new_workspace(len(steps) + 1, 0, self.task.actions)
        if not remember(self.mind_for(1), episode, work):
            raise self.failure(episode.rewards)
        return self

    def state(self) -> dict[str, Any]:
        """Return all arrays that a file must contain."""
        raise NotImplementedError

    def mind_for(self, episodes: int) -> Any:
        """Return the mind for the next episodes; there is room for at least one."""
        return self.mind

    def enlarged(self) -> Any:
        """Return the mind after making more room for all runs on a graphics card; most minds do not grow."""
        return self.mind

    def stacked(self, steps: list[Step]) -> Episode:
        """Return an episode in the form that compiled code uses."""
        last, d = steps[-1].following, self.features.dim if self.features else 0
        places = [step.place for step in steps] + ([] if last is None else [last])
        n, A, numbered = len(places), self.task.actions, self.task.states is not None
        block, phi = np.zeros((n, A), np.int32), np.zeros((n, A, d))
        for i, place in enumerate(places):
            if place.block is not None:
                block[i], phi[i] = place.block, place.x
        return Episode(
            rows=np.array([place.row for place in places], np.int64),
            states=np.array([place.observation if numbered else -1 for place in places], np.int64),
            block=block,
            phi=phi,
            legal=np.array([place.legal for place in places]),
            actions=np.array([step.action for step in steps], np.int64),
            rewards=np.array([step.reward for step in steps], np.float64),
            goes_on=last is not None,
        )
