"""The learner of tabular agents: counts of a finite problem, and a plan made from them."""

from typing import Any, Self

import numpy as np

from rlsvi.agents.contract import Place, Step, broken
from rlsvi.agents.learner import MindLearner
from rlsvi.agents.mind import plan
from rlsvi.agents.tabular.mind import Plan, TabularMind, remember_on
from rlsvi.bases import Features
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.compile import Longs, Words

SAVED = {"counts": None, "plan": ("Q", "V", "visits", "due"), "linear": ("U", "inv")}
UNBOUNDED = ("plan.Q", "plan.V")  # may be infinite: before anything was planned, and where an action is illegal


class TabularLearner(MindLearner):
    """Counts in the mind; the plan of an episode becomes part of them when the episode is learned from."""

    mind: TabularMind

    @property
    def counters(self) -> Longs:
        """The episodes and steps learned from, (2,)."""
        return self.mind.counts.counters

    def look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """A state and its legal actions, which may only be narrowed down in predicting."""
        place, counts = super().look(h, observation, mask), self.mind.counts
        known = counts.legal[h, place.observation]
        if not counts.seen[h, place.observation]:
            return place
        if learning and (known != place.legal).any():
            raise ValueError(
                f"the action mask of state {observation} in period {h} has changed: legal actions must depend "
                "on the period and the observation alone"
            )
        if not (place.legal & known).any():
            raise ValueError("action_mask allows only actions that were not legal in this state before")
        return place._replace(legal=place.legal & known)

    def plan(self, sampled: bool, stream: Words, learning: bool = False) -> TabularMind:
        """The mind with a plan of its own, made from the last one."""
        last: Any = self.mind.plan
        mind = self.mind._replace(plan=Plan(*(part.copy() for part in last)))
        if not plan(mind, sampled, stream):
            raise broken()
        return mind

    def remember(self, steps: list[Step], plan: TabularMind, ended: bool) -> Self:
        """Count an episode and take over the plan it was played on, in one compiled call."""
        episode = self.stacked(steps)
        if not remember_on(self.mind, plan.plan, episode):
            raise self.failure(episode.rewards)
        return self

    def check_basis(self, features: Features) -> None:
        """Refuse another basis than the one learned through."""
        table, linear = features.table, self.mind.linear
        if not (table and np.array_equal(table.phi, linear.phi) and np.array_equal(table.block, linear.block)):
            raise ValueError("this agent has learned through another basis: use agent.clone()")

    def state(self) -> dict[str, Any]:
        """Counts, plan and factors."""
        arrays: dict[str, Any] = {}
        for part, names in SAVED.items():
            fields = getattr(self.mind, part)._asdict()
            arrays |= {f"{part}.{name}": fields[name] for name in names or fields}
        return arrays

    def restore(self, file: Archive) -> None:
        """Take what a file holds, after checking every array of it."""
        for name, array in self.state().items():
            found = file.take(name, array.shape, array.dtype, finite=name not in UNBOUNDED)
            if np.isnan(found).any():
                raise ArchiveError(f"is damaged: {name} holds numbers that are not finite")
            array[...] = found
        counts = self.mind.counts
        sound = np.array_equal(counts.into.sum(axis=3), counts.visits) and (counts.into >= 0).all()
        if not sound or counts.visits.sum() != counts.counters[1] or not counts.legal.any(axis=2).all():
            raise ArchiveError("is damaged: its counts do not add up")
