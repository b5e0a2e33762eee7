"""Exact dynamic programming on a FiniteMDP: V*, Q*, the value of any policy, the optimal average reward."""

from typing import Any, NamedTuple

import numpy as np

from rlsvi.core.checks import positive, shown
from rlsvi.core.compile import Bools, Floats, Ints, Longs, compiled
from rlsvi.mdp.finite import FiniteMDP

ROUNDS = 1_000_000  # maximum number of iterations of relative value iteration


class Solution(NamedTuple):
    """Exact values. In absorbing states both are the terminal reward.

    Attributes
    ----------
    V
        Values of states, (H + 1, S), where V[H] is the terminal reward.
    Q
        Values of actions, (H, S, A), -inf if illegal.

    Examples
    --------
    >>> import rlsvi
    >>> solution = rlsvi.mdp.backward_induction(rlsvi.mdp.chain(4))
    >>> solution.V.shape, solution.Q.shape
    ((4, 4), (3, 4, 2))
    """

    V: Floats
    Q: Floats

    @property
    def policy(self) -> Bools:
        """The actions that are optimal up to rounding, (H, S, A)."""
        best = self.Q.max(axis=2, keepdims=True)
        optimal: Bools = self.Q >= best - 1e-12 * np.maximum(np.abs(best), 1.0)
        return optimal


def backward_induction(mdp: FiniteMDP) -> Solution:
    """Compute `V*_h(s) = max_a Q*_h(s, a)` and `Q*_h(s, a) = E[r_h + V*_{h+1}(s_{h+1})]`.

    Parameters
    ----------
    mdp
        The MDP.

    Examples
    --------
    >>> import rlsvi
    >>> solution = rlsvi.mdp.backward_induction(rlsvi.mdp.deep_sea(10))
    >>> round(float(solution.V[0, 0]), 2)
    0.99
    """
    t = check_mdp(mdp).table
    V, Q = np.empty((t.horizon + 1, t.states)), np.empty((t.horizon, t.states, t.actions))
    V[-1] = t.terminal
    for h in reversed(range(t.horizon)):
        Q[h] = np.where(t.legal[h % len(t.legal)], _lookahead(mdp, h, V[h + 1]), -np.inf)
        Q[h, t.absorbing] = t.terminal[t.absorbing, None]
        V[h] = Q[h].max(axis=1)
    return Solution(V, Q)


def myopic_values(mdp: FiniteMDP) -> Floats:
    """Return the expected immediate reward of every period, state and action, (H, S, A), -inf if illegal.

    It includes the terminal reward, which is paid with the last step, if the step may end the episode.

    Parameters
    ----------
    mdp
        The MDP.

    Returns
    -------
    Floats
        (H, S, A), -inf if illegal.

    Examples
    --------
    >>> import rlsvi
    >>> rlsvi.mdp.myopic_values(rlsvi.mdp.river_swim(states=3, horizon=2))[0].round(3).tolist()
    [[0.005, 0.0], [0.0, 0.0], [0.0, 1.0]]
    """
    t = check_mdp(mdp).table
    Q = np.empty((t.horizon, t.states, t.actions))
    for h in range(t.horizon):
        ends = t.absorbing if h + 1 < t.horizon else np.ones(t.states, dtype=bool)
        value = _lookahead(mdp, h, np.where(ends, t.terminal, 0.0))
        Q[h] = np.where(t.legal[h % len(t.legal)], value, -np.inf)
    Q[:, t.absorbing] = t.terminal[t.absorbing, None]
    return Q


def evaluate(mdp: FiniteMDP, policy: Floats) -> Floats:
    """Return the value of a policy.

    Parameters
    ----------
    mdp
        The MDP.
    policy
        Actions, (H, S), or their probabilities, (H, S, A).

    Returns
    -------
    Floats
        `V^mu`, (H + 1, S).

    Examples
    --------
    Always to the right, on a chain where that always succeeds:

    >>> import numpy as np, rlsvi
    >>> mdp = rlsvi.mdp.chain(4, deterministic=True)
    >>> rlsvi.mdp.evaluate(mdp, np.ones((3, 4), int))[0].tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    t = check_mdp(mdp).table
    try:
        mu = np.asarray(policy)
    except ValueError:  # rows of different lengths
        mu = np.array(None)
    if mu.dtype.kind not in "fiub":
        raise ValueError(f"policy must be actions or probabilities, got {shown(policy)}")
    if mu.shape == (t.horizon, t.states) and np.issubdtype(mu.dtype, np.integer):
        if mu.min() < 0 or mu.max() >= t.actions:
            raise ValueError(f"policy must hold actions 0..{t.actions - 1}")
        mu = np.eye(t.actions)[mu]
    if mu.shape != (t.horizon, t.states, t.actions):
        raise ValueError(
            f"policy must be integers {(t.horizon, t.states)} or probabilities "
            f"{(t.horizon, t.states, t.actions)}, got shape {mu.shape}"
        )
    acting = mu[:, ~t.absorbing]
    if not (acting >= 0).all() or (np.abs(acting.sum(axis=2) - 1) > 1e-9).any():
        raise ValueError("policy must hold probabilities that sum to one over the actions")
    if (acting > 0)[np.broadcast_to(~t.legal, mu.shape)[:, ~t.absorbing]].any():
        raise ValueError("policy takes an action that is not legal: mask it out")
    V = np.empty((t.horizon + 1, t.states))
    V[-1] = t.terminal
    for h in reversed(range(t.horizon)):
        value = (mu[h] * _lookahead(mdp, h, V[h + 1])).sum(axis=1)
        V[h] = np.where(t.absorbing, t.terminal, value)
    return V


def check_mdp(mdp: Any) -> FiniteMDP:
    """Return `mdp` if it is a FiniteMDP."""
    if not isinstance(mdp, FiniteMDP):
        raise TypeError(f"mdp must be a FiniteMDP, such as rlsvi.mdp.chain(), got {shown(mdp)}")
    return mdp


def check_alike(mdp: FiniteMDP) -> None:
    """Raise an error if an MDP cannot be played forever because its periods differ."""
    if check_mdp(mdp).table.per_period or len(mdp.table.legal) > 1:
        raise ValueError(f"{mdp.name} has periods that differ: only one whose periods are all alike has no end")


def average_reward(mdp: FiniteMDP, tolerance: float = 1e-10) -> float:
    """Return the largest average reward per step of an MDP without end whose states all reach each other.

    This is relative value iteration, made aperiodic by staying in place half of the time (Puterman 1994, section
    8.5). The increments of all states enclose the answer.

    Parameters
    ----------
    mdp
        The MDP. Its horizon does not count.
    tolerance
        How accurate the answer is.

    Examples
    --------
    >>> import rlsvi
    >>> round(rlsvi.mdp.average_reward(rlsvi.mdp.river_swim()), 3)
    0.429
    """
    check_alike(mdp)
    if positive("tolerance", tolerance) < 1e-14:
        raise ValueError(f"tolerance must be at least 1e-14, the rounding, got {tolerance!r}")
    t = mdp.table
    if t.absorbing.any():
        raise ValueError(f"{mdp.name} has absorbing states, where episodes end: give an MDP without them")
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


def _lookahead(mdp: FiniteMDP, h: int, V: Floats) -> Floats:
    """Return E[r_h + V(s_{h+1})] for every state and action; 0 for rows without successors."""
    t = mdp.table
    rows = t.states * t.actions
    first = h * rows if t.per_period else 0
    value = np.empty(rows)
    indptr, reward = t.indptr[first : first + rows + 1], t.expected[first : first + rows]
    _expect(indptr, t.successor, t.probability, reward, V, value)
    return value.reshape(t.states, t.actions)


@compiled
def _expect(indptr: Longs, successor: Ints, probability: Floats, reward: Floats, V: Floats, value: Floats) -> None:
    """Set value[i] to reward[i] + sum of probability[j] V[successor[j]], for j = indptr[i] .. indptr[i + 1] - 1.

    SciPy's sparse product fuses multiplications and additions on some processors, which changes the last bit.
    """
    for i in range(value.size):
        following = 0.0
        for j in range(indptr[i], indptr[i + 1]):
            following += probability[j] * V[successor[j]]
        value[i] = reward[i] + following
