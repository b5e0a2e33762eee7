"""The chain of Example 1, where dithering needs 2^(N-1) episodes to see the only reward."""

import numpy as np

from rlsvi.core.checks import flag, whole
from rlsvi.mdp.finite import FiniteMDP

LEFT, RIGHT = 0, 1


def chain(length: int = 50, *, deterministic: bool = False) -> FiniteMDP:
    """States 1..N (here 0..N-1), N - 1 steps per episode from the left end, reward 1 for ending at the right.

    Left always succeeds; right succeeds with probability 1 - 1/N and goes left otherwise. Walls block moves.

    deterministic : right always succeeds. Q* is then 0 or 1, as a footnote of section 6.1.2 says.
    """
    N = whole("length", length, 2, 10**6)
    certain = flag("deterministic", deterministic)

    def successors(s: int, a: int) -> list[tuple[float, int, float]]:
        left, right = max(s - 1, 0), min(s + 1, N - 1)
        if a == LEFT or certain:
            return [(1.0, left if a == LEFT else right, 0.0)]
        return [(1 - 1 / N, right, 0.0), (1 / N, left, 0.0)]

    return FiniteMDP.from_function(
        successors,
        horizon=N - 1,
        states=N,
        actions=2,
        start=np.arange(N) == 0,
        terminal_reward=(np.arange(N) == N - 1).astype(np.float64),
        name=f"{'deterministic ' if certain else ''}chain of length {N}",
    )
