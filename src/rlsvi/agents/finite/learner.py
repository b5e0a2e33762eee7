"""What a finite-horizon agent knows: its memory, its posterior, and the value function it acts on."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from rlsvi.agents.finite.memory import Memory, add_episode, add_state, empty, is_full, resized
from rlsvi.agents.finite.value_iteration import Prior, Values, new_values, no_values, value_iteration
from rlsvi.bases.basis import Features, FeatureTable
from rlsvi.core.compile import Bools, Floats, Ints, Longs, Words, compiled
from rlsvi.core.regression import Factor, FactorError, prior_factor


class Place(NamedTuple):
    """An observation in its period: the row of a known state, or else the features of a new one."""

    h: int
    observation: Any
    legal: Bools
    row: int
    block: Any
    phi: Any


@dataclass
class Learner:
    """The regression of every period, for finitely many states or for observations of any kind.

    With `states`, a state has one row in the tables of a period (`index` says which); otherwise every
    observation gets a row of its own.
    """

    features: Features
    prior: Prior
    memory: Memory
    factor: Factor
    values: Values
    index: Ints  # (H, S) the row of a state, or -1; (H, 0) for observations of any kind

    @classmethod
    def new(cls, features: Features, actions: int, horizon: int, states: int | None, prior: Prior) -> Self:
        """A learner that has seen nothing."""
        shape = horizon, actions, features.blocks, features.dim
        memory = empty(*shape)
        try:
            factor = prior_factor((horizon, features.blocks), features.dim, prior.ridge)
        except MemoryError:
            raise MemoryError(
                f"{horizon} periods x {features.blocks} blocks of {features.dim} features need "
                f"{8e-9 * horizon * features.blocks * features.dim**2:.0f} GB for their factors: use fewer "
                "features, or more and smaller blocks"
            ) from None
        return cls(
            features,
            prior,
            memory,
            factor,
            no_values(*shape, memory.sum_head.shape[1]),
            np.full((horizon, states or 0), -1, dtype=np.int32),
        )

    @property
    def horizon(self) -> int:
        """H."""
        return len(self.memory.states)

    @cached_property
    def actions(self) -> int:
        """A."""
        return int(self.memory.block.shape[1] // self.memory.sum_head.shape[1])

    @property
    def states(self) -> int | None:
        """S, or None for observations of any kind."""
        return self.index.shape[1] or None

    def finite(self) -> "Finite":
        """The learner as compiled code takes it, if its states are finitely many."""
        assert self.features.table is not None
        return Finite(self.features.table, self.index, self.memory, self.factor, self.prior, self.values)

    def plan(self, sampled: bool, stream: Words, values: Values | None = None) -> Values:
        """A value function sampled from the posterior, or its mean; into `values`, or the one to act on."""
        values = values or self.values
        if not value_iteration(self.memory, self.factor, self.prior, values, sampled, stream):
            raise broken()
        return values

    def blank_values(self) -> Values:
        """Arrays for one more value function of this memory."""
        H, d, _ = self.memory.phi.shape
        return no_values(H, self.actions, self.memory.alive.shape[1], d, self.memory.sum_head.shape[1])

    def look(self, h: int, observation: Any, legal: Bools) -> Place:
        """Where an observation stands in period h, and its features if it is not known."""
        row = int(self.index[h, observation]) if self.states else -1
        if row < 0:
            block, phi = self.features.at(h, observation)
            return Place(h, observation, legal, row, block, np.array(phi))
        if ((self.memory.barred[h, self._pairs(row)] == 0.0) != legal).any():
            raise ValueError(
                f"the action mask of state {observation} in period {h} has changed: legal actions must depend on "
                "the period and the observation alone, so put into the observation what they depend on"
            )
        return Place(h, observation, legal, row, None, None)

    def legal(self, h: int, observation: Any) -> Bools | None:
        """Which actions were legal when this state was learned from; None if it was not."""
        row = self.index[h, observation] if self.states else -1
        return self.memory.barred[h, self._pairs(row)] == 0.0 if row >= 0 else None

    def action_values(self, values: Values, h: int, observation: Any) -> Floats:
        """Q_h(s, .), also where nothing has been seen; -inf for what was not legal."""
        legal = self.legal(h, observation)
        return self.values_at(
            values, self.look(h, observation, np.ones(self.actions, bool) if legal is None else legal)
        )

    def values_at(self, values: Values, place: Place) -> Floats:
        """Q_h(s, .) at a place."""
        if place.block is None:
            return values.Q[place.h, self._pairs(place.row)].copy()
        Q, scratch = np.empty(self.actions), np.empty(4, dtype=np.uint64)
        new_values(self.memory, self.prior, values, place.h, place.block, place.phi, Q, scratch)
        return Q

    def remember(self, places: list[Place], actions: Longs, rewards: Floats, goes_on: bool) -> None:
        """Learn from an episode; `places` has one more entry than `actions` if it goes on."""
        self.make_room()
        visited = np.array([place.row if place.block is None else self._add(place) for place in places])
        x = np.empty(self.features.dim)
        if not add_episode(self.memory, self.factor, visited, actions, rewards, len(actions), goes_on, x):
            raise broken()

    def _pairs(self, row: int) -> slice:
        """Where the actions of a known state stand."""
        return slice(row * self.actions, (row + 1) * self.actions)

    def _add(self, place: Place) -> int:
        row = add_state(self.memory, place.h, place.phi, place.block, place.legal)
        if self.states:
            self.index[place.h, place.observation] = row
        return row

    def make_room(self, spare: int = 0) -> None:
        """See to it that one more episode fits, and `spare` more states."""
        if not spare and not is_full(self.memory):
            return
        rooms = []
        for used, room in (
            (self.memory.states.max(), self.memory.sum_head.shape[1]),
            (self.memory.sums.max(), self.memory.into.shape[1]),
        ):
            rooms.append(
                room + max(room // 4, 4) if used + spare >= room else room
            )  # idle room costs planning time
        self.memory = resized(self.memory, *rooms)
        old, self.values = self.values, self.blank_values()
        for name in ("theta", "key", "spread", "sigma"):
            getattr(self.values, name)[:] = getattr(old, name)
        self.values.Q[:, : old.Q.shape[1]], self.values.V[:, : old.V.shape[1]] = old.Q, old.V


def broken() -> FactorError:
    """What to raise when compiled code reports numbers that are not finite."""
    return FactorError(
        "a posterior factor or value stopped being finite: features, rewards, 1/lam or sigma are too large "
        "for float64; scale them down"
    )


class Finite(NamedTuple):
    """A learner of finitely many states, as compiled code takes it."""

    features: FeatureTable
    rows: Ints  # (H, S) the row of a state, or -1
    memory: Memory
    factor: Factor
    prior: Prior
    values: Values


@compiled
def table_values(learner: Finite, h: int, s: int, Q: Floats, scratch: Words) -> None:
    """Q_h(s, .) for one of finitely many states: what Learner.action_values does, compiled."""
    row = learner.rows[h, s]
    if row >= 0:
        for a in range(Q.size):
            Q[a] = learner.values.Q[h, row * Q.size + a]
    else:
        phi, block = learner.features.phi, learner.features.block
        features = phi[h if phi.shape[0] > 1 else 0, s]
        new_values(learner.memory, learner.prior, learner.values, h, block[s], features, Q, scratch)


@compiled
def table_row(learner: Finite, h: int, s: int, legal: Bools) -> int:
    """The row of one of finitely many states, which becomes known if it was not."""
    if learner.rows[h, s] < 0:
        phi, block = learner.features.phi, learner.features.block
        learner.rows[h, s] = add_state(learner.memory, h, phi[h if phi.shape[0] > 1 else 0, s], block[s], legal)
    row: int = learner.rows[h, s]
    return row
