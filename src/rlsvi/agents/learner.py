"""What a finite-horizon agent knows: its memory, its posterior, and the value function it acts on."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rlsvi.agents.memory import Memory, add_episode, add_state, empty, is_full, resized
from rlsvi.agents.value_iteration import Prior, Values, new_values, no_values, value_iteration
from rlsvi.bases.basis import Features, FeatureTable
from rlsvi.core.compile import Bools, Floats, Ints, Longs, Words, compiled
from rlsvi.core.regression import Factor, FactorError, prior_factor


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
    def new(cls, features: Features, actions: int, horizon: int, states: int | None, prior: Prior) -> "Learner":
        """A learner that has seen nothing."""
        shape = horizon, actions, features.blocks, features.dim
        memory = empty(*shape)
        ridge = prior.lam * prior.sigma * prior.sigma
        return cls(
            features,
            prior,
            memory,
            prior_factor((horizon, features.blocks), features.dim, ridge),
            no_values(*shape, memory.sum_head.shape[1]),
            np.full((horizon, states or 0), -1, dtype=np.int32),
        )

    @property
    def horizon(self) -> int:
        """H."""
        return len(self.memory.states)

    @property
    def actions(self) -> int:
        """A."""
        return int(self.memory.block.shape[1] // self.memory.sum_head.shape[1])

    @property
    def states(self) -> int | None:
        """S, or None for observations of any kind."""
        return self.index.shape[1] or None

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

    def action_values(self, values: Values, h: int, observation: Any) -> Floats:
        """Q_h(observation, .), also where nothing has been seen."""
        if self.states and self.index[h, observation] >= 0:
            return values.Q[h, self._pairs(h, observation)].copy()
        block, phi = self.features.at(h, observation)
        Q, scratch = np.empty(self.actions), np.empty(4, dtype=np.uint64)
        new_values(self.memory, self.prior, values, h, block, np.ascontiguousarray(phi), Q, scratch)
        return Q

    def remember(
        self, observations: list[Any], masks: list[Bools], actions: Longs, rewards: Floats, goes_on: bool
    ) -> None:
        """Learn from an episode; `observations` has one more entry than `actions` if it goes on."""
        rows = [self._row(h, s, masks[h]) for h, s in enumerate(observations)]
        self.make_room()
        visited = np.array(
            [
                self._add(h, s, masks[h]) if row is None else row
                for h, (s, row) in enumerate(zip(observations, rows, strict=True))
            ],
            dtype=np.int64,
        )
        if not add_episode(
            self.memory, self.factor, visited, actions, rewards, len(actions), goes_on, np.empty(self.features.dim)
        ):
            raise broken()

    def _row(self, h: int, observation: Any, legal: Bools) -> int | None:
        """The row of a known state, whose legal actions must be the ones it had before."""
        if not self.states or self.index[h, observation] < 0:
            return None
        if ((self.memory.barred[h, self._pairs(h, observation)] == 0.0) != legal).any():
            raise ValueError(
                f"the action mask of state {observation} in period {h} has changed: legal actions must depend on "
                "the period and the observation alone, so put into the observation what they depend on"
            )
        return int(self.index[h, observation])

    def _pairs(self, h: int, state: int) -> slice:
        """Where the actions of a known state stand."""
        first = int(self.index[h, state]) * self.actions
        return slice(first, first + self.actions)

    def _add(self, h: int, observation: Any, legal: Bools) -> int:
        block, phi = self.features.at(h, observation)
        row = add_state(self.memory, h, np.ascontiguousarray(phi), block, legal)
        if self.states:
            self.index[h, observation] = row
        return row

    def make_room(self) -> None:
        """See to it that one more episode fits."""
        if not is_full(self.memory):
            return
        rooms = []
        for used, room in (
            (self.memory.states.max(), self.memory.sum_head.shape[1]),
            (self.memory.sums.max(), self.memory.into.shape[1]),
        ):
            rooms.append(2 * room if used >= room else room)
        self.memory = resized(self.memory, *rooms)
        old, self.values = self.values, self.blank_values()
        for name in ("theta", "key", "spread"):
            getattr(self.values, name)[:] = getattr(old, name)
        self.values.Q[:, : old.Q.shape[1]], self.values.V[:, : old.V.shape[1]] = old.Q, old.V


def broken() -> FactorError:
    """What to raise when compiled code reports numbers that are not finite."""
    return FactorError(
        "a posterior factor or value stopped being finite: features, rewards, 1/lam or sigma are too large "
        "for float64; scale them down"
    )


@compiled
def table_values(
    features: FeatureTable,
    index: Ints,
    memory: Memory,
    prior: Prior,
    values: Values,
    h: int,
    s: int,
    Q: Floats,
    scratch: Words,
) -> None:
    """Q_h(s, .) for one of finitely many states: what Learner.action_values does, compiled."""
    row = index[h, s]
    if row >= 0:
        for a in range(Q.size):
            Q[a] = values.Q[h, row * Q.size + a]
    else:
        phi = features.phi[h if features.phi.shape[0] > 1 else 0, s]
        new_values(memory, prior, values, h, features.block[s], phi, Q, scratch)


@compiled
def table_row(features: FeatureTable, index: Ints, memory: Memory, h: int, s: int, legal: Bools) -> int:
    """The row of one of finitely many states, which becomes known if it was not."""
    if index[h, s] < 0:
        phi = features.phi[h if features.phi.shape[0] > 1 else 0, s]
        index[h, s] = add_state(memory, h, phi, features.block[s], legal)
    row: int = index[h, s]
    return row
