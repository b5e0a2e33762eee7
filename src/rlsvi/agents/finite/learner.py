"""The learner of finite-horizon agents: a regression in every period, over all past episodes."""

from typing import Any

import numpy as np

from rlsvi.agents.contract import Place, broken
from rlsvi.agents.finite.memory import Memory, empty, read_memory, resized
from rlsvi.agents.finite.mind import FiniteMind
from rlsvi.agents.finite.value_iteration import Prior, Values, new_values, no_values
from rlsvi.agents.learner import MindLearner
from rlsvi.agents.mind import no_features, plan, plan_as
from rlsvi.agents.task import Task
from rlsvi.bases import Features
from rlsvi.bases.basis import FeatureTable
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.compile import Floats, Ints, Longs, Words
from rlsvi.core.regression import prior_factor


class FiniteLearner(MindLearner):
    """Regressions for finitely many states, or for observations of any kind.

    A state has one row in the tables of a period (see `mind.rows`); other observations get a new row each time.
    All that changes in learning is in `mind`: compiled code updates its arrays one episode at a time, and if
    arrays have to grow, the whole mind is replaced.
    """

    keeps_data = True  # as sums, from which everything can be recomputed

    mind: FiniteMind
    features: Features

    @property
    def counters(self) -> Longs:
        """The episodes and steps learned from, (2,)."""
        return self.mind.memory.counters

    def look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """Return the row of an observation in period h, and its features if it is not known."""
        observation, legal = self.task.checked(observation), self.task.legal(mask)
        row = int(self.mind.rows[h, observation]) if self.task.states is not None else -1
        if row < 0:
            block, phi = self.features.at(h, observation)
            return Place(h, observation, legal, row, block, np.array(phi, dtype=np.float64))
        known = self.mind.memory.barred[h, self.pairs(row)] == 0.0
        return Place(h, observation, legal, row).narrowed(known, learning)

    def looked_at_again(self, place: Place) -> Place:
        """Return a place as it is now, since other agents may have learned of the same state in the meantime."""
        row = int(self.mind.rows[place.h, place.observation]) if self.task.states is not None else -1
        if row == place.row:
            return place
        known = self.mind.memory.barred[place.h, self.pairs(row)] == 0.0
        return Place(place.h, place.observation, place.legal, row).narrowed(known, learning=True)

    def plan(self, sampled: bool, stream: Words, learning: bool = False) -> Values:
        """Return a value function sampled from the posterior, or its mean, by Algorithm 1."""
        mind = self.mind if learning else self.mind._replace(values=self.blank_values())
        if not plan(mind, sampled, stream):
            raise broken()
        return mind.values

    def plan_as(self, k: int, sampled: bool, stream: Words) -> Values:
        """Return the next plan of number k of several agents that share what they learn; ANY: of all of them."""
        if not plan_as(self.mind, k, sampled, stream):
            raise broken()
        return self.mind.values

    def values(self, plan: Values, place: Place) -> Floats:
        """Return Q_h(s, .) under a plan, also for unseen states; -inf for actions that were not legal."""
        if place.block is None:
            return plan.Q[place.h, self.pairs(place.row)].copy()
        Q, scratch = np.empty(self.task.actions), np.empty(4, dtype=np.uint64)
        alive, prior = self.mind.memory.alive, self.mind.prior
        new_values(alive, prior, plan, place.h, place.block, place.x, Q, scratch)
        return Q

    def mind_for(self, episodes: int) -> Any:
        """Return the mind for the next episodes; there is room for at least one."""
        self.make_room()
        return self.mind

    def pairs(self, row: int) -> slice:
        """Return the positions of the actions of a known state."""
        return slice(row * self.task.actions, (row + 1) * self.task.actions)

    def blank_values(self, room: int | None = None) -> Values:
        """Return arrays for another value function, with room for `room` states, or for those known."""
        memory = self.mind.memory
        H, d, _ = memory.phi.shape
        room = memory.sum_head.shape[1] if room is None else room
        return no_values(H, self.task.actions, memory.alive.shape[1], d, room)

    def enlarged(self) -> Any:
        """Return the mind after making twice as much room, or as much as finitely many states can need."""
        states, sums = self.mind.memory.sum_head.shape[1], self.mind.memory.into.shape[1]
        S = self.mind.rows.shape[1]
        self.resize(max(states, min(2 * states, S + 1)), max(sums, min(2 * sums, S * self.features.blocks + 1)))
        return self.mind

    def make_room(self, spare: int = 0) -> None:
        """Make sure that there is room for another episode and `spare` more states."""
        memory = self.mind.memory
        used = memory.states.max(initial=0) + spare, memory.sums.max(initial=0) + spare
        rooms = memory.sum_head.shape[1], memory.into.shape[1]
        if used[0] < rooms[0] and used[1] < rooms[1]:
            return
        # a quarter more, since unused room slows down planning
        self.resize(*(r if n < r else max(n + 1, r + max(r // 4, 4)) for n, r in zip(used, rooms, strict=True)))

    def resize(self, states: int, sums: int) -> None:
        """Make room for so many states and sums per period."""
        memory, old = self.mind.memory, self.mind.values
        values = self.blank_values(states)
        for name in ("theta", "key", "spread", "sigma"):
            getattr(values, name)[:] = getattr(old, name)
        values.Q[:, : old.Q.shape[1]], values.V[:, : old.V.shape[1]] = old.Q, old.V
        self.mind = self.mind._replace(memory=resized(memory, states, sums), values=values)

    def state(self) -> dict[str, Any]:
        """Return the memory without unused room, and the factors."""
        mind = self.mind
        memory = resized(mind.memory, max(mind.memory.states.max(), 1), max(mind.memory.sums.max(), 1))
        arrays = {f"memory.{name}": array for name, array in memory._asdict().items()}
        return arrays | self.factors() | {"rows": mind.rows}

    def factors(self) -> dict[str, Any]:
        """Return the factors by their names in a file."""
        return {"factor.U": self.mind.factor.U, "factor.inv": self.mind.factor.inv}

    def restore(self, file: Archive) -> None:
        """Restore the learner from a file, after checking all its arrays."""
        mind, H = self.mind, len(self.mind.memory.states)
        memory = read_memory(file, H, self.task.actions, self.features.blocks, self.features.dim)
        room = memory.sum_head.shape[1]
        if self.task.horizon and memory.sums[-1] != 0:
            raise ArchiveError("is damaged: it has states after the last period")
        rows = file.take_within("rows", mind.rows.shape, np.int32, -1, room - 1)
        if (rows.max(axis=1, initial=-1) >= memory.states).any():
            raise ArchiveError("is damaged: a state in it has a row that holds nothing")
        if self.features.table is not None and not _same_features(self.features.table, memory, rows):
            raise ArchiveError("was learned through another basis: give the one that it was learned with")
        for name, part in self.factors().items():
            part[...] = file.take(name, part.shape)
        self.mind = mind._replace(memory=memory, rows=rows, values=self.blank_values(room))


def _same_features(table: FeatureTable, memory: Memory, rows: Ints) -> bool:
    """Return whether the states in memory have the features of a table, up to rounding on another machine."""
    A = table.block.shape[1]
    for h in range(len(rows)):
        s = np.flatnonzero(rows[h] >= 0)
        pairs = rows[h, s][:, None] * A + np.arange(A)
        kept, now = memory.phi[h].T[pairs], table.phi[h % len(table.phi), s]
        if (memory.block[h][pairs] != table.block[s]).any() or not np.allclose(kept, now, rtol=1e-9, atol=1e-12):
            return False
    return True


def new_mind(task: Task, features: Features, prior: Prior) -> FiniteMind:
    """Return the mind of a learner without experience."""
    shape = task.horizon, task.actions, features.blocks, features.dim
    memory = empty(*shape)
    try:
        factor = prior_factor((task.horizon, features.blocks), features.dim, prior.ridge)
    except MemoryError:
        raise MemoryError(
            f"{task.horizon} periods x {features.blocks} blocks of {features.dim} features need "
            f"{8e-9 * task.horizon * features.blocks * features.dim**2:.0f} GB for their factors: use fewer "
            "features, or more and smaller blocks"
        ) from None
    return FiniteMind(
        features.table or no_features(features.dim),
        np.full((task.horizon, task.states or 0), -1, dtype=np.int32),
        memory,
        factor,
        prior,
        no_values(*shape, memory.sum_head.shape[1]),
        np.empty(features.dim),
    )
