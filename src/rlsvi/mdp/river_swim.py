"""River swim: a small reward downstream, a large one upstream, and a current in between."""

import numpy as np

from rlsvi.core.checks import whole
from rlsvi.mdp.finite import FiniteMDP, Successors

LEFT, RIGHT = 0, 1


def river_swim(states: int = 6, horizon: int = 20) -> FiniteMDP:
    """The river of Strehl and Littman (2008), with rewards scaled to 1, starting in the first state.

    Left, with the current, always succeeds. Right, against it, advances with probability 0.35, stays with 0.6
    and goes back with 0.05; in the first state it advances with 0.6 or stays, and in the last it stays with
    0.6 or goes back. Left pays 0.005 in the first state, and right 1 in the last.
    """
    last = whole("states", states, 2, 10**7) - 1

    def successors(s: int, a: int) -> Successors:
        if a == LEFT:
            return [(1.0, max(s - 1, 0), 0.005 if s == 0 else 0.0)]
        if s == 0:
            return [(0.4, 0, 0.0), (0.6, 1, 0.0)]
        if s == last:
            return [(0.4, last - 1, 1.0), (0.6, last, 1.0)]
        return [(0.05, s - 1, 0.0), (0.6, s, 0.0), (0.35, s + 1, 0.0)]

    return FiniteMDP.from_function(
        successors,
        horizon=horizon,
        states=last + 1,
        actions=2,
        start=np.arange(last + 1) == 0,
        name=f"river swim of {last + 1} states",
    )
