"""Stationary RLSVI (appendix D): one value function for all periods, from the most recent transitions.

theta^-_0 = prior mean
for l = 0, 1, ..
    b_i = r_i + gamma max_a (Phi theta^-)(s_i', a), or r_i if s_i' is terminal      (targets)
    sample theta_l from the posterior of the regression of b on Phi                 (plan)
    (repeated with theta^- = theta_l and the same noise if `regressions` > 1)
    until the end of the episode
        sample a_t from argmax_a (Phi theta_l)(s_t, a)                              (ties broken uniformly)
        observe r_t and s_t+1                                                       (remember_episode)
    theta^-_l+1 = theta_l
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rlsvi.agents.contract import MindLearner, Place, Step, count, diverged, flat, new_counters, weights_shaped
from rlsvi.agents.diagnosis import is_checked, is_no_wider
from rlsvi.agents.discounted import DiscountedAgent
from rlsvi.agents.explore import Explore, Greedy
from rlsvi.agents.finite.rlsvi import all_finite
from rlsvi.bases import Basis, Tabular
from rlsvi.bases.basis import bound
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import Constraints, one_of, optional, shown, whole
from rlsvi.core.compile import FOUR, ONE, THREE, TWO, Floats, Ints, Longs, Words, compiled, unsigned
from rlsvi.core.elementary import add_outer, factorise, pair_product, pair_sum, two_product
from rlsvi.core.random import Seed, normal
from rlsvi.core.random import gamma as gamma_variate
from rlsvi.core.regression import Factor, FactorError, Model, Noise, add, noise_of, solve, solve_upper
from rlsvi.envs.task import Task, check_setting, setting_of

Form = Literal["literal", "afterstate"]

FOREVER = 2**62  # a memory of this many transitions evicts none
MOST_ACTIONS = 2**20  # actions that a small file may have, if its basis gives all of them the same weights


@dataclass(kw_only=True, repr=False, eq=False)
class StationaryAgent(DiscountedAgent):
    """Regression of one value function, the base of StationaryRLSVI and StationaryLSVI."""

    lam: float = 1.0
    gamma: float = 0.99
    basis: Basis | None = None
    form: Form = "literal"
    memory: int | None = 100_000
    regressions: int = 1
    prior_mean: float | Floats = 0.0
    diverged_above: float = 1000.0
    seed: Seed = None

    _remedy = "try a smaller lam= or a larger sigma="
    _constraints: ClassVar[Constraints] = {
        "form": partial(one_of, names=("literal", "afterstate")),
        "memory": optional(partial(whole, least=1, most=FOREVER)),
        "regressions": partial(whole, least=1, most=10**5),
    }

    def _notice(self) -> None:
        """Warn about values that diverge, and if there was never a reward and nothing new is found any more."""
        super()._notice()
        ring, steps = self._learner.mind.ring, self.steps
        if not is_checked(self.episodes) or ring.reach[0] > 0.0 or ring.size[0] < steps:  # some were dropped
            return
        x, block, before = ring.x[:steps], ring.block[:steps], steps // 2
        if np.isin(block[before:], block[:before]).all() and is_no_wider(x, before):
            self._miss_reward()

    @property
    def setting(self) -> dict[str, Any]:
        """The setting it has learned in, as far as known: for Tetris, height, width, pieces and game_over."""
        return dict(self._setting) if self.episodes > 0 else {}

    def _take_on(self, task: Task, env: Any = None, setting: dict[str, Any] | None = None) -> None:
        """Start a task, or check that it is the one learned so far; `setting` contains its other properties."""
        offered = setting_of(env) if setting is None else setting
        if self.steps == 0:
            self._setting = offered
        else:
            check_setting(self._setting, offered)
        super()._take_on(task, env)

    def prepare(self, task: Task, setting: dict[str, Any], example: Any) -> "StationaryLearner":
        """Start a task with observations like `example`, for a fused loop."""
        self._take_on(task, None, setting)
        if self._learner is None:
            self._learner = self.new_learner(task, task.checked(example))
        self._learner.look(0, example, None)
        learner: StationaryLearner = self._learner
        return learner

    def new_learner(self, task: Task, example: Any) -> "StationaryLearner":
        """Return a learner without experience."""
        self._check_room(task)
        features = self._bind(task, example)
        self._setting = {**features.setting, **self._setting}
        ring = empty_ring(
            task.actions, features.blocks, features.units, features.dtype, features.known, self.memory
        )
        return self._learner_of(task, ring, features)

    def restored_learner(self, task: Task, file: Archive) -> "StationaryLearner":
        """Return the learner stored in a file, after checking all its arrays."""
        ring = read_ring(file, task.actions, self.memory, self.form == "afterstate")
        if task.actions > max(len(ring.gram), ring.next_x.shape[1], MOST_ACTIONS):
            raise ArchiveError(f"is damaged: its ring is not that of {task}")
        learner = self._learner_of(task, ring, None)
        learner.refill(file)
        if learner.counters[0] < 1 or ring.size[0] > learner.counters[1]:
            raise ArchiveError("is damaged: its episodes and what was learned do not fit together")
        return learner

    def _learner_of(self, task: Task, ring: "Ring", features: "BoundFeatures | None") -> "StationaryLearner":
        mean = weights_shaped(self.prior_mean, (1, len(ring.gram), len(ring.units)))[0]
        ridge, sigma, shape, scale = noise_of(self.lam, self.sigma)
        sd = math.sqrt(scale / shape / ridge) if shape else sigma / math.sqrt(ridge)
        mind = StationaryMind(
            ring=ring,
            model=Model(mean, ridge, sigma, shape, scale, float(self.gamma)),
            work=new_work(ring, task.actions),
            theta=mean.copy(),
            counters=new_counters(),
            watch=np.zeros(3),
            spread=float(np.abs(mean).max()) + sd,
            diverged_above=float(self.diverged_above),
        )
        return StationaryLearner(task, mind, self.regressions, lambda example: self._bind(task, example), features)

    def _bind(self, task: Task, example: Any) -> "BoundFeatures":
        features = bind_features(self.basis or Tabular(), task, self.form == "afterstate", example)
        check_setting(self._setting, features.setting)
        return features


@dataclass(kw_only=True, repr=False, eq=False)
class StationaryRLSVI(StationaryAgent):
    """Randomized least-squares value iteration without a fixed number of periods.

    In the first episode there are no data and the weights are the prior mean (the paper's footnote 1).

    Parameters
    ----------
    lam
        Prior precision of the weights, > 0. The prior is N(prior_mean, I / lam).
    sigma
        Standard deviation of the noise of a target, > 0; or InverseGamma(shape, scale), a prior over its square,
        in which case the prior of the weights is N(prior_mean, sigma^2 I / lam).
    gamma
        Discount, in [0, 1].
    basis
        How states and actions map to weights. If None, a table. Features with `numbers` are stored in few bytes;
        features with `rewards` can be used in the afterstate form.
    form
        "literal", Q(s, a) = theta . phi(s, a), or "afterstate", Q(s, a) = r(s, a) + gamma theta . phi(s, a) with
        r(s, a) known, where phi describes the result of the action.
    memory
        The number of most recent transitions to learn from. If None, all.
    regressions
        Number of sweeps of value iteration per episode, all with the same noise.
    prior_mean
        Prior mean of the weights: a number or (weights,).
    diverged_above
        A target larger than this multiple of what rewards, prior and discount explain is reported by a
        DivergenceWarning and the attributes `diverged` and `excess`. It is not changed.
    seed
        Determines all randomness, including the environment's.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> agent = rlsvi.StationaryRLSVI(gamma=0.9, seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/DeepSea-v0", size=4), 20).episodes
    20
    """

    sigma: Noise = 1.0


@dataclass(kw_only=True, repr=False, eq=False)
class StationaryLSVI(StationaryAgent):
    """Least-squares value iteration without a fixed number of periods.

    Parameters
    ----------
    lam
        The ridge, > 0: theta minimises |A theta - b|^2 + lam |theta - prior_mean|^2. It corresponds to
        StationaryRLSVI's lam sigma^2.
    explore
        Greedy(), EpsilonGreedy(epsilon) or Boltzmann(eta); a parameter may be a function of the episode.
    gamma, basis, form, memory, regressions, prior_mean, diverged_above, seed
        As for StationaryRLSVI.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> agent = rlsvi.StationaryLSVI(gamma=0.9, explore=rlsvi.EpsilonGreedy(0.2), seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/DeepSea-v0", size=4), 20).episodes
    20
    """

    explore: Explore = Greedy()

    _samples = False
    _remedy = "try rlsvi.StationaryRLSVI, which explores"


# ---- The most recent transitions, with all that a regression over them needs, added and evicted exactly ----
#
# `Memory` of finite/memory.py has sums that never forget; here the oldest transition leaves A'A again. A
# transition is stored as the features of its state and action, its reward, and the features of every legal action
# in the next state, or none if that is terminal. Features are uint8, int16 (times `units` when used) or float64.
# Those of the next actions are stored in planes, one plane per feature with transitions side by side, which is the
# fastest layout to read. Nothing computed from a ring depends on where transitions lie in it, only on their order.


Numbers = NDArray[Any]
KEPT = (np.dtype(np.uint8), np.dtype(np.int16), np.dtype(np.float64))  # types of stored features
LINE = 64  # columns: planes of bytes aligned alike within cache lines are read faster


class Ring(NamedTuple):
    """Room for N transitions and M next actions; B blocks of d features; P = d planes, or d + 1 with rewards."""

    limit: Longs  # (1,) the maximum number of transitions
    first: Longs  # (1,) position of the oldest one
    size: Longs  # (1,) number of transitions
    head: Longs  # (1,) the first free column of next_x
    x: Numbers  # (N, d) features of the state and action
    block: Ints  # (N,)
    reward: Floats  # (N,)
    start: Longs  # (N,) first column in next_x
    following: Ints  # (N,) number of columns: the legal actions of the next state
    next_x: Numbers  # (P, M) features of the next actions; plane d, if any, contains known rewards
    next_block: Ints  # (M,)
    units: Floats  # (d,) a feature is the stored number times its unit
    gram: Numbers  # (B, d, d) the sum of x x', upper triangle: int64, or float64
    low: Floats  # (B, d, d) the rounding error of gram; (B, 0, 0) for int64
    reach: Floats  # (2,) the largest |reward| and |x units| ever stored


def ring_layout(N: int, M: int, P: int, B: int, d: int, dtype: Any) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Return the shape and type of every array of a ring of this size."""
    whole = np.dtype(dtype).kind in "iu"
    shapes = {"x": (N, d), "next_x": (P, M), "next_block": (M,), "units": (d,), "gram": (B, d, d), "reach": (2,)}
    shapes |= dict.fromkeys(("block", "reward", "start", "following"), (N,))
    shapes["low"] = (B, 0, 0) if whole else (B, d, d)
    types = {"x": dtype, "next_x": dtype, "gram": np.int64 if whole else np.float64}
    types |= dict.fromkeys(("limit", "first", "size", "head", "start"), np.int64)
    types |= dict.fromkeys(("block", "following", "next_block"), np.int32)
    return {name: (shapes.get(name, (1,)), types.get(name, np.float64)) for name in Ring._fields}


def empty_ring(
    actions: int, blocks: int, units: Floats, dtype: Any, known: bool, memory: int | None, room: int = 256
) -> Ring:
    """Return an empty ring. `known`: the rewards of the next actions are stored with them."""
    layout = ring_layout(room, columns_for(room * actions), len(units) + known, blocks, len(units), dtype)
    ring = Ring(**{name: np.zeros(*each) for name, each in layout.items()})
    ring.limit[0], ring.units[:] = FOREVER if memory is None else memory, units
    return ring


def columns_for(pairs: int) -> int:
    """Return the columns for `pairs` next actions: an odd number of lines, to reduce cache conflicts of planes."""
    return (-(-pairs // LINE) | 1) * LINE


def resize_ring(ring: Ring, transitions: int, pairs: int) -> Ring:
    """Return the same transitions, oldest first, with room for `transitions` and `pairs` next actions."""
    size, room = int(ring.size[0]), len(ring.x)
    order = (int(ring.first[0]) + np.arange(size)) % room
    counts = ring.following[order].astype(np.int64)
    ends = np.cumsum(counts)
    used = int(ends[-1]) if size else 0
    columns = np.arange(used) + np.repeat(ring.start[order] - (ends - counts), counts)
    planes, M = len(ring.next_x), columns_for(pairs)
    next_x, next_block = np.zeros((planes, M), ring.next_x.dtype), np.zeros(M, np.int32)
    for plane, old in zip(next_x, ring.next_x, strict=True):
        plane[:used] = old[columns]
    next_block[:used] = ring.next_block[columns]
    fields = {name: getattr(ring, name)[order] for name in ("x", "block", "reward", "following")}
    for name, old in (fields | {"start": ends - counts}).items():
        fields[name] = np.zeros((transitions, *old.shape[1:]), old.dtype)
        fields[name][:size] = old
    head, first, kept = np.array([used]), np.zeros(1, np.int64), ring.size.copy()
    return ring._replace(head=head, first=first, size=kept, next_x=next_x, next_block=next_block, **fields)


def pairs_of(ring: Ring) -> int:
    """Return the number of next actions stored."""
    order = (int(ring.first[0]) + np.arange(int(ring.size[0]))) % len(ring.x)
    return int(ring.following[order].sum())


def used_columns(ring: Ring) -> int:
    """Return the number of columns from the oldest transition to the first free one, including gaps."""
    if ring.size[0] == 0:
        return 0
    head, tail = int(ring.head[0]), int(ring.start[ring.first[0]])
    return head - tail if head >= tail else head + ring.next_x.shape[1] - tail


def read_ring(file: Archive, actions: int, memory: int | None, known: bool) -> Ring:
    """Read the ring from a file, checking that its arrays are consistent and all indices are within bounds."""
    (room, d), (planes, columns), (blocks, *_) = (
        file.shape(f"ring.{name}", n) for name, n in (("x", 2), ("next_x", 2), ("gram", 3))
    )
    dtype, limit = file.dtype("ring.x"), FOREVER if memory is None else memory
    if dtype not in KEPT or min(room, d, columns, blocks) < 1 or planes != d + known:
        raise ArchiveError(f"is damaged: no ring holds {dtype} features of shape {(room, d)} and {planes} planes")
    layout = ring_layout(room, columns, planes, blocks, d, dtype)
    ring = Ring(**{name: file.take(f"ring.{name}", *each) for name, each in layout.items()})
    size, following = int(ring.size[0]), ring.following.astype(np.int64)
    pairs = following[: max(size, 0)]
    fine = ring.limit[0] == limit and 0 <= size <= min(room, limit) and ring.first[0] == 0
    fine = fine and bool(((following >= 0) & (following <= actions)).all())
    fine = fine and np.array_equal(ring.start[:size], np.cumsum(pairs) - pairs)
    fine = fine and ring.head[0] == pairs.sum() <= columns and bool((ring.units != 0).all())
    fine = fine and not any(part[..., int(pairs.sum()) :].any() for part in (ring.next_x, ring.next_block))
    for block in (ring.block, ring.next_block):
        fine = fine and bool(((block >= 0) & (block < blocks)).all())
    if not fine:
        raise ArchiveError("is damaged: an index in its ring points outside its tables")
    return ring


@compiled
def place_for(ring: Ring, pairs: int) -> int:
    """Return the first of `pairs` adjacent free columns, or -1. Columns are used in a circle, without breaks."""
    head, columns = ring.head[0], ring.next_x.shape[1]
    if ring.size[0] == 0:
        return 0 if pairs <= columns else -1
    tail = ring.start[ring.first[0]]
    if head >= tail:
        if head + pairs <= columns:
            return int(head)
        return 0 if pairs < tail else -1
    return int(head) if head + pairs < tail else -1


@compiled
def evict(ring: Ring, row: Numbers) -> None:
    """Remove the oldest transition. `row` (d,), of the type of gram, is overwritten."""
    i = ring.first[0]
    b = ring.block[i]
    for k in range(row.size):
        row[k] = ring.x[i, k]
    add_outer(ring.gram[b], ring.low[b], row, -1)
    ring.first[0] = i + 1 if i + 1 < ring.x.shape[0] else 0
    ring.size[0] -= 1


@compiled
def begin_transition(ring: Ring, x: Numbers, block: int, reward: float, pairs: int, row: Numbers) -> int:
    """Store a transition without its next actions and return the first column for these; -1 if there is none."""
    if ring.size[0] == ring.limit[0]:
        evict(ring, row)
    p = place_for(ring, pairs)
    if p < 0 or ring.size[0] == ring.x.shape[0]:
        return -1
    i = (ring.first[0] + ring.size[0]) % ring.x.shape[0]
    ring.size[0] += 1
    ring.block[i], ring.reward[i], ring.start[i], ring.following[i] = block, reward, p, pairs
    norm = 0.0
    for k in range(row.size):
        ring.x[i, k] = x[k]
        row[k] = x[k]
        norm += (x[k] * ring.units[k]) * (x[k] * ring.units[k])
    add_outer(ring.gram[block], ring.low[block], row, 1)
    ring.reach[0], ring.reach[1] = max(ring.reach[0], abs(reward)), max(ring.reach[1], np.sqrt(norm))
    ring.head[0] = p + pairs
    return p


# ---- Features as stored in the ring: numbers of one type, times units --------------------------------------


WHOLE = KEPT[:2]  # stored as they are; all other features are stored as float64


class BoundFeatures(NamedTuple):
    """A basis bound to a task, for use with a ring."""

    blocks: int
    units: Floats  # (d,)
    dtype: Any
    known: bool  # whether the last column is the reward of each action
    at: Callable[[Any], tuple[Ints, Numbers]]  # the blocks (A,) and the numbers (A, P) of all actions
    setting: Mapping[str, Any]  # what else the features depend on


def bind_features(basis: Basis, task: Task, known: bool, example: Any) -> BoundFeatures:
    """Bind a basis; small integers are stored as such if it provides them. `known`: with rewards."""
    features = bound(basis, task.states, task.actions, 1, example)
    numbers, rewards = features.numbers if features.blocks == 1 else None, features.rewards
    units = np.ones(features.dim) if numbers is None or features.units is None else features.units
    if known and rewards is None:
        raise ValueError(
            'form="afterstate" needs a basis that knows the reward of every action, whose Features have rewards; '
            f'{shown(basis)} knows none: use form="literal"'
        )
    zeros = np.zeros(task.actions, np.int32)

    def given(observation: Any) -> tuple[Ints, Numbers]:
        block, x = (zeros, numbers(observation)) if numbers else features.at(0, observation)
        if known and rewards:
            paid = rewards(observation)
            fits = np.can_cast(paid.dtype, x.dtype)
            x = np.hstack([x, paid[:, None]], dtype=x.dtype if fits else np.float64)
        return block, x

    first = given(example)[1].dtype
    dtype = first if first in WHOLE else np.dtype(np.float64)

    def at(observation: Any) -> tuple[Ints, Numbers]:
        block, x = given(observation)
        if x.dtype != dtype and dtype in WHOLE:
            raise ValueError(f"the basis must always give {dtype} features, now they are {x.dtype}")
        return block, np.array(x, dtype=dtype, order="C")

    return BoundFeatures(features.blocks, np.array(units), dtype, known, at, features.setting or {})


# ---- The targets of a regression over a ring: b_i = r_i + gamma max_a Q(s_i', a), or in the afterstate form ----
#
# literal:    Q(s, a) = theta . phi(s, a),                    b_i = r_i + gamma max_a Q(s_i', a)
# afterstate: Q(s, a) = r(s, a) + gamma theta . phi(s, a),    b_i = max_a Q(s_i', a)
#
# where the maximum is over the legal actions, and 0 after a terminal state. Q is always the sum over the planes of
# numbers times weights, in order and in float64. The known reward of the afterstate form is one more plane, with
# weight 1. This takes a single pass over all next actions, which is most of the cost of a regression.


BATCH = 2048  # next actions processed together, so that their values stay in the nearest cache


class Work(NamedTuple):
    """Work arrays for a regression."""

    factor: Factor  # (B, d, d), (B, d)
    low: Floats  # (d, d)
    z: Floats  # (B, d) L^-T z
    b: Floats  # (N,) targets, oldest transition first
    error: Floats  # (B, d) rounding error of A'b
    w: Floats  # (P, B) weights of the planes in Q, times the units
    q: Floats  # (batch,) values of next actions
    largest: Floats  # (1,) |b|
    sigma: Floats  # (1,) of the last sample


def new_work(ring: Ring, actions: int) -> Work:
    """Return work arrays for the regressions of a ring."""
    B, d = len(ring.gram), len(ring.units)
    return Work(
        factor=Factor(np.zeros((B, d, d)), np.zeros((B, d))),
        low=np.zeros((d, d)),
        z=np.zeros((B, d)),
        b=np.zeros(len(ring.x)),
        error=np.zeros((B, d)),
        w=np.zeros((len(ring.next_x), B)),
        q=np.zeros(max(BATCH, actions)),
        largest=np.zeros(1),
        sigma=np.zeros(1),
    )


@compiled
def set_weights(w: Floats, units: Floats, theta: Floats, gamma: float) -> None:
    """Set the weights of the planes in Q for theta (B, d)."""
    d, known = units.size, w.shape[0] > units.size
    for b in range(theta.shape[0]):
        for k in range(d):
            w[k, b] = (gamma if known else 1.0) * (units[k] * theta[b, k])
        if known:
            w[d, b] = 1.0


@compiled
def action_values(w: Floats, x: Numbers, block: Ints, Q: Floats) -> None:
    """Compute Q of every action, given the numbers (A, P) and the blocks (A,) of all of them."""
    for a in range(Q.size):
        q = 0.0
        for k in range(x.shape[1]):
            q += x[a, k] * w[k, block[a]]
        Q[a] = q


@compiled
def targets(ring: Ring, work: Work, gamma: float) -> None:
    """Compute the targets b of all transitions, oldest first, and the largest absolute value."""
    room, size, first, b = ring.x.shape[0], ring.size[0], ring.first[0], work.b
    known = ring.next_x.shape[0] > ring.units.size
    t = 0
    while t < size:
        i = (first + t) % room
        begin, pairs, end = ring.start[i], 0, i
        last = min(room, i + min(size - t, work.q.size))
        while end < last and ring.start[end] == begin + pairs and pairs + ring.following[end] <= work.q.size:
            pairs += ring.following[end]
            end += 1
        if work.w.shape[1] == 1:
            dense_values(work, ring.next_x, unsigned(begin), unsigned(pairs))
        else:
            block_values(work, ring.next_x, ring.next_block, begin, pairs)
        for j in range(i, end):
            best = best_of(work.q, ring.start[j] - begin, ring.following[j])
            b[t] = best if known else ring.reward[j] + gamma * best
            t += 1
    largest = 0.0
    for t in range(size):
        largest = max(largest, abs(b[t]))
    work.largest[0] = largest


@compiled
def best_of(q: Floats, begin: int, n: int) -> float:
    """Return the largest of n values, or 0 if n = 0; a leading NaN is detected when the targets are summed."""
    best: float = q[begin] if n > 0 else 0.0
    for p in range(begin + 1, begin + n):
        best = max(best, q[p])
    return best


@compiled
def dense_values(work: Work, x: Numbers, begin: unsigned, n: unsigned) -> None:
    """Compute q of n columns for one block; planes are added in order, four per pass over q."""
    q, w = work.q, work.w
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
def block_values(work: Work, x: Numbers, block: Ints, begin: int, n: int) -> None:
    """Compute q of n columns, each with the weights of its block."""
    q, w = work.q, work.w
    for p in range(n):
        q[p] = 0.0
    for k in range(w.shape[0]):
        for p in range(n):
            q[p] += x[k, begin + p] * w[k, block[begin + p]]


# ---- Algorithm "Stationary RLSVI" (appendix D), and stationary LSVI, which omits its noise -----------------
#
# Known noise: b_i = x_i . theta + N(0, sigma^2), theta ~ N(mean, I / lam), and ridge = lam sigma^2.
# Unknown noise: sigma^2 ~ InverseGamma(shape, scale), theta | sigma^2 ~ N(mean, sigma^2 I / lam), and ridge = lam;
# with n transitions and posterior mean m, sigma^2 is drawn from
# InverseGamma(shape + n / 2, scale + (|A m - b|^2 + ridge |m - mean|^2) / 2), one sigma^2 for all blocks, and then
# theta from N(m, sigma^2 P^-1).
# In both cases P = ridge I + A'A, block by block, and a sample is m + sigma L^-T z for the Cholesky factor L of P.
# Within an episode z, and the gamma variate that determines sigma^2, are drawn once and kept through all sweeps.
# The iteration then has a fixed point, a value function that is consistently optimistic or pessimistic.


FINE, NO_FACTOR, NOT_FINITE = range(3)


@compiled
def plan(ring: Ring, model: Model, work: Work, theta: Floats, sampled: bool, sweeps: int, stream: Words) -> int:
    """Replace theta (B, d), which is theta^-, by a sample of the posterior, or by its mean if not `sampled`."""
    if not precision_factors(ring, model.ridge, work):
        return NO_FACTOR
    variate = draw(ring, model, work, stream) if sampled else 1.0
    for _ in range(sweeps):
        set_weights(work.w, ring.units, theta, model.gamma)
        targets(ring, work, model.gamma)
        regress(ring, model, work, theta)
        if sampled:
            disturb(ring, model, work, theta, variate)
        for b in range(theta.shape[0]):
            if not all_finite(theta[b]):
                return NOT_FINITE
    return FINE


@compiled
def precision_factors(ring: Ring, ridge: float, work: Work) -> bool:
    """Factor P = ridge I + A'A from the exact sums of the ring. Return False if it is not positive definite."""
    U, inv = work.factor.U, work.factor.inv
    for b in range(ring.gram.shape[0]):
        if not precision_factor(ring.gram[b], ring.low[b], ring.units, ridge, U[b], inv[b], work.low):
            return False
    return True


@compiled
def precision_factor(
    gram: Numbers, rest: Floats, units: Floats, ridge: float, U: Floats, inv: Floats, low: Floats
) -> bool:
    """Factor one block of P; `rest` is the rounding error of gram, empty for int64, and `low` is overwritten."""
    d = units.size
    for i in range(d):
        for j in range(i, d):
            high = float(gram[i, j])
            missing = rest[i, j] if rest.size > 0 else float(gram[i, j] - np.int64(high))
            unit, error = two_product(units[i], units[j])
            U[i, j], low[i, j] = pair_product(high, missing, unit, error)
        U[i, i], low[i, i] = pair_sum(U[i, i], low[i, i], ridge, 0.0)
    return factorise(U, inv, low)


@compiled
def draw(ring: Ring, model: Model, work: Work, stream: Words) -> float:
    """Draw the noise of an episode: z <- L^-T z for every block, and a gamma variate if sigma is unknown."""
    variate = 1.0
    if model.shape > 0.0:
        variate = gamma_variate(stream, model.shape + 0.5 * ring.size[0])
    for b in range(work.z.shape[0]):
        for k in range(work.z.shape[1]):
            work.z[b, k] = normal(stream)
        solve_upper(work.factor.U[b], work.factor.inv[b], work.z[b])
    return variate


@compiled
def regress(ring: Ring, model: Model, work: Work, theta: Floats) -> None:
    """theta <- P^-1 (A'b + ridge mean), the posterior mean."""
    d = ring.units.size
    for b in range(theta.shape[0]):
        for k in range(d):
            theta[b, k] = work.error[b, k] = 0.0
    if theta.shape[0] == 1:
        add_dense(ring, work, theta[0])
    else:
        for t in range(ring.size[0]):
            i = (ring.first[0] + t) % ring.x.shape[0]
            add(theta[ring.block[i]], work.error[ring.block[i]], ring.x[i], work.b[t])
    for b in range(theta.shape[0]):
        for k in range(d):
            theta[b, k] = ring.units[k] * theta[b, k] + model.ridge * model.mean[b, k]
        solve(work.factor.U[b], work.factor.inv[b], theta[b])


@compiled
def add_dense(ring: Ring, work: Work, theta: Floats) -> None:
    """theta += A'b for one block: sums of eight transitions in float64, added with compensation for rounding."""
    x, b, part, first, room, size = ring.x, work.b, work.low[0], ring.first[0], ring.x.shape[0], ring.size[0]
    d = unsigned(theta.size)
    eights = size - size % 8
    for t in range(0, eights, 4):
        i, j = unsigned((first + t) % room), unsigned((first + t + 1) % room)
        m, n = unsigned((first + t + 2) % room), unsigned((first + t + 3) % room)
        b0, b1, b2, b3 = b[t], b[t + 1], b[t + 2], b[t + 3]
        if t % 8 == 0:
            for k in range(d):
                part[k] = ((x[i, k] * b0 + x[j, k] * b1) + x[m, k] * b2) + x[n, k] * b3
        else:
            for k in range(d):
                part[k] = (((part[k] + x[i, k] * b0) + x[j, k] * b1) + x[m, k] * b2) + x[n, k] * b3
            add(theta, work.error[0], part, 1.0)
    for t in range(eights, size):
        add(theta, work.error[0], x[(first + t) % room], b[t])


@compiled
def disturb(ring: Ring, model: Model, work: Work, theta: Floats, variate: float) -> None:
    """theta <- theta + sigma L^-T z, a sample; sigma is known or drawn."""
    sigma = model.sigma
    if model.shape > 0.0:
        sigma = math.sqrt((model.scale + 0.5 * misfit(ring, model, work, theta)) / variate)
    work.sigma[0] = sigma
    for b in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            theta[b, k] += sigma * work.z[b, k]


@compiled
def misfit(ring: Ring, model: Model, work: Work, theta: Floats) -> float:
    """Return |A theta - b|^2 + ridge |theta - mean|^2, computed as a sum of squares to avoid cancellation."""
    total = 0.0
    i = ring.first[0]
    for t in range(ring.size[0]):
        block = ring.block[i]
        residual = -work.b[t]
        for k in range(ring.units.size):
            residual += ring.x[i, k] * (ring.units[k] * theta[block, k])
        total += residual * residual
        i = i + 1 if i + 1 < ring.x.shape[0] else 0
    for b in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            away = theta[b, k] - model.mean[b, k]
            total += model.ridge * (away * away)
    return total


# ---- The mind of a stationary agent, and learning from an episode in one compiled call ---------------------


LONGEST, EXCESS, DIVERGED = range(3)  # indices of StationaryMind.watch


class StationaryMind(NamedTuple):
    """The transitions, the regression over them, and theta^-."""

    ring: Ring
    model: Model
    work: Work
    theta: Floats  # (B, d) of the last episode: theta^-
    counters: Longs  # (2,) episodes and steps learned from
    watch: Floats  # (3,) steps of the longest episode, size of the last targets as multiples of what is
    # explained, and whether that was ever too large
    spread: float  # the largest absolute weight that the prior explains
    diverged_above: float


@compiled
def remember_episode(
    mind: StationaryMind,
    theta: Floats,
    largest: float,
    x: Numbers,
    block: Ints,
    rewards: Floats,
    pairs: Ints,
    next_x: Numbers,
    next_block: Ints,
    row: Numbers,
) -> None:
    """Learn from an episode that was played with `theta`; the ring must have room for it.

    `pairs` (T,) is the number of next actions of each transition, 0 if it terminated; `next_x` (M, P) and
    `next_block` (M,) contain them one after another. `row` (d,), of the type of gram, is overwritten.
    """
    ring, j = mind.ring, 0
    for t in range(rewards.size):
        begin = begin_transition(ring, x[t], block[t], rewards[t], pairs[t], row)
        for p in range(begin, begin + pairs[t]):
            ring.next_block[p] = next_block[j]
            for k in range(next_x.shape[1]):
                ring.next_x[k, p] = next_x[j, k]
            j += 1
    count_episode(mind, theta, largest, rewards.size)


@compiled
def count_episode(mind: StationaryMind, theta: Floats, largest: float, steps: int) -> None:
    """Store theta as theta^-, check whether its targets can be explained, and count the episode."""
    watch = mind.watch
    for b in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            mind.theta[b, k] = theta[b, k]
    watch[LONGEST] = max(watch[LONGEST], float(steps))
    explained = explained_target(mind)
    watch[EXCESS] = largest / explained if explained > 0.0 else 0.0
    if watch[EXCESS] > mind.diverged_above:
        watch[DIVERGED] = 1.0
    count(mind.counters, steps)


@compiled
def explained_target(mind: StationaryMind) -> float:
    """Return the largest target that rewards, prior and discount explain."""
    gamma = mind.model.gamma
    periods = 1.0 / (1.0 - gamma) if gamma < 1.0 else mind.watch[LONGEST]
    return float((mind.ring.reach[0] + mind.ring.reach[1] * mind.spread) * periods)


# ---- The learner of stationary agents: one regression over the most recent transitions ---------------------


Bind = Callable[[Any], BoundFeatures]  # the features of observations like an example


class StationaryPlan(NamedTuple):
    """One value function."""

    theta: Floats  # (B, d)
    w: Floats  # (P, B) the weights of the planes
    largest: float  # largest absolute target of its regression


class StationaryLearner(MindLearner):
    """The ring, the prior, and theta. After loading, the features are bound with the first observation."""

    saved = "theta", "counters", "watch"

    def __init__(
        self, task: Task, mind: StationaryMind, regressions: int, bind: Bind, features: BoundFeatures | None
    ) -> None:
        super().__init__(task, mind, features)
        self.regressions, self.bind = regressions, bind

    def watched(self) -> tuple[float, bool, float]:
        """The largest target over the explained one, whether it was ever too large, and the explained one."""
        _, excess, diverged = self.mind.watch
        return excess, diverged > 0.0, explained_target(self.mind)

    def look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """Return the features of an observation, checked."""
        observation, legal = self.task.checked(observation), self.task.legal(mask)
        if self.features is None:
            features = self.bind(observation)
            check_same(self.mind.ring, features)
            self.features = features
        block, x = self.features.at(observation)
        return Place(h, observation, legal, -1, block, x)

    def plan(self, sampled: bool, stream: Words, learning: bool = False) -> StationaryPlan:
        """Compute a sample of the posterior or its mean from theta^-; without data it is the prior mean."""
        mind, theta, largest = self.mind, self.mind.theta.copy(), 0.0
        if self.counters[0] > 0:
            status = plan(mind.ring, mind.model, mind.work, theta, sampled, self.regressions, stream)
            if status == NO_FACTOR:
                raise FactorError(
                    "the precision matrix is not positive definite, even in 106 bits: features are too large or "
                    "too much alike for this lam; scale them down, or use a larger lam"
                )
            if status == NOT_FINITE:
                raise diverged()
            largest = float(mind.work.largest[0])
        set_weights(mind.work.w, mind.ring.units, theta, mind.model.gamma)
        return StationaryPlan(theta, mind.work.w.copy(), largest)

    def values(self, plan: StationaryPlan, place: Place) -> Floats:
        """Return Q of every action."""
        Q = np.empty(len(place.block))
        action_values(plan.w, place.x, place.block, Q)
        return Q

    def remember(self, steps: list[Step], plan: StationaryPlan, ended: bool) -> Self:
        """Learn from an episode, in one compiled call."""
        ring = self.mind.ring
        d, x = len(ring.units), np.stack([step.place.x[step.action] for step in steps])
        pairs = np.array([0 if step.following is None else step.following.legal.sum() for step in steps], np.int32)
        ahead = [step.following for step in steps if step.following is not None]
        nothing = np.zeros((0, len(ring.next_x)), ring.x.dtype), np.zeros(0, np.int32)
        self.make_room(pairs)
        remember_episode(
            self.mind,
            plan.theta,
            plan.largest,
            np.ascontiguousarray(x[:, :d]),
            np.array([step.place.block[step.action] for step in steps], np.int32),
            np.array([step.reward for step in steps]),
            pairs,
            np.concatenate([nothing[0], *(place.x[place.legal] for place in ahead)]),
            np.concatenate([nothing[1], *(place.block[place.legal] for place in ahead)]),
            np.empty(d, ring.gram.dtype),
        )
        return self

    def make_room(self, pairs: Ints) -> None:
        """Make room for more transitions, given the number of next actions of each.

        Columns are used in a circle. Fewer than A may be wasted at its end, and fewer than A before the oldest
        transition, so 2 A more than are used are always enough.
        """
        ring, work, A, limit = self.mind.ring, self.mind.work, self.task.actions, int(self.mind.ring.limit[0])
        needed, room = min(int(ring.size[0]) + len(pairs), limit), len(ring.x)
        columns = min(used_columns(ring) + int(pairs.sum()), limit * A) + 2 * A
        if needed <= room and columns <= ring.next_x.shape[1]:
            return
        if needed > room:
            room = min(max(room + room // 4 + 64, needed), limit)
            work = work._replace(b=np.zeros(room))
        columns = max(columns + columns // 4, ring.next_x.shape[1])
        self.mind = self.mind._replace(ring=resize_ring(ring, room, columns), work=work)

    def state(self) -> dict[str, Any]:
        """Return the ring without unused room, theta, counters and what is monitored."""
        ring = self.mind.ring
        ring = resize_ring(ring, max(int(ring.size[0]), 1), max(pairs_of(ring), 1))
        return flat(ring=ring) | self.kept()


def check_same(ring: Ring, features: BoundFeatures) -> None:
    """Raise an error if features differ from those learned with."""
    learned, offered = (len(ring.gram), len(ring.units)), (features.blocks, len(features.units))
    if learned != offered:
        other = f"the basis gives {offered[0]} of {offered[1]}"
    elif ring.x.dtype != features.dtype:
        other = f"kept as {ring.x.dtype}, the basis gives {features.dtype}, as on a board of another size"
    elif not np.array_equal(ring.units, features.units):
        other = "but in other units than the basis gives, as on a board of another height or with other units="
    else:
        return
    raise ValueError(
        f"this agent has learned with {learned[0]} blocks of {learned[1]} features, {other}: keep to the "
        "basis and the board it has learned with, or use agent.clone() to learn anew"
    )
