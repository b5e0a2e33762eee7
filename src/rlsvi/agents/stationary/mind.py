"""The mind of a stationary agent, and learning from an episode in one compiled call."""

import math
from typing import NamedTuple

import numpy as np

from rlsvi.agents.contract import count, new_counters
from rlsvi.agents.noise import Model
from rlsvi.agents.stationary.ring import Numbers, Ring, begin_transition
from rlsvi.agents.stationary.sweeps import Work, new_work
from rlsvi.core.compile import Floats, Ints, Longs, compiled

LONGEST, EXCESS, DIVERGED = range(3)  # indices of StationaryMind.watch


class StationaryMind(NamedTuple):
    """The transitions, the regression over them, and theta^-."""

    ring: Ring
    model: Model
    work: Work
    theta: Floats  # (B, d) of the last episode: theta^-
    counters: Longs  # (2,) episodes and steps learned from
    watch: Floats  # (3,) steps of the longest episode, size of the last targets as multiples of what is
    # explained, and whether that was ever too large
    spread: float  # the largest absolute weight that the prior explains
    diverged_above: float


def new_mind(ring: Ring, model: Model, actions: int, diverged_above: float) -> StationaryMind:
    """Return a mind with this ring that has learned nothing else."""
    ridge = model.ridge
    sd = math.sqrt(model.scale / model.shape / ridge) if model.shape else model.sigma / math.sqrt(ridge)
    spread = float(np.abs(model.mean).max()) + sd
    theta, watch, work = model.mean.copy(), np.zeros(3), new_work(ring, actions)
    return StationaryMind(ring, model, work, theta, new_counters(), watch, spread, float(diverged_above))


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
    """Learn from an episode that was played with `theta`; the ring must have room for it.

    `pairs` (T,) is the number of next actions of each transition, 0 if it terminated; `next_x` (M, P) and
    `next_block` (M,) contain them one after another. `row` (d,), of the type of gram, is overwritten.
    """
    ring, j = mind.ring, 0
    for t in range(rewards.size):
        begin = begin_transition(ring, x[t], block[t], rewards[t], pairs[t], row)
        for p in range(begin, begin + pairs[t]):
            ring.next_block[p] = next_block[j]
            for k in range(next_x.shape[1]):
                ring.next_x[k, p] = next_x[j, k]
            j += 1
    count_episode(mind, theta, largest, rewards.size)


@compiled
def count_episode(mind: StationaryMind, theta: Floats, largest: float, steps: int) -> None:
    """Store theta as theta^-, check whether its targets can be explained, and count the episode."""
    watch = mind.watch
    for b in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            mind.theta[b, k] = theta[b, k]
    watch[LONGEST] = max(watch[LONGEST], float(steps))
    explained = explained_target(mind)
    watch[EXCESS] = largest / explained if explained > 0.0 else 0.0
    if watch[EXCESS] > mind.diverged_above:
        watch[DIVERGED] = 1.0
    count(mind.counters, steps)


@compiled
def explained_target(mind: StationaryMind) -> float:
    """Return the largest target that rewards, prior and discount explain."""
    gamma = mind.model.gamma
    periods = 1.0 / (1.0 - gamma) if gamma < 1.0 else mind.watch[LONGEST]
    return float((mind.ring.reach[0] + mind.ring.reach[1] * mind.spread) * periods)
