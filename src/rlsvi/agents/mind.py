"""Minds: the knowledge and plans of agents in compiled code, and the functions that every kind of mind has.

A mind is a named tuple of arrays, small named tuples and numbers, with its own class for each kind of agent. The
file of the kind registers its implementations of the functions below, which are called by the fused loop
(simulate/finite.py) and the agents. If arrays have to grow, a new mind is created and replaces the old one in a
single assignment, so that an interrupt comes either before or after it.

Every mind counts the episodes and the steps that it has learned from. `learn` and `remember` advance these
counters last, so that they show whether an episode was learned from, whatever happens afterwards.
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

ANY = -1  # in place of the number of an agent


class Workspace(NamedTuple):
    """The episode that the fused loop has just played, and work arrays for compiled code."""

    states: Longs  # (H,) of the episode
    actions: Longs  # (H,)
    rewards: Floats  # (H,)
    chances: Floats  # (H, A) the probabilities of its actions
    visited: Longs  # (H,) rows of the states in memory
    Q: Floats  # (A,)
    nature: Words  # the MDP's random stream
    scratch: Words
    kept: Words  # the agent's random streams before the episode
    mass: Floats  # (2, S)
    front: Longs  # (2, S + 1)


class Episode(NamedTuple):
    """An episode of T steps played outside compiled code; n is T + 1 if it was truncated, T otherwise."""

    rows: Longs  # (n,) rows of known states, or -1
    states: Longs  # (n,) their numbers, or -1 if observations are not numbered
    block: Ints  # (n, A) from the basis, for unknown states
    phi: Floats  # (n, A, d)
    legal: Bools  # (n, A)
    actions: Longs  # (T,)
    rewards: Floats  # (T,)
    goes_on: bool


@generic
def plan(mind: Any, sampled: bool, stream: Words) -> bool:
    """Draw a plan from the posterior, or use its mean if not `sampled`. Return False if a number is not finite."""
    raise NotImplementedError


@generic
def plan_as(mind: Any, k: int, sampled: bool, stream: Words) -> bool:
    """The same for number k of several agents that share this mind, or with k = ANY for all of them.

    In an ensemble, agent k has member k.
    """
    raise NotImplementedError


@plan_as.register(tuple)
def plan_as_any(mind: Any, k: int, sampled: bool, stream: Words) -> bool:
    """The default: every agent has a sample of its own in every episode."""
    return plan(mind, sampled, stream)


@generic
def values(mind: Any, h: int, s: int, Q: Floats, scratch: Words) -> None:
    """Set Q to the value of every action in period h and state s under the last plan."""
    raise NotImplementedError


@generic
def only_best(mind: Any, h: int, s: int, legal: Bools, Q: Floats, scratch: Words) -> int:
    """Return the unique legal action of the highest value in period h and state s, or -1 to use `values`.

    `Q` may be overwritten. Registering an own implementation is optional; it saves copying the values.
    """
    raise NotImplementedError


@only_best.register(object)
def only_best_of_values(mind: Any, h: int, s: int, legal: Bools, Q: Floats, scratch: Words) -> int:
    """The default implementation for all kinds."""
    values(mind, h, s, Q, scratch)
    return only_maximum(Q, unsigned(0), legal)


@generic
def learn(mind: Any, table: Table, T: int, work: Workspace) -> bool:
    """Learn from the episode of T steps in `work`.

    Returns False if a reward is outside the range that the agent can learn from, in which case nothing changes, or
    if a factor is no longer finite.
    """
    raise NotImplementedError


@generic
def remember(mind: Any, episode: Episode, work: Workspace) -> bool:
    """Learn from an episode that was played outside compiled code, like `learn`."""
    raise NotImplementedError


@generic
def is_full(mind: Any, episodes: int) -> bool:
    """Return whether there may be no room for so many more episodes."""
    raise NotImplementedError


@is_full.register(tuple)
def never_full(mind: Any, episodes: int) -> bool:
    """The default, since most minds do not grow."""
    return False


@compiled
def count(counters: Longs, steps: int) -> bool:
    """Count one more episode, and return True."""
    counters[EPISODES] += 1
    counters[STEPS] += steps
    return True


def new_counters() -> Longs:
    """Return counters at zero."""
    return np.zeros(2, np.int64)


def new_workspace(H: int, S: int, A: int) -> Workspace:
    """Return work arrays for a task of this size."""
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


def copy_of(mind: Any) -> Any:
    """Return a mind with copies of all arrays that can be written to."""
    if isinstance(mind, tuple):
        return type(mind)(*map(copy_of, mind))
    return mind.copy() if isinstance(mind, np.ndarray) and mind.flags.writeable else mind


def no_features(d: int) -> FeatureTable:
    """Return the empty table of a basis whose observations are not numbered."""
    return FeatureTable(read_only(np.zeros((1, 0, 0, d))), read_only(np.zeros((0, 0), np.int32)))
