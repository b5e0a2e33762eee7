"""The optimal average reward of an MDP that is played for ever."""

import numpy as np

from rlsvi.mdp.finite import FiniteMDP

ROUNDS = 1_000_000


def check_alike(mdp: FiniteMDP) -> None:
    """Refuse an MDP that cannot be played for ever, because its periods differ."""
    if mdp.table.per_period or len(mdp.table.legal) > 1:
        raise ValueError(f"{mdp.name} has periods that differ: only one whose periods are all alike has no end")


def average_reward(mdp: FiniteMDP, tolerance: float = 1e-10) -> float:
    """The largest average reward a step of an MDP without end, all states of which can be reached from all others.

    Relative value iteration, made aperiodic by staying in place half of the time (Puterman 1994, section 8.5). The
    increments of all states enclose the answer, which is accurate to `tolerance`.
    """
    check_alike(mdp)
    t = mdp.table
    if t.absorbing.any():
        raise ValueError(f"{mdp.name} has absorbing states: episodes end there, and are no life without end")
    legal, rows = t.legal[0], np.repeat(np.arange(t.states * t.actions), np.diff(t.indptr))
    V = np.zeros(t.states)
    for _ in range(ROUNDS):
        expected = np.bincount(rows, weights=t.probability * V[t.successor], minlength=t.states * t.actions)
        Q = np.where(legal, (t.expected + expected).reshape(legal.shape), -np.inf)
        change = Q.max(axis=1) - V
        if np.ptp(change) < tolerance:
            return float((change.max() + change.min()) / 2)
        V = V + change / 2
        V -= V[0]
    raise ArithmeticError(f"the average reward of {mdp.name} was not found in {ROUNDS} rounds: is it connected?")
