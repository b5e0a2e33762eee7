"""The rows and the targets of value iteration over visits.

For a slot that was answered, the row is u = (1, c, history, h), see `Sizes`, of what was known when it was filled;

    target = reward + max over products a' not seen and offered of Q_{next slot}(a'), clipped
    Q_j(a) = base_j + weight[:, a] . u

after the last slot, the target is the reward. A customer who left early is valued as if she had stayed.
The maximum is taken over blocks of products, whose weights fit into the cache.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rlsvi.core.compile import Bools, Floats, Ints, Longs, compiled

LARGEST_BLOCK = 200_000  # weights of a block of products, which should fit into the cache
WIDE = 24  # numbers in the features of a product above which only the sum of answers is told by feature
NEVER = np.iinfo(np.int32).max  # when an answer came that has not come


class VisitArrays(NamedTuple):
    """Visits one after another: visit i has rows first[i] .. first[i + 1] - 1, one for each slot filled."""

    first: Longs  # (visits + 1,)
    customer: Floats  # (visits, q)
    product: Ints  # (rows,)
    x: Ints  # (rows,) 1 liked, -1 not liked, 0 without an answer
    reward: Floats  # (rows,)
    when: Ints  # (rows,) slots that were filled when the answer came: it is known from that slot on


@dataclass
class OpenVisit:
    """A visit that is going on."""

    customer: list[float]
    at: float  # time of its last event
    product: list[int] = field(default_factory=list)
    x: list[int] = field(default_factory=list)
    reward: list[float] = field(default_factory=list)
    when: list[int] = field(default_factory=list)

    def show(self, product: int) -> None:
        """Fill the next slot."""
        self.product.append(product)
        self.x.append(0)
        self.reward.append(0.0)
        self.when.append(NEVER)

    def answer(self, row: int, reward: float | None, liked: bool) -> None:
        """Record the answer to what slot `row` has shown, or another one in its place; None withdraws it.

        When it first came is kept, for the case that it is told again.
        """
        if reward is None:
            self.x[row], self.reward[row] = 0, 0.0
        else:
            self.x[row], self.reward[row] = 1 if liked else -1, reward
            self.when[row] = min(self.when[row], len(self.product))

    def settle(self, reward: float, liked: bool) -> None:
        """Give every slot without an answer this reward, of which nothing was known during the visit."""
        for row, x in enumerate(self.x):
            if x == 0:
                self.x[row], self.reward[row], self.when[row] = 1 if liked else -1, reward, NEVER

    @property
    def answered(self) -> bool:
        """Whether every slot filled so far has its answer."""
        return 0 not in self.x


class VisitLog:
    """Visits that have ended, in arrays that grow by doubling, and a number of 64 bits for the name of each."""

    _all: VisitArrays
    _keys: Longs

    def __init__(self, customer: int) -> None:
        whole = np.zeros(0, np.int32)
        empty = VisitArrays(np.zeros(1, np.int64), np.zeros((0, customer)), whole, whole, np.zeros(0), whole)
        self.load(empty, np.zeros(0, np.int64))

    @property
    def keys(self) -> Longs:
        """The numbers of names, (visits,)."""
        return self._keys[: self.count]

    @property
    def rows(self) -> int:
        """The number of slots filled in all visits."""
        return int(self._all.first[self.count])

    def arrays(self) -> VisitArrays:
        """Return views of what is used."""
        used = [part[: self.rows] for part in self._all[2:]]
        return VisitArrays._make([self._all.first[: self.count + 1], self._all.customer[: self.count], *used])

    def find(self, name: str) -> int | None:
        """Return the place of a visit, None if it is not here."""
        found = np.flatnonzero(self.keys == key_of(name))
        return int(found[-1]) if found.size else None

    def visit(self, i: int) -> OpenVisit:
        """Return the visit at place i as it was when it ended."""
        used = self.arrays()
        rows = slice(used.first[i], used.first[i + 1])
        return OpenVisit(used.customer[i].tolist(), 0.0, *(part[rows].tolist() for part in used[2:]))

    def replace(self, i: int, visit: OpenVisit) -> None:
        """Replace the answers of the visit at place i."""
        begin, end = self._all.first[i : i + 2]
        self._all.x[begin:end], self._all.reward[begin:end] = visit.x, visit.reward
        self._all.when[begin:end] = visit.when

    def append(self, visit: OpenVisit, name: str = "") -> None:
        """Append a visit."""
        i, begin, end = self.count, self.rows, self.rows + len(visit.product)
        self._all = VisitArrays._make(map(_with_room, self._all, (i + 2, i + 1, end, end, end, end)))
        self._keys = _with_room(self._keys, i + 1)
        self._all.first[i + 1], self._all.customer[i], self._keys[i] = end, visit.customer, key_of(name)
        parts: list[Any] = list(self._all[2:])
        for part, values in zip(parts, (visit.product, visit.x, visit.reward, visit.when), strict=True):
            part[begin:end] = values
        self.count += 1

    def drop(self, oldest: int) -> None:
        """Remove the `oldest` first visits."""
        used = self.arrays()
        kept = [part[used.first[oldest] :].copy() for part in used[2:]]
        first, customer = used.first[oldest:] - used.first[oldest], used.customer[oldest:].copy()
        self.load(VisitArrays._make([first, customer, *kept]), self.keys[oldest:].copy())

    def load(self, visits: VisitArrays, keys: Longs) -> None:
        """Replace all visits."""
        self._all, self._keys, self.count = visits, keys, len(visits.customer)


def key_of(name: str) -> int:
    """Return the number of a visit's name."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little", signed=True)


def _with_room(array: Any, length: int) -> Any:
    """Return an array, or a copy with room for twice the length if it is too short."""
    if length <= len(array):
        return array
    longer = np.zeros((2 * length, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


@compiled
def scrambled(key: Any, n: int) -> Any:
    """Return 64 bits that look random: those of number n in the sequence of a key."""
    word = key + np.uint64(n) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)


@compiled
def sign_of(n: int, D: int) -> float:
    """Return the sign with which the answer to product n counts at its position n mod D of the history."""
    if n < D:
        return 1.0
    return 1.0 if (scrambled(np.uint64(0), n) >> np.uint64(63)) == np.uint64(0) else -1.0


@compiled
def told(m: int) -> int:
    """Return how many numbers in u tell of the slots left and of the answers by feature of products."""
    return 0 if m == 0 else 1 + 3 * m if m <= WIDE else 1 + m


@compiled
def left_of(slot: int, slots: int) -> float:
    """Return the share of the slots that are left after this one."""
    return max(slots - 1 - slot, 0) / max(slots - 1, 1)


@compiled
def add_answer(u: Floats, z: Floats, n: int, x: float, q: int, D: int, change: Floats, index: Longs) -> int:
    """Add the answer x to product n to what is known.

    Returns how many numbers in u have changed: their positions are in `index`, and by how much in `change`.
    """
    m, count = z.shape[1], 1
    first, index[0] = 2 + q + D, 1 + q + n % D
    change[index[0]] = x * sign_of(n, D)
    for f in range(m):
        if z[n, f] == 0.0:
            continue
        if m > WIDE:
            index[count], change[first + f] = first + f, x * z[n, f]
            count += 1
            continue
        liked, last = first + f if x > 0.0 else first + m + f, first + 2 * m + f
        index[count], change[liked] = liked, z[n, f]
        index[count + 1], change[last] = last, x * z[n, f] - u[last]
        count += 2
    for k in range(count):
        u[index[k]] += change[index[k]]
    return count


@compiled
def set_row(
    u: Floats, visits: VisitArrays, i: int, slot: int, z: Floats, slots: int, change: Floats, index: Longs
) -> None:
    """Set u to what was known when `slot` of visit i was filled."""
    begin, q = visits.first[i], visits.customer.shape[1]
    D = u.size - 1 - q - told(z.shape[1])
    u[0] = 1.0
    for k in range(q):
        u[1 + k] = visits.customer[i, k]
    for k in range(1 + q, u.size):
        u[k] = 0.0
    if z.shape[1]:
        u[1 + q + D] = left_of(slot, slots)
    for t in range(begin, begin + slot):
        if visits.x[t] != 0 and visits.when[t] <= slot:
            add_answer(u, z, visits.product[t], float(visits.x[t]), q, D, change, index)


@compiled
def not_zero(u: Floats, index: Longs) -> int:
    """Store the positions of the numbers in u that are not zero, and return how many there are."""
    count = 0
    for k in range(u.size):
        if u[k] != 0.0:
            index[count] = k
            count += 1
    return count


@compiled
def add_grams(
    visits: VisitArrays,
    begin: int,
    end: int,
    scale: float,
    z: Floats,
    gram: Floats,
    dirty: Bools,
    slots: int,
    u: Floats,
    change: Floats,
    index: Longs,
) -> None:
    """Add `scale` u u' to the Gram matrix of the product shown, for the rows of visits begin .. end - 1."""
    for i in range(begin, end):
        for t in range(visits.first[i], visits.first[i + 1]):
            if visits.x[t] == 0:
                continue
            set_row(u, visits, i, t - visits.first[i], z, slots, change, index)
            count, a = not_zero(u, index), visits.product[t]
            dirty[a] = True
            for r in range(count):
                value, into = scale * u[index[r]], gram[a, index[r]]
                for s in range(count):
                    into[index[s]] += value * u[index[s]]


@compiled
def add_rows(weight: Floats, u: Floats, index: Longs, count: int, begin: int, values: Floats) -> None:
    """Add u[k] weight[k, begin:] to `values` for the first `count` positions k in `index`, four at a time."""
    whole = count - count % 4
    for r in range(0, whole, 4):
        one, two, three, four = index[r], index[r + 1], index[r + 2], index[r + 3]
        u1, u2, u3, u4 = u[one], u[two], u[three], u[four]
        row1, row2, row3, row4 = weight[one], weight[two], weight[three], weight[four]
        for b in range(values.size):
            a = begin + b
            values[b] += (u1 * row1[a] + u2 * row2[a]) + (u3 * row3[a] + u4 * row4[a])
    for r in range(whole, count):
        by, row = u[index[r]], weight[index[r]]
        for b in range(values.size):
            values[b] += by * row[begin + b]


@compiled
def largest(values: Floats) -> float:
    """Return the largest value, or -inf if there is none. Eight of them are compared at a time."""
    a = b = c = d = e = f = g = h = -np.inf
    whole = values.size - values.size % 8
    for i in range(0, whole, 8):
        a, b = max(a, values[i]), max(b, values[i + 1])
        c, d = max(c, values[i + 2]), max(d, values[i + 3])
        e, f = max(e, values[i + 4]), max(f, values[i + 5])
        g, h = max(g, values[i + 6]), max(h, values[i + 7])
    for i in range(whole, values.size):
        a = max(a, values[i])
    return max(max(max(a, b), max(c, d)), max(max(e, f), max(g, h)))


@compiled
def raise_best(
    visits: VisitArrays,
    weight: Floats,
    z: Floats,
    offered: Bools,
    begin: int,
    Q: Floats,
    best: Floats,
    slots: int,
    u: Floats,
    change: Floats,
    index: Longs,
) -> None:
    """Raise best[t] to the largest value, over the unseen products of a block, in the slot that follows row t.

    Values are relative to the baseline. The products of the block are begin .. begin + Q.size - 1.
    """
    q, m = visits.customer.shape[1], z.shape[1]
    D = u.size - 1 - q - told(m)
    left = 1 + q + D
    for i in range(visits.customer.shape[0]):
        start, end = visits.first[i], visits.first[i + 1]
        for b in range(Q.size):
            Q[b] = 0.0 if offered[begin + b] else -np.inf
        set_row(u, visits, i, 0, z, slots, change, index)
        add_rows(weight, u, index, not_zero(u, index), begin, Q)
        for t in range(start, end):
            at, slot = visits.product[t] - begin, t + 1 - start
            if 0 <= at < Q.size:
                Q[at] = -np.inf
            if m:
                index[0], change[left] = left, left_of(slot, slots) - u[left]
                u[left] += change[left]
                add_rows(weight, change, index, 1, begin, Q)
            for row in range(start, t + 1):
                if visits.x[row] != 0 and visits.when[row] == slot:
                    n, x = visits.product[row], float(visits.x[row])
                    add_rows(weight, change, index, add_answer(u, z, n, x, q, D, change, index), begin, Q)
            best[t] = max(best[t], largest(Q))


@compiled
def set_targets(
    visits: VisitArrays, base: Floats, offered: Bools, low: float, high: float, targets: Floats
) -> None:
    """Turn targets[s, t], the largest value in the slot after row t relative to the baseline, into the target.

    The value of the slots left is limited to between `low` and `high` for each of them.
    """
    J, products = base.size - 1, 0
    for a in range(offered.size):
        products += offered[a]
    for i in range(visits.customer.shape[0]):
        unseen = products
        for t in range(visits.first[i], visits.first[i + 1]):
            slot = t - visits.first[i]
            unseen -= offered[visits.product[t]]
            left = min(J - slot - 1, unseen)
            for s in range(targets.shape[0]):
                ahead = 0.0
                if left > 0:
                    ahead = min(max(base[slot + 1] + targets[s, t], low * left), high * left)
                targets[s, t] = visits.reward[t] + ahead


@compiled
def add_rights(
    visits: VisitArrays,
    count: int,
    targets: Floats,
    base: Floats,
    z: Floats,
    right: Floats,
    u: Floats,
    change: Floats,
    index: Longs,
) -> None:
    """Add u (target - base_j) to right[s] (N, e) for every chain s and all answered slots of the first visits."""
    slots = base.size - 1
    for i in range(count):
        for t in range(visits.first[i], visits.first[i + 1]):
            if visits.x[t] == 0:
                continue
            slot, a = t - visits.first[i], visits.product[t]
            set_row(u, visits, i, slot, z, slots, change, index)
            nonzero = not_zero(u, index)
            for s in range(right.shape[0]):
                over, into = targets[s, t] - base[slot], right[s, a]
                for r in range(nonzero):
                    into[index[r]] += over * u[index[r]]


@compiled
def add_masses(
    visits: VisitArrays, count: int, z: Floats, mass: Floats, u: Floats, change: Floats, index: Longs
) -> None:
    """Add u to mass[a, j] for all products a and slots j that the first visits have answered."""
    slots = mass.shape[1]
    for i in range(count):
        for t in range(visits.first[i], visits.first[i + 1]):
            if visits.x[t] != 0:
                slot = t - visits.first[i]
                set_row(u, visits, i, slot, z, slots, change, index)
                for r in range(not_zero(u, index)):
                    mass[visits.product[t], slot, index[r]] += u[index[r]]


def targets_of(
    visits: VisitArrays, weight: Floats, base: Floats, z: Floats, offered: Bools, low: float, high: float
) -> Floats:
    """Return the targets of all rows under all chains, whose weights are (S, e, N): (S, rows)."""
    S, e, N = weight.shape
    block = max(16, min(N, LARGEST_BLOCK // e))
    targets = np.full((S, len(visits.product)), -np.inf)
    for begin in range(0, N, block):
        size = min(block, N - begin)
        Q = np.empty(size)
        for s in range(S):
            raise_best(visits, weight[s], z, offered, begin, Q, targets[s], base.size - 1, *work_row(e))
    set_targets(visits, base, offered, low, high, targets)
    return targets


def work_row(e: int) -> tuple[Floats, Floats, Longs]:
    """Return work arrays for one row: u, its last change, and positions in them."""
    return np.zeros(e), np.zeros(e), np.zeros(e, np.int64)
