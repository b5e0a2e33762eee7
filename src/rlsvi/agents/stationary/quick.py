"""The best next actions, found in 16 bits: for one block of features of one byte.

With weights rounded to integers W and one scale, V = sum of W times the bytes orders the actions nearly as Q does.
The scale is such that V, less the least that it can be, fits into 16 bits. Few actions come within a proven margin
of the largest V of their state, often one: only those are computed in float64. The result is the same to the bit.
Processors multiply bytes fastest, and most of the W are not larger: those that are come last.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlsvi.agents.stationary.ring import Numbers, Ring
from rlsvi.core.compile import FOUR, ONE, THREE, TWO, Floats, Words, compiled, unsigned

ALIGNED = 32  # columns: whole vectors, of addresses that suit them
WHOLE = 16  # numbers of 16 bits in whole vectors
TERMS = 264  # of a plane: 256, and some so that those of other planes do not fall on the same places of the cache
CHUNK = unsigned(256)  # columns of all planes that are read together
SHORT, BYTE = 65535, 255
LOOSE = 2048.0  # a margin at which so many actions are left that computing them all is faster
EPSILON = 2.0**-52


class Quick(NamedTuple):
    """Integer weights other than 0, those of |W| < 256 first, and room to work in."""

    plane: Words  # (P,) of a weight
    small: NDArray[np.uint8]  # (P,) |W| ..
    flip: NDArray[np.uint8]  # (P,) .. and 255 if W is negative: 255 - x is then multiplied
    large: NDArray[np.uint16]  # (P,) the others, at the end: W modulo 2^16
    term: Floats  # (P, TERMS) byte times weight, in float64
    value: NDArray[np.uint16]  # (batch + 2 ALIGNED + wide,) V of the columns
    inside: NDArray[np.uint16]  # (2 wide,) all bits set, then none
    least: NDArray[np.uint16]  # (batch,) V that the best action of a state must have ..
    many: NDArray[np.uint16]  # (batch,) .. how many have it ..
    place: NDArray[np.uint16]  # (batch,) .. and which, if it is one
    column: Words  # (batch + 4,) all of them, state by state
    q: Floats  # (batch + 4,) and their values


def new_quick(planes: int, batch: int, actions: int) -> Quick:
    """Room for batches of states and their next actions, at most `actions` a state."""
    wide = -(-actions // WHOLE) * WHOLE
    value, inside = np.zeros(batch + 2 * ALIGNED + wide, np.uint16), np.zeros(2 * wide, np.uint16)
    inside[:wide] = SHORT
    small, flip = np.zeros((2, planes), np.uint8)
    least, many, place = np.zeros((3, batch), np.uint16)
    return Quick(
        plane=np.zeros(planes, np.uint64),
        small=small,
        flip=flip,
        large=np.zeros(planes, np.uint16),
        term=np.zeros((planes, TERMS)),
        value=value,
        inside=inside,
        least=least,
        many=many,
        place=place,
        column=np.zeros(batch + 4, np.uint64),
        q=np.zeros(batch + 4),
    )


class Plan(NamedTuple):
    """How to compute V, and what to make of it."""

    small: int  # weights of a byte
    large: int  # where the larger ones begin
    offset: int  # of V, modulo 2^16
    margin: int  # the best action is no more below the largest V; -1: do without


@compiled
def shorten(ring: Ring, w: Floats, quick: Quick) -> Plan:
    """Round the weights of the planes; without a plan, if they are 0, too large or would leave too many actions.

    A plane that has always held one number tells no two actions apart, and is left out. The bytes of two actions
    differ by at most the range of their plane. So rounding W misjudges one action against another by at most the
    sum of range times rounding, to which is added what float64 may round of both.
    """
    reach = half = 0.0
    for k in range(w.shape[0]):
        if ring.least[k] < ring.most[k]:
            reach += (ring.most[k] - ring.least[k]) * abs(w[k, 0])
            half += 0.5 * (ring.most[k] - ring.least[k])
    if not (1e-300 < reach < 1e300 and half < 0.5 * SHORT):
        return Plan(0, 0, 0, -1)
    scale, error = (SHORT - 2 - half) / reach, 1.0
    for k in range(w.shape[0]):
        error += 2.0 * w.shape[0] * EPSILON * (abs(w[k, 0]) * scale) * ring.most[k]
        if ring.least[k] < ring.most[k]:
            error += (ring.most[k] - ring.least[k]) * abs(w[k, 0] * scale - whole(w[k, 0] * scale))
    if not error < LOOSE:
        return Plan(0, 0, 0, -1)
    offset, small, last = 1, 0, w.shape[0]
    for k in range(w.shape[0]):
        W = whole(w[k, 0] * scale) if ring.least[k] < ring.most[k] else 0
        offset -= W * int(ring.least[k]) if W > 0 else W * int(ring.most[k])
        if 0 < abs(W) <= BYTE:
            quick.plane[small], quick.small[small], quick.flip[small] = k, abs(W), BYTE if W < 0 else 0
            offset += BYTE * min(W, 0)
            small += 1
        elif W != 0:
            last -= 1
            quick.plane[last], quick.large[last] = k, W & SHORT
        for x in range(int(ring.most[k]) + 1):
            quick.term[k, x] = x * w[k, 0]
    return Plan(small, last, offset & SHORT, math.ceil(error))


@compiled
def whole(number: float) -> int:
    """The nearest integer."""
    return math.floor(number + 0.5)


@compiled
def quick_best(ring: Ring, quick: Quick, plan: Plan, i: int, end: int, pairs: int, best: Floats) -> None:
    """best <- the largest value after each of the transitions i .. end - 1, or 0 if terminal."""
    begin = ring.start[i] - ring.start[i] % ALIGNED
    columns = ring.start[i] + pairs - begin
    columns = unsigned(min((columns + ALIGNED - 1) // ALIGNED * ALIGNED, ring.next_x.shape[1] - begin))
    for c in range(unsigned(0), columns, CHUNK):
        quick_values(quick, plan, ring.next_x, unsigned(begin), unsigned(c), min(c + CHUNK, columns))
    thresholds(ring, quick, plan.margin, i, end, begin)
    nearest(ring, quick, i, end, begin)
    exact_values(quick, ring.next_x, unsigned(begin), candidates(ring, quick, i, end, begin))
    p = unsigned(0)
    for s in range(end - i):
        n = unsigned(quick.many[s])
        top = quick.q[p] if n > 0 else 0.0
        for c in range(p + ONE, p + n):
            top = max(top, quick.q[c])
        best[s] = top
        p += n


@compiled
def quick_values(quick: Quick, plan: Plan, x: Numbers, begin: unsigned, p: unsigned, end: unsigned) -> None:
    """V of the columns begin + p .. begin + end - 1, modulo 2^16; four planes a pass."""
    value, plane, small, flip = quick.value, quick.plane, quick.small, quick.flip
    fours = unsigned(plan.small - plan.small % 4)
    for c in range(p, end):
        value[c] = plan.offset
    for g in range(unsigned(0), fours, FOUR):
        h, r, s = g + ONE, g + TWO, g + THREE
        k, i, j, m = plane[g], plane[h], plane[r], plane[s]
        w0, w1, w2, w3 = np.int64(small[g]), np.int64(small[h]), np.int64(small[r]), np.int64(small[s])
        f0, f1, f2, f3 = flip[g], flip[h], flip[r], flip[s]
        for c in range(p, end):
            o = begin + c
            total = np.int64(value[c]) + np.int64(np.uint8(x[k, o]) ^ f0) * w0
            total += np.int64(np.uint8(x[i, o]) ^ f1) * w1
            total += np.int64(np.uint8(x[j, o]) ^ f2) * w2
            value[c] = (total + np.int64(np.uint8(x[m, o]) ^ f3) * w3) & SHORT
    for g in range(fours, unsigned(plan.small)):
        k, w0, f0 = plane[g], np.int64(small[g]), flip[g]
        for c in range(p, end):
            value[c] = (np.int64(value[c]) + np.int64(np.uint8(x[k, begin + c]) ^ f0) * w0) & SHORT
    for g in range(unsigned(plan.large), unsigned(plane.size)):
        k, w0 = plane[g], np.int64(quick.large[g])
        for c in range(p, end):
            value[c] = (np.int64(value[c]) + np.int64(np.uint8(x[k, begin + c])) * w0) & SHORT


@compiled
def thresholds(ring: Ring, quick: Quick, margin: int, i: int, end: int, begin: int) -> None:
    """The least V of the best action of each state. Columns beyond a state count as 0, below all V."""
    value, inside = quick.value, quick.inside
    wide = unsigned(inside.size // 2)
    for j in range(i, end):
        p, out, top = unsigned(ring.start[j] - begin), wide - unsigned(ring.following[j]), np.uint16(0)
        for c in range(wide):
            top = max(top, np.uint16(value[p + c] & inside[out + c]))
        quick.least[j - i] = max(int(top) - margin, 1)


@compiled
def nearest(ring: Ring, quick: Quick, i: int, end: int, begin: int) -> None:
    """How many actions of each state have the least V, and the sum of their places: the place, if it is one."""
    value, inside = quick.value, quick.inside
    wide = unsigned(inside.size // 2)
    for j in range(i, end):
        p, out, least = unsigned(ring.start[j] - begin), wide - unsigned(ring.following[j]), quick.least[j - i]
        many = place = np.uint16(0)
        for c in range(wide):
            near = np.uint16(value[p + c] & inside[out + c]) >= least
            many = np.uint16(many + np.uint16(near))
            place = np.uint16(place + (np.uint16(c) if near else np.uint16(0)))
        quick.many[j - i], quick.place[j - i] = many, place


@compiled
def candidates(ring: Ring, quick: Quick, i: int, end: int, begin: int) -> unsigned:
    """Put the columns that have the least V one after another: how many."""
    value, column, total = quick.value, quick.column, unsigned(0)
    for j in range(i, end):
        p, least = unsigned(ring.start[j] - begin), quick.least[j - i]
        if quick.many[j - i] <= 1:
            column[total] = p + unsigned(quick.place[j - i])
            total += unsigned(quick.many[j - i])
        else:
            for c in range(p, p + unsigned(ring.following[j])):
                column[total] = c
                total += unsigned(value[c] >= least)
    return total


@compiled
def exact_values(quick: Quick, x: Numbers, begin: unsigned, total: unsigned) -> None:
    """q of the columns found, planes being added in their order; four columns at once."""
    q, column, term = quick.q, quick.column, quick.term
    for e in range(total, total + THREE):
        column[e] = column[0]
    for g in range(unsigned(0), total, FOUR):
        h, r, s = g + ONE, g + TWO, g + THREE
        a, b, c, d = begin + column[g], begin + column[h], begin + column[r], begin + column[s]
        q0 = q1 = q2 = q3 = 0.0
        for k in range(unsigned(term.shape[0])):
            q0 += term[k, np.uint8(x[k, a])]
            q1 += term[k, np.uint8(x[k, b])]
            q2 += term[k, np.uint8(x[k, c])]
            q3 += term[k, np.uint8(x[k, d])]
        q[g], q[h], q[r], q[s] = q0, q1, q2, q3
