"""The targets of a regression over a ring: b_i = r_i + gamma max_a Q(s_i', a), or in the afterstate form.

literal:    Q(s, a) = theta . phi(s, a),                    b_i = r_i + gamma max_a Q(s_i', a)
afterstate: Q(s, a) = r(s, a) + gamma theta . phi(s, a),    b_i = max_a Q(s_i', a)

where the maximum is over the legal actions, and 0 after a terminal state. A Q is always the sum over the planes of
numbers times weights, in their order and in float64: the known reward of the afterstate form is one more plane, of
weight 1. One pass over all next actions is all that this costs, but most of a regression.
Features of one byte are read faster: weights rounded to 16 bits find the few actions that can be the best, with a
proven margin, and only those are computed in float64. The result is the same, bit for bit.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlsvi.agents.ring import Numbers, Ring
from rlsvi.core.compile import FOUR, ONE, THREE, TWO, Bools, Floats, Ints, Longs, compiled, unsigned

BATCH = 512  # next actions looked at together, so that what is computed of them stays in the nearest cache
LARGEST_SHORT = 32767.0
NOTHING = np.int32(-(2**31))
STRIDE = 16
EPSILON = 2.0**-52
ALL = 2.0**40  # a margin that leaves no action out
QUICK_PLANES = 256  # of bytes times 16-bit weights that 32 bits can sum


class Weights(NamedTuple):
    """The weights of the planes, and room to work in."""

    w: Floats  # (P, B) of Q, times the units
    short: NDArray[np.int16]  # (P, batch + STRIDE) the same in 16 bits, all along a batch
    quick: Ints  # (batch + STRIDE,)
    q: Floats  # (batch,)
    column: Longs  # (batch,) where the best next action of a transition seems to lie ..
    sure: Bools  # (batch,) .. and whether it is


def new_weights(ring: Ring, actions: int) -> Weights:
    """Room for the weights of a ring."""
    planes, batch = len(ring.next_x), max(BATCH, actions)
    return Weights(
        np.zeros((planes, len(ring.gram))),
        np.zeros((planes, batch + STRIDE), np.int16),
        np.zeros(batch + STRIDE, np.int32),
        np.zeros(batch),
        np.zeros(batch, np.int64),
        np.zeros(batch, np.bool_),
    )


@compiled
def set_weights(weights: Weights, units: Floats, theta: Floats, gamma: float) -> None:
    """The weights of Q for theta (B, d)."""
    w, d = weights.w, units.size
    known = w.shape[0] > d
    for b in range(theta.shape[0]):
        for k in range(d):
            w[k, b] = (gamma if known else 1.0) * (units[k] * theta[b, k])
        if known:
            w[d, b] = 1.0


@compiled
def action_values(w: Floats, x: Numbers, block: Ints, Q: Floats) -> None:
    """Q of every action, from the numbers (A, P) and the blocks (A,) of all of them."""
    for a in range(Q.size):
        q = 0.0
        for k in range(x.shape[1]):
            q += x[a, k] * w[k, block[a]]
        Q[a] = q


@compiled
def targets(ring: Ring, weights: Weights, gamma: float, b: Floats) -> float:
    """The targets b of all transitions, oldest first; and the largest of their sizes."""
    room, size, first = ring.x.shape[0], ring.size[0], ring.first[0]
    known = ring.next_x.shape[0] > ring.units.size
    quick = weights.w.shape[1] == 1 and ring.next_x.itemsize == 1 and weights.w.shape[0] <= QUICK_PLANES
    margin = shorten(ring, weights) if quick else 0
    t = 0
    while t < size:
        i = (first + t) % room
        begin, pairs, end = ring.start[i], 0, i
        last = min(room, i + size - t)
        while end < last and ring.start[end] == begin + pairs and pairs + ring.following[end] <= weights.q.size:
            pairs += ring.following[end]
            end += 1
        if quick:
            quick_best(ring, weights, i, end, pairs, margin)
        elif weights.w.shape[1] == 1:
            dense_values(weights, ring.next_x, unsigned(begin), unsigned(pairs))
        else:
            block_values(weights, ring.next_x, ring.next_block, begin, pairs)
        found = 0
        for j in range(i, end):
            n, best = ring.following[j], 0.0
            if n > 0:
                best = weights.q[found] if quick else best_of(weights.q, ring.start[j] - begin, n)
                found += 1
            b[t] = best if known else ring.reward[j] + gamma * best
            t += 1
    largest = 0.0
    for t in range(size):
        largest = max(largest, abs(b[t]))
    return largest


@compiled
def best_of(q: Floats, begin: int, n: int) -> float:
    """The largest of n values; NaN if it comes first, which is noticed where the targets are summed."""
    best: float = q[begin]
    for p in range(begin + 1, begin + n):
        best = max(best, q[p])
    return best


@compiled
def dense_values(weights: Weights, x: Numbers, begin: unsigned, n: unsigned) -> None:
    """q of n columns for one block: planes are added in their order, four a pass over q."""
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
    """q of n columns, each with the weights of its block."""
    q, w = weights.q, weights.w
    for p in range(n):
        q[p] = 0.0
    for k in range(w.shape[0]):
        for p in range(n):
            q[p] += x[k, begin + p] * w[k, block[begin + p]]


@compiled
def shorten(ring: Ring, weights: Weights) -> int:
    """Round the weights to 16 bits; the margin within which two actions must be compared in float64.

    A plane that has always held one number tells no two actions apart, and is left out. The margin is twice what
    rounding the weights, and then float64 itself, may add up to.
    """
    w, top = weights.w, 0.0
    for k in range(w.shape[0]):
        if ring.least[k] < ring.most[k]:
            top = max(top, abs(w[k, 0]))
    scale = LARGEST_SHORT / top if top > 1e-300 else 0.0
    error = 2.0
    for k in range(w.shape[0]):
        exact = w[k, 0] * scale if ring.least[k] < ring.most[k] else 0.0
        short = np.int16(math.floor(exact + 0.5))
        size = abs(w[k, 0]) * scale * EPSILON * w.shape[0]
        error += 2.0 * max(ring.most[k], 0.0) * (abs(exact - short) + size)
        for p in range(weights.short.shape[1]):
            weights.short[k, p] = short
    return math.ceil(error) if error < ALL else int(ALL)


@compiled
def quick_best(ring: Ring, weights: Weights, i: int, end: int, pairs: int, margin: int) -> None:
    """q <- the best value after each of the transitions i .. end - 1 that are not terminal, one after another."""
    quick, column, x, begin = weights.quick, weights.column, ring.next_x, ring.start[i]
    whole = min((pairs + STRIDE - 1) // STRIDE * STRIDE, x.shape[1] - begin)  # no rest to do one by one
    quick_values(weights, x, unsigned(begin), unsigned(whole))
    found = unsure = 0
    for j in range(i, end):
        if ring.following[j] > 0:
            p, n = unsigned(ring.start[j] - begin), unsigned(ring.following[j])
            top, second, where = quick[p], NOTHING, p
            for c in range(p + ONE, p + n):
                v = quick[c]
                if v > top:
                    top, second, where = v, top, unsigned(c)
                elif v > second:
                    second = v
            column[found] = begin + np.int64(where)
            weights.sure[found] = np.int64(second) < np.int64(top) - margin
            unsure += not weights.sure[found]
            found += 1
    exact_values(weights, x, unsigned(found))
    if unsure == 0:
        return
    found = 0
    for j in range(i, end):
        if ring.following[j] > 0:
            if not weights.sure[found]:
                weights.q[found] = exact_best(weights, x, ring.start[j], begin, ring.following[j], margin)
            found += 1


@compiled
def quick_values(weights: Weights, x: Numbers, begin: unsigned, n: unsigned) -> None:
    """Values in 16-bit weights. The weights stand in memory beside the bytes: so compilers multiply 16 bits."""
    quick, short = weights.quick, weights.short
    planes = unsigned(short.shape[0])
    fours, twos = planes - planes % FOUR, planes - planes % TWO
    for p in range(n):
        quick[p] = np.int32(0)
    for k in range(unsigned(0), fours, FOUR):
        i, j, m = k + ONE, k + TWO, k + THREE
        for p in range(n):
            c = begin + p
            total = np.int32(quick[p] + np.int32(np.int32(np.int16(x[k, c])) * np.int32(short[k, p])))
            total = np.int32(total + np.int32(np.int32(np.int16(x[i, c])) * np.int32(short[i, p])))
            total = np.int32(total + np.int32(np.int32(np.int16(x[j, c])) * np.int32(short[j, p])))
            quick[p] = np.int32(total + np.int32(np.int32(np.int16(x[m, c])) * np.int32(short[m, p])))
    for k in range(fours, twos, TWO):
        i = k + ONE
        for p in range(n):
            c = begin + p
            total = np.int32(quick[p] + np.int32(np.int32(np.int16(x[k, c])) * np.int32(short[k, p])))
            quick[p] = np.int32(total + np.int32(np.int32(np.int16(x[i, c])) * np.int32(short[i, p])))
    for k in range(twos, planes):
        for p in range(n):
            quick[p] += np.int32(np.int32(np.int16(x[k, begin + p])) * np.int32(short[k, p]))


@compiled
def exact_values(weights: Weights, x: Numbers, n: unsigned) -> None:
    """q of n columns that lie apart, as dense_values computes them."""
    q, w, column = weights.q, weights.w, weights.column
    planes = unsigned(w.shape[0])
    fours = planes - planes % FOUR
    for p in range(n):
        q[p] = 0.0
    for k in range(unsigned(0), fours, FOUR):
        i, j, m = k + ONE, k + TWO, k + THREE
        w0, w1, w2, w3 = w[k, 0], w[i, 0], w[j, 0], w[m, 0]
        for p in range(n):
            c = unsigned(column[p])
            q[p] = (((q[p] + x[k, c] * w0) + x[i, c] * w1) + x[j, c] * w2) + x[m, c] * w3
    for k in range(fours, planes):
        w0 = w[k, 0]
        for p in range(n):
            q[p] += x[k, unsigned(column[p])] * w0


@compiled
def exact_best(weights: Weights, x: Numbers, column: int, begin: int, n: int, margin: int) -> float:
    """The largest value of the n actions from `column` on, of those within the margin of the quick best."""
    quick, w = weights.quick, weights.w
    top = np.int64(quick[column - begin])
    for c in range(column, column + n):
        top = max(top, np.int64(quick[c - begin]))
    best = -np.inf
    for c in range(column, column + n):
        if quick[c - begin] >= top - margin:
            q = 0.0
            for k in range(w.shape[0]):
                q += x[k, c] * w[k, 0]
            best = max(best, q)
    return best
