"""What an agent knows and acts on, as compiled code takes it, and the functions that every kind of mind has.

A mind is a named tuple of arrays, small named tuples and numbers, with a class of its own for each kind of agent.
The file of the kind registers its implementations of the functions below, which the fused loop
(simulate/finite.py) and the agents call. Where arrays have to grow, another mind is made and replaces the first
one in one assignment, so that an interruption falls before or after it.

Every mind counts the episodes and the steps that it has learned from. `learn` and `remember` advance these
counters last, so that they tell whether an episode was learned from, whatever happened after it.
"""

from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.contract import EPISODES, STEPS
from rlsvi.bases.basis import FeatureTable
from rlsvi.core.checks import read_only
from rlsvi.core.compile import Bools, Floats, Ints, Longs, Words, compiled, unsigned
from rlsvi.core.dispatch import generic
from rlsvi.core.random import only_maximum
from rlsvi.mdp.table import Table


class Workspace(NamedTuple):
    """The episode that the fused loop has just played, and room for compiled code to work in."""

    states: Longs  # (H,) the episode
    actions: Longs  # (H,)
    rewards: Floats  # (H,)
    chances: Floats  # (H, A) the probabilities its actions were drawn with
    visited: Longs  # (H,) rows of the states in memory
    Q: Floats  # (A,)
    nature: Words  # the MDP's random stream
    scratch: Words
    kept: Words  # the agent's random streams before the episode
    mass: Floats  # (2, S)
    front: Longs  # (2, S + 1)


class Episode(NamedTuple):
    """An episode of T steps played outside of compiled code; n = T + 1 if it was cut off and goes on, else T."""

    rows: Longs  # (n,) the rows of states known before, or -1
    states: Longs  # (n,) their numbers; -1 for observations of any kind
    block: Ints  # (n, A) what the basis gives for states that were not known
    phi: Floats  # (n, A, d)
    legal: Bools  # (n, A)
    actions: Longs  # (T,)
    rewards: Floats  # (T,)
    goes_on: bool


@generic
def plan(mind: Any, sampled: bool, stream: Words) -> bool:
    """Draw what to act on from the posterior or, not `sampled`, take its mean. False if a number is not finite."""
    raise NotImplementedError


@generic
def values(mind: Any, h: int, s: int, Q: Floats, scratch: Words) -> None:
    """Q <- what every action is worth in period h and state s, by the last plan."""
    raise NotImplementedError


@generic
def only_best(mind: Any, h: int, s: int, legal: Bools, Q: Floats, scratch: Words) -> int:
    """The one legal action of the highest value in period h and state s, or -1 if `values` must decide.

    `Q` may be overwritten. A kind of minds need not register its own, which saves copying its values.
    """
    raise NotImplementedError


@only_best.register(object)
def only_best_of_values(mind: Any, h: int, s: int, legal: Bools, Q: Floats, scratch: Words) -> int:
    """The same for every kind."""
    values(mind, h, s, Q, scratch)
    return only_maximum(Q, unsigned(0), legal)


@generic
def learn(mind: Any, table: Table, T: int, work: Workspace) -> bool:
    """Learn from the episode of T steps in `work`.

    False if a reward is outside of the range that the agent can learn from, in which case nothing has changed, or
    if a factor is no longer finite.
    """
    raise NotImplementedError


@generic
def remember(mind: Any, episode: Episode, work: Workspace) -> bool:
    """Learn from an episode that was played outside of compiled code; as `learn`."""
    raise NotImplementedError


@generic
def is_full(mind: Any) -> bool:
    """Whether one more episode might not fit."""
    raise NotImplementedError


@is_full.register(tuple)
def never_full(mind: Any) -> bool:
    """Most minds do not grow."""
    return False


@compiled
def count(counters: Longs, steps: int) -> bool:
    """One more episode was learned from: True."""
    counters[EPISODES] += 1
    counters[STEPS] += steps
    return True


def new_counters() -> Longs:
    """Nothing was learned from."""
    return np.zeros(2, np.int64)


def new_workspace(H: int, S: int, A: int) -> Workspace:
    """Room for a task of this size."""
    return Workspace(
        states=np.empty(H, np.int64),
        actions=np.empty(H, np.int64),
        rewards=np.full(H, np.nan),
        chances=np.empty((H, A)),
        visited=np.empty(H, np.int64),
        Q=np.empty(A),
        nature=np.empty(4, np.uint64),
        scratch=np.empty(4, np.uint64),
        kept=np.empty((4, 4), np.uint64),
        mass=np.zeros((2, S)),
        front=np.empty((2, S + 1), np.int64),
    )


def no_features(d: int) -> FeatureTable:
    """The table of a basis for observations of any kind, which has none."""
    return FeatureTable(read_only(np.zeros((1, 0, 0, d))), read_only(np.zeros((0, 0), np.int32)))
