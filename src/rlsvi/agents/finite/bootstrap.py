"""RLSVI by a nonparametric bootstrap (section 7), for linear value functions.

Section 7 proposes to "take approximate posterior samples from a nonlinear value function via a nonparametric
bootstrap". This is its linear case, a Bayesian bootstrap as in Osband and Van Roy (2015): instead of adding noise
to the targets, as RLSVI does in effect, it gives random weights to the transitions and to artificial prior data.

    for l = 0, 1, ..
        for h = H-1, .., 0
            w_i ~ Exp(1) for every transition i of period h
            for every weight k, artificial data: a target y_k ~ N(prior_mean, 1 / lam), with a random weight
                v_k ~ Gamma(prior_weight), as of `prior_weight` transitions that all have this target
            theta_h minimises   sum_i w_i (r_i + V_h+1(s_i') - phi_i . theta)^2 + sum_k v_k (theta_k - y_k)^2
        play an episode greedily on it

No noise is assumed: how uncertain a value is depends on how much its targets differ, and on the artificial data.
If these were not random, an agent that has seen no reward would be sure that there is none. With a table, theta
is a Dirichlet mixture of the targets seen and of y, as in PSRL.

The weights are new in every episode, and so is the regression. Copies of a transition (h, s, a, r, s') are only
counted, and the sum of their n weights is drawn as Gamma(n). An episode thus costs one rank-one update for each
(h, s, a) tried, and one Gamma variate for each distinct transition. If there are finitely many states and rewards,
these numbers are bounded; otherwise the cost of an episode grows with the number of transitions. As for RLSVI, the
weights of the first episode are the prior mean.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rlsvi.agents.contract import copy_into, flat, is_full, no_features, plan, weights_shaped
from rlsvi.agents.finite.memory import Memory, empty
from rlsvi.agents.finite.rlsvi import (
    FiniteHorizonAgent,
    FiniteLearner,
    FiniteMind,
    Prior,
    add_episode,
    all_finite,
    finite_is_full,
    known_values,
    no_values,
)
from rlsvi.bases import Features
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import Constraints, at_least
from rlsvi.core.compile import Floats, Ints, Longs, Words, compiled, generic
from rlsvi.core.random import bits, gamma, normal
from rlsvi.core.regression import prior_factor, rank_one, solve_upper
from rlsvi.envs.task import Task

LEAST_WEIGHT = 0.1  # a Gamma variate of a smaller shape may be 0


@dataclass(kw_only=True, repr=False, eq=False)
class BootstrapRLSVI(FiniteHorizonAgent):
    """RLSVI with randomly weighted transitions instead of normal noise, for linear value functions.

    Parameters
    ----------
    lam
        Precision of the artificial targets, > 0, as of RLSVI's prior: they are N(prior_mean, 1 / lam).
    prior_weight
        The number of transitions that an artificial target counts for, at least 0.1. It corresponds to RLSVI's lam
        sigma^2; larger values explore longer.
    random_prior
        Draw artificial targets. False: all are the prior mean, and only the weights are random, so that nothing is
        explored before targets differ.
    basis, horizon, prior_mean, reward_offset, seed
        As for RLSVI.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> agent = rlsvi.BootstrapRLSVI(prior_weight=1.0, seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/Chain-v0", length=4), 100).predict(0, deterministic=True)
    (1, 1)
    """

    prior_weight: float = 1.0
    random_prior: bool = True

    _remedy = "try a smaller lam= or a larger prior_weight="
    _constraints: ClassVar[Constraints] = {"prior_weight": partial(at_least, least=LEAST_WEIGHT)}

    def _prior(self, task: Task, features: Features) -> Prior:
        mean = weights_shaped(self.prior_mean, (task.horizon, features.blocks, features.dim))
        return Prior(mean, float(self.lam), float(self.prior_weight), 0.0, 0.0, 0.0)

    def _learner_of(self, task: Task, features: Features) -> Any:
        outcomes = no_outcomes(task.horizon, ROOM * task.actions, ROOM, 0)
        own = Resampling(outcomes, 1.0 / math.sqrt(self.lam) if self.random_prior else 0.0)
        mind = resampling_mind(task, features, self._prior(task, features), BootstrapMind, own)
        return BootstrapLearner(task, mind, features)


# ---- How it plans: value iteration with random weights -----------------------------------------------------


class Resampling(NamedTuple):
    """What BootstrapRLSVI has besides the states in memory, which has no sums."""

    outcomes: "Outcomes"
    spread: float  # standard deviation of the artificial targets


class BootstrapMind(FiniteMind):
    """Like FiniteMind, but the past is in `own.outcomes`, and `prior.ridge` is the weight of the artificial data.

    `factor` (B, d + 1, d + 1) is a work array: every plan has other weights. It has one column more than there are
    weights, for the targets. A row (x, b) is added to both in one rank-one update, so that the last column of L'
    becomes L^-1 y.
    """


def resampling_mind(task: Task, features: Features, prior: Prior, kind: Any, own: Any) -> Any:
    """Return a mind of a kind whose regression is built anew in every plan, without experience."""
    H, A, B, d = task.horizon, task.actions, features.blocks, features.dim
    return kind(
        features.table or no_features(d),
        np.full((H, task.states or 0), -1, dtype=np.int32),
        empty(H, A, B, d, ROOM),
        prior_factor((B,), d + 1, 1.0),
        prior,
        no_values(H, A, B, d, ROOM),
        np.empty(d + 1),
        own,
    )


class FreshWeights(NamedTuple):
    """New weights and artificial targets in every plan, or the expected ones if not `sampled`."""

    sampled: bool
    spread: float
    stream: Words


@plan.register(BootstrapMind)
def bootstrap(mind: BootstrapMind, sampled: bool, stream: Words) -> bool:
    """Value iteration with new random weights, or without them if not `sampled`."""
    mind.values.key[0] = bits(stream) if sampled else np.uint64(0)
    for h in range(mind.values.spread.size):
        mind.values.spread[h] = mind.own.spread if sampled else 0.0
    return weighted_iteration(mind, FreshWeights(sampled, mind.own.spread, stream))


@compiled
def weighted_iteration(mind: Any, weights: Any) -> bool:
    """For h = H-1, .., 0 regress r + V_{h+1} on the features, with these weights.

    Returns False if a factor or a weight is not finite.
    """
    memory, values = mind.memory, mind.values
    d = values.theta.shape[2]
    for h in range(memory.states.size - 1, -1, -1):
        artificial_data(mind, weights, h)
        if not real_data(mind, weights, h):
            return False
        for i in range(memory.lives[h]):
            b = memory.live[h, i]
            theta, U = values.theta[h, b], mind.factor.U[b]
            for k in range(d):
                theta[k] = U[k, d]
            solve_upper(U, mind.factor.inv[b], theta)
            if not all_finite(theta):
                return False
        known_values(memory, values, h)
    return True


@generic
def artificial(weights: Any, mind: Any, h: int, b: int, k: int) -> tuple[float, float]:
    """Return the weight and the target of the artificial observation of weight k in a block; k = 0 comes first."""
    raise NotImplementedError


@artificial.register(FreshWeights)
def fresh_artificial(weights: FreshWeights, mind: Any, h: int, b: int, k: int) -> tuple[float, float]:
    """The weight is Gamma(prior_weight), and the target normal."""
    weight, target = mind.prior.ridge, mind.prior.mean[h, b, k]
    if weights.sampled:
        weight = gamma(weights.stream, weight)
        target += weights.spread * normal(weights.stream)
    return weight, target


@generic
def weight_of(weights: Any, outcomes: "Outcomes", h: int, e: int) -> float:
    """Return the sum of the weights of all copies of a transition."""
    raise NotImplementedError


@weight_of.register(FreshWeights)
def fresh_weight(weights: FreshWeights, outcomes: "Outcomes", h: int, e: int) -> float:
    """The n copies of a transition have a weight of Exp(1) each, together Gamma(n)."""
    times: float = outcomes.times[h, e]
    return gamma(weights.stream, times) if weights.sampled else times


@compiled
def artificial_data(mind: Any, weights: Any, h: int) -> None:
    """Start the factors of the live blocks with one artificial observation for each weight."""
    memory, d = mind.memory, mind.prior.mean.shape[2]
    for i in range(memory.lives[h]):
        b = memory.live[h, i]
        U, inv = mind.factor.U[b], mind.factor.inv[b]
        for k in range(d):
            weight, target = artificial(weights, mind, h, b, k)
            root = math.sqrt(weight)
            for j in range(k + 1, d):
                U[k, j] = 0.0
            U[k, k], inv[k], U[k, d] = root, 1.0 / root, root * target
        U[d, d] = inv[d] = 1.0  # its value does not matter


@compiled
def real_data(mind: Any, weights: Any, h: int) -> bool:
    """Add the transitions of period h to the factors, one row for each pair. Returns False if a factor failed.

    Transitions from the same pair have the same features, so that only the sum of their weights and their weighted
    mean target matter.
    """
    memory, outcomes, x = mind.memory, mind.own.outcomes, mind.x
    d, A = x.size - 1, memory.block.shape[1] // memory.sum_head.shape[1]
    for pair in range(memory.states[h] * A):
        total = targets = 0.0
        e = outcomes.head[h, pair]
        while e >= 0:
            target, following = outcomes.reward[h, e], outcomes.following[h, e]
            if following != END:
                target += mind.values.V[h + 1, following]
            weight = weight_of(weights, outcomes, h, e)
            total += weight
            targets += weight * target
            e = outcomes.link[h, e]
        if total > 0.0:
            root = math.sqrt(total)
            for k in range(d):
                x[k] = root * memory.phi[h, k, pair]
            x[d] = targets / root
            b = memory.block[h, pair]
            if not rank_one(mind.factor.U[b], mind.factor.inv[b], x):
                return False
    return True


# ---- Distinct transitions with their counts, since every transition gets a weight of its own ---------------
#
# A transition from a known state and action (a pair) to a next state with a reward is stored once, with the number
# of times it happened: the sums of memory.py would not do, as they add up transitions of different rewards. The
# outcomes of a pair are linked, from the last one found to the first.


END = -1  # stands for the next state of a step that ended its episode
ROOM = 16  # for states and outcomes per period, to begin with


class Outcomes(NamedTuple):
    """H periods; room for C A pairs and E outcomes per period. M is 0 if weights are drawn in every plan."""

    many: Longs  # (H,) number of outcomes
    head: Ints  # (H, C A) the last outcome of a pair, or -1
    link: Ints  # (H, E) another outcome of the same pair, or -1
    following: Ints  # (H, E) the next state, as a row of period h + 1, or END
    reward: Floats  # (H, E)
    times: Floats  # (H, E) how many times it happened
    weights: Floats  # (H, E, M) the sums of the fixed weights that M members of an ensemble give it


def no_outcomes(H: int, pairs: int, room: int, members: int) -> Outcomes:
    """Return arrays without outcomes."""
    return Outcomes(
        many=np.zeros(H, np.int64),
        head=np.full((H, pairs), -1, np.int32),
        link=np.full((H, room), -1, np.int32),
        following=np.full((H, room), END, np.int32),
        reward=np.zeros((H, room)),
        times=np.zeros((H, room)),
        weights=np.zeros((H, room, members)),
    )


def resize_outcomes(outcomes: Outcomes, pairs: int, room: int) -> Outcomes:
    """Return the same outcomes with room for other numbers of pairs and outcomes."""
    H, _, members = outcomes.weights.shape
    other: Outcomes = copy_into(no_outcomes(H, pairs, room, members), outcomes)
    return other


@add_episode.register(BootstrapMind)
def bootstrap_add(
    mind: Any, visited: Longs, actions: Longs, rewards: Floats, T: int, goes_on: bool, scratch: Words
) -> bool:
    """Count the transitions; the first T of `visited` are overwritten with the positions of their outcomes."""
    A = mind.memory.block.shape[1] // mind.memory.sum_head.shape[1]
    for h in range(T):
        following = visited[h + 1] if goes_on or h + 1 < T else END
        visited[h] = add_outcome(mind.own.outcomes, h, visited[h] * A + actions[h], rewards[h], following)
    return True


@compiled
def add_outcome(outcomes: Outcomes, h: int, pair: int, reward: float, following: int) -> int:
    """Count one more transition, and return the position of its outcome."""
    e: int = outcomes.head[h, pair]
    while e >= 0:
        if outcomes.reward[h, e] == reward and outcomes.following[h, e] == following:
            outcomes.times[h, e] += 1.0
            return e
        e = outcomes.link[h, e]
    e = outcomes.many[h]
    outcomes.many[h] = e + 1
    outcomes.reward[h, e] = reward + 0.0  # turns -0 into 0, which are equal
    outcomes.following[h, e] = following
    outcomes.times[h, e] = 1.0
    outcomes.link[h, e] = outcomes.head[h, pair]
    outcomes.head[h, pair] = e
    return e


@is_full.register(BootstrapMind)
def bootstrap_is_full(mind: Any, episodes: int) -> bool:
    """Return whether room may be short; an episode also adds at most an outcome per period."""
    for h in range(mind.own.outcomes.many.size):
        if mind.own.outcomes.many[h] + episodes > mind.own.outcomes.link.shape[1]:
            return True
    return finite_is_full(mind, episodes)


class BootstrapLearner(FiniteLearner):
    """A learner that stores distinct transitions with their counts."""

    saved = ()  # no factors are kept from one plan to the next
    keeps_data = False  # as sums, which `evidence` needs

    mind: Any

    def enlarged(self) -> Any:
        """Return the mind after making twice as much room."""
        super().enlarged()
        self._resize_outcomes(2 * self.mind.own.outcomes.link.shape[1])
        return self.mind

    def make_room(self, spare: int = 0) -> None:
        """Make sure that there is room for another episode."""
        super().make_room(spare)
        outcomes = self.mind.own.outcomes
        used, room = outcomes.many.max(initial=0) + spare, outcomes.link.shape[1]
        if used >= room or outcomes.head.shape[1] < self.mind.memory.block.shape[1]:
            self._resize_outcomes(room if used < room else max(used + 1, room + max(room // 4, 4)))

    def _resize_outcomes(self, room: int) -> None:
        own, pairs = self.mind.own, self.mind.memory.block.shape[1]
        self.mind = self.mind._replace(own=own._replace(outcomes=resize_outcomes(own.outcomes, pairs, room)))

    def state(self) -> dict[str, Any]:
        """Return the memory and the outcomes without unused room."""
        arrays, outcomes = super().state(), self.mind.own.outcomes
        pairs, room = arrays["memory.block"].shape[1], max(outcomes.many.max(), 1)
        arrays |= flat(outcomes=resize_outcomes(outcomes, pairs, room))
        weights = arrays.pop("outcomes.weights")
        return arrays | ({"weights": weights} if weights.size else {})

    def restore(self, file: Archive) -> None:
        """Restore the learner from a file, after checking all its arrays."""
        super().restore(file)
        own, memory = self.mind.own, self.mind.memory
        outcomes = read_outcomes(file, memory, own.outcomes.weights.shape[2])
        self.mind = self.mind._replace(own=own._replace(outcomes=outcomes))


def read_outcomes(file: Archive, memory: Memory, members: int) -> Outcomes:
    """Read the outcomes of the states in `memory` from a file, checking that all indices are within bounds."""
    H, pairs = memory.block.shape
    room, last = file.shape("outcomes.link", 2)[1], memory.sum_head.shape[1] - 1
    if room < 1:
        raise ArchiveError("is damaged: it has no room for outcomes")
    outcomes = Outcomes(
        many=file.take_within("outcomes.many", (H,), np.int64, 0, room),
        head=file.take_within("outcomes.head", (H, pairs), np.int32, -1, room - 1),
        link=file.take_within("outcomes.link", (H, room), np.int32, -1, room - 1),
        following=file.take_within("outcomes.following", (H, room), np.int32, END, last),
        reward=file.take("outcomes.reward", (H, room)),
        times=file.take("outcomes.times", (H, room)),
        weights=file.take("weights", (H, room, members)) if members else np.zeros((H, room, 0)),
    )
    if room != max(outcomes.many.max(), 1) or not all(_is_sound(memory, outcomes, h) for h in range(H)):
        raise ArchiveError("is damaged: its outcomes are not linked as they were")
    if sum(outcomes.times[h, :n].sum() for h, n in enumerate(outcomes.many)) != memory.counters[1]:
        raise ArchiveError("is damaged: its outcomes are not as many as its steps")
    unused = np.arange(room) >= outcomes.many[:, None]
    if outcomes.weights.min(initial=0.0) < 0.0 or outcomes.weights[unused].any():
        raise ArchiveError("is damaged: its weights are negative, or belong to no transition")
    return outcomes


def _is_sound(memory: Memory, outcomes: Outcomes, h: int) -> bool:
    """Return whether every outcome of a period is reached once, from a legal pair, and leads to a known state."""
    H, n = len(memory.states), outcomes.many[h]
    tried = np.flatnonzero(outcomes.head[h] >= 0)
    link, following = outcomes.link[h, :n], outcomes.following[h, :n]
    reached = np.sort(np.concatenate([outcomes.head[h, tried], link[link >= 0]]))
    known = memory.states[h + 1] if h + 1 < H else 0
    return bool(
        np.array_equal(reached, np.arange(n))
        and (link < np.arange(n)).all()
        and (tried < memory.states[h] * (memory.block.shape[1] // memory.sum_head.shape[1])).all()
        and (memory.barred[h, tried] == 0).all()
        and memory.alive[h, memory.block[h, tried]].all()
        and (following < known).all()
        and (outcomes.times[h, :n] >= 1).all()
    )
