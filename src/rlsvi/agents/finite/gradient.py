"""RLSVI by stochastic gradients (appendix F, "another approach"): without matrices, for very many features.

A sample of the posterior is also the solution of a perturbed regression: theta-tilde minimises
    sum_i (r_i + V_h+1(s_i') + w_i - phi_i . theta)^2 + ridge |theta - theta_p|^2,
with w_i ~ N(0, sigma^2) and theta_p ~ N(prior_mean, I / lam). Here `ensemble` such solutions are tracked in
parallel, each with its own fixed w_i and theta_p. Every transition carries its share of the prior: of the n_k
transitions that touch a weight k, each has c_k = ridge / n_k, so that the sum runs over transitions alone,
    sum_i ((b_i - phi_i . theta)^2 + sum over the k it touches of c_k (theta_k - theta_pk)^2).
Every episode is played by one member of the ensemble, after
    for h = H-1, .., 0
        `updates` times: draw a past transition i of period h, with target b_i = r_i + V_h+1(s_i') + w_i
            theta becomes the minimiser of its term plus sum_k (ridge + mass_k) (theta_k - its previous value)^2
            mass_k = (1 - nu) mass_k + phi_ik^2 + c_k
The step is implicit, as in a Kalman filter with a diagonal covariance, and does not diverge for any scale of
features. With nu = 0 and fixed targets, steps get smaller and theta converges to the solution. With nu > 0, theta
fluctuates around it, as the mean of the last 1 / nu draws of a target fluctuates around the mean of all. This adds
a variance of up to nu / 2 times that of the targets to the posterior's, which is the price of following targets
that change. The cost of an episode is constant. Weights take ensemble x H x K x 24 bytes, and only nonzero
features are stored.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from rlsvi.agents.contract import Place, Step, broken, count, new_counters, restored_features
from rlsvi.agents.finite.rlsvi import FiniteHorizonAgent, Prior
from rlsvi.bases import Features
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import Constraints, in_unit_interval, positive, whole
from rlsvi.core.compile import Floats, Longs, Words, compiled
from rlsvi.core.random import bits, fill_normal, normal, reseed, uniform
from rlsvi.envs.task import Task


@dataclass(kw_only=True, repr=False, eq=False)
class GradientRLSVI(FiniteHorizonAgent):
    """Randomized least-squares value iteration by stochastic gradients, for very many features.

    Parameters
    ----------
    lam, sigma, basis, horizon, prior_mean, reward_offset, seed
        As for RLSVI; sigma is a number.
    ensemble
        The number of solutions. More are closer to independent samples, but learn more slowly.
    updates
        Gradient steps per period and episode.
    nu
        How fast a weight forgets the steps it has taken, in [0, 1). Targets change while later periods are
        learned; with fixed targets, 0 samples from the posterior.
    memory
        The number of most recent transitions kept for each period.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> agent = rlsvi.GradientRLSVI(ensemble=5, seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/Chain-v0", length=4), 100).episodes
    100
    """

    sigma: float = 0.1
    ensemble: int = 10
    updates: int = 32
    nu: float = 0.05
    memory: int = 10_000

    _fused = False
    _concurrent = False
    _keeps_factors = False

    _constraints: ClassVar[Constraints] = {
        "sigma": positive,
        **dict.fromkeys(("ensemble", "updates", "memory"), partial(whole, least=1, most=2**31 - 1)),
        "nu": in_unit_interval,
    }

    def _learner_of(self, task: Task, features: Features) -> "GradientLearner":
        settings = self.ensemble, self.updates, float(self.nu), self.memory
        return GradientLearner(task, features, self._prior(task, features), *settings)

    def restored_learner(self, task: Task, file: Archive) -> "GradientLearner":
        """Return the learner stored in a file, after checking all its arrays."""
        blocks, dim = (int(n) for n in file.take_within("features", (2,), "int64", 1, 2**31))
        shape = self.ensemble, task.horizon, blocks * dim
        arrays = [file.take(name, shape) for name in ("theta", "start", "mass")]
        learner = self._learner_of(task, restored_features(self, task, blocks, dim, counted=False))
        learner.theta, learner.start, learner.mass = arrays
        learner.keys = file.take("keys", learner.keys.shape, "uint64")
        learner.counters = file.take_within("counters", (2,), "int64", 1, 2**62)
        read_past(file, learner)
        return learner


# ---- The ensemble, and the transitions of every period -----------------------------------------------------
#
# A transition is a Python object with the features that are not 0, few of very many: the sums of memory.py would
# take a number for each feature and next state.


NOBODY = -1


class GradientPlan(NamedTuple):
    """Weights to act on, the member of the ensemble they belong to, and their mass."""

    theta: Floats  # (H, K)
    mass: Floats
    member: int = NOBODY


class Sparse(NamedTuple):
    """Rows of features without zeros: row j consists of the entries start[j] .. start[j + 1]."""

    start: Longs
    weight: Longs  # index of the weight
    value: Floats


class Transition(NamedTuple):
    """One step: its features, its reward, and the features of the legal actions in the next state."""

    key: int  # identifies its noise
    reward: float
    phi: Sparse  # one row
    following: Sparse


NOTHING = Sparse(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0))


def sparse(block: Any, phi: Floats, dim: int, actions: Any) -> Sparse:
    """Return the rows of some actions."""
    places = [np.flatnonzero(phi[a]) for a in actions]
    index, start = _concatenate([int(block[a]) * dim + p for a, p in zip(actions, places, strict=True)])
    value = np.concatenate([phi[a][p] for a, p in zip(actions, places, strict=True)])
    return Sparse(start, index, value.astype(np.float64))


class GradientLearner:
    """The ensemble, and the transitions of every period, numbered in order of arrival.

    Period h keeps first[h] .. next[h]. Other entries of `past` belong to an episode that was not learned from, or
    are too old, and are ignored.
    """

    def __init__(
        self, task: Task, features: Features, prior: Prior, ensemble: int, updates: int, nu: float, memory: int
    ) -> None:
        self.task, self.features, self.prior = task, features, prior
        self.updates, self.nu, self.memory = updates, nu, memory
        M, H, K = ensemble, task.horizon, features.blocks * features.dim
        try:
            self.theta, self.start, self.mass = (np.zeros((M, H, K)) for _ in range(3))
            self.touching = np.zeros((H, K))  # number of transitions that touch each weight
        except MemoryError:
            raise MemoryError(
                f"ensemble={M} x {H} periods x {K} weights need {24e-9 * M * H * K:.0f} GB"
            ) from None
        self.keys = np.zeros(M, np.uint64)
        self.past: list[dict[int, Transition]] = [{} for _ in range(H)]
        self.first, self.next = np.zeros((2, H), np.int64)
        self.counters = new_counters()
        self._scratch = np.zeros(4, np.uint64)

    def look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """Return the features of an observation."""
        observation, legal = self.task.checked(observation), self.task.legal(mask)
        block, phi = self.features.at(h, observation)
        return Place(h, observation, legal, -1, block, np.array(phi, dtype=np.float64))

    def plan(self, sampled: bool, stream: Words, learning: bool = False) -> GradientPlan:
        """Return the weights of one member, or the mean; before learning, the member takes gradient steps."""
        if not sampled:
            if learning and self.counters[0] == 0:
                self._begin(stream)
            mean = self.prior.mean.reshape(self.theta.shape[1:])
            return GradientPlan(self.theta.mean(axis=0) if self.counters[0] else mean, self.mass[0])
        member = int(uniform(stream) * len(self.theta))
        plan = GradientPlan(self.theta[member].copy(), self.mass[member].copy(), member)
        if learning:
            self._improve(plan, stream)
        return plan

    def _begin(self, stream: Words) -> None:
        """Draw theta_p and the noise keys of all members."""
        fill_normal(self.start.reshape(-1), stream)
        self.start /= np.sqrt(self.prior.lam)
        self.start += self.prior.mean.reshape(self.theta.shape[1:])
        self.theta[:] = self.start
        for m in range(len(self.keys)):
            self.keys[m] = bits(stream)

    def _improve(self, plan: GradientPlan, stream: Words) -> None:
        """Take the gradient steps of one member, from the last period to the first."""
        start, H = self.start[plan.member], self.task.horizon
        for h in reversed(range(H)):
            first, kept = int(self.first[h]), int(self.next[h] - self.first[h])
            for _ in range(self.updates if kept else 0):
                seen = self.past[h][first + int(uniform(stream) * kept)]
                reseed(self._scratch, self.keys[plan.member] ^ np.uint64(seen.key))
                target = seen.reward + self.prior.sigma * normal(self._scratch)
                then = plan.theta[h + 1] if h + 1 < H else plan.theta[h]
                own = plan.theta[h], start[h], plan.mass[h], self.touching[h]
                if not nudge(*own, then, seen.phi, target, seen.following, self.prior.ridge, self.nu):
                    raise broken()

    def values(self, plan: GradientPlan, place: Place) -> Floats:
        """Return Q_h(s, .) at a place."""
        rows = sparse(place.block, place.x, self.features.dim, range(self.task.actions))
        return np.array([row_product(plan.theta[place.h], rows, a) for a in range(self.task.actions)])

    def remember(self, steps: list[Step], plan: GradientPlan, ended: bool) -> Self:
        """Learn from an episode; all relevant state changes in one compiled call."""
        d, touched, dropped = self.features.dim, [], []
        for h, (place, a, reward, following) in enumerate(steps):
            past, number = self.past[h], int(self.next[h])
            past.pop(int(self.first[h]) - 1, None)  # dropped with the last episode
            then = NOTHING
            if following is not None:
                then = sparse(following.block, following.x, d, np.flatnonzero(following.legal))
            key = (int(self.counters[0]) * self.task.horizon + h + 1) * 0x9E3779B97F4A7C15 % 2**64
            past[number] = Transition(key, reward, sparse(place.block, place.x, d, [a]), then)
            touched.append(past[number].phi.weight)
            full = number - self.first[h] >= self.memory
            dropped.append(past[int(self.first[h])].phi.weight if full else NOTHING.weight)
        weights = self.theta, self.start, self.mass, self.touching
        kept = self.memory, self.first, self.next, self.counters
        commit(*weights, plan, _concatenate(touched), _concatenate(dropped), *kept)
        return self

    def transitions(self, h: int) -> list[Transition]:
        """Return the transitions kept in period h, oldest first."""
        return [self.past[h][n] for n in range(int(self.first[h]), int(self.next[h]))]

    def state(self) -> dict[str, Any]:
        """Return the ensemble, and all transitions one after another, period by period."""
        kept = [self.transitions(h) for h in range(self.task.horizon)]
        flat = [seen for past in kept for seen in past]
        arrays = {name: getattr(self, name) for name in ("theta", "start", "mass", "keys", "counters")}
        arrays["features"] = np.array([self.features.blocks, self.features.dim])
        arrays["count"] = np.array([len(past) for past in kept])
        arrays["key"] = np.array([seen.key for seen in flat], np.uint64)
        arrays["reward"] = np.array([seen.reward for seen in flat])
        for name in ("phi", "following"):
            rows: list[Sparse] = [getattr(seen, name) for seen in flat]
            arrays[f"{name}.rows"] = np.array([len(row.start) - 1 for row in rows])
            arrays[f"{name}.sizes"] = np.concatenate([np.diff(row.start) for row in rows])
            arrays[f"{name}.index"] = np.concatenate([row.weight for row in rows])
            arrays[f"{name}.value"] = np.concatenate([row.value for row in rows])
        return arrays


def _concatenate(parts: list[Longs]) -> tuple[Longs, Longs]:
    """Concatenate arrays, and return where each begins."""
    sizes = [len(part) for part in parts]
    return np.concatenate(parts).astype(np.int64), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def read_past(file: Archive, learner: GradientLearner) -> None:
    """Read the transitions of a learner from a file, checking that they are consistent and within bounds."""
    H, (T,) = learner.task.horizon, file.shape("key", 1)
    counts = file.take_within("count", (H,), np.int64, 0, learner.memory)
    keys, rewards = file.take("key", (T,), np.uint64), file.take("reward", (T,))
    phi, following = (_read_rows(file, name, T, learner.theta.shape[2]) for name in ("phi", "following"))
    if counts.sum() != T or any(len(row.start) != 2 for row in phi):
        raise ArchiveError("is damaged: its transitions do not fit together")
    seen = [Transition(int(k), float(r), x, y) for k, r, x, y in zip(keys, rewards, phi, following, strict=True)]
    for h, end in enumerate(np.cumsum(counts)):
        learner.past[h] = dict(enumerate(seen[end - counts[h] : end]))
        for one in learner.past[h].values():
            learner.touching[h, one.phi.weight] += 1.0
    learner.next[:] = counts


def _read_rows(file: Archive, name: str, many: int, weights: int) -> list[Sparse]:
    (lists,), (entries,) = file.shape(f"{name}.sizes", 1), file.shape(f"{name}.index", 1)
    rows = file.take_within(f"{name}.rows", (many,), np.int64, 0, lists)
    sizes = file.take_within(f"{name}.sizes", (lists,), np.int64, 0, entries)
    index = file.take_within(f"{name}.index", (entries,), np.int64, 0, weights - 1)
    value = file.take(f"{name}.value", (entries,))
    if rows.sum() != lists or sizes.sum() != entries:
        raise ArchiveError(f"is damaged: the rows of {name} do not fit together")
    found, row, entry = [], 0, 0
    for n in rows:
        start = np.concatenate([[0], np.cumsum(sizes[row : row + n])]).astype(np.int64)
        part = slice(entry, entry + int(start[-1]))
        found.append(Sparse(start, index[part].copy(), value[part].copy()))
        row, entry = row + int(n), part.stop
    return found


@compiled
def commit(
    theta: Floats,
    start: Floats,
    mass: Floats,
    touching: Floats,
    plan: GradientPlan,
    touched: tuple[Longs, Longs],
    dropped: tuple[Longs, Longs],
    memory: int,
    first: Longs,
    following: Longs,
    counters: Longs,
) -> None:
    """Store the weights of a member after an episode, count its transitions, and drop those that are too old.

    A weight that is no longer touched by any transition returns to theta_p.
    """
    if plan.member >= 0:
        for h in range(plan.theta.shape[0]):
            for k in range(plan.theta.shape[1]):
                theta[plan.member, h, k], mass[plan.member, h, k] = plan.theta[h, k], plan.mass[h, k]
    (new, new_start), (old, old_start) = touched, dropped
    steps = new_start.size - 1
    for h in range(steps):
        for e in range(new_start[h], new_start[h + 1]):
            touching[h, new[e]] += 1.0
        following[h] += 1
        if following[h] - first[h] > memory:
            first[h] += 1
        for e in range(old_start[h], old_start[h + 1]):
            touching[h, old[e]] -= 1.0
        for e in range(old_start[h], old_start[h + 1]):
            k = old[e]
            if touching[h, k] == 0.0:
                for m in range(theta.shape[0]):
                    theta[m, h, k], mass[m, h, k] = start[m, h, k], 0.0
    count(counters, steps)


@compiled
def row_product(theta: Floats, rows: Sparse, j: int) -> float:
    """Return phi . theta for row j."""
    total = 0.0
    for e in range(rows.start[j], rows.start[j + 1]):
        total += rows.value[e] * theta[rows.weight[e]]
    return total


@compiled
def nudge(
    theta: Floats,
    start: Floats,
    mass: Floats,
    touching: Floats,
    then: Floats,
    phi: Sparse,
    target: float,
    following: Sparse,
    ridge: float,
    nu: float,
) -> bool:
    """Take one step towards target + max_a of the next rows under `then`, and towards theta_p, which is `start`.

    Returns False if the result is not finite.
    """
    best = -np.inf
    for j in range(following.start.size - 1):
        best = max(best, row_product(then, following, j))
    error = target + best if following.start.size > 1 else target
    index, value, gain = phi.weight, phi.value, 1.0
    for e in range(index.size):
        k = index[e]
        share, held = ridge / touching[k], ridge + mass[k]
        theta[k] += share / (held + share) * (start[k] - theta[k])
        error -= value[e] * theta[k]
        gain += value[e] * value[e] / (held + share)
    error /= gain
    for e in range(index.size):
        k = index[e]
        share = ridge / touching[k]
        theta[k] += error * value[e] / (ridge + mass[k] + share)
        mass[k] = (1.0 - nu) * mass[k] + value[e] * value[e] + share
    return abs(error) < np.inf
