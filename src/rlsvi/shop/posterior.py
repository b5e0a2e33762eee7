"""How a recommender learns: RLSVI over all customers, from the answers received so far.

Customer i was shown products a_0, a_1, ..; x_j are the answers known when slot j was filled. For a sample theta

    Q_j(x, a) = base_j + theta_a . phi(x)               phi(x): x, or a sketch of it, and a constant
    target    = 1{liked} + max over unseen a' of Q_{j+1}(x_{j+1}, a'), clipped to what can still be earned
    theta_a   ~ the posterior given (target - base_j) for all slots that were answered

There is one regression per slot, solved backward as in Algorithm 1, or a single one for all slots ("pooled"),
whose targets use the previous sample. A slot without an answer contributes no row. If the customer left after a
slot, its row has the target of a customer who stayed.

A target is a number of likes, independent of the baseline; base is the prior mean of Q and changes over time.
For customers no longer remembered, two sums are kept: phi times the target and, for each slot, phi. The
first minus base_j times the second is what they would contribute if they were remembered with that target.
"""

import numpy as np

from rlsvi.core.cholesky import HUGE, rank_one, solve_lower
from rlsvi.core.compile import Floats, Ints, Words, compiled
from rlsvi.core.regression import draw
from rlsvi.shop.mind import Mind, Visits, add_answers

LARGEST = 1e250  # bound on L^-1 phi for which rank_one is accurate


@compiled
def set_phi(mind: Mind, visits: Visits, i: int, slot: int, phi: Floats) -> None:
    """Set phi to the features of visit i when `slot` was filled, in the block of the product shown."""
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
    """Return whether the factor stays valid when the row phi is added. Overwrites phi."""
    solve_lower(U, inv, phi)
    for k in range(phi.size):
        p = abs(phi[k])
        if not (0.0 < U[k, k] < HUGE and p < LARGEST and U[k, k] * (1.0 + p) < HUGE):
            return False
    return True


@compiled
def take_in(mind: Mind, visits: Visits, i: int, phi: Floats) -> bool:
    """Add the rows of visit i to the factors, or return False and add none if a factor would become invalid.

    No product is shown twice, so every row belongs to a different factor.
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
    """Return the value of the next slot, given the values of its products relative to the baseline."""
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
    """Add phi (target - base) to `into` for all answered slots of visit i, or for slot `only` alone if only >= 0.

    The target uses the sample and the baseline in `mind` for the slots that follow.
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
    """Add `scale` times the features of visit i when `slot` was filled to `into`, of shape (N, d)."""
    begin, row = visits.first[i], visits.first[i] + visits.given[i] + slot
    a = visits.product[row]
    for t in range(begin, row):
        if visits.answer[t] != 0 and visits.when[t] <= slot:
            n = visits.product[t]
            into[a, mind.place[n]] += scale * (visits.answer[t] * mind.sign[n])
    into[a, mind.constant[a]] += scale


@compiled
def set_right(mind: Mind, base: Floats, p: int, forgot: bool) -> None:
    """Set right_p to the contribution of customers no longer remembered, relative to the baseline."""
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
    """Draw a new sample into `fresh` from all visits, remembered or not. Return False if it is not finite.

    Targets use `before`: this is `fresh` itself when solved backward, and the previous sample if pooled.
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
    """Set base_j to the likes expected from slot j on, at the rates of `recent` answers (customers, J).

    If rate >= 0, it is used instead. A slot that nobody answered counts as one half. For a myopic recommender,
    base_j is the rate of slot j alone.
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
    """Fix the targets of the first `count` visits at the values of the current sample; `zero` has shape (J + 1,).

    They include the noise of that one sample: the mean would need a second solution for every sample.
    """
    for i in range(count):
        add_targets(mind, visits, i, -1, zero, mind.frozen, clip, myopic, Q)
        begin = visits.first[i] + visits.given[i]
        for slot in range(visits.first[i + 1] - begin):
            if visits.answer[begin + slot] != 0:
                add_row(mind, visits, i, slot, 1.0, mind.mass[slot])
