"""What a recommender knows, and how it chooses by it."""

from typing import NamedTuple

import numpy as np

from rlsvi.core.compile import Bools, Floats, Ints, Longs, Words, compiled
from rlsvi.core.random import argmax_set, pick
from rlsvi.core.regression import Factor, prior_factor
from rlsvi.shop.size import Form, shapes


class Mind(NamedTuple):
    """P = J regressions, or one for all slots, each of N blocks of d weights."""

    factor: Factor  # (P, N, d, d) and (P, N, d)
    right: Floats  # (P, N, d) sum of phi and target less base
    frozen: Floats  # (P, N, d) sum of phi and target of customers no longer remembered
    mass: Floats  # (J, N, d) sum of their phi
    weight: Floats  # (P, d, N) the sample, by answers
    bias: Floats  # (P, N) its constants
    base: Floats  # (J + 1,) its baseline
    place: Ints  # (N,) where an answer goes in phi
    sign: Floats  # (N,) and with which sign
    constant: Ints  # (N,) where the constant of a block is
    offered: Bools  # (N,) products that there are


class Visits(NamedTuple):
    """Customers: visit i has rows first[i] .. first[i + 1] - 1, those known before the first slot in front."""

    first: Longs  # (room + 1,)
    given: Ints  # (room,) how many were known before
    product: Ints  # (rows,)
    answer: Ints  # (rows,) 1, -1, or 0: never came
    when: Ints  # (rows,) slots that had been filled when it came


class Scratch(NamedTuple):
    """Room to work in, for one thread."""

    Q: Floats  # (N,)
    allowed: Bools  # (N,)
    chance: Floats  # (N,)
    phi: Floats  # (d,)


def new_mind(form: Form, ridge: float, hashes: np.random.Generator) -> Mind:
    """The prior; a sketch sends every product's answer to one of `sketch` places, with a random sign."""
    sizes, sketch = shapes(form), form.sketch
    parts = {name: np.zeros(shape) for name, shape in sizes.items() if name not in ("U", "inv")}
    P, N, d = sizes["right"]
    own = np.arange(N, dtype=np.int32)
    place, sign, constant = own, np.ones(N), own.copy()  # x_a = 0 while a is unseen: its place holds the constant
    if sketch is not None:
        place = hashes.integers(0, sketch, N).astype(np.int32)
        sign = np.where(hashes.random(N) < 0.5, -1.0, 1.0)
        constant = np.full(N, sketch, dtype=np.int32)
    factor = prior_factor((P, N), d, ridge)
    return Mind(factor, **parts, place=place, sign=sign, constant=constant, offered=np.ones(N, dtype=np.bool_))


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
def choose(mind: Mind, visits: Visits, i: int, slot: int, among: Bools, scratch: Scratch, stream: Words) -> int:
    """The best unseen product of `among` for the next slot of visit i, ties broken by one random number.

    -1: none is left, -2: a value is not finite.
    """
    p = slot if mind.bias.shape[0] > 1 else 0
    rows = visits.given[i] + slot
    left = 0
    for a in range(scratch.Q.size):
        scratch.Q[a], scratch.allowed[a] = mind.bias[p, a], among[a] and mind.offered[a]
    add_answers(mind, p, visits, i, rows, -1, slot, scratch.Q)
    for t in range(visits.first[i], visits.first[i] + rows):
        scratch.allowed[visits.product[t]] = False
    for a in range(scratch.Q.size):
        left += scratch.allowed[a]
    if left == 0:
        return -1
    if not argmax_set(scratch.Q, scratch.allowed, scratch.chance):
        return -2
    return pick(stream, scratch.chance)
