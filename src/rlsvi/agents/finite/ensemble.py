"""Ensemble sampling: RLSVI with a fixed number of value functions, one of which is picked for each episode.

Lu and Van Roy (2017) for bandits, Osband et al. (2019) for value functions, with the randomized prior functions of
Osband et al. (2018). Instead of sampling a value function in every episode, M of them are kept. Each is fitted to
the same data with its own noise, which is drawn once and then fixed:

    for every member m                                                            (before the first episode)
        theta0_mh ~ N(prior_mean, prior_scale^2 I / lam) for all h
    for l = 0, 1, ..
        pick a member m uniformly                                                 (plan)
        for h = H-1, .., 0
            theta_mh minimises  sum_i (r_i + V_m,h+1(s_i') + w_im - phi_i . theta)^2 + ridge |theta - theta0_mh|^2
        play an episode greedily on it
        for every new transition i and every member m                             (learn)
            w_im ~ N(0, sigma^2)

with ridge = lam sigma^2. The solution is theta_mh = P^-1 (A'b + sum_i phi_i w_im + ridge theta0_mh), where all
members share P = ridge I + A'A, and the sums of noise are kept for each member. A transition therefore costs
O(d^2 + M d), and an episode one value iteration, as for RLSVI.

If the data do not depend on the noise, and prior_scale = 1, theta_mh is distributed exactly as RLSVI's sample,
N(P^-1 y, sigma^2 P^-1). With few members they do depend on it: an action that no member finds promising is not
tried. As M grows, this is RLSVI. As for RLSVI, the weights of the first episode are the prior mean.

The other kind of ensemble, with random weights instead of noise, is further below.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rlsvi.agents.contract import ANY, EPISODES, STEPS, is_full, plan, plan_as
from rlsvi.agents.finite.bootstrap import (
    ROOM,
    BootstrapLearner,
    Outcomes,
    artificial,
    bootstrap_add,
    bootstrap_is_full,
    no_outcomes,
    resampling_mind,
    weight_of,
    weighted_iteration,
)
from rlsvi.agents.finite.memory import Memory, add_transitions
from rlsvi.agents.finite.rlsvi import (
    FiniteHorizonAgent,
    FiniteLearner,
    FiniteMind,
    Values,
    add_episode,
    clip_values,
    draw_sigma,
    key_of_block,
    new_mind,
    no_bounds,
    read_features,
    value_iteration,
)
from rlsvi.bases import Features
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.checks import Constraints, at_least, fits, one_of, positive, shown, whole
from rlsvi.core.compile import Floats, Longs, Words, compiled
from rlsvi.core.elementary import log
from rlsvi.core.random import bits, normal, reseed, uniform
from rlsvi.core.regression import Factor
from rlsvi.envs.task import Task

TARGETS, WEIGHTS = "targets", "weights"


@dataclass(kw_only=True, repr=False, eq=False)
class EnsembleRLSVI(FiniteHorizonAgent):
    """RLSVI with a fixed number of value functions, one of which is picked uniformly for each episode.

    The posterior mean, on which `predict(deterministic=True)` acts, has no noise and is that of RLSVI.

    Parameters
    ----------
    lam, basis, horizon, prior_mean, reward_offset, seed
        As for RLSVI.
    sigma
        Standard deviation of the noise of a target, a number > 0. If perturb="weights", it matters only through
        lam sigma^2, the number of transitions that the prior counts for.
    members
        The number of value functions. More are closer to RLSVI, which samples a new one for each episode.
    perturb
        How members differ besides their priors. "targets": each adds its own normal noise to every target.
        "weights": each gives its own weight to every transition, drawn from Exp(1), as in BootstrapRLSVI. Nothing
        is then assumed about the noise, and the regression is computed anew in every episode.
    prior_scale
        Standard deviation of the members' prior draws, in units of RLSVI's prior, >= 0. 0: all members start from
        the prior mean, and differ only in what they make of the data.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> agent = rlsvi.EnsembleRLSVI(members=10, seed=0)
    >>> agent.learn(gymnasium.make("rlsvi/Chain-v0", length=4), 100).predict(0, deterministic=True)
    (1, 1)
    """

    sigma: float = 0.1
    members: int = 20
    perturb: str = TARGETS
    prior_scale: float = 1.0

    _constraints: ClassVar[Constraints] = {
        "sigma": positive,
        "members": partial(whole, least=1),
        "perturb": partial(one_of, names=(TARGETS, WEIGHTS)),
        "prior_scale": partial(at_least, least=0.0),
    }

    @property
    def members_in_use(self) -> int:
        """The number of members that it plans with: after it has learned, setting `members` does not change it."""
        return self._learner.mind.own.keys.size - 1 if self.steps > 0 else self.members

    def restored_learner(self, task: Task, file: Archive) -> Any:
        """Return the learner stored in a file, after checking all its arrays."""
        if file.shape("keys", 1) != (self.members + 1,):
            raise ArchiveError(f"is damaged: it does not have the keys of {self.members} members")
        features, M = read_features(self, task, file), self.members
        weighted, sizes = self.perturb == WEIGHTS, (task.horizon, features.blocks, M, features.dim)
        if (file.shape("weights", 3)[2:] if weighted else file.shape("noise", 4)) != ((M,) if weighted else sizes):
            raise ArchiveError(f"is damaged: it does not have the noise of {M} members")
        learner = self._learner_of(task, features)
        learner.restore(file)
        return learner

    def _learner_of(self, task: Task, features: Features) -> Any:
        H, B, M, d = task.horizon, features.blocks, int(self.members), features.dim
        numbers = H * M * (16 if self.perturb == WEIGHTS else B * d)
        fits(f"members={shown(M)} of {H} x {B * d} weights", numbers, "use fewer members, or fewer features")
        prior, keys = self._prior(task, features), np.zeros(M + 1, np.uint64)
        spread = float(self.prior_scale) / math.sqrt(self.lam)
        if self.perturb == WEIGHTS:
            outcomes = no_outcomes(H, ROOM * task.actions, ROOM, M)
            weighted = WeightedMembers(outcomes, keys, spread, np.zeros(4, np.uint64))
            return WeightedLearner(task, resampling_mind(task, features, prior, WeightedMind, weighted), features)
        members = Members(np.zeros((H, B, M, d)), keys, spread, np.zeros(H, np.int64))
        return EnsembleLearner(task, new_mind(task, features, prior, EnsembleMind, members), features)


# ---- Perturbed targets: RLSVI's regressions, and the sums of every member's own noise -----------------------
#
# The weights of member m are P^-1 (A'b + ridge mean + n_m), where n_m = ridge (theta0_m - mean) + sum_i phi_i
# w_im. A member differs from the posterior mean in n_m alone, so that all share P, the features and the sums of
# rewards. A block gets its prior draws theta0_m when it becomes live; until then, `new_values` makes the same ones
# from the same key.


class Members(NamedTuple):
    """What M members add to FiniteMind."""

    noise: Floats  # (H, B, M, d) n_m of the live blocks, otherwise 0
    keys: Words  # (M + 1,) identify the prior draw of each member, and the noise of all transitions
    spread: float  # standard deviation of a prior draw
    drawn: Longs  # (H,) number of live blocks that have their prior draws


class EnsembleMind(FiniteMind):
    """The regressions that all members share, and in `own` the Members."""


class MemberPrior(NamedTuple):
    """The prior of one member: `noise` has one row for each block, or none for the posterior mean."""

    mean: Floats  # (H, B, d)
    ridge: float
    sigma: float
    spread: float
    noise: Floats  # (H, B, 1 or 0, d)


class Member(NamedTuple):
    """One member, as value iteration needs it."""

    memory: Memory
    factor: Factor
    prior: MemberPrior
    values: Values


@plan.register(EnsembleMind)
def plan_of_any_member(mind: Any, sampled: bool, stream: Words) -> bool:
    """Value iteration for a member drawn uniformly, or for the posterior mean if not `sampled`."""
    return plan_as(mind, ANY, sampled, stream)


@plan_as.register(EnsembleMind)
def plan_of_member(mind: Any, k: int, sampled: bool, stream: Words) -> bool:
    """The same for member k."""
    m = begin_plan(mind, k, sampled, stream)
    prior, noise = mind.prior, mind.own.noise[:, :, m : m + (1 if sampled else 0)]
    own = MemberPrior(prior.mean, prior.ridge, prior.sigma, mind.own.spread, noise)
    fine = value_iteration(Member(mind.memory, mind.factor, own, mind.values), False, stream)
    mind.values.key[0] = mind.own.keys[m] if sampled else np.uint64(0)
    return fine


@compiled
def begin_plan(mind: Any, k: int, sampled: bool, stream: Words) -> int:
    """Return the member to plan for, 0 for the mean. Draws the keys if nothing was learned yet."""
    keys = mind.own.keys
    if mind.memory.counters[STEPS] == 0:
        for i in range(keys.size):
            keys[i] = bits(stream)
    drawn = sampled and k == ANY
    return np.int64(uniform(stream) * (keys.size - 1)) if drawn else max(k, 0)  # type: ignore[return-value]


clip_values.register(MemberPrior)(no_bounds)


@draw_sigma.register(MemberPrior)
def fixed_noise(prior: MemberPrior, mind: Any, h: int, sampled: bool, stream: Words) -> bool:
    """Add the fixed noise of the member to its targets."""
    memory, members = mind.memory, prior.noise.shape[2]
    mind.values.sigma[h] = prior.sigma
    mind.values.spread[h] = prior.spread if members > 0 else 0.0
    for i in range(memory.lives[h] if members > 0 else 0):
        b = memory.live[h, i]
        theta, own = mind.values.theta[h, b], prior.noise[h, b, 0]
        for k in range(theta.size):
            theta[k] += own[k]
    return False


@add_episode.register(EnsembleMind)
def ensemble_add(
    mind: Any, visited: Longs, actions: Longs, rewards: Floats, T: int, goes_on: bool, scratch: Words
) -> bool:
    """Add the transitions as RLSVI does, and noise of its own for each transition and member."""
    begin_blocks(mind, scratch)
    add_noise(mind, visited, actions, T, scratch)
    return add_transitions(mind, visited, actions, rewards, T, goes_on)


@compiled
def begin_blocks(mind: Any, scratch: Words) -> None:
    """n_m = ridge (theta0_m - mean) for all blocks that have become live."""
    memory, own, M = mind.memory, mind.own, mind.own.noise.shape[2]
    for h in range(memory.lives.size):
        for i in range(own.drawn[h], memory.lives[h]):
            b = memory.live[h, i]
            for m in range(M):
                reseed(scratch, key_of_block(own.keys[m], memory.alive, h, b))
                for k in range(mind.x.size):
                    own.noise[h, b, m, k] = mind.prior.ridge * (own.spread * normal(scratch))
        own.drawn[h] = memory.lives[h]


@compiled
def add_noise(mind: Any, visited: Longs, actions: Longs, T: int, scratch: Words) -> None:
    """n_m += phi w_m for each of T steps through known states, with w_m ~ N(0, sigma^2) for every member."""
    memory, x, noise = mind.memory, mind.x, mind.own.noise
    A = memory.block.shape[1] // memory.sum_head.shape[1]
    reseed(scratch, key_of_episode(mind))
    for h in range(T):
        pair = visited[h] * A + actions[h]
        total = noise[h, memory.block[h, pair]]
        for k in range(x.size):
            x[k] = memory.phi[h, k, pair]
        for m in range(noise.shape[2]):
            w = mind.prior.sigma * normal(scratch)
            for k in range(x.size):
                total[m, k] += w * x[k]


@compiled
def key_of_episode(mind: Any) -> np.uint64:
    """Return the key of the noise, or of the weights, of the next episode to be learned."""
    number, keys = np.uint64(mind.memory.counters[EPISODES] + 1), mind.own.keys
    return keys[keys.size - 1] ^ (number * np.uint64(0x9E3779B97F4A7C15))  # type: ignore[no-any-return]


class EnsembleLearner(FiniteLearner):
    """A learner that also stores the sums of every member's noise."""

    mind: Any

    def kept(self) -> dict[str, Any]:
        """Return the factors, and the noise of the members."""
        return super().kept() | {"noise": self.mind.own.noise, "keys": self.mind.own.keys}

    def restore(self, file: Archive) -> None:
        """Restore the learner from a file, after checking all its arrays."""
        super().restore(file)
        memory, own = self.mind.memory, self.mind.own
        if own.noise[~memory.alive].any():
            raise ArchiveError("is damaged: its members have noise where nothing was learned")
        self.mind = self.mind._replace(own=own._replace(drawn=memory.lives.copy()))


# ---- Random weights instead of noise, as in BootstrapRLSVI -------------------------------------------------
#
# Member m solves   min_theta  sum_i w_im (r_i + V_h+1(s_i') - phi_i . theta)^2 + ridge |theta - theta0_m|^2
# where w_im ~ Exp(1) is drawn once, when the transition is learned. Copies of a transition are stored once, with
# the sum of their weights for each member. The regression of a member is built anew from these sums when it is
# picked.


class WeightedMembers(NamedTuple):
    """What M members add to BootstrapMind."""

    outcomes: Outcomes  # with the sums of the weights of every member
    keys: Words  # (M + 1,) identify the prior draw of each member, and the weights of all transitions
    spread: float  # standard deviation of a prior draw
    scratch: Words  # work array


class WeightedMind(FiniteMind):
    """Like BootstrapMind, with WeightedMembers in `own`."""


plan.register(WeightedMind)(plan_of_any_member)
is_full.register(WeightedMind)(bootstrap_is_full)


class FixedWeights(NamedTuple):
    """The weights and the prior draw of one member; `weights` has none for the posterior mean."""

    weights: Floats  # (H, E, 1 or 0)
    key: np.uint64
    spread: float


@plan_as.register(WeightedMind)
def plan_with_weights(mind: Any, k: int, sampled: bool, stream: Words) -> bool:
    """Value iteration with the weights of member k, or for the posterior mean if not `sampled`."""
    m, own, values = begin_plan(mind, k, sampled, stream), mind.own, mind.values
    key, spread = (own.keys[m], own.spread) if sampled else (np.uint64(0), 0.0)
    values.key[0] = key
    for h in range(values.spread.size):
        values.spread[h] = spread
    weights = own.outcomes.weights[:, :, m : m + (1 if sampled else 0)]
    return weighted_iteration(mind, FixedWeights(weights, key, spread))


@artificial.register(FixedWeights)
def fixed_artificial(weights: FixedWeights, mind: Any, h: int, b: int, k: int) -> tuple[float, float]:
    """The weight is the ridge, and the target the prior draw, the same that `new_values` makes from the key."""
    if k == 0:
        reseed(mind.own.scratch, key_of_block(weights.key, mind.memory.alive, h, b))
    return mind.prior.ridge, mind.prior.mean[h, b, k] + weights.spread * normal(mind.own.scratch)


@weight_of.register(FixedWeights)
def fixed_weight(weights: FixedWeights, outcomes: Outcomes, h: int, e: int) -> float:
    """The sum of the weights, or the number of copies for the posterior mean."""
    weight: float = weights.weights[h, e, 0] if weights.weights.shape[2] > 0 else outcomes.times[h, e]
    return weight


@add_episode.register(WeightedMind)
def weighted_add(
    mind: Any, visited: Longs, actions: Longs, rewards: Floats, T: int, goes_on: bool, scratch: Words
) -> bool:
    """Count the transitions as BootstrapRLSVI does, and add weights of Exp(1), one for every member."""
    bootstrap_add(mind, visited, actions, rewards, T, goes_on, scratch)
    reseed(scratch, key_of_episode(mind))
    for h in range(T):
        total = mind.own.outcomes.weights[h, visited[h]]  # where its outcome is now
        for m in range(total.size):
            total[m] -= log(1.0 - uniform(scratch))
    return True


class WeightedLearner(BootstrapLearner):
    """A learner that stores distinct transitions with the sums of their weights."""

    def kept(self) -> dict[str, Any]:
        """Return the keys of the members."""
        return {"keys": self.mind.own.keys}
