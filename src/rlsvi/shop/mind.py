"""What a recommender knows, and how it learns: RLSVI over all customers, from the answers that came.

Customer i was shown products a_0, a_1, ..; x_j are the answers known when slot j was filled. With theta a sample

    Q_j(x, a) = base_j + theta_a . phi(x)               phi(x): x, or a sketch of it, and a constant
    target    = 1{liked} + max over unseen a' of Q_{j+1}(x_{j+1}, a'), held within what can still be earned
    theta_a   ~ the posterior given the targets less base_j of all slots that were answered

One regression a slot, solved backward as in Algorithm 1, or one for all of them ("pooled"), whose targets are then
those of the sample before. A slot whose answer never came gives no row; one after which the customer left gives a
row whose target goes on as if she had stayed.
"""

from typing import NamedTuple

import numpy as np

from rlsvi.core.cholesky import rank_one
from rlsvi.core.compile import Bools, Floats, Ints, Longs, Words, compiled
from rlsvi.core.random import argmax_set, pick
from rlsvi.core.regression import Factor, draw, prior_factor
from rlsvi.shop.size import block_size

RECENT = 200  # customers that the baseline is a mean of


class Mind(NamedTuple):
    """P = J regressions, or one for all slots, each of N blocks of d weights."""

    factor: Factor  # (P, N, d, d) and (P, N, d)
    right: Floats  # (P, N, d) sum of phi and target
    frozen: Floats  # (P, N, d) the part of it of customers no longer remembered
    weight: Floats  # (P, d, N) the sample, by answers
    bias: Floats  # (P, N) its constants
    base: Floats  # (J + 1,)
    place: Ints  # (N,) where an answer goes in phi
    sign: Floats  # (N,) and with which sign
    constant: Ints  # (N,) where the constant of a block is


class Visits(NamedTuple):
    """Customers: visit i has rows first[i] .. first[i + 1] - 1, those known before the first slot in front."""

    first: Longs  # (room + 1,)
    given: Ints  # (room,) how many were known before
    product: Ints  # (rows,)
    answer: Ints  # (rows,) 1, -1, or 0: never came
    when: Ints  # (rows,) slots that had been filled when it came


class Scratch(NamedTuple):
    """Room to work in."""

    Q: Floats  # (N,)
    allowed: Bools  # (N,)
    chance: Floats  # (N,)
    phi: Floats  # (d,)


def new_mind(
    products: int, slots: int, *, pooled: bool, sketch: int | None, ridge: float, hashes: np.random.Generator
) -> Mind:
    """The prior; a sketch sends every product's answer to one of `sketch` places, with a random sign."""
    N, d, P = products, block_size(products, sketch), 1 if pooled else slots
    own = np.arange(N, dtype=np.int32)
    place, sign, constant = own, np.ones(N), own  # x_a = 0 while a is unseen: its place holds the constant
    if sketch is not None:
        place = hashes.integers(0, sketch, N).astype(np.int32)
        sign = np.where(hashes.random(N) < 0.5, -1.0, 1.0)
        constant = np.full(N, sketch, dtype=np.int32)
    return Mind(
        prior_factor((P, N), d, ridge),
        np.zeros((P, N, d)),
        np.zeros((P, N, d)),
        np.zeros((P, d, N)),
        np.zeros((P, N)),
        np.zeros(slots + 1),
        place,
        sign,
        constant,
    )


def new_scratch(mind: Mind) -> Scratch:
    """Room for one thread."""
    d, N = mind.weight.shape[1:]
    return Scratch(np.zeros(N), np.zeros(N, dtype=np.bool_), np.zeros(N), np.zeros(d))


@compiled
def add_answers(mind: Mind, p: int, visits: Visits, i: int, rows: int, after: int, until: int, Q: Floats) -> None:
    """Q += what the answers say that came after `after` and until `until` slots, of the first `rows` rows."""
    begin = visits.first[i]
    for t in range(begin, begin + rows):
        if visits.answer[t] != 0 and after < visits.when[t] <= until:
            n = visits.product[t]
            c, row = visits.answer[t] * mind.sign[n], mind.weight[p, mind.place[n]]
            for a in range(Q.size):
                Q[a] += c * row[a]


@compiled
def choose(mind: Mind, visits: Visits, i: int, slot: int, scratch: Scratch, stream: Words) -> int:
    """The best unseen product for the next slot of visit i, ties broken by one random number; -1: none is left."""
    p = slot if mind.bias.shape[0] > 1 else 0
    rows = visits.given[i] + slot
    left = 0
    for a in range(scratch.Q.size):
        scratch.Q[a], scratch.allowed[a] = mind.bias[p, a], True
    add_answers(mind, p, visits, i, rows, -1, slot, scratch.Q)
    for t in range(visits.first[i], visits.first[i] + rows):
        scratch.allowed[visits.product[t]] = False
    for a in range(scratch.Q.size):
        left += scratch.allowed[a]
    if left == 0 or not argmax_set(scratch.Q, scratch.allowed, scratch.chance):
        return -1
    return pick(stream, scratch.chance)


@compiled
def take_in(mind: Mind, visits: Visits, i: int, scratch: Scratch) -> bool:
    """Add the rows of visit i to the factors; False if one is no longer a factor."""
    begin, given = visits.first[i], visits.given[i]
    for slot in range(visits.first[i + 1] - begin - given):
        if visits.answer[begin + given + slot] == 0:
            continue
        a = visits.product[begin + given + slot]
        for k in range(scratch.phi.size):
            scratch.phi[k] = 0.0
        for t in range(begin, begin + given + slot):
            if visits.answer[t] != 0 and visits.when[t] <= slot:
                n = visits.product[t]
                scratch.phi[mind.place[n]] += visits.answer[t] * mind.sign[n]
        scratch.phi[mind.constant[a]] = 1.0
        p = slot if mind.bias.shape[0] > 1 else 0
        if not rank_one(mind.factor.U[p, a], mind.factor.inv[p, a], scratch.phi):
            return False
    return True


@compiled
def going_on(mind: Mind, Q: Floats, left: int, clip: bool, slot: int) -> float:
    """The value of the next slot, from what its products are worth over the baseline."""
    best, unseen = -np.inf, 0
    for a in range(Q.size):
        if Q[a] > -np.inf:
            unseen += 1
        best = max(best, Q[a])
    if left == 0 or unseen == 0:
        return 0.0
    value: float = mind.base[slot] + best
    return min(max(value, 0.0), float(min(left, unseen))) if clip else value


@compiled
def add_targets(
    mind: Mind, visits: Visits, i: int, only: int, into: Floats, clip: bool, myopic: bool, Q: Floats
) -> None:
    """Add phi times the target to `into`, for all answered slots of visit i, or for `only` one if that is >= 0."""
    many, J = mind.bias.shape[0] > 1, mind.base.size - 1
    begin, given = visits.first[i], visits.given[i]
    shown = visits.first[i + 1] - begin - given
    for slot in range(max(only, 0), shown if only < 0 else min(shown, only + 1)):
        row = begin + given + slot
        q = min(slot + 1, J - 1) if many else 0
        if not myopic:
            if many or slot == 0:
                for a in range(Q.size):
                    Q[a] = mind.bias[q, a]
                add_answers(mind, q, visits, i, given + slot + 1, -1, slot + 1, Q)
                for t in range(begin, row):
                    Q[visits.product[t]] = -np.inf
            else:
                add_answers(mind, q, visits, i, given + slot + 1, slot, slot + 1, Q)
            Q[visits.product[row]] = -np.inf
        if visits.answer[row] == 0:
            continue
        target = 1.0 if visits.answer[row] > 0 else 0.0
        if not myopic:
            target += going_on(mind, Q, J - slot - 1, clip, slot + 1)
        target -= mind.base[slot]
        a = visits.product[row]
        p = slot if many else 0
        for t in range(begin, row):
            if visits.answer[t] != 0 and visits.when[t] <= slot:
                n = visits.product[t]
                into[p, a, mind.place[n]] += target * (visits.answer[t] * mind.sign[n])
        into[p, a, mind.constant[a]] += target


@compiled
def sample(
    mind: Mind, visits: Visits, count: int, sigma: float, clip: bool, myopic: bool, Q: Floats, stream: Words
) -> bool:
    """A new sample from the visits remembered; False if it is not finite."""
    P = mind.bias.shape[0]
    for h in range(P - 1, -1, -1):
        right = mind.right[h]
        for a in range(right.shape[0]):
            for k in range(right.shape[1]):
                right[a, k] = mind.frozen[h, a, k]
        for i in range(count):
            add_targets(mind, visits, i, h if P > 1 else -1, mind.right, clip, myopic, Q)
        for a in range(right.shape[0]):
            draw(mind.factor.U[h, a], mind.factor.inv[h, a], right[a], sigma, stream)
            for k in range(right.shape[1]):
                if not abs(right[a, k]) < np.inf:
                    return False
                mind.weight[h, k, a] = right[a, k]
            mind.bias[h, a] = right[a, mind.constant[a]]
    return True


@compiled
def set_base(base: Floats, visits: Visits, count: int, rate: float, myopic: bool) -> None:
    """base_j: likes to be expected from slot j on, at the rates of recent answers, or at `rate` if that is >= 0.

    A slot that nobody answered counts as one half. Of a myopic recommender it is the rate of slot j alone.
    """
    J = base.size - 1
    for j in range(J - 1, -1, -1):
        likes, answers = 0.5, 1.0
        for i in range(max(0, count - RECENT), count):
            row = visits.first[i] + visits.given[i] + j
            if row < visits.first[i + 1] and visits.answer[row] != 0:
                answers += 1.0
                likes += 1.0 if visits.answer[row] > 0 else 0.0
        at = rate if rate >= 0.0 else likes / answers
        base[j] = at if myopic else base[j + 1] + at
    base[J] = 0.0


@compiled
def freeze(mind: Mind, visits: Visits, count: int, clip: bool, myopic: bool, Q: Floats) -> None:
    """Let the first `count` visits count from now on as they do at present."""
    for i in range(count):
        add_targets(mind, visits, i, -1, mind.frozen, clip, myopic, Q)
