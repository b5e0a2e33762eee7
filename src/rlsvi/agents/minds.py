"""What an agent knows, as the fused loop takes it: one of four kinds, each with its way to plan, value and learn.

Every function takes all four, of which three are None, and asks `is None` of an argument alone: the compiler then
leaves out what does not apply, and makes one code for each kind of agent.
"""

from typing import NamedTuple

import numpy as np

from rlsvi.agents.bandits.contextual import Bandit, Draw, bandit_learns, bandit_values, new_draw
from rlsvi.agents.bandits.thompson import Counts, count_rewards, sample_counts
from rlsvi.agents.finite.incremental import add_table_episode
from rlsvi.agents.finite.learner import Finite, table_row, table_values
from rlsvi.agents.finite.memory import add_episode, is_full
from rlsvi.agents.finite.value_iteration import value_iteration
from rlsvi.bases.basis import FeatureTable
from rlsvi.core.compile import Floats, Longs, Words, compiled
from rlsvi.core.side_by_side import Lanes, new_lanes
from rlsvi.mdp.table import Table, mask_of

BATCH = -1.0  # no step size: all data are regressed on anew


class Tabled(NamedTuple):
    """A contextual bandit of finitely many states."""

    features: FeatureTable
    bandit: Bandit
    sample: Draw


class Work(NamedTuple):
    """Room for the compiled loop to work in."""

    states: Longs  # (H,) the episode
    actions: Longs  # (H,)
    rewards: Floats  # (H,)
    chances: Floats  # (H, A) the probabilities its actions were drawn with
    visited: Longs  # (H,) rows of the states in memory
    Q: Floats  # (A,)
    x: Floats  # (d,)
    lanes: Lanes  # room for an incremental learner to forget in
    nature: Words  # the MDP's random stream
    scratch: Words
    kept: Words  # the agent's random streams before the episode
    mass: Floats  # (2, S)
    front: Longs  # (2, S)


def new_work(H: int, S: int, A: int, d: int, lanes: Lanes | None = None) -> Work:
    """Room for a task of this size."""
    return Work(
        states=np.empty(H, np.int64),
        actions=np.empty(H, np.int64),
        rewards=np.empty(H),
        chances=np.empty((H, A)),
        visited=np.empty(H, np.int64),
        Q=np.empty(A),
        x=np.empty(d),
        lanes=new_lanes(1) if lanes is None else lanes,
        nature=np.empty(4, np.uint64),
        scratch=np.empty(4, np.uint64),
        kept=np.empty((4, 4), np.uint64),
        mass=np.zeros((2, S)),
        front=np.empty((2, S), np.int64),
    )


@compiled
def is_out_of_room(learner: Finite | None) -> bool:
    """Whether one more episode might not fit."""
    if learner is not None:
        return is_full(learner.memory)
    return False


@compiled
def plan_episode(
    learner: Finite | None,
    bandit: Tabled | None,
    counts: Counts | None,
    known: Floats | None,
    sampled: bool,
    stream: Words,
) -> bool:
    """Sample what to act on. False when a weight is not a finite number."""
    if learner is not None:
        return value_iteration(learner.memory, learner.factor, learner.prior, learner.values, sampled, stream)
    if bandit is not None:
        new_draw(bandit.sample, sampled, stream)
    if counts is not None:
        sample_counts(counts, sampled, stream)
    return True


@compiled
def mind_values(
    learner: Finite | None,
    bandit: Tabled | None,
    counts: Counts | None,
    known: Floats | None,
    h: int,
    s: int,
    Q: Floats,
    scratch: Words,
) -> None:
    """What every action is worth in period h and state s."""
    if learner is not None:
        table_values(learner, h, s, Q, scratch)
    if bandit is not None:
        phi, block = bandit.features.phi, bandit.features.block
        features = phi[h if phi.shape[0] > 1 else 0, s]
        bandit_values(bandit.bandit, bandit.sample, h, block[s], features, Q, scratch)
    if counts is not None:
        for a in range(Q.size):
            Q[a] = counts.p[a]
    if known is not None:
        for a in range(Q.size):
            Q[a] = known[h, s, a]


@compiled
def learn_episode(
    table: Table,
    learner: Finite | None,
    bandit: Tabled | None,
    counts: Counts | None,
    known: Floats | None,
    T: int,
    nu: float,
    keep_prior: bool,
    work: Work,
) -> bool:
    """Learn from the episode of T steps in `work`. False when a factor failed, or a reward is no share of 1.

    nu : the step size of an incremental learner, or BATCH.
    """
    if learner is not None:
        if nu != BATCH:
            return add_table_episode(
                learner,
                table.legal,
                work.states,
                work.actions,
                work.rewards,
                T,
                nu,
                keep_prior,
                work.Q,
                work.scratch,
                work.lanes,
                work.x,
            )
        for h in range(T):
            s, legal = work.states[h], table.legal[mask_of(table, h)]
            work.visited[h] = table_row(learner, h, s, legal[s])
        return add_episode(
            learner.memory, learner.factor, work.visited, work.actions, work.rewards, T, False, work.x
        )
    if bandit is not None:
        phi, block = bandit.features.phi, bandit.features.block
        for h in range(T):
            s, a = work.states[h], work.actions[h]
            for k in range(work.x.size):
                work.x[k] = phi[h if phi.shape[0] > 1 else 0, s, a, k]
            if not bandit_learns(bandit.bandit, h, block[s, a], work.x, work.rewards[h]):
                return False
    if counts is not None:
        return count_rewards(counts.counts, work.actions, work.rewards, T)
    return True
