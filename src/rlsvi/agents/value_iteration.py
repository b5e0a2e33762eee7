"""Algorithm 1, Randomized Least-Squares Value Iteration, and, without its noise, LSVI."""

from typing import NamedTuple

import numpy as np

from rlsvi.agents.memory import Memory
from rlsvi.core.compile import FOUR, ONE, THREE, TWO, Floats, Ints, Words, compiled, unsigned
from rlsvi.core.random import bits, normal, reseed
from rlsvi.core.regression import Factor, draw, solve


class Prior(NamedTuple):
    """theta_h ~ N(mean, I / lam), seen through noise of standard deviation sigma."""

    mean: Floats  # (H, B, d)
    lam: float
    sigma: float


class Values(NamedTuple):
    """One value function: the weights theta_h, and Q_h and V_h at the known states."""

    theta: Floats  # (H, B, d); blocks that are not alive hold nothing
    Q: Floats  # (H, C A)
    V: Floats  # (H, C)
    key: Words  # (1,) names the noise of the blocks that are not alive
    spread: Floats  # (1,) and its scale


def no_values(H: int, A: int, B: int, d: int, room: int) -> Values:
    """Arrays for a value function."""
    return Values(
        np.zeros((H, B, d)), np.zeros((H, room * A)), np.zeros((H, room)), np.zeros(1, np.uint64), np.zeros(1)
    )


@compiled
def value_iteration(
    memory: Memory, factor: Factor, prior: Prior, values: Values, sampled: bool, stream: Words
) -> bool:
    """Algorithm 1: for h = H-1, .., 0 regress r + V_{h+1} on the features, and sample theta_h.

    Not `sampled`: theta_h is the posterior mean, which is LSVI with ridge lam sigma^2.
    False when a weight is not a finite number.
    """
    values.key[0] = bits(stream) if sampled else np.uint64(0)
    values.spread[0] = 1.0 / np.sqrt(prior.lam) if sampled else 0.0
    for h in range(memory.states.size - 1, -1, -1):
        regression_targets(memory, prior, values, h)
        for i in range(memory.lives[h]):
            b = memory.live[h, i]
            theta = values.theta[h, b]
            if sampled:
                draw(factor.U[h, b], factor.inv[h, b], theta, prior.sigma, stream)
            else:
                solve(factor.U[h, b], factor.inv[h, b], theta)
            if not all_finite(theta):
                return False
        known_values(memory, values, h)
    return True


@compiled
def all_finite(theta: Floats) -> bool:
    """Whether every number is finite; no early end, so that several are looked at together."""
    broken = 0
    for k in range(theta.size):
        broken += 0 if abs(theta[k]) < np.inf else 1
    return broken == 0


@compiled
def regression_targets(memory: Memory, prior: Prior, values: Values, h: int) -> None:
    """theta_h <- A'b + ridge prior_mean, where b_i = r_i + V_{h+1}(s_i')."""
    ridge = prior.lam * prior.sigma * prior.sigma
    d, sums = unsigned(values.theta.shape[2]), unsigned(memory.sums[h])
    for i in range(memory.lives[h]):
        b = memory.live[h, i]
        theta, reward, mean = values.theta[h, b], memory.reward[h, b], prior.mean[h, b]
        for k in range(d):
            theta[k] = reward[k] + ridge * mean[k]
    if sums == 0:  # as in the last period, which no V follows
        return
    V, following, into = values.V[h + 1], memory.sum_next[h], memory.into[h]
    if values.theta.shape[1] == 1:
        add_in_order(values.theta[h, 0], into, following, V, sums)
    else:
        for e in range(sums):
            theta, v = values.theta[h, memory.sum_block[h, e]], V[following[e]]
            for k in range(d):
                theta[k] += into[e, k] * v


@compiled
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
    """Q_h = phi . theta_h, -inf where illegal, and V_h = max_a Q_h at the states known in period h."""
    Q, V, theta, phi = values.Q[h], values.V[h], values.theta[h], memory.phi[h]
    n, A = unsigned(memory.states[h]), unsigned(Q.size // V.size)
    if theta.shape[0] == 1:
        dense_values(Q, memory.barred[h], phi, theta[0], n * A)
    else:
        for pair in range(n * A):
            Q[pair] = memory.barred[h, pair]
        for k in range(theta.shape[1]):
            for pair in range(n * A):
                Q[pair] += phi[k, pair] * theta[memory.block[h, pair], k]
    for j in range(n):  # the first action and the last, which with two actions are all
        V[j] = max(Q[j * A], Q[j * A + (A - ONE)])
    for a in range(ONE, A - ONE):
        for j in range(n):
            V[j] = max(V[j], Q[j * A + a])


@compiled
def dense_values(Q: Floats, barred: Floats, phi: Floats, theta: Floats, pairs: unsigned) -> None:
    """Q = barred + theta . phi for one block: features are added in their order, four a pass over Q."""
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
def new_values(
    memory: Memory, prior: Prior, values: Values, h: int, block: Ints, phi: Floats, Q: Floats, scratch: Words
) -> None:
    """Q_h = phi . theta_h at a state that is not known yet, from the blocks and features of its actions.

    A block that is not alive has seen no data: its weights come from the prior, the same ones whenever
    they are asked for within the episode.
    """
    for a in range(block.size):
        b = block[a]
        Q[a] = 0.0
        if memory.alive[h, b]:
            for k in range(phi.shape[1]):
                Q[a] += phi[a, k] * values.theta[h, b, k]
        else:
            place = np.uint64(h * memory.alive.shape[1] + b + 1)
            reseed(scratch, values.key[0] ^ (place * np.uint64(0x9E3779B97F4A7C15)))
            for k in range(phi.shape[1]):
                Q[a] += phi[a, k] * (prior.mean[h, b, k] + values.spread[0] * normal(scratch))
