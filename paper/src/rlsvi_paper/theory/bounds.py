"""Bounds of regret: that of Theorem 1, with the parameters it requires."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlsvi.agents import RLSVI
from rlsvi.bases import Tabular
from rlsvi.core.compile import Floats

STEP = math.pi / 8  # the least variance of a normal that is optimistic for all variables in [0, 1] of its mean


def theorem_parameters(states: int, horizon: int) -> tuple[float, float]:
    """Return the smallest lambda and sigma that Theorem 1 allows, for MDPs from the prior of `mdp.dirichlet`.

    lambda = max over (s, a, h) of 1'alpha_R + 1'alpha_P, which is S + 2 for weights of 1; sigma = sqrt(H^2 + 1).
    """
    return states + 2.0, math.sqrt(horizon**2 + 1)


def optimistic_parameters(
    states: int, horizon: int, *, alpha_P: ArrayLike = 1.0, alpha_R: ArrayLike = 1.0
) -> tuple[float, float]:
    """Return a lambda and a sigma that Lemma 2 needs, by the proof in docs/errata.md; smaller than Theorem 1's.

    sigma^2 = pi / 8 (1 + (H - 1)^2), and lambda sigma^2, the number of observations that the prior is worth, is
    the larger one of 1'alpha_R and 1'alpha_P, over all (s, a, h).

    Parameters
    ----------
    alpha_P, alpha_R
        Weights of next states, a number or (.., S) with any leading axes, and of rewards, (.., 2).
    """
    variance = STEP * (1 + (horizon - 1) ** 2)
    return float(max(_sums(alpha_P, states).max(), _sums(alpha_R, 2).max())) / variance, math.sqrt(variance)


def theorem_agent(states: int, horizon: int, **options: Any) -> RLSVI:
    """Return RLSVI with a table and the theorem's parameters."""
    lam, sigma = theorem_parameters(states, horizon)
    return RLSVI(lam=lam, sigma=sigma, basis=Tabular(), **options)


def regret_shape(states: int, actions: int, horizon: int, steps: ArrayLike) -> Floats:
    """Return sqrt(H^3 S A T), the bound of Theorem 1 without its constant and logarithms.

    Parameters
    ----------
    steps
        T, the number of episodes times H: a number or an array.
    """
    return np.sqrt(float(horizon) ** 3 * states * actions * np.asarray(steps, np.float64))


def proof_bound(states: int, actions: int, horizon: int, steps: ArrayLike) -> Floats:
    """Return the bound that the proof of Theorem 1 derives, with constant 1 for O(.) and weights of 1 everywhere.

    2 S A H + sum over (s, a, h) of K log(T + K) + H sqrt(S A H T log T), where K = alpha_R[0] + H 1'alpha_P.

    Parameters
    ----------
    steps
        T, the number of episodes times H: a number or an array.
    """
    pairs, K, T = states * actions * horizon, 1.0 + horizon * states, np.asarray(steps, np.float64)
    bound: Floats = 2 * pairs + pairs * K * np.log(T + K) + horizon * np.sqrt(pairs * T * np.log(T))
    return bound


def _sums(alpha: ArrayLike, n: int) -> Floats:
    """Return 1'alpha, over the last axis of n weights."""
    weights = np.asarray(alpha, np.float64)
    return np.asarray(n * weights if weights.ndim == 0 else weights.sum(axis=-1))
