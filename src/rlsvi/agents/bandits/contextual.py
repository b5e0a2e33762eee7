"""The linear contextual bandit of appendix E: RLSVI without the value of the next state.

for l = 0, 1, ..
    for h = 0, .., H-1: theta_h ~ the posterior of r_h = Phi_h(s, a) theta_h + noise       (its Algorithm 7)
    in period h take an action of argmax_a (Phi_h theta_h)(s_h, a)

Without a next state nothing depends on the order of the weights, so that a block of them is sampled only when an
action asks for it, from a random stream of its own: the cost of a step is that of the blocks it touches, and that
of learning one rank-one update, however many episodes there were.
"""

from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.bandits.agent import OneStepAgent, Step
from rlsvi.agents.finite.learner import broken
from rlsvi.agents.task import Task, endless_task_of, task_of
from rlsvi.bases import Basis, Features, Tabular
from rlsvi.bases.basis import same_table
from rlsvi.core.checks import finite, ridge_of, whole
from rlsvi.core.cholesky import rank_one
from rlsvi.core.compile import Bools, Floats, Ints, Longs, Words, compiled
from rlsvi.core.random import Seed, bits, reseed
from rlsvi.core.regression import Factor, add, draw, prior_factor, solve


class Bandit(NamedTuple):
    """The posterior of P = H regressions, or of one for all periods, each in B blocks of d weights."""

    factor: Factor
    reward: Floats  # (P, B, d) sum of phi r
    error: Floats
    mean: Floats  # (P, B, d) of the prior
    lam: float
    sigma: float


class Draw(NamedTuple):
    """A sample of the posterior, or its mean, worked out block by block when needed."""

    theta: Floats  # (P, B, d)
    made: Longs  # (P, B) the number of the draw that theta belongs to
    number: Longs  # (1,) of this draw
    key: Words  # (1,) names its noise
    sampled: Bools  # (1,) else it is the mean


@compiled
def new_draw(sample: Draw, sampled: bool, stream: Words) -> None:
    """Begin another draw, with one random number."""
    sample.number[0] += 1
    sample.key[0] = bits(stream) if sampled else np.uint64(0)
    sample.sampled[0] = sampled


@compiled
def bandit_values(
    bandit: Bandit, sample: Draw, h: int, block: Ints, phi: Floats, Q: Floats, scratch: Words
) -> None:
    """Q = phi . theta_h, from the blocks (A,) and features (A, d) of the actions."""
    p = h if sample.theta.shape[0] > 1 else 0
    for a in range(block.size):
        b = block[a]
        theta = sample.theta[p, b]
        if sample.made[p, b] != sample.number[0]:
            draw_block(bandit, sample, p, b, scratch)
        Q[a] = 0.0
        for k in range(theta.size):
            Q[a] += phi[a, k] * theta[k]


@compiled
def draw_block(bandit: Bandit, sample: Draw, p: int, b: int, scratch: Words) -> None:
    """The weights of one block."""
    theta, ridge = sample.theta[p, b], bandit.lam * bandit.sigma * bandit.sigma
    for k in range(theta.size):
        theta[k] = bandit.reward[p, b, k] + ridge * bandit.mean[p, b, k]
    U, inv = bandit.factor.U[p, b], bandit.factor.inv[p, b]
    if sample.sampled[0]:
        place = np.uint64(p * sample.made.shape[1] + b + 1)
        reseed(scratch, sample.key[0] ^ (place * np.uint64(0x9E3779B97F4A7C15)))
        draw(U, inv, theta, bandit.sigma, scratch)
    else:
        solve(U, inv, theta)
    sample.made[p, b] = sample.number[0]


@compiled
def bandit_learns(bandit: Bandit, h: int, b: int, x: Floats, reward: float) -> bool:
    """Learn the reward of one step; `x`, its features, is used up. False when the factor failed."""
    p = h if bandit.reward.shape[0] > 1 else 0
    if reward != 0.0:
        add(bandit.reward[p, b], bandit.error[p, b], x, reward)
    return rank_one(bandit.factor.U[p, b], bandit.factor.inv[p, b], x)


class ContextualBandit(OneStepAgent):
    """Thompson sampling of a linear model of the reward, for each period or for all of them.

    Parameters
    ----------
    lam, sigma : prior precision of the weights and noise of a reward, as for RLSVI; both > 0.
    pooled : one regression for all periods, instead of one a period. It needs no horizon.
    basis, horizon, prior_mean, reward_offset, seed : as for RLSVI; one prior mean a weight is (weights,), or
        (H, weights) unless pooled.

    As RLSVI, it plays the first episode on the mean of the prior.
    """

    samples_first = False

    def __init__(
        self,
        *,
        lam: float = 1.0,
        sigma: float = 0.1,
        pooled: bool = False,
        basis: Basis | None = None,
        horizon: int | None = None,
        prior_mean: float | Floats = 0.0,
        reward_offset: float = 0.0,
        seed: Seed = None,
    ) -> None:
        self.lam, self.sigma, self.pooled = lam, sigma, pooled
        self.basis, self.horizon = basis, horizon
        self.prior_mean, self.reward_offset = prior_mean, reward_offset
        self.seed = seed
        self._start()
        ridge_of(lam, sigma)
        finite("prior_mean", prior_mean)
        if horizon is not None:
            whole("horizon", horizon, 1)
        if basis is not None and not hasattr(basis, "bind"):
            raise TypeError(f"basis must be a basis such as rlsvi.bases.Tabular(), got {basis!r}")
        self._features: Features | None = None

    def _task_of(self, env: Any) -> Task:
        try:
            return task_of(env, self.horizon)
        except ValueError:
            if not self.pooled or self.horizon is not None:
                raise
            return endless_task_of(env)

    def features(self, task: Task, example: Any) -> Features:
        """The agent's basis, or the problem's, or else a table, bound to the task."""
        basis = self.basis or self._problem_basis or Tabular()
        if task.states is None and isinstance(basis, Tabular):
            raise ValueError(
                f"a table needs observations that are numbered 0..S-1 (a Discrete space), not {example!r:.60}: "
                f"pass basis=rlsvi.bases.Recommendation() for histories of recommendations, or bases.StateFeatures"
            )
        return basis.bind(task.states, task.actions, task.horizon, example)

    def _bind(self, task: Task, example: Any) -> None:
        features = self.features(task, example)
        self._mind = self.new_mind(task, features.blocks, features.dim)
        self._features = features

    def new_mind(self, task: Task, blocks: int, dim: int) -> Bandit:
        """The prior."""
        shape = (1 if self.pooled else task.horizon), blocks, dim
        given = np.asarray(self.prior_mean, dtype=np.float64)
        try:
            mean = np.broadcast_to(given, (shape[0], blocks * dim)).reshape(shape).copy()
        except ValueError:
            raise ValueError(
                f"prior_mean must be a number, or of shape ({blocks * dim},) or {(shape[0], blocks * dim)}: "
                f"one mean a weight; got {given.shape}"
            ) from None
        factor = prior_factor(shape[:2], dim, ridge_of(self.lam, self.sigma))
        return Bandit(factor, np.zeros(shape), np.zeros(shape), mean, float(self.lam), float(self.sigma))

    def adopt(self, task: Task, basis: Basis) -> Features:
        """Take on a task of finitely many states, with `basis` unless the agent has its own."""
        if self.horizon not in (None, task.horizon):
            raise ValueError(f"horizon is {self.horizon}, the problem has {task.horizon} periods: leave it out")
        self._check(task)
        if self._features is not None and basis is self._problem_basis:
            return self._features
        given = (self.basis or basis).bind(task.states, task.actions, task.horizon, 0)
        if self._mind is None:
            self._mind = self.new_mind(task, given.blocks, given.dim)
            self._features, self._problem_basis = given, None if self.basis else basis
        if self._features is None or not same_table(self._features.table, given.table):
            raise ValueError("this agent has learned through another basis: use agent.clone()")
        return self._features

    def _new_plan(self) -> Draw:
        shape = self._mind.reward.shape
        return Draw(
            np.zeros(shape),
            np.zeros(shape[:2], np.int64),
            np.zeros(1, np.int64),
            np.zeros(1, np.uint64),
            np.zeros(1, np.bool_),
        )

    def _plan(self, plan: Draw, sampled: bool, stream: Words) -> None:
        new_draw(plan, sampled, stream)

    def _place(self, step: Step) -> tuple[Ints, Floats]:
        assert self._task is not None
        if self._features is None:  # loaded from a file, and this is the first observation
            self._features = self.features(self._task, step.observation)
        block, phi = self._features.at(step.h, step.observation)
        return block, np.ascontiguousarray(phi)

    def _values(self, plan: Draw, step: Step) -> Floats:
        block, phi = self._place(step)
        Q = np.empty(len(block))
        bandit_values(self._mind, plan, step.h, block, phi, Q, np.empty(4, np.uint64))
        return Q

    def _learn(self, steps: list[Step], actions: Longs, rewards: Floats) -> None:
        parts, kept = (*self._mind.factor, self._mind.reward, self._mind.error), {}
        try:
            for step, a, r in zip(steps, actions, rewards, strict=True):
                block, phi = self._place(step)
                place = 0 if self.pooled else step.h, int(block[a])
                if place not in kept:
                    kept[place] = [part[place].copy() for part in parts]
                if not bandit_learns(self._mind, step.h, place[1], phi[a].copy(), float(r)):
                    raise broken()
        except BaseException:
            for place, before in kept.items():
                for part, was in zip(parts, before, strict=True):
                    part[place] = was
            raise
