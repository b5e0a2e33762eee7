"""A finite MDP in compiled code: its arrays, and how to draw from them."""

from typing import NamedTuple

from rlsvi.core.compile import Bools, Floats, Ints, Longs, Words, compiled
from rlsvi.core.random import normal, pick, uniform

DETERMINISTIC, BERNOULLI, GAUSSIAN = 0, 1, 2


class Table(NamedTuple):
    """The arrays of a FiniteMDP in the form that compiled code uses. A row is (period, state, action)."""

    horizon: int
    states: int
    actions: int
    per_period: bool  # otherwise all periods share the rows of period 0
    indptr: Longs  # successors of row i: indptr[i] .. indptr[i + 1]
    successor: Ints
    probability: Floats
    reward: Floats  # mean reward of each successor
    std: Floats  # its standard deviation (Gaussian rewards)
    noise: int
    low: float  # the two values of Bernoulli rewards
    high: float
    expected: Floats  # mean reward of each row
    legal: Bools  # (periods or 1, states, actions)
    absorbing: Bools
    pays_terminal: bool
    terminal: Floats
    start: Floats


@compiled
def row_of(t: Table, h: int, s: int, a: int) -> int:
    """Return the row of a period, state and action."""
    return ((h if t.per_period else 0) * t.states + s) * t.actions + a


@compiled
def mask_of(t: Table, h: int) -> int:
    """Return the index i such that `t.legal[i]` is the action mask of period h."""
    return h if t.legal.shape[0] > 1 else 0


@compiled
def _reward(t: Table, mean: float, std: float, state: Words) -> float:
    if t.noise == BERNOULLI:
        return t.high if uniform(state) * (t.high - t.low) < mean - t.low else t.low
    if t.noise == GAUSSIAN:
        return mean + std * normal(state)
    return mean


@compiled
def first_state(t: Table, state: Words) -> int:
    """Draw s_0, using one random number."""
    return pick(state, t.start)


@compiled
def step(t: Table, h: int, s: int, a: int, state: Words) -> tuple[int, float]:
    """Draw s_{h+1}, using one random number whatever the probabilities are, and then r_h."""
    row = row_of(t, h, s, a)
    begin, end = t.indptr[row], t.indptr[row + 1]
    i = begin + pick(state, t.probability[begin:end])
    return t.successor[i], _reward(t, t.reward[i], t.std[i], state)


@compiled
def terminal_reward(t: Table, s: int, state: Words) -> float:
    """Draw r_H, the reward of the last state."""
    return _reward(t, t.terminal[s], 0.0, state) if t.pays_terminal else 0.0


@compiled
def transition(t: Table, h: int, last: bool, s: int, a: int, state: Words) -> tuple[int, float, bool]:
    """Draw s_{h+1} and r_h, including r_H if the episode ends there, and return whether it does.

    It ends in an absorbing state, and in any case if this period is the `last`.
    """
    following, reward = step(t, h, s, a, state)
    ended = last or t.absorbing[following]
    if ended:
        reward += terminal_reward(t, following, state)
    return following, reward, ended
