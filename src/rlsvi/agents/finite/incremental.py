"""Incremental RLSVI (appendix F): summary statistics, updated with the last episode only.

for l = 0, 1, ..
    sample theta_lh from N(theta-bar_lh, Sigma_lh) for all h, where theta-bar_lh = Sigma_lh y_lh    (plan)
    play an episode greedily on it
    for h = 0, .., H-1
        Sigma_l+1,h^-1 = (1 - nu_l) Sigma_lh^-1 + phi' phi / sigma^2                             (forget, add_step)
        y_l+1,h = (1 - nu_l) y_lh + (r_lh + max_a (Phi_h+1 theta_l,h+1)(s_l,h+1, a)) phi' / sigma^2

A target is computed once, from the value function its episode was played with, and never updated. The cost of an
episode is therefore constant, and no states are stored. As everywhere, Sigma^-1 and y are stored times sigma^2. In
this form the prior is forgotten too, and the variance of unvisited features grows without bound. By default, nu_l
lam I is therefore added to Sigma_l+1,h^-1, and nu_l lam prior_mean to y_l+1,h: the data are forgotten, but the
prior is kept. As for RLSVI, the weights of the first episode are the prior mean.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.contract import (
    EPISODES,
    Episode,
    Workspace,
    count,
    learn,
    only_best,
    only_best_of_values,
    remember,
)
from rlsvi.agents.explore import Schedule, best_value, scheduled
from rlsvi.agents.finite.memory import Memory
from rlsvi.agents.finite.rlsvi import (
    FiniteHorizonAgent,
    FiniteLearner,
    FiniteMind,
    finite_values,
    new_mind,
    new_values,
)
from rlsvi.bases import Features
from rlsvi.core.checks import shown
from rlsvi.core.compile import ONE, Floats, Longs, compiled, unsigned
from rlsvi.core.elementary import all_between
from rlsvi.core.regression import HUGE_DIAGONAL, Factor, Noise, add, add_diagonal, rank_one, shrink
from rlsvi.envs.task import Task
from rlsvi.mdp.finite import Table, mask_of


@dataclass(kw_only=True, repr=False, eq=False)
class IncrementalRLSVI(FiniteHorizonAgent):
    """Randomized least-squares value iteration at a constant cost per episode.

    It is cheaper than RLSVI but less data-efficient: what is learned about later periods does not change the
    targets of earlier ones.

    Parameters
    ----------
    lam, sigma, basis, horizon, prior_mean, reward_offset, seed
        As for RLSVI.
    nu
        The fraction of the past that is forgotten per episode, in [0, 1): a number, or a function of the episode
        such as Linear or Exponential. 0 forgets nothing.
    keep_prior
        Forget only the data. False: forget the prior too, as in the paper.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> agent = rlsvi.IncrementalRLSVI(nu=0.02, seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/Chain-v0", length=4), 100).predict(0, deterministic=True)
    (1, 1)
    """

    sigma: Noise = 0.1
    nu: Schedule = 0.01
    keep_prior: bool = True

    _concurrent = False  # targets are computed with the value function that an episode was played with

    def _check(self) -> None:
        super()._check()
        self.step_sizes(0, 1)

    def step_sizes(self, first: int, episodes: int) -> Floats:
        """Return nu_l in `episodes` episodes from `first` on."""
        values = scheduled("nu", self.nu, first, episodes)
        if not ((values >= 0) & (values < 1)).all():
            raise ValueError(f"nu must lie in [0, 1), got {shown(self.nu)}")
        return values

    def _learner_of(self, task: Task, features: Features) -> Any:
        own = Forgetting(self.keep_prior, np.empty(0), 0, new_lanes(features.dim))
        mind = new_mind(task, features, self._prior(task, features), IncrementalMind, own)
        if not self.keep_prior:  # the variance of all blocks changes
            mind.memory.alive[:] = True
            mind.memory.lives[:] = features.blocks
            mind.memory.live[:] = np.arange(features.blocks)
        return IncrementalLearner(task, mind, features, self)


class IncrementalLearner(FiniteLearner):
    """A learner that stores sums of targets, each computed once, and no states."""

    keeps_data = False

    mind: Any

    def __init__(self, task: Task, mind: Any, features: Features, agent: IncrementalRLSVI) -> None:
        super().__init__(task, mind, features)
        self.agent = agent

    def mind_for(self, episodes: int) -> Any:
        """Return the mind with the step sizes of the next episodes."""
        first, mind = int(self.counters[EPISODES]), self.mind
        nu = self.agent.step_sizes(first, episodes)
        return mind._replace(own=mind.own._replace(nu=nu, first=first))


# ---- How it plans and learns: Sigma^-1 and y, updated with the last episode only ----------------------------


LARGEST_TARGET = 1e150  # its square is finite
FADED = 1e100  # the standard deviation at which a weight is forgotten no further


class Forgetting(NamedTuple):
    """What IncrementalRLSVI adds to FiniteMind."""

    keep_prior: bool
    nu: Floats  # (n,) step sizes of the next episodes
    first: int  # number of episodes learned from before these
    lanes: "Lanes"  # work arrays


class IncrementalMind(FiniteMind):
    """Like FiniteMind, but `factor` contains Sigma^-1 and `memory.reward` y, and no states are stored."""


only_best.register(IncrementalMind)(only_best_of_values)


@learn.register(IncrementalMind)
def incremental_learn(mind: Any, table: Table, T: int, work: Workspace) -> bool:
    """Forget, then add the steps of the episode. `work.rewards` is overwritten with the targets."""
    for h in range(1, T):
        s, legal = work.states[h], table.legal[mask_of(table, h)]
        finite_values(mind, h, s, work.Q, work.scratch)
        work.rewards[h - 1] += best_value(work.Q, legal[s])
    if not all_between(work.rewards[:T], -LARGEST_TARGET, LARGEST_TARGET) or not forget(mind):
        return False
    phi, block = mind.features.phi, mind.features.block
    for h in range(T):
        s, a = work.states[h], work.actions[h]
        row = phi[h if phi.shape[0] > 1 else 0, s, a]
        if not add_step(mind.memory, mind.factor, h, block[s, a], row, work.rewards[h], mind.x):
            return False
    return count(mind.memory.counters, T)


@remember.register(IncrementalMind)
def incremental_remember(mind: Any, episode: Episode, work: Workspace) -> bool:
    """Forget, then add an episode that was not played in the compiled loop; its rewards become the targets."""
    T = episode.actions.size
    for h in range(1, episode.rows.size):
        phi, block = episode.phi[h], episode.block[h]
        new_values(mind.memory.alive, mind.prior, mind.values, h, block, phi, work.Q, work.scratch)
        episode.rewards[h - 1] += best_value(work.Q, episode.legal[h])
    if not all_between(episode.rewards, -LARGEST_TARGET, LARGEST_TARGET) or not forget(mind):
        return False
    for h in range(T):
        a = episode.actions[h]
        phi, block = episode.phi[h, a], episode.block[h, a]
        if not add_step(mind.memory, mind.factor, h, block, phi, episode.rewards[h], mind.x):
            return False
    return count(mind.memory.counters, T)


@compiled
def forget(mind: Any) -> bool:
    """Multiply Sigma^-1 and y by 1 - nu, and restore the prior's part if it is kept.

    `memory.reward` contains y without ridge prior_mean. Returns False if a factor failed.
    """
    memory, factor, prior, own = mind.memory, mind.factor, mind.prior, mind.own
    nu = own.nu[memory.counters[EPISODES] - own.first]
    if nu == 0.0:
        return True
    for h in range(memory.lives.size):
        memory.counts[h] *= 1.0 - nu
        memory.squares[h] *= 1.0 - nu
        for i in range(memory.lives[h]):
            b = memory.live[h, i]
            y, error, mean = memory.reward[h, b], memory.reward_error[h, b], prior.mean[h, b]
            for k in range(y.size):
                y[k] *= 1.0 - nu
                error[k] *= 1.0 - nu
            if not own.keep_prior:
                for k in range(y.size):
                    y[k] -= nu * prior.ridge * mean[k]
                    memory.squares[h] -= nu * prior.ridge * mean[k] * mean[k]
                if factor.inv[h, b, 0] < FADED:
                    shrink(factor.U[h, b], factor.inv[h, b], 1.0 - nu)
    return not own.keep_prior or regularise(memory, factor, 1.0 - nu, nu * prior.ridge, own.lanes, mind.x)


@compiled
def regularise(memory: Memory, factor: Factor, by: float, amount: float, lanes: "Lanes", x: Floats) -> bool:
    """P <- by P + amount I for all live blocks, four at a time, or one by one if they are wide."""
    many, fine = 0, True
    for h in range(memory.lives.size):
        for i in range(memory.lives[h]):
            b = memory.live[h, i]
            if lanes.X.size == 0:
                shrink(factor.U[h, b], factor.inv[h, b], by)
                fine = add_diagonal(factor.U[h, b], factor.inv[h, b], amount, x) and fine
                continue
            for lane in range(many, LANES):  # unused lanes repeat the last one
                lanes.place[lane, 0], lanes.place[lane, 1] = h, b
            many += 1
            if many == LANES:
                fine = regularise_four(factor, lanes, by, amount) and fine
                many = 0
    if many > 0:
        fine = regularise_four(factor, lanes, by, amount) and fine
    return fine


@compiled
def add_step(memory: Memory, factor: Factor, h: int, b: int, phi: Floats, target: float, x: Floats) -> bool:
    """Sigma^-1 += phi' phi and y += target phi'. Returns False if a factor failed. `x` (d,) is overwritten."""
    if not memory.alive[h, b]:
        memory.alive[h, b] = True
        memory.live[h, memory.lives[h]] = b
        memory.lives[h] += 1
    memory.counts[h] += 1.0
    memory.squares[h] += target * target
    add(memory.reward[h, b], memory.reward_error[h, b], phi, target)
    for k in range(x.size):
        x[k] = phi[k]
    return rank_one(factor.U[h, b], factor.inv[h, b], x)


# ---- Four Cholesky factors at once -------------------------------------------------------------------------
#
# A small factor spends its time waiting, since each column needs the square root and division of the one before.
# Four factors are therefore computed together, element by element, so that the others advance while one waits.
# They are independent: a result does not depend on the other three.


LANES = 4
MOST_COLUMNS = 32  # columns; a larger X would not stay in the nearest cache


class Lanes(NamedTuple):
    """The indices of four factors, and a work array."""

    place: Longs  # (4, 2) their first two indices
    X: Floats  # (d, d, 4); empty for factors that are too wide


def new_lanes(d: int) -> Lanes:
    """Return a work array for factors of d columns."""
    width = d if d <= MOST_COLUMNS else 0
    return Lanes(np.zeros((LANES, 2), np.int64), np.zeros((width, width, LANES)))


@compiled
def regularise_four(factor: Factor, lanes: Lanes, by: float, amount: float) -> bool:
    """P <- by P + amount I for the four factors of `lanes`. Returns False if one of them becomes invalid.

    They are the triangles of sqrt(by) R above sqrt(amount) I, by Householder reflections. Column j consists of the
    diagonal of R, the root of `amount`, and what earlier reflections have put into the rows k < j of X. It is
    reflected onto the diagonal, with signs chosen to avoid cancellation and keep the diagonal positive.
    For fewer than four factors, repeat one of them: all are read before any is written.
    """
    place, X = lanes.place, lanes.X
    U0, inv0 = factor.U[place[0, 0], place[0, 1]], factor.inv[place[0, 0], place[0, 1]]
    U1, inv1 = factor.U[place[1, 0], place[1, 1]], factor.inv[place[1, 0], place[1, 1]]
    U2, inv2 = factor.U[place[2, 0], place[2, 1]], factor.inv[place[2, 0], place[2, 1]]
    U3, inv3 = factor.U[place[3, 0], place[3, 1]], factor.inv[place[3, 0], place[3, 1]]
    d, root, a, fine = unsigned(X.shape[0]), math.sqrt(by), math.sqrt(amount), True
    for j in range(d):
        r0, r1, r2, r3 = root * U0[j, j], root * U1[j, j], root * U2[j, j], root * U3[j, j]
        s0, s1, s2, s3 = r0 * r0 + amount, r1 * r1 + amount, r2 * r2 + amount, r3 * r3 + amount
        for k in range(j):
            x0, x1, x2, x3 = X[k, j, 0], X[k, j, 1], X[k, j, 2], X[k, j, 3]
            s0, s1, s2, s3 = s0 + x0 * x0, s1 + x1 * x1, s2 + x2 * x2, s3 + x3 * x3
        s0, s1, s2, s3 = math.sqrt(s0), math.sqrt(s1), math.sqrt(s2), math.sqrt(s3)
        fine = (
            fine
            and 0.0 < s0 < HUGE_DIAGONAL
            and 0.0 < s1 < HUGE_DIAGONAL
            and 0.0 < s2 < HUGE_DIAGONAL
            and 0.0 < s3 < HUGE_DIAGONAL
        )
        U0[j, j], U1[j, j], U2[j, j], U3[j, j] = s0, s1, s2, s3
        r0, r1, r2, r3 = r0 + s0, r1 + s1, r2 + s2, r3 + s3
        s0, s1, s2, s3 = 1.0 / (s0 * r0), 1.0 / (s1 * r1), 1.0 / (s2 * r2), 1.0 / (s3 * r3)
        inv0[j], inv1[j], inv2[j], inv3[j] = s0 * r0, s1 * r1, s2 * r2, s3 * r3
        for i in range(j + ONE, d):
            u0, u1, u2, u3 = root * U0[j, i], root * U1[j, i], root * U2[j, i], root * U3[j, i]
            p0, p1, p2, p3 = u0 * r0, u1 * r1, u2 * r2, u3 * r3
            for k in range(j):
                x0, x1, x2, x3 = X[k, j, 0], X[k, j, 1], X[k, j, 2], X[k, j, 3]
                z0, z1, z2, z3 = X[k, i, 0], X[k, i, 1], X[k, i, 2], X[k, i, 3]
                p0, p1, p2, p3 = p0 + x0 * z0, p1 + x1 * z1, p2 + x2 * z2, p3 + x3 * z3
            p0, p1, p2, p3 = p0 * s0, p1 * s1, p2 * s2, p3 * s3
            u0, u1, u2, u3 = p0 * r0 - u0, p1 * r1 - u1, p2 * r2 - u2, p3 * r3 - u3
            U0[j, i], U1[j, i], U2[j, i], U3[j, i] = u0, u1, u2, u3
            for k in range(j):
                x0, x1, x2, x3 = X[k, j, 0], X[k, j, 1], X[k, j, 2], X[k, j, 3]
                z0, z1, z2, z3 = X[k, i, 0], X[k, i, 1], X[k, i, 2], X[k, i, 3]
                z0, z1, z2, z3 = z0 - p0 * x0, z1 - p1 * x1, z2 - p2 * x2, z3 - p3 * x3
                X[k, i, 0], X[k, i, 1], X[k, i, 2], X[k, i, 3] = z0, z1, z2, z3
            p0, p1, p2, p3 = -a * p0, -a * p1, -a * p2, -a * p3
            X[j, i, 0], X[j, i, 1], X[j, i, 2], X[j, i, 3] = p0, p1, p2, p3
    return fine
