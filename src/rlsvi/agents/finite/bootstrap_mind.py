"""The mind of BootstrapRLSVI: all distinct transitions, and value iteration with random weights."""

import math
from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.finite.memory import Memory
from rlsvi.agents.finite.mind import episode_rows, finite_is_full, finite_only_best, finite_values, known_rows
from rlsvi.agents.finite.outcomes import END, Outcomes, add_outcome
from rlsvi.agents.finite.value_iteration import Prior, Values, all_finite, known_values
from rlsvi.agents.mind import Episode, Workspace, count, is_full, learn, only_best, plan, remember, values
from rlsvi.bases.basis import FeatureTable
from rlsvi.core.cholesky import rank_one, solve_upper
from rlsvi.core.compile import Floats, Ints, Longs, Words, compiled
from rlsvi.core.dispatch import generic
from rlsvi.core.random import bits, gamma, normal
from rlsvi.core.regression import Factor
from rlsvi.mdp.table import Table


class BootstrapMind(NamedTuple):
    """Like FiniteMind, but the past is in `outcomes`, and `memory` has no sums.

    `factor` is a work array: every plan has other weights. It has one column more than there are weights, for the
    targets. A row (x, b) is added to both in one rank-one update, so that the last column of L' becomes L^-1 y.
    """

    features: FeatureTable
    rows: Ints  # (H, S) or (H, 0)
    memory: Memory
    outcomes: Outcomes
    factor: Factor  # (B, d + 1, d + 1) and (B, d + 1)
    prior: Prior  # `ridge` is the weight of the artificial data
    spread: float  # standard deviation of their targets
    values: Values
    x: Floats  # (d + 1,) work array


values.register(BootstrapMind)(finite_values)
only_best.register(BootstrapMind)(finite_only_best)


class FreshWeights(NamedTuple):
    """New weights and artificial targets in every plan, or the expected ones if not `sampled`."""

    sampled: bool
    spread: float
    stream: Words


@plan.register(BootstrapMind)
def bootstrap(mind: BootstrapMind, sampled: bool, stream: Words) -> bool:
    """Value iteration with new random weights, or without them if not `sampled`."""
    mind.values.key[0] = bits(stream) if sampled else np.uint64(0)
    for h in range(mind.values.spread.size):
        mind.values.spread[h] = mind.spread if sampled else 0.0
    return weighted_iteration(mind, FreshWeights(sampled, mind.spread, stream))


@compiled
def weighted_iteration(mind: Any, weights: Any) -> bool:
    """For h = H-1, .., 0 regress r + V_{h+1} on the features, with these weights.

    Returns False if a factor or a weight is not finite.
    """
    memory, values = mind.memory, mind.values
    d = values.theta.shape[2]
    for h in range(memory.states.size - 1, -1, -1):
        artificial_data(mind, weights, h)
        if not real_data(mind, weights, h):
            return False
        for i in range(memory.lives[h]):
            b = memory.live[h, i]
            theta, U = values.theta[h, b], mind.factor.U[b]
            for k in range(d):
                theta[k] = U[k, d]
            solve_upper(U, mind.factor.inv[b], theta)
            if not all_finite(theta):
                return False
        known_values(memory, values, h)
    return True


@generic
def artificial(weights: Any, mind: Any, h: int, b: int, k: int) -> tuple[float, float]:
    """Return the weight and the target of the artificial observation of weight k in a block; k = 0 comes first."""
    raise NotImplementedError


@artificial.register(FreshWeights)
def fresh_artificial(weights: FreshWeights, mind: Any, h: int, b: int, k: int) -> tuple[float, float]:
    """The weight is Gamma(prior_weight), and the target normal."""
    weight, target = mind.prior.ridge, mind.prior.mean[h, b, k]
    if weights.sampled:
        weight = gamma(weights.stream, weight)
        target += weights.spread * normal(weights.stream)
    return weight, target


@generic
def weight_of(weights: Any, outcomes: Outcomes, h: int, e: int) -> float:
    """Return the sum of the weights of all copies of a transition."""
    raise NotImplementedError


@weight_of.register(FreshWeights)
def fresh_weight(weights: FreshWeights, outcomes: Outcomes, h: int, e: int) -> float:
    """The n copies of a transition have a weight of Exp(1) each, together Gamma(n)."""
    times: float = outcomes.times[h, e]
    return gamma(weights.stream, times) if weights.sampled else times


@compiled
def artificial_data(mind: Any, weights: Any, h: int) -> None:
    """Start the factors of the live blocks with one artificial observation for each weight."""
    memory, d = mind.memory, mind.prior.mean.shape[2]
    for i in range(memory.lives[h]):
        b = memory.live[h, i]
        U, inv = mind.factor.U[b], mind.factor.inv[b]
        for k in range(d):
            weight, target = artificial(weights, mind, h, b, k)
            root = math.sqrt(weight)
            for j in range(k + 1, d):
                U[k, j] = 0.0
            U[k, k], inv[k], U[k, d] = root, 1.0 / root, root * target
        U[d, d] = inv[d] = 1.0  # its value does not matter


@compiled
def real_data(mind: Any, weights: Any, h: int) -> bool:
    """Add the transitions of period h to the factors, one row for each pair. Returns False if a factor failed.

    Transitions from the same pair have the same features, so that only the sum of their weights and their weighted
    mean target matter.
    """
    memory, outcomes, x = mind.memory, mind.outcomes, mind.x
    d, A = x.size - 1, memory.block.shape[1] // memory.sum_head.shape[1]
    for pair in range(memory.states[h] * A):
        total = targets = 0.0
        e = outcomes.head[h, pair]
        while e >= 0:
            target, following = outcomes.reward[h, e], outcomes.following[h, e]
            if following != END:
                target += mind.values.V[h + 1, following]
            weight = weight_of(weights, outcomes, h, e)
            total += weight
            targets += weight * target
            e = outcomes.link[h, e]
        if total > 0.0:
            root = math.sqrt(total)
            for k in range(d):
                x[k] = root * memory.phi[h, k, pair]
            x[d] = targets / root
            b = memory.block[h, pair]
            if not rank_one(mind.factor.U[b], mind.factor.inv[b], x):
                return False
    return True


@learn.register(BootstrapMind)
def bootstrap_learn(mind: BootstrapMind, table: Table, T: int, work: Workspace) -> bool:
    """Add the states of the episode that are new, then count its transitions."""
    known_rows(mind, table, T, work)
    add_steps(mind, work.visited, work.actions, work.rewards, T, False)
    return count(mind.memory.counters, T)


@remember.register(BootstrapMind)
def bootstrap_remember(mind: BootstrapMind, episode: Episode, work: Workspace) -> bool:
    """The same for an episode played elsewhere."""
    episode_rows(mind, episode, work)
    T = episode.actions.size
    add_steps(mind, work.visited, episode.actions, episode.rewards, T, episode.goes_on)
    return count(mind.memory.counters, T)


@compiled
def add_steps(mind: Any, visited: Longs, actions: Longs, rewards: Floats, T: int, goes_on: bool) -> None:
    """Count the transitions of T steps through known states; if it `goes_on`, the last led to visited[T].

    The first T of `visited` are overwritten with the positions of their outcomes.
    """
    A = mind.memory.block.shape[1] // mind.memory.sum_head.shape[1]
    for h in range(T):
        following = visited[h + 1] if goes_on or h + 1 < T else END
        visited[h] = add_outcome(mind.outcomes, h, visited[h] * A + actions[h], rewards[h], following)


@is_full.register(BootstrapMind)
def bootstrap_is_full(mind: Any, episodes: int) -> bool:
    """Return whether room may be short; an episode also adds at most an outcome per period."""
    for h in range(mind.outcomes.many.size):
        if mind.outcomes.many[h] + episodes > mind.outcomes.link.shape[1]:
            return True
    return finite_is_full(mind, episodes)
