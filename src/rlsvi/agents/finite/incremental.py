"""Incremental RLSVI (appendix F): summary statistics, updated by the last episode alone.

for l = 0, 1, ..
    sample theta_lh from N(theta-bar_lh, Sigma_lh) for all h, where theta-bar_lh = Sigma_lh y_lh    (plan)
    play an episode greedily on it
    for h = 0, .., H-1
        Sigma_l+1,h^-1 = (1 - nu_l) Sigma_lh^-1 + phi' phi / sigma^2                             (forget, add_step)
        y_l+1,h = (1 - nu_l) y_lh + (r_lh + max_a (Phi_h+1 theta_l,h+1)(s_l,h+1, a)) phi' / sigma^2

A target is made once, from the value function its episode was played with, and never again: an episode costs the
same whatever came before, and no state is kept. Here, as everywhere, Sigma^-1 and y are kept times sigma^2.
In this form the prior is forgotten too: the variance of what is never visited grows without bound. So by default
nu_l lam I is added to Sigma_l+1,h^-1, and nu_l lam prior_mean to y_l+1,h: the data are forgotten, the prior is
kept. As for RLSVI the weights of the first episode are the prior mean.
"""

from dataclasses import dataclass, field

import numpy as np

from rlsvi.agents.explore import Greedy, Schedule, scheduled
from rlsvi.agents.finite.agent import FiniteHorizonAgent
from rlsvi.agents.finite.learner import Finite, Learner, Place, broken, table_values
from rlsvi.agents.finite.memory import Memory
from rlsvi.agents.finite.value_iteration import Prior
from rlsvi.agents.noise import Noise
from rlsvi.agents.task import Task
from rlsvi.bases import Basis, Features
from rlsvi.core.cholesky import add_diagonal, rank_one, shrink
from rlsvi.core.compile import Bools, Floats, Longs, Words, compiled
from rlsvi.core.random import Seed
from rlsvi.core.regression import Factor, add
from rlsvi.core.side_by_side import LANES, Lanes, new_lanes, regularise_four


class IncrementalRLSVI(FiniteHorizonAgent):
    """Randomized least-squares value iteration at a constant cost an episode.

    Cheaper than RLSVI, and less efficient with data: what is learned of later periods does not change the targets
    that earlier ones have seen.

    Parameters
    ----------
    lam, sigma, basis, horizon, prior_mean, reward_offset, seed : as for RLSVI.
    nu : how much of the past is forgotten in an episode, in [0, 1): a number, or a function of the episode such as
        Linear or Exponential. 0 forgets nothing.
    keep_prior : only the data are forgotten. False: the prior too, as the paper writes it.
    """

    samples = True

    def __init__(
        self,
        *,
        lam: float = 1.0,
        sigma: Noise = 0.1,
        nu: Schedule = 0.01,
        keep_prior: bool = True,
        basis: Basis | None = None,
        horizon: int | None = None,
        prior_mean: float | Floats = 0.0,
        reward_offset: float = 0.0,
        seed: Seed = None,
    ) -> None:
        self.lam, self.sigma, self.nu, self.keep_prior = lam, sigma, nu, keep_prior
        self.basis, self.horizon = basis, horizon
        self.prior_mean, self.reward_offset = prior_mean, reward_offset
        self.seed = seed
        self.explore = Greedy()
        if not isinstance(keep_prior, bool):
            raise ValueError(f"keep_prior must be True or False, got {keep_prior!r}")
        self.step_sizes(0, 1)
        self._start()

    def step_sizes(self, first: int, episodes: int) -> Floats:
        """nu_l in `episodes` episodes from `first` on."""
        values = scheduled("nu", self.nu, first, episodes)
        if not ((values >= 0) & (values < 1)).all():
            raise ValueError(f"nu must lie in [0, 1), got {self.nu!r}")
        return values

    def _new(self, task: Task, features: Features) -> Learner:
        learner = IncrementalLearner.new(
            features, task.actions, task.horizon, task.states, self.prior(task, features)
        )
        learner.agent, learner.lanes = self, new_lanes(features.dim)
        if not self.keep_prior:  # the variance of every block changes
            learner.memory.alive[:] = True
            learner.memory.lives[:] = features.blocks
            learner.memory.live[:] = np.arange(features.blocks)
        return learner


@dataclass
class IncrementalLearner(Learner):
    """A learner whose memory holds Sigma^-1 (in `factor`) and y (in `memory.reward`), and no state."""

    agent: IncrementalRLSVI | None = None
    lanes: Lanes = field(default_factory=lambda: new_lanes(1))

    def remember(self, places: list[Place], actions: Longs, rewards: Floats, goes_on: bool) -> None:
        """Learn from an episode; `places` has one more entry than `actions` if it goes on."""
        assert self.agent is not None
        nu = self.agent.step_sizes(int(self.memory.episodes[0]), 1)[0]
        targets, x = rewards.copy(), np.empty(self.features.dim)
        for place in places[1:]:
            targets[place.h - 1] += self.values_at(self.values, place)[place.legal].max()
        if not forget(self.memory, self.factor, self.prior, nu, self.agent.keep_prior, self.lanes, x):
            raise broken()
        for place, a, target in zip(places, actions, targets, strict=False):
            if not add_step(self.memory, self.factor, place.h, place.block[a], place.phi[a], target, x):
                raise broken()
        self.memory.episodes[0] += 1


@compiled
def forget(
    memory: Memory, factor: Factor, prior: Prior, nu: float, keep_prior: bool, lanes: Lanes, x: Floats
) -> bool:
    """Sigma^-1 and y times 1 - nu; with what that takes of the prior added back, if it is kept.

    `memory.reward` holds y without its part ridge prior_mean. False when a factor failed. `lanes` and `x` (d,) are
    overwritten.
    """
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
            if not keep_prior:
                for k in range(y.size):
                    y[k] -= nu * prior.ridge * mean[k]
                    memory.squares[h] -= nu * prior.ridge * mean[k] * mean[k]
                shrink(factor.U[h, b], factor.inv[h, b], 1.0 - nu)
    return not keep_prior or regularise(memory, factor, 1.0 - nu, nu * prior.ridge, lanes, x)


@compiled
def regularise(memory: Memory, factor: Factor, by: float, amount: float, lanes: Lanes, x: Floats) -> bool:
    """P <- by P + amount I for all blocks alive, four at a time, or one by one if they are wide."""
    many, fine = 0, True
    for h in range(memory.lives.size):
        for i in range(memory.lives[h]):
            b = memory.live[h, i]
            if lanes.X.size == 0:
                shrink(factor.U[h, b], factor.inv[h, b], by)
                fine = add_diagonal(factor.U[h, b], factor.inv[h, b], amount, x) and fine
                continue
            for lane in range(many, LANES):  # what is empty repeats the last one
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
    """Sigma^-1 += phi' phi and y += target phi'. False when a factor failed. `x` (d,) is overwritten."""
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


@compiled
def add_table_episode(
    learner: Finite,
    legal: Bools,
    states: Longs,
    actions: Longs,
    rewards: Floats,
    steps: int,
    nu: float,
    keep_prior: bool,
    Q: Floats,
    scratch: Words,
    lanes: Lanes,
    x: Floats,
) -> bool:
    """What IncrementalLearner.remember does, compiled, for finitely many states. `rewards` become the targets."""
    phi, block = learner.features.phi, learner.features.block
    for h in range(1, steps):
        table_values(learner, h, states[h], Q, scratch)
        best = -np.inf
        for a in range(Q.size):
            if legal[h if legal.shape[0] > 1 else 0, states[h], a]:
                best = max(best, Q[a])
        rewards[h - 1] += best
    if not forget(learner.memory, learner.factor, learner.prior, nu, keep_prior, lanes, x):
        return False
    for h in range(steps):
        s, a = states[h], actions[h]
        row = phi[h if phi.shape[0] > 1 else 0, s, a]
        if not add_step(learner.memory, learner.factor, h, block[s, a], row, rewards[h], x):
            return False
    learner.memory.episodes[0] += 1
    return True
