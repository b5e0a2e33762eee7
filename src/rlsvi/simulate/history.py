"""What happened in each episode of a run."""

from typing import NamedTuple

import numpy as np

from rlsvi.core.checks import fits, shown
from rlsvi.core.compile import Floats, Ints


class Trace(NamedTuple):
    """All steps, as arrays of shape (episodes, H); -1, or NaN for rewards, after the end of an episode."""

    states: Ints
    actions: Ints
    rewards: Floats


class History(NamedTuple):
    """The results of each episode.

    reward : the sum of its rewards.
    regret : expected regret V*_0(s_0) - V^mu_0(s_0) of the policy mu it was played with; NaN if not requested.
    realised : realised regret V*_0(s_0) - reward.
    path_regret : sum over its steps of V*_h(s_h) - sum_a mu(a | s_h) Q*_h(s_h, a), the cost of mu in the states
        visited. Its expectation is `regret`, which is slow to compute if a random policy reaches many states.
    """

    reward: Floats
    regret: Floats
    realised: Floats
    path_regret: Floats
    trace: Trace


def blank_history(episodes: int, horizon: int) -> History:
    """Return arrays for the history; without a trace if `horizon` is 0."""
    fits(f"{shown(episodes)} episodes", episodes * (4 + 2 * horizon), "learn fewer, or without trace")
    shape = (episodes if horizon else 0), horizon
    trace = Trace(np.full(shape, -1, np.int32), np.full(shape, -1, np.int32), np.full(shape, np.nan))
    nan = np.full((3, episodes), np.nan)
    return History(np.zeros(episodes), nan[0], nan[1], nan[2], trace)


def part_of(history: History, now: slice) -> History:
    """Return some episodes of a history."""
    trace = Trace(history.trace.states[now], history.trace.actions[now], history.trace.rewards[now])
    reward, regret, realised, path_regret, _ = history
    return History(reward[now], regret[now], realised[now], path_regret[now], trace)
