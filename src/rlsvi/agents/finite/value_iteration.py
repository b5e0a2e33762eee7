"""Algorithm 1, Randomized Least-Squares Value Iteration, and LSVI, which omits its noise.

Known noise: theta_h ~ N(mean, I / lam), targets b_i = x_i . theta_h + N(0, sigma^2), and ridge = lam sigma^2.
Unknown noise, one sigma_h^2 per period: sigma_h^2 ~ InverseGamma(shape, scale), theta_h | sigma_h^2 ~ N(mean,
sigma_h^2 I / lam), and ridge = lam. With n transitions sigma_h^2 is then drawn from
InverseGamma(shape + n / 2, scale + (|b|^2 + ridge |mean|^2 - |L^-1 y|^2) / 2), where P = ridge I + A'A = L L' and
y = A'b + ridge mean, and theta_h from N(P^-1 y, sigma_h^2 P^-1).
"""

import math
from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.finite.memory import Memory
from rlsvi.core.cholesky import solve_lower, solve_upper
from rlsvi.core.compile import FOUR, ONE, THREE, TWO, Bools, Floats, Ints, Longs, Words, compiled, kernel, unsigned
from rlsvi.core.dispatch import generic
from rlsvi.core.random import bits, normal, reseed
from rlsvi.core.random import gamma as gamma_variate

WIDTH = 64  # minimum number of pairs whose values are computed together


class Prior(NamedTuple):
    """The prior of the weights, and of the noise of a target."""

    mean: Floats  # (H, B, d)
    lam: float
    ridge: float
    sigma: float  # if the noise is known
    shape: float  # if the noise is unknown; 0 if it is known
    scale: float


class PriorOfNoise(Prior):
    """The same for unknown noise; a separate class, so that known noise compiles no sampling of sigma."""

    __slots__ = ()


class Values(NamedTuple):
    """One value function: the weights theta_h, and Q_h and V_h at the known states."""

    theta: Floats  # (H, B, d); undefined for blocks that are not live
    Q: Floats  # (H, C A)
    V: Floats  # (H, C)
    key: Words  # (1,) identifies the noise of the blocks that are not live
    spread: Floats  # (H,) and its scale
    sigma: Floats  # (H,) of the targets, known or drawn
    ordered: Longs  # (H,) number of leading known states with one block per action, in order
    tile: Floats  # (d, a multiple of A) work array: copies of theta_h, if B = A


def no_values(H: int, A: int, B: int, d: int, room: int) -> Values:
    """Return arrays for a value function."""
    return Values(
        np.zeros((H, B, d)),
        np.zeros((H, room * A)),
        np.zeros((H, room)),
        np.zeros(1, np.uint64),
        np.zeros(H),
        np.zeros(H),
        np.zeros(H, np.int64),
        np.zeros((d, -(-WIDTH // A) * A if A == B else 0)),
    )


@compiled
def value_iteration(mind: Any, sampled: bool, stream: Words) -> bool:
    """Algorithm 1: for h = H-1, .., 0 regress r + V_{h+1} on the features, and sample theta_h.

    If not `sampled`, theta_h is the posterior mean, which is LSVI with the same ridge.
    Returns False if a weight is not finite.
    """
    memory, factor, prior, values = mind.memory, mind.factor, mind.prior, mind.values
    values.key[0] = bits(stream) if sampled else np.uint64(0)
    for h in range(memory.states.size - 1, -1, -1):
        regression_targets(memory, prior, values, h)
        solved = draw_sigma(prior, mind, h, sampled, stream)
        sigma = values.sigma[h]
        for i in range(memory.lives[h]):
            b = memory.live[h, i]
            U, inv, theta = factor.U[h, b], factor.inv[h, b], values.theta[h, b]
            if not solved:
                solve_lower(U, inv, theta)
            if sampled:
                for k in range(theta.size):
                    theta[k] += sigma * normal(stream)
            solve_upper(U, inv, theta)
            if not all_finite(theta):
                return False
        known_values(memory, values, h)
        clip_values(prior, memory, values, h)
    return True


@generic
def clip_values(prior: Any, memory: Memory, values: Values, h: int) -> None:
    """Clip V_h at the known states to the bounds of the prior."""
    raise NotImplementedError


@clip_values.register(Prior)
def no_bounds(prior: Any, memory: Memory, values: Values, h: int) -> None:
    """Values have no bounds in Algorithm 1."""


@generic
def draw_sigma(prior: Any, mind: Any, h: int, sampled: bool, stream: Words) -> bool:
    """Set sigma_h and the prior's spread. Return True if this turned the live theta_h from y into L^-1 y.

    A prior with noise that is not drawn anew, such as a member of an ensemble, adds it to the live theta_h = y.
    """
    raise NotImplementedError


@draw_sigma.register(Prior)
def known_sigma(prior: Any, mind: Any, h: int, sampled: bool, stream: Words) -> bool:
    """Set the known sigma_h."""
    mind.values.sigma[h] = prior.sigma
    mind.values.spread[h] = 1.0 / math.sqrt(prior.lam) if sampled else 0.0
    return False


@draw_sigma.register(PriorOfNoise)
def sampled_sigma(prior: Any, mind: Any, h: int, sampled: bool, stream: Words) -> bool:
    """Draw sigma_h, unless only the posterior mean is needed, which does not depend on it."""
    if not sampled:
        return known_sigma(prior, mind, h, sampled, stream)
    memory, factor, values = mind.memory, mind.factor, mind.values
    misfit = squared_targets(memory, values, h)
    for i in range(memory.lives[h]):
        b = memory.live[h, i]
        theta, mean = values.theta[h, b], prior.mean[h, b]
        solve_lower(factor.U[h, b], factor.inv[h, b], theta)
        for k in range(theta.size):
            misfit += prior.ridge * mean[k] * mean[k] - theta[k] * theta[k]
    variate = gamma_variate(stream, prior.shape + 0.5 * memory.counts[h])
    values.sigma[h] = math.sqrt((prior.scale + 0.5 * max(misfit, 0.0)) / variate)
    values.spread[h] = 1.0 / math.sqrt(prior.lam) * values.sigma[h]
    return True


@compiled
def squared_targets(memory: Memory, values: Values, h: int) -> float:
    """Return |b|^2 in period h."""
    total: float = memory.squares[h]
    for e in range(memory.sums[h]):
        v = values.V[h + 1, memory.sum_next[h, e]]
        total += v * (2.0 * memory.into_reward[h, e] + memory.into_count[h, e] * v)
    return total


@compiled
def all_finite(theta: Floats) -> bool:
    """Return whether all numbers are finite, without an early exit, so that the loop can be vectorised."""
    broken = 0
    for k in range(theta.size):
        broken += 0 if abs(theta[k]) < np.inf else 1
    return broken == 0


@compiled
def regression_targets(memory: Memory, prior: Prior, values: Values, h: int) -> None:
    """theta_h <- A'b + ridge prior_mean, where b_i = r_i + V_{h+1}(s_i')."""
    d, sums = unsigned(values.theta.shape[2]), unsigned(memory.sums[h])
    for i in range(memory.lives[h]):
        b = memory.live[h, i]
        theta, reward, mean = values.theta[h, b], memory.reward[h, b], prior.mean[h, b]
        for k in range(d):
            theta[k] = reward[k] + prior.ridge * mean[k]
    if sums == 0:  # as in the last period, which has no next V
        return
    V, following, into = values.V[h + 1], memory.sum_next[h], memory.into[h]
    if values.theta.shape[1] == 1:
        add_in_order(values.theta[h, 0], into, following, V, sums)
    else:
        for e in range(sums):
            theta, v = values.theta[h, memory.sum_block[h, e]], V[following[e]]
            for k in range(d):
                theta[k] += into[e, k] * v


@kernel
def add_in_order(theta: Floats, into: Floats, following: Ints, V: Floats, count: unsigned) -> None:
    """theta += sum_e into[e] V[following[e]] for e < count, in this order, with few passes over theta."""
    d = unsigned(theta.size)
    fours = count - count % FOUR
    for e in range(unsigned(0), fours, FOUR):
        f, g, i = e + ONE, e + TWO, e + THREE
        v0, v1, v2, v3 = V[following[e]], V[following[f]], V[following[g]], V[following[i]]
        for k in range(d):
            theta[k] = (((theta[k] + into[e, k] * v0) + into[f, k] * v1) + into[g, k] * v2) + into[i, k] * v3
    for e in range(fours, count):
        v = V[following[e]]
        for k in range(d):
            theta[k] += into[e, k] * v


@compiled
def known_values(memory: Memory, values: Values, h: int) -> None:
    """Compute Q_h = phi . theta_h, -inf if illegal, and V_h = max_a Q_h at the states known in period h."""
    Q, V, theta, phi = values.Q[h], values.V[h], values.theta[h], memory.phi[h]
    n, A = unsigned(memory.states[h]), unsigned(Q.size // V.size)
    if theta.shape[0] == 1:
        dense_values(Q, memory.barred[h], phi, theta[0], n * A)
    elif in_order(memory, values, h):
        ordered_values(Q, memory.barred[h], phi, theta, values.tile, n * A)
    else:
        for pair in range(n * A):
            Q[pair] = memory.barred[h, pair]
        for k in range(theta.shape[1]):
            for pair in range(n * A):
                Q[pair] += phi[k, pair] * theta[memory.block[h, pair], k]
    for j in range(n):  # the first and the last action, which is all if there are two
        V[j] = max(Q[j * A], Q[j * A + (A - ONE)])
    for a in range(ONE, A - ONE):
        for j in range(n):
            V[j] = max(V[j], Q[j * A + a])


@kernel
def dense_values(Q: Floats, barred: Floats, phi: Floats, theta: Floats, pairs: unsigned) -> None:
    """Q = barred + theta . phi for one block; features are added in order, four per pass over Q."""
    d = unsigned(theta.size)
    head = (d - ONE) % FOUR + ONE  # 1 to 4 features, then fours
    w0 = theta[0]
    if head == ONE:
        for pair in range(pairs):
            Q[pair] = barred[pair] + phi[0, pair] * w0
    else:
        w1 = theta[1]
        for pair in range(pairs):
            Q[pair] = (barred[pair] + phi[0, pair] * w0) + phi[1, pair] * w1
    for k in range(TWO, head):
        w0 = theta[k]
        for pair in range(pairs):
            Q[pair] += phi[k, pair] * w0
    for k in range(head, d, FOUR):
        i, j, m = k + ONE, k + TWO, k + THREE
        w0, w1, w2, w3 = theta[k], theta[i], theta[j], theta[m]
        for pair in range(pairs):
            Q[pair] = (((Q[pair] + phi[k, pair] * w0) + phi[i, pair] * w1) + phi[j, pair] * w2) + phi[m, pair] * w3


@compiled
def in_order(memory: Memory, values: Values, h: int) -> bool:
    """Return whether every known state has one block per action, in order; checks only new states."""
    B = values.theta.shape[1]
    if values.tile.shape[1] == 0:
        return False
    while values.ordered[h] < memory.states[h]:
        j = values.ordered[h]
        for a in range(B):
            if memory.block[h, j * B + a] != a:
                return False
        values.ordered[h] = j + 1
    return True


@kernel
def ordered_values(Q: Floats, barred: Floats, phi: Floats, theta: Floats, tile: Floats, pairs: unsigned) -> None:
    """Q = barred + theta . phi for one block per action; features are added in order, theta laid out like phi."""
    B, d, width = unsigned(theta.shape[0]), unsigned(theta.shape[1]), unsigned(tile.shape[1])
    for k in range(d):
        for b in range(B):
            tile[k, b] = theta[b, k]
        for p in range(B, min(width, pairs)):
            tile[k, p] = tile[k, p - B]
    head = d % FOUR
    for c in range(unsigned(0), pairs, width):
        m = min(width, pairs - c)
        for p in range(m):
            Q[c + p] = barred[c + p]
        for k in range(head):
            for p in range(m):
                Q[c + p] += phi[k, c + p] * tile[k, p]
        for k in range(head, d, FOUR):
            i, j, z = k + ONE, k + TWO, k + THREE
            for p in range(m):
                e = c + p
                q = (Q[e] + phi[k, e] * tile[k, p]) + phi[i, e] * tile[i, p]
                Q[e] = (q + phi[j, e] * tile[j, p]) + phi[z, e] * tile[z, p]


@compiled
def new_values(
    alive: Bools, prior: Prior, values: Values, h: int, block: Ints, phi: Floats, Q: Floats, scratch: Words
) -> None:
    """Q_h = phi . theta_h at a state that is not known yet, given the blocks and features of its actions.

    A block that is not live has no data: its weights come from the prior, and are the same throughout an episode.
    """
    for a in range(block.size):
        b, q, x = block[a], 0.0, phi[a]
        if alive[h, b]:
            theta = values.theta[h, b]
            for k in range(unsigned(x.size)):
                q += x[k] * theta[k]
        else:
            mean = prior.mean[h, b]
            reseed(scratch, key_of_block(values.key[0], alive, h, b))
            for k in range(unsigned(x.size)):
                q += x[k] * (mean[k] + values.spread[h] * normal(scratch))
        Q[a] = q


@compiled
def key_of_block(key: np.uint64, alive: Bools, h: int, b: int) -> np.uint64:
    """Return the key of the weights that the prior gives to a block in period h."""
    return key ^ (np.uint64(h * alive.shape[1] + b + 1) * np.uint64(0x9E3779B97F4A7C15))
