"""How a recommender learns: RLSVI over all customers, from the answers that came.

Customer i was shown products a_0, a_1, ..; x_j are the answers known when slot j was filled. With theta a sample

    Q_j(x, a) = base_j + theta_a . phi(x)               phi(x): x, or a sketch of it, and a constant
    target    = 1{liked} + max over unseen a' of Q_{j+1}(x_{j+1}, a'), held within what can still be earned
    theta_a   ~ the posterior given the targets less base_j of all slots that were answered

One regression a slot, solved backward as in Algorithm 1, or one for all of them ("pooled"), whose targets are then
those of the sample before. A slot whose answer never came gives no row; one after which the customer left gives a
row whose target goes on as if she had stayed.

A target is a number of likes and knows no baseline: base is the prior mean of Q, and moves. So of customers no
longer remembered two sums are kept, of phi times the target and, for each slot, of phi; less base_j times the
second, the first is what they would count for had they been remembered with that target.
"""

import numpy as np

from rlsvi.core.cholesky import HUGE, rank_one, solve_lower
from rlsvi.core.compile import Floats, Ints, Words, compiled
from rlsvi.core.regression import draw
from rlsvi.shop.mind import Mind, Visits, add_answers

LARGEST = 1e250  # of L^-1 phi, for which rank_one is made


@compiled
def set_phi(mind: Mind, visits: Visits, i: int, slot: int, phi: Floats) -> None:
    """phi <- the features of visit i when her slot was filled, in the block of the product that was shown."""
    begin, given = visits.first[i], visits.given[i]
    for k in range(phi.size):
        phi[k] = 0.0
    for t in range(begin, begin + given + slot):
        if visits.answer[t] != 0 and visits.when[t] <= slot:
            n = visits.product[t]
            phi[mind.place[n]] += visits.answer[t] * mind.sign[n]
    phi[mind.constant[visits.product[begin + given + slot]]] = 1.0


@compiled
def bears(U: Floats, inv: Floats, phi: Floats) -> bool:
    """Whether the factor will still be one with the row phi, which is used up."""
    solve_lower(U, inv, phi)
    for k in range(phi.size):
        p = abs(phi[k])
        if not (0.0 < U[k, k] < HUGE and p < LARGEST and U[k, k] * (1.0 + p) < HUGE):
            return False
    return True


@compiled
def take_in(mind: Mind, visits: Visits, i: int, phi: Floats) -> bool:
    """Add the rows of visit i to the factors; False, and none is added, if one would not bear it.

    No product is shown twice, so that every row has a factor of its own.
    """
    begin = visits.first[i] + visits.given[i]
    for add in (False, True):
        for slot in range(visits.first[i + 1] - begin):
            if visits.answer[begin + slot] == 0:
                continue
            p, a = slot if mind.bias.shape[0] > 1 else 0, visits.product[begin + slot]
            set_phi(mind, visits, i, slot, phi)
            U, inv = mind.factor.U[p, a], mind.factor.inv[p, a]
            if not (rank_one(U, inv, phi) if add else bears(U, inv, phi)):
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
    mind: Mind, visits: Visits, i: int, only: int, base: Floats, into: Floats, clip: bool, myopic: bool, Q: Floats
) -> None:
    """Add phi times the target less `base` to `into`, for all answered slots of visit i, or for `only` if >= 0.

    The target goes on by the sample in `mind`, and by its own baseline.
    """
    many, J = mind.bias.shape[0] > 1, mind.base.size - 1
    begin, given = visits.first[i], visits.given[i]
    shown = visits.first[i + 1] - begin - given
    for slot in range(max(only, 0), shown if only < 0 else min(shown, only + 1)):
        row = begin + given + slot
        q = min(slot + 1, J - 1) if many else 0
        if not myopic:
            if many or slot == 0:
                for a in range(Q.size):
                    Q[a] = mind.bias[q, a] if mind.offered[a] else -np.inf
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
        add_row(mind, visits, i, slot, target - base[slot], into[slot if many else 0])


@compiled
def add_row(mind: Mind, visits: Visits, i: int, slot: int, scale: float, into: Floats) -> None:
    """into (N, d) += scale times the features of visit i when her slot was filled."""
    begin, row = visits.first[i], visits.first[i] + visits.given[i] + slot
    a = visits.product[row]
    for t in range(begin, row):
        if visits.answer[t] != 0 and visits.when[t] <= slot:
            n = visits.product[t]
            into[a, mind.place[n]] += scale * (visits.answer[t] * mind.sign[n])
    into[a, mind.constant[a]] += scale


@compiled
def set_right(mind: Mind, base: Floats, p: int, forgot: bool) -> None:
    """right_p <- the part of customers no longer remembered, over the baseline."""
    right, many = mind.right[p], mind.bias.shape[0] > 1
    for a in range(right.shape[0]):
        for k in range(right.shape[1]):
            right[a, k] = mind.frozen[p, a, k] if forgot else 0.0
    if forgot:
        for j in range(p if many else 0, p + 1 if many else mind.mass.shape[0]):
            for a in range(right.shape[0]):
                for k in range(right.shape[1]):
                    right[a, k] -= base[j] * mind.mass[j, a, k]


@compiled
def sample(
    fresh: Mind,
    before: Mind,
    visits: Visits,
    count: int,
    forgot: bool,
    sigma: float,
    clip: bool,
    myopic: bool,
    Q: Floats,
    stream: Words,
) -> bool:
    """A new sample, in `fresh`, from the visits remembered and those that are not; False if it is not finite.

    Targets go on by `before`: by `fresh` itself, which is solved backward, or by the sample before if pooled.
    """
    P = fresh.bias.shape[0]
    for h in range(P - 1, -1, -1):
        right = fresh.right[h]
        set_right(fresh, fresh.base, h, forgot)
        for i in range(count):
            add_targets(before, visits, i, h if P > 1 else -1, fresh.base, fresh.right, clip, myopic, Q)
        for a in range(right.shape[0]):
            draw(fresh.factor.U[h, a], fresh.factor.inv[h, a], right[a], sigma, stream)
            for k in range(right.shape[1]):
                if not abs(right[a, k]) < np.inf:
                    return False
                fresh.weight[h, k, a] = right[a, k]
            fresh.bias[h, a] = right[a, fresh.constant[a]]
    return True


@compiled
def set_base(base: Floats, recent: Ints, rate: float, myopic: bool) -> None:
    """base_j: likes to be expected from slot j on, at the rates of `recent` answers (customers, J), or at `rate`.

    The latter if it is >= 0. A slot that nobody answered counts as one half. Of a myopic recommender it is the
    rate of slot j alone.
    """
    J = base.size - 1
    base[J] = 0.0
    for j in range(J - 1, -1, -1):
        likes, answers = 0.5, 1.0
        for i in range(recent.shape[0]):
            if recent[i, j] != 0:
                answers += 1.0
                likes += 1.0 if recent[i, j] > 0 else 0.0
        at = rate if rate >= 0.0 else likes / answers
        base[j] = at if myopic else base[j + 1] + at


@compiled
def freeze(mind: Mind, visits: Visits, count: int, clip: bool, myopic: bool, zero: Floats, Q: Floats) -> None:
    """Let the first `count` visits count from now on with the targets the sample gives them; zero (J + 1,).

    Those of one sample, noise and all: a mean would have to be solved for, and kept, beside every sample.
    """
    for i in range(count):
        add_targets(mind, visits, i, -1, zero, mind.frozen, clip, myopic, Q)
        begin = visits.first[i] + visits.given[i]
        for slot in range(visits.first[i + 1] - begin):
            if visits.answer[begin + slot] != 0:
                add_row(mind, visits, i, slot, 1.0, mind.mass[slot])
