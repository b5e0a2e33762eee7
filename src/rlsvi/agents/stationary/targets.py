"""The targets of a regression over a ring: b_i = r_i + gamma max_a Q(s_i', a), or in the afterstate form.

literal:    Q(s, a) = theta . phi(s, a),                    b_i = r_i + gamma max_a Q(s_i', a)
afterstate: Q(s, a) = r(s, a) + gamma theta . phi(s, a),    b_i = max_a Q(s_i', a)

where the maximum is over the legal actions, and 0 after a terminal state. Q is always the sum over the planes of
numbers times weights, in order and in float64. The known reward of the afterstate form is one more plane, with
weight 1. This takes a single pass over all next actions, which is most of the cost of a regression.
"""

from typing import NamedTuple

import numpy as np

from rlsvi.agents.stationary.ring import Numbers, Ring
from rlsvi.core.compile import FOUR, ONE, THREE, TWO, Floats, Ints, compiled, unsigned

BATCH = 2048  # next actions processed together, so that their values stay in the nearest cache


class Weights(NamedTuple):
    """The weights of the planes, and work arrays."""

    w: Floats  # (P, B) of Q, times the units
    q: Floats  # (batch,) of next actions


def new_weights(ring: Ring, actions: int) -> Weights:
    """Return arrays for the weights of a ring."""
    planes, batch = len(ring.next_x), max(BATCH, actions)
    return Weights(np.zeros((planes, len(ring.gram))), np.zeros(batch))


@compiled
def set_weights(weights: Weights, units: Floats, theta: Floats, gamma: float) -> None:
    """Set the weights of Q for theta (B, d)."""
    w, d = weights.w, units.size
    known = w.shape[0] > d
    for b in range(theta.shape[0]):
        for k in range(d):
            w[k, b] = (gamma if known else 1.0) * (units[k] * theta[b, k])
        if known:
            w[d, b] = 1.0


@compiled
def action_values(w: Floats, x: Numbers, block: Ints, Q: Floats) -> None:
    """Compute Q of every action, given the numbers (A, P) and the blocks (A,) of all of them."""
    for a in range(Q.size):
        q = 0.0
        for k in range(x.shape[1]):
            q += x[a, k] * w[k, block[a]]
        Q[a] = q


@compiled
def targets(ring: Ring, weights: Weights, gamma: float, b: Floats) -> float:
    """Compute the targets b of all transitions, oldest first, and return the largest absolute value."""
    room, size, first = ring.x.shape[0], ring.size[0], ring.first[0]
    known = ring.next_x.shape[0] > ring.units.size
    t = 0
    while t < size:
        i = (first + t) % room
        begin, pairs, end = ring.start[i], 0, i
        last = min(room, i + min(size - t, weights.q.size))
        while end < last and ring.start[end] == begin + pairs and pairs + ring.following[end] <= weights.q.size:
            pairs += ring.following[end]
            end += 1
        if weights.w.shape[1] == 1:
            dense_values(weights, ring.next_x, unsigned(begin), unsigned(pairs))
        else:
            block_values(weights, ring.next_x, ring.next_block, begin, pairs)
        for j in range(i, end):
            best = best_of(weights.q, ring.start[j] - begin, ring.following[j])
            b[t] = best if known else ring.reward[j] + gamma * best
            t += 1
    largest = 0.0
    for t in range(size):
        largest = max(largest, abs(b[t]))
    return largest


@compiled
def best_of(q: Floats, begin: int, n: int) -> float:
    """Return the largest of n values, or 0 if n = 0; a leading NaN is detected when the targets are summed."""
    best: float = q[begin] if n > 0 else 0.0
    for p in range(begin + 1, begin + n):
        best = max(best, q[p])
    return best


@compiled
def dense_values(weights: Weights, x: Numbers, begin: unsigned, n: unsigned) -> None:
    """Compute q of n columns for one block; planes are added in order, four per pass over q."""
    q, w = weights.q, weights.w
    planes = unsigned(w.shape[0])
    fours = planes - planes % FOUR
    for p in range(n):
        q[p] = 0.0
    for k in range(unsigned(0), fours, FOUR):
        i, j, m = k + ONE, k + TWO, k + THREE
        w0, w1, w2, w3 = w[k, 0], w[i, 0], w[j, 0], w[m, 0]
        for p in range(n):
            c = begin + p
            q[p] = (((q[p] + x[k, c] * w0) + x[i, c] * w1) + x[j, c] * w2) + x[m, c] * w3
    for k in range(fours, planes):
        w0 = w[k, 0]
        for p in range(n):
            q[p] += x[k, begin + p] * w0


@compiled
def block_values(weights: Weights, x: Numbers, block: Ints, begin: int, n: int) -> None:
    """Compute q of n columns, each with the weights of its block."""
    q, w = weights.q, weights.w
    for p in range(n):
        q[p] = 0.0
    for k in range(w.shape[0]):
        for p in range(n):
            q[p] += x[k, begin + p] * w[k, block[begin + p]]
