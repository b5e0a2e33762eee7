"""What a stationary agent has learned, as compiled code takes it; and learning from an episode in one call."""

import math
from typing import NamedTuple

import numpy as np

from rlsvi.agents.stationary.ring import Numbers, Ring, begin_transition, keep_pair
from rlsvi.agents.stationary.sweeps import Model, Work
from rlsvi.core.compile import Floats, Ints, Longs, compiled

LONGEST, EXCESS, DIVERGED = range(3)  # of StationaryMind.watch


class StationaryMind(NamedTuple):
    """The transitions, the regression over them, and theta^-."""

    ring: Ring
    model: Model
    work: Work
    theta: Floats  # (B, d) of the last episode: theta^-
    counters: Longs  # (2,) episodes and steps learned from
    watch: Floats  # (3,) steps of the longest episode, size of the last targets as multiples of what is
    # explained, and whether that was ever too much
    spread: float  # the largest size of a weight that the prior explains
    diverged_above: float


def spread_of(model: Model) -> float:
    """The largest prior mean and one standard deviation of the prior."""
    ridge = model.ridge
    sd = math.sqrt(model.scale / model.shape / ridge) if model.shape else model.sigma / math.sqrt(ridge)
    return float(np.abs(model.mean).max()) + sd


@compiled
def fits(ring: Ring, pairs: Ints, starts: Longs) -> bool:
    """Whether there is room for transitions with so many next actions each. `starts` (T,) is overwritten.

    It does the arithmetic of `begin_transition` without keeping anything.
    """
    room, columns, limit = ring.x.shape[0], ring.next_x.shape[1], ring.limit[0]
    first, size, head, evicted, had = ring.first[0], ring.size[0], ring.head[0], 0, ring.size[0]
    for t in range(pairs.size):
        if size == limit:
            first = first + 1 if first + 1 < room else 0
            size -= 1
            evicted += 1
        p = -1
        if size == 0:
            p = 0 if pairs[t] <= columns else -1
        else:
            tail = ring.start[first] if evicted < had else starts[evicted - had]
            if head >= tail:
                if head + pairs[t] <= columns:
                    p = head
                elif pairs[t] < tail:
                    p = 0
            elif head + pairs[t] < tail:
                p = head
        if p < 0 or size == room:
            return False
        starts[t] = p
        head = p + pairs[t]
        size += 1
    return True


@compiled
def remember_episode(
    mind: StationaryMind,
    theta: Floats,
    largest: float,
    x: Numbers,
    block: Ints,
    rewards: Floats,
    pairs: Ints,
    next_x: Numbers,
    next_block: Ints,
    row: Numbers,
) -> None:
    """Learn from an episode that was played on `theta`; the ring must have room for it.

    `pairs` (T,) says how many next actions each transition has, 0 if it terminated; `next_x` (M, P) and
    `next_block` (M,) hold them one after another. `row` (d,), of the type of gram, is overwritten.
    """
    j = 0
    for t in range(rewards.size):
        p = begin_transition(mind.ring, x[t], block[t], rewards[t], pairs[t], row)
        for k in range(pairs[t]):
            keep_pair(mind.ring, p + k, next_x[j], next_block[j])
            j += 1
    count_episode(mind, theta, largest, rewards.size)


@compiled
def count_episode(mind: StationaryMind, theta: Floats, largest: float, steps: int) -> None:
    """Keep theta as theta^-, see whether its targets can be explained, and count the episode."""
    watch = mind.watch
    for b in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            mind.theta[b, k] = theta[b, k]
    watch[LONGEST] = max(watch[LONGEST], float(steps))
    explained = explained_target(mind)
    watch[EXCESS] = largest / explained if explained > 0.0 else 0.0
    if watch[EXCESS] > mind.diverged_above:
        watch[DIVERGED] = 1.0
    mind.counters[0] += 1
    mind.counters[1] += steps


@compiled
def explained_target(mind: StationaryMind) -> float:
    """The largest target that rewards, prior and discount explain."""
    gamma = mind.model.gamma
    periods = 1.0 / (1.0 - gamma) if gamma < 1.0 else mind.watch[LONGEST]
    return float((mind.ring.reach[0] + mind.ring.reach[1] * mind.spread) * periods)
