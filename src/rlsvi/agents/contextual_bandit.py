"""The linear contextual bandit of appendix E: RLSVI without the value of the next state.

for l = 0, 1, ..
    for h = 0, .., H-1: theta_h ~ the posterior of r_h = Phi_h(s, a) theta_h + noise       (its Algorithm 7)
    in period h take an action of argmax_a (Phi_h theta_h)(s_h, a)

Without a next state, the order in which weights are sampled does not matter. A block is therefore sampled only
when an action needs it, from its own random stream. The cost of a step is that of the blocks it touches, and
learning takes one rank-one update, independent of the number of episodes.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rlsvi.agents.agent import Agent
from rlsvi.agents.contract import (
    LINEAR,
    Episode,
    MindLearner,
    Place,
    Workspace,
    count,
    learn,
    new_counters,
    no_features,
    plan,
    remember,
    restored_features,
    values,
    weights_shaped,
)
from rlsvi.bases import Basis, Features, Tabular
from rlsvi.bases.basis import FeatureTable
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import Constraints, ridge_of, shown
from rlsvi.core.compile import Bools, Floats, Ints, Longs, Words, compiled
from rlsvi.core.random import Seed, bits, reseed
from rlsvi.core.regression import Factor, add, draw, prior_factor, rank_one, solve
from rlsvi.envs.task import Task, endless_task_of, task_of
from rlsvi.mdp.finite import Table


@dataclass(kw_only=True, repr=False, eq=False)
class ContextualBandit(Agent):
    """Thompson sampling for a linear model of the reward, with one model per period or one for all periods.

    Like RLSVI, it plays the first episode with the prior mean.

    Parameters
    ----------
    lam, sigma
        Prior precision of the weights and noise of a reward, as for RLSVI; both > 0.
    pooled
        One regression for all periods, instead of one per period. No horizon is needed then.
    basis, horizon, prior_mean, reward_offset, seed
        As for RLSVI; prior_mean may have shape (weights,), or (H, weights) unless pooled.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> agent = rlsvi.ContextualBandit(basis=rlsvi.bases.Recommendation(), pooled=True, seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/Recommendation-v0", products=4, slots=2), 50).episodes
    50
    """

    lam: float = 1.0
    sigma: float = 0.1
    pooled: bool = False
    basis: Basis | None = None
    horizon: int | None = None
    prior_mean: float | Floats = 0.0
    reward_offset: float = 0.0
    seed: Seed = None

    _fused = True
    needs_horizon = None  # only if not pooled

    _constraints: ClassVar[Constraints] = LINEAR

    def _check(self) -> None:
        ridge_of(self.lam, self.sigma)

    def _task_of(self, env: Any) -> Task:
        """Return the task that an environment poses; a pooled bandit needs no horizon."""
        try:
            return task_of(env, self.horizon)
        except ValueError:
            if not self.pooled or self.horizon is not None:
                raise
            return endless_task_of(env)

    def _features(self, task: Task, example: Any) -> Features:
        """Return the agent's basis, the problem's, or a table, bound to the task."""
        if task.states is None and isinstance(self.basis or self._problem_basis or Tabular(), Tabular):
            raise ValueError(
                f"a table needs observations that are numbered 0..S-1 (a Discrete space), not {shown(example)}: "
                f"pass basis=rlsvi.bases.Recommendation() for histories of recommendations, or bases.StateFeatures"
            )
        return super()._features(task, example)

    def new_learner(self, task: Task, example: Any) -> "ContextualLearner":
        """Return a learner without experience."""
        return self._learner_of(task, self._features(task, example))

    def restored_learner(self, task: Task, file: Archive) -> "ContextualLearner":
        """Return the learner stored in a file, after checking all its arrays."""
        P, B, d = file.shape("reward", 3)
        if P != (1 if self.pooled else task.horizon) or min(P, B, d) < 1:
            raise ArchiveError(f"is damaged: regressions of shape {(P, B, d)} are not those of {task}")
        if file.shape("factor.U", 4) != (P, B, d, d):
            raise ArchiveError("is damaged: its factors are not those of its regressions")
        learner = self._learner_of(task, restored_features(self, task, B, d, counted=False))
        learner.refill(file)
        return learner

    def _learner_of(self, task: Task, features: Features) -> "ContextualLearner":
        shape = (1 if self.pooled else task.horizon), features.blocks, features.dim
        mind = ContextualMind(
            features=features.table or no_features(features.dim),
            factor=prior_factor(shape[:2], features.dim, ridge_of(self.lam, self.sigma)),
            reward=np.zeros(shape),
            error=np.zeros(shape),
            mean=weights_shaped(self.prior_mean, shape),
            lam=float(self.lam),
            sigma=float(self.sigma),
            sample=new_draw(*shape),
            x=np.empty(features.dim),
            counters=new_counters(),
        )
        return ContextualLearner(task, mind, features)


# ---- Bayesian regressions of the reward, sampled block by block when needed --------------------------------


class Draw(NamedTuple):
    """A sample of the posterior, or its mean, computed block by block when needed."""

    theta: Floats  # (P, B, d)
    made: Longs  # (P, B) number of the draw that theta belongs to
    number: Longs  # (1,) number of this draw
    key: Words  # (1,) identifies its noise
    sampled: Bools  # (1,) whether it is a sample rather than the mean


class ContextualMind(NamedTuple):
    """The posterior of P = H regressions, or of one for all periods, each with B blocks of d weights."""

    features: FeatureTable  # of finitely many states, otherwise empty
    factor: Factor
    reward: Floats  # (P, B, d) sum of phi r
    error: Floats
    mean: Floats  # (P, B, d) of the prior
    lam: float
    sigma: float
    sample: Draw  # to act on
    x: Floats  # (d,) work array
    counters: Longs  # (2,) episodes and steps learned from


def new_draw(P: int, B: int, d: int) -> Draw:
    """Return arrays for a sample."""
    return Draw(
        np.zeros((P, B, d)),
        np.zeros((P, B), np.int64),
        np.zeros(1, np.int64),
        np.zeros(1, np.uint64),
        np.zeros(1, np.bool_),
    )


@plan.register(ContextualMind)
def contextual_plan(mind: ContextualMind, sampled: bool, stream: Words) -> bool:
    """Start another draw, using one random number."""
    mind.sample.number[0] += 1
    mind.sample.key[0] = bits(stream) if sampled else np.uint64(0)
    mind.sample.sampled[0] = sampled
    return True


@values.register(ContextualMind)
def contextual_values(mind: ContextualMind, h: int, s: int, Q: Floats, scratch: Words) -> None:
    """Compute Q for one of finitely many states."""
    phi, block = mind.features.phi, mind.features.block
    sampled_values(mind, h, block[s], phi[h if phi.shape[0] > 1 else 0, s], Q, scratch)


@compiled
def sampled_values(mind: ContextualMind, h: int, block: Ints, phi: Floats, Q: Floats, scratch: Words) -> None:
    """Compute Q = phi . theta_h, given the blocks (A,) and features (A, d) of the actions."""
    sample = mind.sample
    p = h if sample.theta.shape[0] > 1 else 0
    for a in range(block.size):
        b = block[a]
        theta = sample.theta[p, b]
        if sample.made[p, b] != sample.number[0]:
            draw_block(mind, p, b, scratch)
        Q[a] = 0.0
        for k in range(theta.size):
            Q[a] += phi[a, k] * theta[k]


@compiled
def draw_block(mind: ContextualMind, p: int, b: int, scratch: Words) -> None:
    """Draw the weights of one block."""
    sample = mind.sample
    theta, ridge = sample.theta[p, b], mind.lam * mind.sigma * mind.sigma
    for k in range(theta.size):
        theta[k] = mind.reward[p, b, k] + ridge * mind.mean[p, b, k]
    U, inv = mind.factor.U[p, b], mind.factor.inv[p, b]
    if sample.sampled[0]:
        place = np.uint64(p * sample.made.shape[1] + b + 1)
        reseed(scratch, sample.key[0] ^ (place * np.uint64(0x9E3779B97F4A7C15)))
        draw(U, inv, theta, mind.sigma, scratch)
    else:
        solve(U, inv, theta)
    sample.made[p, b] = sample.number[0]


@learn.register(ContextualMind)
def contextual_learn(mind: ContextualMind, table: Table, T: int, work: Workspace) -> bool:
    """Add the steps of the episode to the regressions."""
    return add_steps(mind, mind.features, work.states, work.actions, work.rewards, T)


@remember.register(ContextualMind)
def contextual_remember(mind: ContextualMind, episode: Episode, work: Workspace) -> bool:
    """Add the steps of an episode that was not played in the compiled loop, whose places form their own table."""
    features = FeatureTable(episode.phi.reshape((1, *episode.phi.shape)), episode.block)
    T = episode.actions.size
    for h in range(T):
        work.visited[h] = h
    return add_steps(mind, features, work.visited, episode.actions, episode.rewards, T)


@compiled
def add_steps(
    mind: ContextualMind, features: FeatureTable, states: Longs, actions: Longs, rewards: Floats, T: int
) -> bool:
    """P += phi phi' for all steps, and then y += phi r. Returns False if a factor failed."""
    phi, pooled = features.phi, mind.reward.shape[0] == 1
    for h in range(T):
        p, s, a = 0 if pooled else h, states[h], actions[h]
        for k in range(mind.x.size):
            mind.x[k] = phi[h if phi.shape[0] > 1 else 0, s, a, k]
        b = features.block[s, a]
        if not rank_one(mind.factor.U[p, b], mind.factor.inv[p, b], mind.x):
            return False
    for h in range(T):
        p, s, a = 0 if pooled else h, states[h], actions[h]
        if rewards[h] != 0.0:
            b = features.block[s, a]
            add(mind.reward[p, b], mind.error[p, b], phi[h if phi.shape[0] > 1 else 0, s, a], rewards[h])
    return count(mind.counters, T)


class ContextualLearner(MindLearner):
    """Regressions of the reward."""

    saved = "factor", "counters", "reward", "error"
    mind: ContextualMind

    def look(self, h: int, observation: Any, mask: Any, learning: bool = True) -> Place:
        """Return the features of an observation."""
        place = super().look(h, observation, mask)
        block, phi = self.features.at(h, place.observation)
        return place._replace(block=block, x=np.array(phi, dtype=np.float64))

    def another_plan(self) -> ContextualMind:
        """Return the mind with arrays for one more sample."""
        return self.mind._replace(sample=new_draw(*self.mind.reward.shape))

    def values(self, plan: ContextualMind, place: Place) -> Floats:
        """Return Q = phi . theta_h of a sample."""
        Q = np.empty(self.task.actions)
        sampled_values(plan, place.h, place.block, place.x, Q, np.empty(4, np.uint64))
        return Q
