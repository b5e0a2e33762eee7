"""Distinct transitions with their counts: what a bootstrap needs, since every transition gets a weight of its own.

A transition from a known state and action (a pair) to a next state with a reward is stored once, with the number
of times it happened. The outcomes of a pair are linked, from the last one found to the first.
"""

from typing import NamedTuple

import numpy as np

from rlsvi.agents.finite.memory import Memory
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.compile import Floats, Ints, Longs, compiled

END = -1  # stands for the next state of a step that ended its episode


class Outcomes(NamedTuple):
    """H periods; room for C A pairs and E outcomes per period."""

    many: Longs  # (H,) number of outcomes
    head: Ints  # (H, C A) the last outcome of a pair, or -1
    link: Ints  # (H, E) another outcome of the same pair, or -1
    following: Ints  # (H, E) the next state, as a row of period h + 1, or END
    reward: Floats  # (H, E)
    times: Floats  # (H, E) how many times it happened


def no_outcomes(H: int, pairs: int, room: int = 16) -> Outcomes:
    """Return arrays without outcomes."""
    return Outcomes(
        many=np.zeros(H, np.int64),
        head=np.full((H, pairs), -1, np.int32),
        link=np.full((H, room), -1, np.int32),
        following=np.full((H, room), END, np.int32),
        reward=np.zeros((H, room)),
        times=np.zeros((H, room)),
    )


def resized(outcomes: Outcomes, pairs: int, room: int) -> Outcomes:
    """Return the same outcomes with room for other numbers of pairs and outcomes."""
    other = no_outcomes(len(outcomes.many), pairs, room)
    other.many[:] = outcomes.many
    for name in Outcomes._fields[1:]:
        old, new = getattr(outcomes, name), getattr(other, name)
        n = min(old.shape[1], new.shape[1])
        new[:, :n] = old[:, :n]
    return other


@compiled
def add_outcome(outcomes: Outcomes, h: int, pair: int, reward: float, following: int) -> int:
    """Count one more transition, and return the position of its outcome."""
    e: int = outcomes.head[h, pair]
    while e >= 0:
        if outcomes.reward[h, e] == reward and outcomes.following[h, e] == following:
            outcomes.times[h, e] += 1.0
            return e
        e = outcomes.link[h, e]
    e = outcomes.many[h]
    outcomes.many[h] = e + 1
    outcomes.reward[h, e] = reward + 0.0  # turns -0 into 0, which are equal
    outcomes.following[h, e] = following
    outcomes.times[h, e] = 1.0
    outcomes.link[h, e] = outcomes.head[h, pair]
    outcomes.head[h, pair] = e
    return e


def read_outcomes(file: Archive, memory: Memory) -> Outcomes:
    """Read the outcomes of the states in `memory` from a file, checking that all indices are within bounds."""
    H, pairs = memory.block.shape
    room, last = file.shape("outcomes.link", 2)[1], memory.sum_head.shape[1] - 1
    if room < 1:
        raise ArchiveError("is damaged: it has no room for outcomes")
    outcomes = Outcomes(
        many=file.take_within("outcomes.many", (H,), np.int64, 0, room),
        head=file.take_within("outcomes.head", (H, pairs), np.int32, -1, room - 1),
        link=file.take_within("outcomes.link", (H, room), np.int32, -1, room - 1),
        following=file.take_within("outcomes.following", (H, room), np.int32, END, last),
        reward=file.take("outcomes.reward", (H, room)),
        times=file.take("outcomes.times", (H, room)),
    )
    if room != max(outcomes.many.max(), 1) or not all(_is_sound(memory, outcomes, h) for h in range(H)):
        raise ArchiveError("is damaged: its outcomes are not linked as they were")
    if sum(outcomes.times[h, :n].sum() for h, n in enumerate(outcomes.many)) != memory.counters[1]:
        raise ArchiveError("is damaged: its outcomes are not as many as its steps")
    return outcomes


def _is_sound(memory: Memory, outcomes: Outcomes, h: int) -> bool:
    """Return whether every outcome of a period is reached once, from a legal pair, and leads to a known state."""
    H, n = len(memory.states), outcomes.many[h]
    tried = np.flatnonzero(outcomes.head[h] >= 0)
    link, following = outcomes.link[h, :n], outcomes.following[h, :n]
    reached = np.sort(np.concatenate([outcomes.head[h, tried], link[link >= 0]]))
    known = memory.states[h + 1] if h + 1 < H else 0
    return bool(
        np.array_equal(reached, np.arange(n))
        and (link < np.arange(n)).all()
        and (tried < memory.states[h] * (memory.block.shape[1] // memory.sum_head.shape[1])).all()
        and (memory.barred[h, tried] == 0).all()
        and memory.alive[h, memory.block[h, tried]].all()
        and (following < known).all()
        and (outcomes.times[h, :n] >= 1).all()
    )
