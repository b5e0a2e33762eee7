"""The model of a shop in plain NumPy: slow, obvious, from the docstrings, to compare with."""

import numpy as np

from rlsvi_shop.model.regression import Sizes
from rlsvi_shop.model.targets import NEVER, WIDE, OpenVisit, VisitArrays, VisitLog, sign_of

SIZES = [Sizes(4, 0, 0, 9), Sizes(4, 2, 0, 5), Sizes(3, 0, 2, 4), Sizes(5, 2, 3, 4), Sizes(3, 0, WIDE + 1, 4)]
NAMES = ["plain", "customers", "features", "both", "wide"]


def visits_of(sizes, products, count, seed=0):
    """Visits in which answers come late or never, and customers leave early."""
    rng, log = np.random.default_rng(seed), VisitLog(sizes.customer)
    for _ in range(count):
        visit = OpenVisit(rng.standard_normal(sizes.customer).tolist(), 0.0)
        for a in rng.permutation(products)[: rng.integers(0, sizes.slots + 1)]:
            visit.show(int(a))
            for row in range(len(visit.product)):
                if visit.x[row] == 0 and rng.random() < 0.6:
                    reward = float(rng.normal())
                    visit.answer(row, reward, reward > 0.2)
        log.append(visit)
    return log


def known(visits, i, slot, z, sizes):
    """u = (1, c, history, left, h) when `slot` of visit i was filled."""
    m = sizes.product
    history, liked, disliked, last = np.zeros(sizes.history), np.zeros(m), np.zeros(m), np.zeros(m)
    for t in range(visits.first[i], visits.first[i] + slot):
        n, x = visits.product[t], visits.x[t]
        if x != 0 and visits.when[t] != NEVER and visits.when[t] <= slot:
            history[n % sizes.history] += x * sign_of(n, sizes.history)
            (liked if x > 0 else disliked)[:] += z[n]
            last[z[n] != 0.0] = x * z[n][z[n] != 0.0]
    left = [] if m == 0 else [(sizes.slots - 1 - slot) / (sizes.slots - 1)]
    h = [liked - disliked] if m > WIDE else [liked, disliked, last]
    return np.concatenate([[1.0], visits.customer[i], history, left, *h])


def rows_of(visits: VisitArrays, z, sizes):
    """(visit, slot, row, product, u) of all slots that were answered."""
    for i in range(len(visits.customer)):
        for t in range(visits.first[i], visits.first[i + 1]):
            if visits.x[t] != 0:
                slot = t - visits.first[i]
                yield i, slot, t, visits.product[t], known(visits, i, slot, z, sizes)


def target(visits, i, slot, weight, base, z, offered, low, high, sizes):
    """The target of a slot for weights (e, N)."""
    begin = visits.first[i]
    seen = set(visits.product[begin : begin + slot + 1].tolist())
    unseen = [a for a in np.flatnonzero(offered) if a not in seen]
    left = min(sizes.slots - slot - 1, len(unseen))
    ahead = 0.0
    if left > 0:
        u = known(visits, i, slot + 1, z, sizes)
        ahead = np.clip(base[slot + 1] + max(u @ weight[:, a] for a in unseen), low * left, high * left)
    return visits.reward[begin + slot] + ahead


def joint(u, a, z, sizes):
    """A row of the joint regression: the weights of all products one after another, then the shared ones."""
    N, d = len(z), sizes.own
    own = np.zeros((N, d))
    own[a] = u[:d]
    g = np.concatenate([u[: 1 + sizes.customer], u[d:]]) if sizes.product else np.zeros(0)
    return np.concatenate([own.ravel(), np.kron(z[a], g)])


def prior(sizes, products, ridges):
    """The ridge of every weight of the joint regression."""
    own = [ridges.own] * (1 + sizes.customer) + [ridges.own_history] * sizes.history
    told = 0 if sizes.crossed == 0 else sizes.crossed - 1 - sizes.customer
    shared = [ridges.shared] * (1 + sizes.customer) + [ridges.shared_history] * told
    return np.concatenate([np.tile(own, products), np.tile(shared, sizes.product)])


def on_u(joint_weights, z, sizes):
    """Weights of the joint regression as weights on u: (e, N)."""
    N, d, q, m = len(z), sizes.own, sizes.customer, sizes.product
    weight = np.zeros((sizes.width, N))
    weight[:d] = joint_weights[: N * d].reshape(N, d).T
    if m:
        g = z @ joint_weights[N * d :].reshape(m, sizes.crossed)
        weight[: 1 + q] += g[:, : 1 + q].T
        weight[d:] += g[:, 1 + q :].T
    return weight
