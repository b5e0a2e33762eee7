"""What the practice agent has seen, step by step, its targets, and the regression of them on features."""

import math
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np

from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import LARGEST_NUMBER
from rlsvi.core.compile import Bools, Floats, Longs, compiled
from rlsvi.core.machine import ROWS, blocks, on_all_cores
from rlsvi.core.regression import cholesky, solve_triangular
from rlsvi.envs.actions import starts_of

# ---- What was seen: observations as rows, and the transitions between them ----------------------------------
#
# Every step is kept in its order, so that returns can be followed through an episode. Successive transitions share
# the observation between them.

END = -1


class Transitions(NamedTuple):
    """Transitions, as columns."""

    row: Longs  # (T,) row of the observation
    action: Longs  # (T,), or (T, k) with the numbers of the values of its parts
    reward: Floats
    next: Longs  # (T,) row of the next observation; -1 at the end of an episode


def best_values(Q: Floats, legal: Bools, parts: tuple[int, ...] = ()) -> Floats:
    """Return the highest value of a legal action in each row, given Q (N, A).

    Of actions with parts, Q contains the values of the values of parts, and the best action has the best of each.
    """
    if not legal.all():
        Q = np.where(legal, Q, -np.inf)
    best: Floats = np.maximum.reduceat(Q, starts_of(parts), axis=1).sum(axis=1) if parts else Q.max(axis=1)
    return best


def longer(array: Any) -> Any:
    """Return a copy with room for half as many entries again."""
    room = np.zeros((len(array) + len(array) // 2 + 64, *array.shape[1:]), array.dtype)
    room[: len(array)] = array
    return room


class EpisodeHistory:
    """Observations as rows (n,), with their legal actions, and every step between them, in growing arrays.

    Nothing that was added is ever changed: copies share their arrays, and each appends its own steps after those
    in common, so a copy costs nothing. Only one of two copies may be added to.

    Parameters
    ----------
    parts
        How many values each part of an action has, if it is their values that are legal or not.
    """

    def __init__(self, width: int, actions: int, parts: tuple[int, ...] = ()) -> None:
        self.parts = parts
        self._x, self._legal = np.zeros((64, width)), np.zeros((64, actions), dtype=np.bool_)
        whole = np.zeros((3, 64), dtype=np.int64)
        action = np.zeros((64, len(parts)), np.int64) if parts else whole[1]
        self._columns = Transitions(whole[0], action, np.zeros(64), whole[2])
        self._last = np.zeros(64, dtype=np.bool_)
        self._rows = self._steps = 0

    @classmethod
    def of(cls, x: Floats, legal: Bools, steps: Transitions, last: Bools, parts: tuple[int, ...] = ()) -> Self:
        """Return a history made of checked arrays."""
        history = cls(0, 0, parts)
        history._x, history._legal, history._columns, history._last = x, legal, steps, last
        history._rows, history._steps = len(x), len(last)
        return history

    @property
    def x(self) -> Floats:
        """The observations, (N, n)."""
        return self._x[: self._rows]

    @property
    def legal(self) -> Bools:
        """The legal actions of each observation, (N, A)."""
        return self._legal[: self._rows]

    @property
    def transitions(self) -> Transitions:
        """The transitions, in the order played."""
        columns: Any = self._columns
        return Transitions(*(column[: self._steps] for column in columns))

    @property
    def last(self) -> Bools:
        """Whether a step was the last of its episode, (T,)."""
        return self._last[: self._steps]

    def row(self, x: Floats, legal: Bools) -> int:
        """Return the row of an observation: the last one if it is the same, otherwise a new one."""
        i = self._rows - 1
        if i >= 0 and self._x[i].tobytes() == x.tobytes() and (self._legal[i] == legal).all():
            return i
        i = self._rows
        if i == len(self._x):
            self._x, self._legal = longer(self._x), longer(self._legal)
        self._x[i], self._legal[i] = x, legal
        self._rows += 1
        return i

    def add(self, row: int, action: Any, reward: float, following: int) -> int:
        """Add a step, and return its index."""
        i = self._steps
        if i == len(self._last):
            self._columns, self._last = Transitions(*(longer(each) for each in self._columns)), longer(self._last)
        for column, value in zip(self._columns, (row, action, reward, following), strict=True):
            column[i] = value
        self._last[i] = following == END
        self._steps += 1
        return i

    def end_episode(self) -> None:
        """Mark the step added last as the last of its episode, though it may not have terminated."""
        self._last[self._steps - 1] = True

    def returns(self) -> Floats:
        """Return the sum of rewards of every complete episode."""
        sums = np.concatenate([[0.0], np.cumsum(self.transitions.reward)])[np.flatnonzero(self.last) + 1]
        totals: Floats = np.diff(sums, prepend=0.0)
        return totals

    def recent(self, steps: int) -> "EpisodeHistory":
        """Return a history of only the most recent steps."""
        first = max(0, self._steps - steps)
        row = int(self._columns.row[first])
        columns: Any = self.transitions
        kept = Transitions(*(column[first:].copy() for column in columns))
        kept.row[:] -= row
        kept.next[kept.next != END] -= row
        return self.of(self.x[row:].copy(), self.legal[row:].copy(), kept, self.last[first:].copy(), self.parts)

    @classmethod
    def read(cls, file: Archive, actions: int, parts: tuple[int, ...] = ()) -> Self:
        """Read a history from a file, after checking it."""
        (N, width), (T,) = file.shape("history.x", 2), file.shape("history.row", 1)
        if N < 1 or T < 1:
            raise ArchiveError("is damaged: its history is empty")
        x, legal = (
            file.take("history.x", (N, width), most=LARGEST_NUMBER),
            file.take("history.legal", (N, actions), np.bool_),
        )
        action = file.take_within("history.action", (T, len(parts)) if parts else (T,), np.int64, 0, actions - 1)
        if parts and (np.searchsorted(starts_of(parts), action, side="right") != 1 + np.arange(len(parts))).any():
            raise ArchiveError("is damaged: an action in its history has a value of another part")
        steps = Transitions(
            file.take_within("history.row", (T,), np.int64, 0, N - 1),
            action,
            file.take("history.reward", (T,), most=LARGEST_NUMBER),
            file.take_within("history.next", (T,), np.int64, END, N - 1),
        )
        last = file.take("history.last", steps.row.shape, np.bool_)
        if ((steps.next == END) & ~last).any() or not legal.any(axis=1).all():
            raise ArchiveError("is damaged: an observation or a step in its history makes no sense")
        return cls.of(x, legal, steps, last, parts)


# ---- What targets are made of: values within bounds, followed through episodes ------------------------------

MARGIN = 0.1  # of the span of observed returns, by which bounds exceed them


class Planning(NamedTuple):
    """The prior of the weights, and what value iteration depends on."""

    ridge: float
    sigma: float  # if the noise is known
    shape: float  # if the noise is unknown; 0 if it is known
    scale: float
    in_usual_rewards: bool  # whether `scale` is in units of the squared usual reward
    gamma: float
    bounds: Any  # of the values behind targets: "attainable", "optimistic" or two numbers
    memory: int | None  # most steps to keep
    repeat: int | None  # how long actions are held; None: by rule


class SweptValues(NamedTuple):
    """The result of the sweeps."""

    theta: Floats  # (A, d)
    Q: Floats  # (N, A) the values of theta
    sweeps: int
    change: float  # of Q in the last sweep, relative to the size of Q
    sigma: float
    at_bounds: float  # fraction of the values behind targets that were clipped to the bounds
    mistakes: bool = False  # whether lambda-returns followed mistakes
    top: float | None = None  # what is possible where nothing was tried, if that counts


def attainable(history: EpisodeHistory, gamma: float) -> tuple[float, float]:
    """Return the least and the greatest plausible value of a state, given the rewards seen.

    These are the discounted returns observed from any step to the end of its episode, and a tenth of their span
    more, but not beyond the least and the greatest reward for ever. One usual reward is always considered
    possible: without it, nothing would be worth trying while there were no rewards or only costs.
    """
    returns, rewards = returns_to_go(history, gamma), history.transitions.reward
    return with_margin(
        (float(returns.min()), float(returns.max())),
        (float(rewards.min()), float(rewards.max())),
        usual_reward(history),
        gamma,
    )


def with_margin(
    returns: tuple[float, float], rewards: tuple[float, float], usual: float, gamma: float
) -> tuple[float, float]:
    """Return bounds of values, given the least and greatest return and reward observed, and the usual reward."""
    least, most = returns
    margin = max(MARGIN * (most - least), usual)
    if gamma >= 1:
        return least - margin, most + margin
    worst, best = (reward / (1 - gamma) for reward in rewards)  # one of them in every step, for ever
    low, high = least - margin, most + margin
    return max(low, worst) if worst <= least else low, min(high, max(best, usual)) if best >= most else high


def usual_reward(history: EpisodeHistory) -> float:
    """Return the unit of reward without prior knowledge: the geometric mean of nonzero absolute rewards, or 1."""
    reward = history.transitions.reward
    some = np.abs(reward[reward != 0])
    return math.exp(float(np.log(some).mean())) if some.size else 1.0


def returns_to_go(history: EpisodeHistory, gamma: float) -> Floats:
    """Return the discounted sum of rewards from each step to the end of its episode, as far as it was observed."""
    return discounted_sums(history.transitions.reward, history.last, gamma)


def discounted_sums(reward: Floats, last: Bools, gamma: float) -> Floats:
    """Return the discounted sum of rewards from each step to the end of its episode."""
    out = np.empty(len(reward))
    trace_back(reward, np.zeros(len(reward)), last, gamma, 1.0, True, out)
    return out


def values_of(history: EpisodeHistory, Q: Floats, bounds: tuple[float, float | Floats]) -> tuple[Floats, float]:
    """Return V of every row and, last, of the end, clipped to the bounds; and the fraction that was clipped."""
    best = best_values(Q, history.legal, history.parts)
    V = np.zeros(len(Q) + 1)  # the last entry stands for the end
    np.clip(best, *bounds, out=V[:-1])
    return V, float((V[:-1] != best).mean())


def targets(
    history: EpisodeHistory, V: Floats, gamma: float, trace: float = 0.0, mistakes: bool = False
) -> Floats:
    """Return the target of every transition, given V of the rows and of the end."""
    steps = history.transitions
    out = np.empty(len(steps.reward))
    trace_back(steps.reward, V[steps.next], history.last, gamma, trace, mistakes, out)
    return out


@compiled
def trace_back(
    reward: Floats, V: Floats, last: Bools, gamma: float, trace: float, mistakes: bool, out: Floats
) -> None:
    """Compute lambda-returns, given the values V after each step; without mistakes, as far as they exceed V."""
    following = 0.0
    for i in range(reward.size - 1, -1, -1):
        if last[i] or i == reward.size - 1 or (following < V[i] and not mistakes):
            following = V[i]
        following = out[i] = reward[i] + gamma * ((1.0 - trace) * V[i] + trace * following)


# ---- The regression of per-action blocks on state features, for all blocks at once by matrix products --------
#
# A regression holds Phi, the features of N distinct states, and for every action G_a, the sum of phi phi' over its
# transitions. The weights of an action are theta_a = u + v_a. All actions share u, whose prior variance is
# ALIKE / ridge; that of v_a is (1 - ALIKE) / ridge. The weights of two actions for the same feature therefore have
# correlation ALIKE: it is how far what is learned about one action in a state carries over to the others. Their
# joint precision P has the shape of an arrow,
#
#     [ G_1 + ridge / (1 - ALIKE)                                  G_1 ]
#     [                             G_2 + ridge / (1 - ALIKE)      G_2 ]
#     [           G_1                         G_2             G_1 + G_2 + ridge / ALIKE ]
#
# and so does its factor: A actions with d features cost A d^3, not (A d)^3.
#
# core/regression.py is another algorithm for the same posterior. It updates the factors of separate blocks by
# one row at a time, in compiled code; here features change as data come, hundreds of them are summed by matrix
# products, and actions share u.
#
# Phi is kept in blocks of rows, which several cores share (core/machine.py), and in double precision. Products
# in single precision move the values of the posterior mean by up to .3 of their standard deviation (MountainCar,
# 20,000 steps), because the condition of P multiplies their errors. Phi kept in single precision for products in
# double precision would be accurate enough, and take half the memory, but products would take a third longer.

Features = Callable[[Floats], Floats]
ALIKE = 0.5  # prior correlation of the weights of two actions, in (0, 1)


class FeatureRegression:
    """d features per state: weights (A, d). `sums` (A, d, d) contains G_a for every action."""

    def __init__(self, actions: int, dim: int) -> None:
        self._ridge = 1.0
        self._phi: list[Floats] = []  # the features of `ROWS` states each; the last block has room for more
        self._n = 0
        self.sums = np.zeros((actions, dim, dim))
        self._own: list[Floats] = []  # L_a for every action
        self._joint: list[Floats] = []  # E_a = L_a^-1 G_a for every action
        self._shared: Floats = np.zeros((0, 0))  # L_u

    @property
    def dim(self) -> int:
        """The number of weights of an action."""
        return int(self.sums.shape[1])

    @property
    def drawn(self) -> tuple[int, int]:
        """The shape of the normal variates of a sample: one row per action, and one for the shared part."""
        return len(self.sums) + 1, self.dim

    def copy(self) -> Self:
        """Return an independent copy. Features are shared; each copy appends its own after those in common."""
        other = copy(self)
        other.sums, other._phi = self.sums.copy(), list(self._phi)
        return other

    def extend(self, x: Floats, features: Features = np.asarray, threads: bool = False) -> None:
        """Add states without transitions. Their features are computed from x, in several threads if allowed."""
        before, self._n = self._n, self._n + len(x)
        self._make_room()

        def fill(block: tuple[slice, Floats]) -> None:
            rows, phi = block
            first = max(before, rows.start)
            phi[first - rows.start :] = features(x[first - before : rows.stop - before])

        new = [block for block in self._blocks() if block[0].stop > before]
        on_all_cores(fill, new, x.size * self.dim if threads else 0)

    def _make_room(self) -> None:
        """Lengthen the last block, and add others, until all states have a row."""
        for k, rows in enumerate(blocks(self._n)):
            needed = rows.stop - rows.start
            phi = self._phi[k] if k < len(self._phi) else np.empty((0, self.dim))
            if len(phi) < needed:
                room = np.empty((min(ROWS, needed + needed // 2), self.dim))
                room[: len(phi)] = phi
                self._phi[k : k + 1] = [room]

    def _blocks(self) -> list[tuple[slice, Floats]]:
        pairs = zip(blocks(self._n), self._phi, strict=True)
        return [(rows, phi[: rows.stop - rows.start]) for rows, phi in pairs]

    def add(self, row: Longs, action: Longs, count: Floats) -> None:
        """Add transitions from these states with these actions, by one matrix product per action and block."""

        def add_of(a: int) -> None:
            its = np.flatnonzero(action == a)
            block = row[its] // ROWS
            for k in np.unique(block):
                here = its[block == k]
                x = self._phi[k][row[here] - k * ROWS]
                self.sums[a] += x.T @ (x * count[here, None])

        on_all_cores(add_of, np.unique(action).tolist(), len(row) * self.dim**2)

    def factor(self, ridge: float) -> None:
        """Compute the Cholesky factor of P, block by block."""
        self._ridge = ridge
        unit = np.eye(self.dim)

        def parts_of(G: Floats) -> tuple[Floats, Floats, Floats]:
            L = cholesky(G + ridge / (1 - ALIKE) * unit)
            E = solve_triangular(L, G)
            return L, E, G - E.T @ E

        found = on_all_cores(parts_of, list(self.sums), len(self.sums) * self.dim**3)
        self._own, self._joint = [L for L, _, _ in found], [E for _, E, _ in found]
        self._shared = cholesky(sum(rest for _, _, rest in found) + ridge / ALIKE * unit)

    def values(self, theta: Floats) -> Floats:
        """Return Phi theta_a for all states, (N, A)."""
        Q = np.empty((self._n, len(theta)))

        def fill(block: tuple[slice, Floats]) -> None:
            rows, phi = block
            Q[rows] = phi @ theta.T

        on_all_cores(fill, self._blocks(), Q.size * self.dim)
        return Q

    def fit(self, sums: Floats) -> Floats:
        """Return the posterior mean, given the sums of the targets of every state and action (N, A)."""
        return self.solve(self.products(sums))

    def products(self, sums: Floats) -> Floats:
        """Return Phi' sums of every action, (A, d)."""

        def product(block: tuple[slice, Floats]) -> Floats:
            rows, phi = block
            return sums[rows].T @ phi

        y: Floats = sum(on_all_cores(product, self._blocks(), sums.size * self.dim), np.zeros(()))
        return y

    def solve(self, y: Floats) -> Floats:
        """Return the posterior mean, given the products of features and targets of every action (A, d)."""
        w = np.stack([solve_triangular(L, of_a) for L, of_a in zip(self._own, y, strict=True)])
        known = sum(E.T @ w_a for E, w_a in zip(self._joint, w, strict=True))
        return self.shape(np.concatenate([w, solve_triangular(self._shared, y.sum(axis=0) - known)[None]]))

    def unknown(self, phi: Floats) -> Floats:
        """Return the part of the prior variance of the values of features (n, d) that data have left, (n, A)."""
        own = [solve_triangular(L, phi.T) for L in self._own]
        shared = [solve_triangular(self._shared, phi.T - E.T @ w) for E, w in zip(self._joint, own, strict=True)]
        left = [(w**2).sum(axis=0) + (u**2).sum(axis=0) for w, u in zip(own, shared, strict=True)]
        unknown: Floats = (
            self._ridge * np.stack(left, axis=1) / np.fmax((phi**2).sum(axis=1, keepdims=True), 1e-300)
        )
        return unknown

    def all_unknown(self) -> Floats:
        """Return `unknown` of all states, (N, A)."""
        return np.concatenate(
            on_all_cores(self.unknown, [phi for _, phi in self._blocks()], self.sums.size * self._n)
        )

    def penalty(self, theta: Floats) -> float:
        """Return the prior's penalty on weights."""
        together = ALIKE / (1 - ALIKE + len(theta) * ALIKE) * (theta.sum(axis=0) ** 2).sum()
        return float(self._ridge / (1 - ALIKE) * ((theta**2).sum() - together))

    def shape(self, z: Floats) -> Floats:
        """Return u + v_a, where L' (v, u) = z and P = L L'."""
        u = solve_triangular(self._shared, z[-1], "T")
        parts = zip(self._own, self._joint, z[:-1], strict=True)
        return np.stack([u + solve_triangular(L, z_a - E @ u, "T") for L, E, z_a in parts])
