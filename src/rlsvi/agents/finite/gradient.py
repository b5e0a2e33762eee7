"""RLSVI by stochastic gradients (appendix F, "another approach"): no matrix at all, for very many features.

A sample of the posterior is also the solution of a perturbed regression: theta-tilde minimises
    sum_i (r_i + V_h+1(s_i') + w_i - phi_i . theta)^2 + ridge |theta - theta_p|^2,
with w_i ~ N(0, sigma^2) and theta_p ~ N(prior_mean, I / lam). Here `ensemble` such solutions are followed side by
side, each with its own w_i and theta_p, which stay as they are. Every transition bears its share of the prior: of
the n_k that touch a weight k, each has c_k = ridge / n_k, so that the sum is one over transitions alone,
    sum_i ((b_i - phi_i . theta)^2 + sum over the k it touches of c_k (theta_k - theta_pk)^2).
Every episode is played by one of the ensemble, after
    for h = H-1, .., 0
        `updates` times: draw a past transition i of period h, with target b_i = r_i + V_h+1(s_i') + w_i
            theta becomes the least of its term and of sum_k (ridge + mass_k) (theta_k - its value before)^2
            mass_k = (1 - nu) mass_k + phi_ik^2 + c_k
The step is implicit, that of a Kalman filter with a diagonal covariance: no scale of features makes it diverge.
With nu = 0 and targets that stay, steps get smaller and theta goes to the solution. With nu > 0 they do not: theta
moves about it, as the mean of the last 1 / nu draws of a target does about the mean of all, with a variance of
up to nu / 2 times that of the targets on top of the posterior's: the price of following targets that change.
An episode costs the same whatever came before; weights take ensemble x H x K x 24 bytes, and of features only the
numbers other than 0 are kept.
"""

from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.explore import Greedy
from rlsvi.agents.finite.agent import FiniteHorizonAgent
from rlsvi.agents.finite.learner import Place, broken
from rlsvi.agents.finite.value_iteration import Prior
from rlsvi.agents.task import Task
from rlsvi.bases import Basis, Features
from rlsvi.core.checks import finite, positive, ridge_of, shaped, whole
from rlsvi.core.compile import Bools, Floats, Longs, Words, compiled
from rlsvi.core.random import Seed, bits, normal, reseed, uniform


class GradientRLSVI(FiniteHorizonAgent):
    """Randomized least-squares value iteration by stochastic gradients, for very many features.

    Parameters
    ----------
    lam, sigma, basis, horizon, prior_mean, reward_offset, seed : as for RLSVI; sigma is a number.
    ensemble : how many solutions are followed; more are closer to independent samples, and learn later.
    updates : gradient steps a period and episode.
    nu : how fast a weight forgets the steps it has taken, in [0, 1). Targets change as later periods are learned;
        0 samples from the posterior if they do not.
    memory : the number of most recent transitions kept of each period.
    """

    samples = True

    def __init__(
        self,
        *,
        lam: float = 1.0,
        sigma: float = 0.1,
        ensemble: int = 10,
        updates: int = 32,
        nu: float = 0.05,
        memory: int = 10_000,
        basis: Basis | None = None,
        horizon: int | None = None,
        prior_mean: float | Floats = 0.0,
        reward_offset: float = 0.0,
        seed: Seed = None,
    ) -> None:
        self.lam, self.sigma = lam, sigma
        self.ensemble, self.updates, self.nu, self.memory = ensemble, updates, nu, memory
        self.basis, self.horizon = basis, horizon
        self.prior_mean, self.reward_offset = prior_mean, reward_offset
        self.seed = seed
        self.explore = Greedy()
        positive("sigma", sigma)
        for name in ("ensemble", "updates", "memory"):
            whole(name, getattr(self, name), 1)
        if not 0 <= shaped("nu", finite("nu", nu), ()) < 1:
            raise ValueError(f"nu must lie in [0, 1), got {nu!r}")
        self._start()

    @property
    def episodes(self) -> int:
        """Episodes learned from."""
        return self._learner.episodes if self._learner else 0  # type: ignore[attr-defined]

    def adopt(self, task: Task, basis: Basis) -> Any:
        """There is no compiled loop for this agent."""
        raise TypeError("GradientRLSVI has no compiled loop: let it learn(env) from rlsvi.envs.FiniteMDPEnv(mdp)")

    def _new(self, task: Task, features: Features) -> Any:
        return GradientLearner(self, features, task, self.prior(task, features))


class Weights(NamedTuple):
    """Weights to act on."""

    theta: Floats  # (H, K)


class Sparse(NamedTuple):
    """Rows of features without their zeros: row j owns the entries start[j] .. start[j + 1]."""

    start: Longs
    weight: Longs  # its number
    value: Floats


class Transition(NamedTuple):
    """What was seen in one step: its features, its reward, and the features of the legal actions that followed."""

    key: int  # names its noise
    reward: float
    phi: Sparse  # one row
    following: Sparse


NOTHING = Sparse(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0))


def sparse(block: Any, phi: Floats, dim: int, actions: Any) -> Sparse:
    """The rows of some actions."""
    places = [np.flatnonzero(phi[a]) for a in actions]
    start = np.concatenate([[0], np.cumsum([len(p) for p in places])]).astype(np.int64)
    index = np.concatenate([int(block[a]) * dim + p for a, p in zip(actions, places, strict=True)])
    value = np.concatenate([phi[a][p] for a, p in zip(actions, places, strict=True)])
    return Sparse(start, index.astype(np.int64), value.astype(np.float64))


class GradientLearner:
    """The ensemble, and the transitions of every period."""

    def __init__(self, agent: GradientRLSVI, features: Features, task: Task, prior: Prior) -> None:
        self.agent, self.features, self.prior = agent, features, prior
        self.horizon, self.actions = task.horizon, task.actions
        M, H, K = agent.ensemble, task.horizon, features.blocks * features.dim
        self.ridge, self.sigma = ridge_of(agent.lam, agent.sigma), positive("sigma", agent.sigma)
        try:
            self.theta, self.start, self.mass = (np.zeros((M, H, K)) for _ in range(3))
            self.touching = np.zeros((H, K))  # transitions
        except MemoryError:
            raise MemoryError(
                f"ensemble={M} x {H} periods x {K} weights need {24e-9 * M * H * K:.0f} GB"
            ) from None
        self.episodes = 0
        self.past: list[list[Transition]] = [[] for _ in range(H)]
        self.values = Weights(prior.mean.reshape(H, K))
        self.keys = np.zeros(M, np.uint64)
        self._scratch = np.zeros(4, np.uint64)
        self._begun = False

    def plan(self, sampled: bool, stream: Words, values: Weights | None = None) -> Weights:
        """The weights of one of the ensemble, or their mean; to act on them (no `values`) it learns first."""
        if not sampled:
            theta = self.theta.mean(axis=0) if self._begun else self.prior.mean.reshape(self.theta.shape[1:])
            mean = Weights(theta)
            self.values = mean if values is None else self.values
            return mean
        member = int(uniform(stream) * len(self.theta))
        if values is None:
            self._learn(member, stream)
            self.values = Weights(self.theta[member])
        return Weights(self.theta[member])

    def begin(self, stream: Words) -> None:
        """Draw theta_p of all, and the names of their noise."""
        fill_normal(self.start.reshape(-1), stream)
        self.start /= np.sqrt(self.prior.lam)
        self.start += self.prior.mean.reshape(self.theta.shape[1:])
        self.theta[:] = self.start
        for m in range(len(self.keys)):
            self.keys[m] = bits(stream)
        self._begun = True

    def _learn(self, member: int, stream: Words) -> None:
        theta, start, mass, agent = self.theta[member], self.start[member], self.mass[member], self.agent
        for h in reversed(range(self.horizon)):
            past = self.past[h]
            for _ in range(agent.updates if past else 0):
                seen = past[int(uniform(stream) * len(past))]
                reseed(self._scratch, self.keys[member] ^ np.uint64(seen.key))
                target = seen.reward + self.sigma * normal(self._scratch)
                then = theta[h + 1] if h + 1 < self.horizon else theta[h]
                now, following = seen.phi, seen.following
                if not nudge(
                    theta[h],
                    start[h],
                    mass[h],
                    self.touching[h],
                    then,
                    now.weight,
                    now.value,
                    target,
                    following.start,
                    following.weight,
                    following.value,
                    self.ridge,
                    agent.nu,
                ):
                    raise broken()

    def blank_values(self) -> Weights:
        """What `plan` is given where it shall not learn."""
        return self.values

    def look(self, h: int, observation: Any, legal: Bools) -> Place:
        """The features of an observation."""
        block, phi = self.features.at(h, observation)
        return Place(h, observation, legal, -1, block, np.array(phi, dtype=np.float64))

    def legal(self, h: int, observation: Any) -> Bools | None:
        """States are not kept."""
        return None

    def values_at(self, values: Weights, place: Place) -> Floats:
        """Q_h(s, .) at a place."""
        rows = sparse(place.block, place.phi, self.features.dim, range(self.actions))
        Q = np.empty(self.actions)
        row_products(values.theta[place.h], *rows, Q)
        return Q

    def remember(self, places: list[Place], actions: Longs, rewards: Floats, goes_on: bool) -> None:
        """Learn from an episode; `places` has one more entry than `actions` if it goes on."""
        d = self.features.dim
        if not self._begun:
            self.begin(self.agent._streams[0])
        for h, (a, reward) in enumerate(zip(actions, rewards, strict=True)):
            then, past = NOTHING, self.past[h]
            if h + 1 < len(places):
                following = places[h + 1]
                then = sparse(following.block, following.phi, d, np.flatnonzero(following.legal))
            phi = sparse(places[h].block, places[h].phi, d, [a])
            key = (self.episodes * self.horizon + h + 1) * 0x9E3779B97F4A7C15 % 2**64
            past.append(Transition(key, float(reward), phi, then))
            self.touching[h, phi.weight] += 1.0
            if len(past) > self.agent.memory:
                self._drop(h, past.pop(0).phi.weight)
        self.episodes += 1

    def _drop(self, h: int, weights: Longs) -> None:
        """A transition is no longer remembered: what no other one touches is theta_p again."""
        self.touching[h, weights] -= 1.0
        free = weights[self.touching[h, weights] == 0]
        self.theta[:, h, free] = self.start[:, h, free]
        self.mass[:, h, free] = 0.0


@compiled
def fill_normal(out: Floats, stream: Words) -> None:
    """Standard normals."""
    for k in range(out.size):
        out[k] = normal(stream)


@compiled
def row_products(theta: Floats, start: Longs, index: Longs, value: Floats, out: Floats) -> None:
    """phi . theta for every row."""
    for j in range(out.size):
        total = 0.0
        for e in range(start[j], start[j + 1]):
            total += value[e] * theta[index[e]]
        out[j] = total


@compiled
def nudge(
    theta: Floats,
    start: Floats,
    mass: Floats,
    touching: Floats,
    then: Floats,
    index: Longs,
    value: Floats,
    target: float,
    next_start: Longs,
    next_index: Longs,
    next_value: Floats,
    ridge: float,
    nu: float,
) -> bool:
    """One step towards target + max_a of the rows that follow under `then`, and towards theta_p, which is `start`.

    False if it is not finite.
    """
    best = -np.inf
    for j in range(next_start.size - 1):
        total = 0.0
        for e in range(next_start[j], next_start[j + 1]):
            total += next_value[e] * then[next_index[e]]
        best = max(best, total)
    error = target + best if next_start.size > 1 else target
    gain = 1.0
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
