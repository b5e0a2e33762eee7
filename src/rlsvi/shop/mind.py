"""The state of a recommender's knowledge, and how it chooses a product."""

from typing import NamedTuple

import numpy as np

from rlsvi.core.compile import Bools, Floats, Ints, Longs, Words, compiled
from rlsvi.core.random import argmax_set, pick
from rlsvi.core.regression import Factor, prior_factor
from rlsvi.shop.size import Form, shapes


class Mind(NamedTuple):
    """P = J regressions, or a single one for all slots, each with N blocks of d weights."""

    factor: Factor  # (P, N, d, d) and (P, N, d)
    right: Floats  # (P, N, d) sum of phi times (target - base)
    frozen: Floats  # (P, N, d) sum of phi times target, for customers no longer remembered
    mass: Floats  # (J, N, d) sum of phi, for the same customers
    weight: Floats  # (P, d, N) weights of the sample, indexed by answer
    bias: Floats  # (P, N) constants of the sample
    base: Floats  # (J + 1,) baseline of the sample
    place: Ints  # (N,) index in phi of the answer to a product
    sign: Floats  # (N,) sign of that answer in phi
    constant: Ints  # (N,) index in phi of a block's constant
    offered: Bools  # (N,) products that are offered


class Visits(NamedTuple):
    """Customers: visit i has rows first[i] .. first[i + 1] - 1, first the products known before slot 0."""

    first: Longs  # (room + 1,)
    given: Ints  # (room,) number of products known before
    product: Ints  # (rows,)
    answer: Ints  # (rows,) 1, -1, or 0 if no answer came
    when: Ints  # (rows,) number of slots filled when the answer came


class Scratch(NamedTuple):
    """Work arrays for one thread."""

    Q: Floats  # (N,)
    allowed: Bools  # (N,)
    chance: Floats  # (N,)
    phi: Floats  # (d,)


def new_mind(form: Form, ridge: float, hashes: np.random.Generator) -> Mind:
    """Return the prior. A sketch maps each product's answer to one of `sketch` positions with a random sign."""
    sizes, sketch = shapes(form), form.sketch
    parts = {name: np.zeros(shape) for name, shape in sizes.items() if name not in ("U", "inv")}
    P, N, d = sizes["right"]
    own = np.arange(N, dtype=np.int32)
    place, sign, constant = own, np.ones(N), own.copy()  # x_a = 0 until a is shown: holds the constant
    if sketch is not None:
        place = hashes.integers(0, sketch, N).astype(np.int32)
        sign = np.where(hashes.random(N) < 0.5, -1.0, 1.0)
        constant = np.full(N, sketch, dtype=np.int32)
    factor = prior_factor((P, N), d, ridge)
    return Mind(factor, **parts, place=place, sign=sign, constant=constant, offered=np.ones(N, dtype=np.bool_))


def new_scratch(mind: Mind) -> Scratch:
    """Return work arrays for one thread."""
    d, N = mind.weight.shape[1:]
    return Scratch(np.zeros(N), np.zeros(N, dtype=np.bool_), np.zeros(N), np.zeros(d))


@compiled
def add_answers(mind: Mind, p: int, visits: Visits, i: int, rows: int, after: int, until: int, Q: Floats) -> None:
    """Add to Q the effect of answers in the first `rows` rows that came after slot `after`, by slot `until`."""
    begin = visits.first[i]
    for t in range(begin, begin + rows):
        if visits.answer[t] != 0 and after < visits.when[t] <= until:
            n = visits.product[t]
            c, row = visits.answer[t] * mind.sign[n], mind.weight[p, mind.place[n]]
            for a in range(Q.size):
                Q[a] += c * row[a]


@compiled
def choose(mind: Mind, visits: Visits, i: int, slot: int, among: Bools, scratch: Scratch, stream: Words) -> int:
    """Return the best unseen product in `among` for the next slot of visit i; ties are broken at random.

    Returns -1 if no product is left and -2 if a value is not finite.
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
