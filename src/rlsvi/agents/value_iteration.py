"""Algorithm 1, Randomized Least-Squares Value Iteration, and, without its noise, LSVI."""

from typing import NamedTuple

import numpy as np

from rlsvi.agents.memory import Memory
from rlsvi.core.compile import Floats, Ints, Words, compiled
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
            for k in range(theta.size):
                if not abs(theta[k]) < np.inf:
                    return False
        known_values(memory, values, h)
    return True


@compiled
def regression_targets(memory: Memory, prior: Prior, values: Values, h: int) -> None:
    """theta_h <- A'b + ridge prior_mean, where b_i = r_i + V_{h+1}(s_i')."""
    d = values.theta.shape[2]
    ridge = prior.lam * prior.sigma * prior.sigma
    for i in range(memory.lives[h]):
        b = memory.live[h, i]
        for k in range(d):
            values.theta[h, b, k] = memory.reward[h, b, k] + ridge * prior.mean[h, b, k]
    for e in range(memory.sums[h]):
        theta, into = values.theta[h, memory.sum_block[h, e]], memory.into[h, e]
        v = values.V[h + 1, memory.sum_next[h, e]]
        for k in range(d):
            theta[k] += into[k] * v


@compiled
def known_values(memory: Memory, values: Values, h: int) -> None:
    """Q_h = phi . theta_h, -inf where illegal, and V_h = max_a Q_h at the states known in period h."""
    Q, V, theta, phi = values.Q[h], values.V[h], values.theta[h], memory.phi[h]
    n = memory.states[h]
    A = Q.size // V.size
    for pair in range(n * A):
        Q[pair] = memory.barred[h, pair]
    if theta.shape[0] == 1:
        odd = theta.shape[1] % 2
        if odd == 1:
            for pair in range(n * A):
                Q[pair] += phi[0, pair] * theta[0, 0]
        for k in range(odd, theta.shape[1], 2):  # two features a pass, added in their order
            w0, w1 = theta[0, k], theta[0, k + 1]
            for pair in range(n * A):
                Q[pair] = (Q[pair] + phi[k, pair] * w0) + phi[k + 1, pair] * w1
    else:
        for k in range(theta.shape[1]):
            for pair in range(n * A):
                Q[pair] += phi[k, pair] * theta[memory.block[h, pair], k]
    for j in range(n):
        V[j] = Q[j * A]
    for a in range(1, A):
        for j in range(n):
            V[j] = max(V[j], Q[j * A + a])


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
