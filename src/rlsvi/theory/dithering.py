"""Example 1: the exact cost of dithering on the chain.

Until the reward is first seen, all values are zero and actions uniform. An episode sees it with probability p = p*
2^-H, where p* = (1 - 1/N)^H is the value of the optimal policy and H = N - 1. The first reward therefore takes 1 /
p episodes on average, each of which costs p* - p: in total 2^(N-1) - 1, whatever the basis and the dithering.
"""

import numpy as np
from numpy.typing import ArrayLike

from rlsvi.core.checks import finite, shown, whole
from rlsvi.core.compile import Floats


def dithering_chance(length: int) -> float:
    """Return p, the probability that uniform actions reach the end of a chain of `length` states in an episode."""
    N = whole("length", length, 2, 1000)
    return float((0.5 * (1 - 1 / N)) ** (N - 1))


def dithering_regret(length: int, episodes: ArrayLike = np.inf) -> Floats:
    """Return a lower bound on the expected regret of dithering in `episodes` episodes; 2^(N-1) - 1 in the limit.

    It is the exact regret up to the first reward: (2^(N-1) - 1) (1 - (1 - p)^episodes).
    """
    p = dithering_chance(length)
    try:
        L = np.asarray(episodes, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"episodes must be a number or an array of numbers, got {shown(episodes)}") from None
    finite("episodes", L[np.isfinite(L)])
    if np.isnan(L).any() or (L < 0).any():
        raise ValueError("episodes must not be negative")
    return np.asarray(-np.expm1(L * np.log1p(-p)) * (2.0 ** (length - 1) - 1))
