"""One step of Continual RLSVI (appendix F, Algorithm "Continual RLSVI"), and the state it needs.

A transition is added to the sums of memory.py, here with a single period; then
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

from rlsvi.agents.contract import Episode, count
from rlsvi.agents.finite.memory import Memory, add_state, add_transitions
from rlsvi.agents.finite.rlsvi import FiniteMind, Prior, Values, all_finite, known_values
from rlsvi.core.cholesky import solve_upper
from rlsvi.core.compile import Floats, Ints, Longs, Words, compiled
from rlsvi.core.random import normal
from rlsvi.core.regression import solve

PAPER, WHITENED, INDEPENDENT, NONE = range(4)
EXCESS, DIVERGED = range(2)  # indices of Walk.watch


class Walk(NamedTuple):
    """The state that is carried from step to step, besides memory, factor and values."""

    w: Floats  # (B, d) the paper's w_t, or the whitened z_t
    begun: Longs  # (1,) number of live blocks that have such noise
    mean: Floats  # (1, B, d) theta-bar_t
    e: Floats  # (d,) work array
    reach: Floats  # (3,) the largest |r| and |phi| so far, and a bound on |b| in the next step
    watch: Floats  # (2,) that |b| as a multiple of what is explained, and whether it was ever too large
    row: Longs  # (1,) the row in memory where the agent is; -1 at the beginning of a life
    world: Words  # (4,) the random stream of an MDP in the fused loop


class Rule(NamedTuple):
    """The parameters of a learning step."""

    gamma: float
    kind: int  # of the noise
    spread: float  # the largest absolute weight that the prior explains
    diverged_above: float


def new_walk(B: int, d: int) -> Walk:
    """Return the initial state, with w_0 = 0."""
    return Walk(
        w=np.zeros((B, d)),
        begun=np.zeros(1, np.int64),
        mean=np.zeros((1, B, d)),
        e=np.zeros(d),
        reach=np.zeros(3),
        watch=np.zeros(2),
        row=np.full(1, -1),
        world=np.zeros(4, np.uint64),
    )


@compiled
def live(
    mind: FiniteMind, walk: Walk, rule: Rule, episode: Episode, over: bool, visited: Longs, stream: Words
) -> bool:
    """Learn from one step: add its states if they are new, update theta_t to theta_t+1, and move on.

    `over`: a new life begins after it. Returns False if a number is not finite. `visited` (2,) is overwritten.
    """
    for i in range(episode.rows.size):
        visited[i] = episode.rows[i]
        if visited[i] < 0 and mind.rows.shape[1] > 0:
            visited[i] = mind.rows[0, episode.states[i]]  # a step may lead back to its own state
        if visited[i] < 0:
            visited[i] = add_state(mind.memory, 0, episode.phi[i], episode.block[i], episode.legal[i])
            if mind.rows.shape[1] > 0:
                mind.rows[0, episode.states[i]] = visited[i]
            row_values(mind.memory, mind.values, visited[i])
    if not advance(mind, walk, rule, visited, episode.actions, episode.rewards, episode.goes_on, stream):
        return False
    walk.row[0] = -1 if over else visited[1]
    for k in range(walk.world.size):
        walk.world[k] = np.uint64(0)  # the environment is outside compiled code
    return True


@compiled
def advance(
    mind: FiniteMind,
    walk: Walk,
    rule: Rule,
    visited: Longs,
    actions: Longs,
    rewards: Floats,
    goes_on: bool,
    stream: Words,
) -> bool:
    """Learn from the transition from row visited[0] to visited[1], or to the end; theta_t becomes theta_t+1.

    Returns False if a factor or weight is not finite.
    """
    memory, factor, prior, values = mind.memory, mind.factor, mind.prior, mind.values
    if not add_transitions(mind, visited, actions, rewards, 1, goes_on):
        return False
    theta = values.theta[0]
    targets(memory, prior, values, rule.gamma)
    for i in range(memory.lives[0]):
        b = memory.live[0, i]
        solve(factor.U[0, b], factor.inv[0, b], theta[b])
        for k in range(mind.x.size):
            walk.mean[0, b, k] = theta[b, k]
        if rule.kind != NONE:
            disturb(factor.U[0, b], factor.inv[0, b], theta[b], walk.w[b], walk, i, prior.sigma, rule, stream)
        if not all_finite(theta[b]):
            return False
    walk.begun[0] = memory.lives[0]
    known_values(memory, values, 0)
    A = memory.block.shape[1] // memory.sum_head.shape[1]
    watch(memory, values, walk, rule, rewards[0], visited[0] * A + actions[0])
    return all_finite(values.V[0, : memory.states[0]]) and count(memory.counters, 1)


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
    U: Floats, inv: Floats, theta: Floats, w: Floats, walk: Walk, i: int, sigma: float, rule: Rule, stream: Words
) -> None:
    """theta <- theta + w_t+1 for the i-th live block; `w` contains w_t or z_t and is updated to t + 1.

    The whitened noise of a block starts from its stationary distribution, the paper's noise from 0.
    """
    e, gamma, kind = walk.e, rule.gamma, rule.kind
    other = math.sqrt(1.0 - gamma * gamma)
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
def watch(memory: Memory, values: Values, walk: Walk, rule: Rule, reward: float, pair: int) -> None:
    """Record the largest reward, feature and target, and whether rewards, prior and discount explain it."""
    walk.reach[0] = max(walk.reach[0], abs(reward))
    for k in range(memory.phi.shape[1]):
        walk.reach[1] = max(walk.reach[1], abs(memory.phi[0, k, pair]))
    largest = 0.0
    for j in range(memory.states[0]):
        largest = max(largest, abs(values.V[0, j]))
    walk.reach[2] = walk.reach[0] + rule.gamma * largest
    explained = explained_target(walk, rule)
    walk.watch[EXCESS] = walk.reach[2] / explained if explained > 0.0 else 0.0
    if walk.watch[EXCESS] > rule.diverged_above:
        walk.watch[DIVERGED] = 1.0


@compiled
def explained_target(walk: Walk, rule: Rule) -> float:
    """Return the largest target that rewards, prior and discount explain."""
    return float((walk.reach[0] + walk.reach[1] * rule.spread) / (1.0 - rule.gamma))


@compiled
def row_values(memory: Memory, values: Values, row: int) -> None:
    """Compute Q and V under theta_t at one known state, for instance when it was just added."""
    Q, V, theta = values.Q[0], values.V[0], values.theta[0]
    A = Q.size // V.size
    best = -np.inf
    for pair in range(row * A, row * A + A):
        Q[pair] = memory.barred[0, pair]
        for k in range(theta.shape[1]):
            Q[pair] += memory.phi[0, k, pair] * theta[memory.block[0, pair], k]
        best = max(best, Q[pair])
    V[row] = best


@compiled
def place_values(theta: Floats, block: Ints, phi: Floats, Q: Floats) -> None:
    """Compute Q under theta (B, d) at an observation that is not known yet, equal to a later `row_values`."""
    for a in range(Q.size):
        Q[a] = 0.0
        for k in range(theta.shape[1]):
            Q[a] += phi[a, k] * theta[block[a], k]
