"""The mind of incremental RLSVI: Sigma^-1 and y, updated with the last episode only."""

from typing import NamedTuple

from rlsvi.agents.contract import EPISODES
from rlsvi.agents.explore import best_value
from rlsvi.agents.finite.memory import Memory
from rlsvi.agents.finite.mind import finite_is_full, finite_values
from rlsvi.agents.finite.value_iteration import Prior, Values, new_values, value_iteration
from rlsvi.agents.mind import Episode, Workspace, count, is_full, learn, plan, remember, values
from rlsvi.bases.basis import FeatureTable
from rlsvi.core.batched_cholesky import LANES, Lanes, regularise_four
from rlsvi.core.cholesky import add_diagonal, rank_one, shrink
from rlsvi.core.compile import Floats, Ints, compiled
from rlsvi.core.regression import Factor, add
from rlsvi.mdp.table import Table, mask_of

LARGEST_TARGET = 1e150  # its square is finite
FADED = 1e100  # the standard deviation at which a weight is forgotten no further


class IncrementalMind(NamedTuple):
    """Like FiniteMind, but `factor` contains Sigma^-1 and `memory.reward` y, and no states are stored."""

    features: FeatureTable
    rows: Ints  # (H, S) or (H, 0); all -1
    memory: Memory
    factor: Factor
    prior: Prior
    values: Values
    x: Floats  # (d,) work array
    lanes: Lanes  # work arrays of `forget`
    keep_prior: bool
    nu: Floats  # (n,) step sizes of the next episodes
    first: int  # number of episodes learned from before these


plan.register(IncrementalMind)(value_iteration)
values.register(IncrementalMind)(finite_values)
is_full.register(IncrementalMind)(finite_is_full)


@learn.register(IncrementalMind)
def incremental_learn(mind: IncrementalMind, table: Table, T: int, work: Workspace) -> bool:
    """Forget, then add the steps of the episode. `work.rewards` is overwritten with the targets."""
    for h in range(1, T):
        s, legal = work.states[h], table.legal[mask_of(table, h)]
        finite_values(mind, h, s, work.Q, work.scratch)
        work.rewards[h - 1] += best_value(work.Q, legal[s])
    if not are_targets(work.rewards[:T]) or not forget(mind):
        return False
    phi, block = mind.features.phi, mind.features.block
    for h in range(T):
        s, a = work.states[h], work.actions[h]
        row = phi[h if phi.shape[0] > 1 else 0, s, a]
        if not add_step(mind.memory, mind.factor, h, block[s, a], row, work.rewards[h], mind.x):
            return False
    return count(mind.memory.counters, T)


@remember.register(IncrementalMind)
def incremental_remember(mind: IncrementalMind, episode: Episode, work: Workspace) -> bool:
    """The same for an episode played elsewhere; `episode.rewards` is overwritten with the targets."""
    T = episode.actions.size
    for h in range(1, episode.rows.size):
        phi, block = episode.phi[h], episode.block[h]
        new_values(mind.memory.alive, mind.prior, mind.values, h, block, phi, work.Q, work.scratch)
        episode.rewards[h - 1] += best_value(work.Q, episode.legal[h])
    if not are_targets(episode.rewards) or not forget(mind):
        return False
    for h in range(T):
        a = episode.actions[h]
        phi, block = episode.phi[h, a], episode.block[h, a]
        if not add_step(mind.memory, mind.factor, h, block, phi, episode.rewards[h], mind.x):
            return False
    return count(mind.memory.counters, T)


@compiled
def are_targets(y: Floats) -> bool:
    """Return whether all numbers are valid targets."""
    fine = True
    for k in range(y.size):
        fine = fine and abs(y[k]) < LARGEST_TARGET
    return fine


@compiled
def forget(mind: IncrementalMind) -> bool:
    """Multiply Sigma^-1 and y by 1 - nu, and restore the prior's part if it is kept.

    `memory.reward` contains y without ridge prior_mean. Returns False if a factor failed.
    """
    memory, factor, prior = mind.memory, mind.factor, mind.prior
    nu = mind.nu[memory.counters[EPISODES] - mind.first]
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
            if not mind.keep_prior:
                for k in range(y.size):
                    y[k] -= nu * prior.ridge * mean[k]
                    memory.squares[h] -= nu * prior.ridge * mean[k] * mean[k]
                if factor.inv[h, b, 0] < FADED:
                    shrink(factor.U[h, b], factor.inv[h, b], 1.0 - nu)
    return not mind.keep_prior or regularise(memory, factor, 1.0 - nu, nu * prior.ridge, mind.lanes, mind.x)


@compiled
def regularise(memory: Memory, factor: Factor, by: float, amount: float, lanes: Lanes, x: Floats) -> bool:
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
