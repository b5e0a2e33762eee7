"""The mind of EnsembleRLSVI with perturbed targets: RLSVI's, and the sums of every member's own noise.

The weights of member m are P^-1 (A'b + ridge mean + n_m), where n_m = ridge (theta0_m - mean) + sum_i phi_i w_im.
A member differs from the posterior mean in n_m alone, so that all share P, the features and the sums of rewards.
A block gets its prior draws theta0_m when it becomes live; until then, `new_values` makes the same ones from the
same key.
"""

from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.contract import EPISODES, STEPS
from rlsvi.agents.finite.memory import Memory, add_transitions
from rlsvi.agents.finite.mind import episode_rows, finite_is_full, finite_only_best, finite_values, known_rows
from rlsvi.agents.finite.value_iteration import (
    Prior,
    Values,
    clip_values,
    draw_sigma,
    key_of_block,
    no_bounds,
    value_iteration,
)
from rlsvi.agents.mind import (
    ANY,
    Episode,
    Workspace,
    count,
    is_full,
    learn,
    only_best,
    plan,
    plan_as,
    remember,
    values,
)
from rlsvi.bases.basis import FeatureTable
from rlsvi.core.compile import Floats, Ints, Longs, Words, compiled
from rlsvi.core.random import bits, normal, reseed, uniform
from rlsvi.core.regression import Factor
from rlsvi.mdp.table import Table


class EnsembleMind(NamedTuple):
    """Like FiniteMind, with M members."""

    features: FeatureTable
    rows: Ints  # (H, S) or (H, 0)
    memory: Memory
    factor: Factor
    prior: Prior
    values: Values
    x: Floats  # (d,) work array
    noise: Floats  # (H, B, M, d) n_m of the live blocks, otherwise 0
    keys: Words  # (M + 1,) identify the prior draw of each member, and the noise of all transitions
    begun: Longs  # (H,) number of live blocks that have their prior draws
    spread: float  # standard deviation of a prior draw


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


values.register(EnsembleMind)(finite_values)
only_best.register(EnsembleMind)(finite_only_best)
is_full.register(EnsembleMind)(finite_is_full)


@plan.register(EnsembleMind)
def plan_of_any_member(mind: EnsembleMind, sampled: bool, stream: Words) -> bool:
    """Value iteration for a member drawn uniformly, or for the posterior mean if not `sampled`."""
    return plan_of_member(mind, ANY, sampled, stream)


@plan_as.register(EnsembleMind)
def plan_of_member(mind: EnsembleMind, k: int, sampled: bool, stream: Words) -> bool:
    """The same for member k."""
    m = begin_plan(mind, k, sampled, stream)
    prior, noise = mind.prior, mind.noise[:, :, m : m + (1 if sampled else 0)]
    own = MemberPrior(prior.mean, prior.ridge, prior.sigma, mind.spread, noise)
    fine = value_iteration(Member(mind.memory, mind.factor, own, mind.values), False, stream)
    mind.values.key[0] = mind.keys[m] if sampled else np.uint64(0)
    return fine


@compiled
def begin_plan(mind: Any, k: int, sampled: bool, stream: Words) -> int:
    """Return the member to plan for, 0 for the mean. Draws the keys if nothing was learned yet."""
    if mind.memory.counters[STEPS] == 0:
        for i in range(mind.keys.size):
            mind.keys[i] = bits(stream)
    drawn = sampled and k == ANY
    return np.int64(uniform(stream) * (mind.keys.size - 1)) if drawn else max(k, 0)  # type: ignore[return-value]


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


@learn.register(EnsembleMind)
def ensemble_learn(mind: EnsembleMind, table: Table, T: int, work: Workspace) -> bool:
    """Add the episode as RLSVI does, and noise of its own for each transition and member."""
    known_rows(mind, table, T, work)
    begin_blocks(mind, work.scratch)
    add_noise(mind, work.visited, work.actions, T, work.scratch)
    added = add_transitions(mind, work.visited, work.actions, work.rewards, T, False)
    return added and count(mind.memory.counters, T)


@remember.register(EnsembleMind)
def ensemble_remember(mind: EnsembleMind, episode: Episode, work: Workspace) -> bool:
    """The same for an episode played elsewhere."""
    episode_rows(mind, episode, work)
    T = episode.actions.size
    begin_blocks(mind, work.scratch)
    add_noise(mind, work.visited, episode.actions, T, work.scratch)
    added = add_transitions(mind, work.visited, episode.actions, episode.rewards, T, episode.goes_on)
    return added and count(mind.memory.counters, T)


@compiled
def begin_blocks(mind: EnsembleMind, scratch: Words) -> None:
    """n_m = ridge (theta0_m - mean) for all blocks that have become live."""
    memory, M = mind.memory, mind.noise.shape[2]
    for h in range(memory.lives.size):
        for i in range(mind.begun[h], memory.lives[h]):
            b = memory.live[h, i]
            for m in range(M):
                reseed(scratch, key_of_block(mind.keys[m], memory.alive, h, b))
                for k in range(mind.x.size):
                    mind.noise[h, b, m, k] = mind.prior.ridge * (mind.spread * normal(scratch))
        mind.begun[h] = memory.lives[h]


@compiled
def add_noise(mind: EnsembleMind, visited: Longs, actions: Longs, T: int, scratch: Words) -> None:
    """n_m += phi w_m for each of T steps through known states, with w_m ~ N(0, sigma^2) for every member."""
    memory, x, M = mind.memory, mind.x, mind.noise.shape[2]
    A = memory.block.shape[1] // memory.sum_head.shape[1]
    reseed(scratch, key_of_episode(mind))
    for h in range(T):
        pair = visited[h] * A + actions[h]
        total = mind.noise[h, memory.block[h, pair]]
        for k in range(x.size):
            x[k] = memory.phi[h, k, pair]
        for m in range(M):
            w = mind.prior.sigma * normal(scratch)
            for k in range(x.size):
                total[m, k] += w * x[k]


@compiled
def key_of_episode(mind: Any) -> np.uint64:
    """Return the key of the noise, or of the weights, of the next episode to be learned."""
    number = np.uint64(mind.memory.counters[EPISODES] + 1)
    return mind.keys[mind.keys.size - 1] ^ (number * np.uint64(0x9E3779B97F4A7C15))  # type: ignore[no-any-return]
