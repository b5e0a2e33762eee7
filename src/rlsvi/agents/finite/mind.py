"""The mind of RLSVI and LSVI: all past episodes as sums, the posterior, and the value function acted on."""

from typing import Any, NamedTuple

from rlsvi.agents.finite.memory import Memory, add_state, add_transitions
from rlsvi.agents.finite.value_iteration import Prior, Values, new_values, value_iteration
from rlsvi.agents.mind import Episode, Workspace, count, is_full, learn, only_best, plan, remember, values
from rlsvi.bases.basis import FeatureTable
from rlsvi.core.compile import Bools, Floats, Ints, Words, compiled, unsigned
from rlsvi.core.random import only_maximum
from rlsvi.core.regression import Factor
from rlsvi.mdp.table import Table, mask_of


class FiniteMind(NamedTuple):
    """A regression in every period, for finitely many states or for observations of any kind."""

    features: FeatureTable  # of finitely many states, otherwise empty
    rows: Ints  # (H, S) the row of a state in memory, or -1; (H, 0) for observations of any kind
    memory: Memory
    factor: Factor
    prior: Prior
    values: Values
    x: Floats  # (d,) work array


plan.register(FiniteMind)(value_iteration)


@values.register(FiniteMind)
def finite_values(mind: Any, h: int, s: int, Q: Floats, scratch: Words) -> None:
    """Compute Q_h(s, .) for one of finitely many states, seen or unseen."""
    row = mind.rows[h, s]
    if row >= 0:
        for a in range(Q.size):
            Q[a] = mind.values.Q[h, row * Q.size + a]
    else:
        phi, block = mind.features.phi, mind.features.block
        features = phi[h if phi.shape[0] > 1 else 0, s]
        new_values(mind.memory.alive, mind.prior, mind.values, h, block[s], features, Q, scratch)


@only_best.register(FiniteMind)
def finite_only_best(mind: Any, h: int, s: int, legal: Bools, Q: Floats, scratch: Words) -> int:
    """Return the unique best action, read directly from the values of a known state."""
    row = mind.rows[h, s]
    return only_maximum(mind.values.Q[h], unsigned(row) * unsigned(Q.size), legal) if row >= 0 else -1


@learn.register(FiniteMind)
def finite_learn(mind: FiniteMind, table: Table, T: int, work: Workspace) -> bool:
    """Add the states of the episode that are new, then add the episode to the sums."""
    known_rows(mind, table, T, work)
    added = add_transitions(mind, work.visited, work.actions, work.rewards, T, False)
    return added and count(mind.memory.counters, T)


@remember.register(FiniteMind)
def finite_remember(mind: FiniteMind, episode: Episode, work: Workspace) -> bool:
    """The same for an episode played elsewhere."""
    episode_rows(mind, episode, work)
    T = episode.actions.size
    added = add_transitions(mind, work.visited, episode.actions, episode.rewards, T, episode.goes_on)
    return added and count(mind.memory.counters, T)


@is_full.register(FiniteMind)
def finite_is_full(mind: Any, episodes: int) -> bool:
    """Return whether room may be short; an episode adds at most a state and a sum per period."""
    memory, n = mind.memory, episodes
    for h in range(memory.states.size):
        if memory.states[h] + n > memory.sum_head.shape[1] or memory.sums[h] + n > memory.into.shape[1]:
            return True
    return False


@compiled
def known_rows(mind: Any, table: Table, T: int, work: Workspace) -> None:
    """Set `work.visited` to the rows of the T states in `work`, adding those that are new."""
    for h in range(T):
        s, legal = work.states[h], table.legal[mask_of(table, h)]
        work.visited[h] = known_row(mind, h, s, legal[s])


@compiled
def known_row(mind: Any, h: int, s: int, legal: Bools) -> int:
    """Return the row of one of finitely many states, adding it if it is new."""
    if mind.rows[h, s] < 0:
        phi, block = mind.features.phi, mind.features.block
        mind.rows[h, s] = add_state(mind.memory, h, phi[h if phi.shape[0] > 1 else 0, s], block[s], legal)
    row: int = mind.rows[h, s]
    return row


@compiled
def episode_rows(mind: Any, episode: Episode, work: Workspace) -> None:
    """The same for an episode played elsewhere."""
    for h in range(episode.rows.size):
        row = episode.rows[h]
        if row < 0:
            row = add_state(mind.memory, h, episode.phi[h], episode.block[h], episode.legal[h])
            if mind.rows.shape[1] > 0:
                mind.rows[h, episode.states[h]] = row
        work.visited[h] = row
