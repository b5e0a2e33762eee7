"""Deep sea: a single path of N moves to the right, each with a small cost, leads to the treasure.

The hard-exploration problem of the behaviour suite for reinforcement learning (Osband et al. 2020): rewards
lead away from the treasure, and without deep exploration it takes about 2^N episodes to find it.
"""

import numpy as np

from rlsvi.core.checks import finite, flag, shaped, whole
from rlsvi.core.random import Seed, sequence
from rlsvi.mdp.finite import FiniteMDP, Successors


def deep_sea(
    size: int = 10,
    *,
    stochastic: bool = False,
    move_cost: float = 0.01,
    randomize_actions: bool = True,
    seed: Seed = 0,
) -> FiniteMDP:
    """An N x N grid, descended row by row from (0, 0). The state is row * N + column, and N * N is the end.

    Right costs move_cost / N and, in the last column, finds the treasure of 1. If stochastic, right fails with
    probability 1/N and the diver sinks straight down; the two corners at the bottom add N(0, 1) noise.

    Parameters
    ----------
    size : N, also the number of steps per episode.
    stochastic : whether moves fail and rewards are noisy.
    move_cost : total cost of the N moves to the right.
    randomize_actions : draw for each cell which of the two actions is right; otherwise action 1 is, everywhere.
    seed : seed of that draw.
    """
    N = whole("size", size, 1, 10**4)
    shaped("move_cost", finite("move_cost", move_cost), ())
    flag("stochastic", stochastic)
    right = np.ones((N, N), dtype=int)
    if flag("randomize_actions", randomize_actions):
        right = np.random.default_rng(sequence(seed)).integers(2, size=(N, N))

    def successors(s: int, a: int) -> Successors:
        row, column = divmod(s, N)
        if row == N:
            return []
        goes_right = a == right[row, column]
        reward = goes_right * (float(column == N - 1) - move_cost / N)
        fails = 1 / N if stochastic and goes_right else 0.0
        reached = min(column + 1, N - 1) if goes_right else max(column - 1, 0)
        odds: dict[int, float] = {}
        for p, next_column in ((1 - fails, reached), (fails, column)):
            next_state = (row + 1) * N + next_column if row + 1 < N else N * N
            odds[next_state] = odds.get(next_state, 0.0) + p
        return [(p, next_state, reward) for next_state, p in odds.items() if p > 0]

    corners = {(N - 1) * N, N * N - 1} if stochastic else set()
    std = [float(s in corners) for s in range(N * N) for a in range(2) for _ in successors(s, a)]
    return FiniteMDP.from_function(
        successors,
        horizon=N,
        states=N * N + 1,
        actions=2,
        start=np.arange(N * N + 1) == 0,
        absorbing=np.arange(N * N + 1) == N * N,
        rewards="gaussian" if stochastic else "deterministic",
        reward_std=np.array(std),
        name=f"{'stochastic ' if stochastic else ''}deep sea of size {N}",
    )
