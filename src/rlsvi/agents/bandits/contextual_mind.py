"""The mind of the contextual bandit: Bayesian regressions of the reward, sampled block by block when needed."""

from typing import NamedTuple

import numpy as np

from rlsvi.agents.mind import Episode, Workspace, count, learn, plan, remember, values
from rlsvi.bases.basis import FeatureTable
from rlsvi.core.cholesky import rank_one
from rlsvi.core.compile import Bools, Floats, Ints, Longs, Words, compiled
from rlsvi.core.random import bits, reseed
from rlsvi.core.regression import Factor, add, draw, solve
from rlsvi.mdp.table import Table


class Draw(NamedTuple):
    """A sample of the posterior, or its mean, computed block by block when needed."""

    theta: Floats  # (P, B, d)
    made: Longs  # (P, B) number of the draw that theta belongs to
    number: Longs  # (1,) number of this draw
    key: Words  # (1,) identifies its noise
    sampled: Bools  # (1,) whether it is a sample rather than the mean


class ContextualMind(NamedTuple):
    """The posterior of P = H regressions, or of one for all periods, each with B blocks of d weights."""

    features: FeatureTable  # of finitely many states, otherwise empty
    factor: Factor
    reward: Floats  # (P, B, d) sum of phi r
    error: Floats
    mean: Floats  # (P, B, d) of the prior
    lam: float
    sigma: float
    sample: Draw  # to act on
    x: Floats  # (d,) work array
    counters: Longs  # (2,) episodes and steps learned from


def new_draw(P: int, B: int, d: int) -> Draw:
    """Return arrays for a sample."""
    return Draw(
        np.zeros((P, B, d)),
        np.zeros((P, B), np.int64),
        np.zeros(1, np.int64),
        np.zeros(1, np.uint64),
        np.zeros(1, np.bool_),
    )


@plan.register(ContextualMind)
def contextual_plan(mind: ContextualMind, sampled: bool, stream: Words) -> bool:
    """Start another draw, using one random number."""
    mind.sample.number[0] += 1
    mind.sample.key[0] = bits(stream) if sampled else np.uint64(0)
    mind.sample.sampled[0] = sampled
    return True


@values.register(ContextualMind)
def contextual_values(mind: ContextualMind, h: int, s: int, Q: Floats, scratch: Words) -> None:
    """Compute Q for one of finitely many states."""
    phi, block = mind.features.phi, mind.features.block
    sampled_values(mind, h, block[s], phi[h if phi.shape[0] > 1 else 0, s], Q, scratch)


@compiled
def sampled_values(mind: ContextualMind, h: int, block: Ints, phi: Floats, Q: Floats, scratch: Words) -> None:
    """Compute Q = phi . theta_h, given the blocks (A,) and features (A, d) of the actions."""
    sample = mind.sample
    p = h if sample.theta.shape[0] > 1 else 0
    for a in range(block.size):
        b = block[a]
        theta = sample.theta[p, b]
        if sample.made[p, b] != sample.number[0]:
            draw_block(mind, p, b, scratch)
        Q[a] = 0.0
        for k in range(theta.size):
            Q[a] += phi[a, k] * theta[k]


@compiled
def draw_block(mind: ContextualMind, p: int, b: int, scratch: Words) -> None:
    """Draw the weights of one block."""
    sample = mind.sample
    theta, ridge = sample.theta[p, b], mind.lam * mind.sigma * mind.sigma
    for k in range(theta.size):
        theta[k] = mind.reward[p, b, k] + ridge * mind.mean[p, b, k]
    U, inv = mind.factor.U[p, b], mind.factor.inv[p, b]
    if sample.sampled[0]:
        place = np.uint64(p * sample.made.shape[1] + b + 1)
        reseed(scratch, sample.key[0] ^ (place * np.uint64(0x9E3779B97F4A7C15)))
        draw(U, inv, theta, mind.sigma, scratch)
    else:
        solve(U, inv, theta)
    sample.made[p, b] = sample.number[0]


@learn.register(ContextualMind)
def contextual_learn(mind: ContextualMind, table: Table, T: int, work: Workspace) -> bool:
    """Add the steps of the episode to the regressions."""
    return add_steps(mind, mind.features, work.states, work.actions, work.rewards, T)


@remember.register(ContextualMind)
def contextual_remember(mind: ContextualMind, episode: Episode, work: Workspace) -> bool:
    """The same for an episode played elsewhere, whose places form a table of their own."""
    features = FeatureTable(episode.phi.reshape((1, *episode.phi.shape)), episode.block)
    T = episode.actions.size
    for h in range(T):
        work.visited[h] = h
    return add_steps(mind, features, work.visited, episode.actions, episode.rewards, T)


@compiled
def add_steps(
    mind: ContextualMind, features: FeatureTable, states: Longs, actions: Longs, rewards: Floats, T: int
) -> bool:
    """P += phi phi' for all steps, and then y += phi r. Returns False if a factor failed."""
    phi, pooled = features.phi, mind.reward.shape[0] == 1
    for h in range(T):
        p, s, a = 0 if pooled else h, states[h], actions[h]
        for k in range(mind.x.size):
            mind.x[k] = phi[h if phi.shape[0] > 1 else 0, s, a, k]
        b = features.block[s, a]
        if not rank_one(mind.factor.U[p, b], mind.factor.inv[p, b], mind.x):
            return False
    for h in range(T):
        p, s, a = 0 if pooled else h, states[h], actions[h]
        if rewards[h] != 0.0:
            b = features.block[s, a]
            add(mind.reward[p, b], mind.error[p, b], phi[h if phi.shape[0] > 1 else 0, s, a], rewards[h])
    return count(mind.counters, T)
