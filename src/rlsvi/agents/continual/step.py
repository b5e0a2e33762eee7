"""One step of Continual RLSVI (appendix F, Algorithm "Continual RLSVI"), and what it needs to know.

A transition is added to the sums of memory.py, of which here all periods are one; then
    b_i = r_i + gamma max_a (Phi theta_t)(x_i+1, a), or r_i if x_i+1 is terminal
    theta-bar_t+1 = P^-1 (A'b + ridge prior_mean), Sigma_t+1 = sigma^2 P^-1, where P = ridge I + A'A = L L'
    theta_t+1 = theta-bar_t+1 + w_t+1
at a cost that depends on the number of distinct states, and not on t. With e ~ N(0, I), drawn in each step,
    paper:        w_t+1 = sqrt(1 - gamma^2) w_t + gamma sigma L^-T e
    whitened:     z_t+1 = gamma z_t + sqrt(1 - gamma^2) e, w_t+1 = sigma L^-T z_t+1
    independent:  w_t+1 = sigma L^-T e
All have covariance Sigma once it changes slowly; consecutive w have correlation sqrt(1 - gamma^2), gamma and 0.
"""

import math
from typing import NamedTuple

import numpy as np

from rlsvi.agents.finite.memory import Memory, add_episode
from rlsvi.agents.finite.value_iteration import Prior, Values, all_finite, known_values
from rlsvi.core.cholesky import solve_upper
from rlsvi.core.compile import Floats, Longs, Words, compiled
from rlsvi.core.random import normal
from rlsvi.core.regression import Factor, solve

PAPER, WHITENED, INDEPENDENT, NONE = range(4)


class Walk(NamedTuple):
    """What goes on from step to step, beside memory, factor and values."""

    w: Floats  # (B, d) the paper's w_t, or the whitened z_t
    begun: Longs  # (1,) how many of the live blocks have such noise
    mean: Floats  # (1, B, d) theta-bar_t
    e: Floats  # (d,) room
    reach: Floats  # (3,) the largest |r| and |phi| so far, and the largest |b| there can be in the next step


def new_walk(B: int, d: int) -> Walk:
    """A walk that has not begun: w_0 = 0."""
    return Walk(np.zeros((B, d)), np.zeros(1, np.int64), np.zeros((1, B, d)), np.zeros(d), np.zeros(3))


@compiled
def advance(
    memory: Memory,
    factor: Factor,
    prior: Prior,
    values: Values,
    walk: Walk,
    gamma: float,
    kind: int,
    visited: Longs,
    actions: Longs,
    rewards: Floats,
    goes_on: bool,
    x: Floats,
    stream: Words,
) -> bool:
    """Learn from the transition from row visited[0] to visited[1], or to the end; theta_t becomes theta_t+1.

    False when a factor or weight is not a finite number. `x` (d,) is overwritten.
    """
    if not add_episode(memory, factor, visited, actions, rewards, 1, goes_on, x):
        return False
    theta = values.theta[0]
    targets(memory, prior, values, gamma)
    for i in range(memory.lives[0]):
        b = memory.live[0, i]
        solve(factor.U[0, b], factor.inv[0, b], theta[b])
        for k in range(x.size):
            walk.mean[0, b, k] = theta[b, k]
        if kind != NONE:
            disturb(
                factor.U[0, b], factor.inv[0, b], theta[b], walk.w[b], walk, i, prior.sigma, gamma, kind, stream
            )
        if not all_finite(theta[b]):
            return False
    walk.begun[0] = memory.lives[0]
    known_values(memory, values, 0)
    A = memory.block.shape[1] // memory.sum_head.shape[1]
    watch(memory, values, walk, gamma, rewards[0], visited[0] * A + actions[0])
    return True


@compiled
def targets(memory: Memory, prior: Prior, values: Values, gamma: float) -> None:
    """theta <- A'b + ridge prior_mean."""
    theta, V = values.theta[0], values.V[0]
    for i in range(memory.lives[0]):
        b = memory.live[0, i]
        for k in range(theta.shape[1]):
            theta[b, k] = memory.reward[0, b, k] + prior.ridge * prior.mean[0, b, k]
    for e in range(memory.sums[0]):
        b, v = memory.sum_block[0, e], gamma * V[memory.sum_next[0, e]]
        for k in range(theta.shape[1]):
            theta[b, k] += memory.into[0, e, k] * v


@compiled
def disturb(
    U: Floats,
    inv: Floats,
    theta: Floats,
    w: Floats,
    walk: Walk,
    i: int,
    sigma: float,
    gamma: float,
    kind: int,
    stream: Words,
) -> None:
    """theta <- theta + w_t+1 for the i-th live block; `w` holds w_t or z_t and then w_t+1 or z_t+1.

    The whitened noise of a block begins with its own distribution, that of the paper with 0.
    """
    e, other = walk.e, math.sqrt(1.0 - gamma * gamma)
    for k in range(e.size):
        e[k] = normal(stream)
        if kind == WHITENED:
            w[k] = gamma * w[k] + other * e[k] if i < walk.begun[0] else e[k]
            e[k] = w[k]
    solve_upper(U, inv, e)
    for k in range(e.size):
        if kind == PAPER:
            w[k] = other * w[k] + gamma * sigma * e[k]
            theta[k] += w[k]
        else:
            theta[k] += sigma * e[k]


@compiled
def watch(memory: Memory, values: Values, walk: Walk, gamma: float, reward: float, pair: int) -> None:
    """Note the largest reward, feature and target."""
    walk.reach[0] = max(walk.reach[0], abs(reward))
    for k in range(memory.phi.shape[1]):
        walk.reach[1] = max(walk.reach[1], abs(memory.phi[0, k, pair]))
    largest = 0.0
    for j in range(memory.states[0]):
        largest = max(largest, abs(values.V[0, j]))
    walk.reach[2] = walk.reach[0] + gamma * largest


@compiled
def row_values(memory: Memory, values: Values, row: int) -> None:
    """Q and V under theta_t at one known state, as when it has just become known."""
    Q, V, theta = values.Q[0], values.V[0], values.theta[0]
    A = Q.size // V.size
    best = -np.inf
    for pair in range(row * A, row * A + A):
        Q[pair] = memory.barred[0, pair]
        for k in range(theta.shape[1]):
            Q[pair] += memory.phi[0, k, pair] * theta[memory.block[0, pair], k]
        best = max(best, Q[pair])
    V[row] = best
