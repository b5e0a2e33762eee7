"""Bounds of regret: that of Theorem 1, with the parameters it requires, and that of docs/theorem.md."""

import math

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


def theorem_agent(states: int, horizon: int, seed: int = 0) -> RLSVI:
    """Return RLSVI with a table and the theorem's parameters."""
    lam, sigma = theorem_parameters(states, horizon)
    return RLSVI(lam=lam, sigma=sigma, basis=Tabular(), seed=seed)


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


def regret_bound(
    states: int, actions: int, horizon: int, episodes: ArrayLike, *, lam: float, sigma: float
) -> tuple[Floats, Floats]:
    """Return the two parts of the bound in docs/theorem.md: what noise costs, and what the prior does.

    It holds for lambda sigma^2 and sigma^2 of at least those of `optimistic_parameters`, Theorem 1's among them.

    Parameters
    ----------
    episodes
        L: a number or an array.
    """
    L, H, kappa = np.asarray(episodes, np.float64), horizon, lam * sigma**2
    visits = visits_bound(states * actions, L, kappa)
    noise = sigma * np.sqrt(H * visits * H * L * square_bound(states * actions))
    deviation = np.sqrt(2 * np.log(states * L) / lam)  # of the least of S samples without data
    prior = 0.5 * kappa * visits * (H * (H + 1) + H * (H - 1) * deviation) + H * (H - 1) / (5 * lam**0.5)
    return noise, prior


def visits_bound(pairs: int, visits: ArrayLike, kappa: float) -> Floats:
    """Return a bound of the sum of 1 / (n + kappa) over so many visits to pairs, with n the earlier ones."""
    return np.asarray(pairs * (1 / kappa + np.log1p(np.asarray(visits, np.float64) / (kappa * pairs))))


def square_bound(n: int) -> float:
    """Return a bound of E[max(0, X_1, .., X_n)^2] for standard normals."""
    return 2 + 2 * math.log(n / 2)


def _sums(alpha: ArrayLike, n: int) -> Floats:
    """Return 1'alpha, over the last axis of n weights."""
    weights = np.asarray(alpha, np.float64)
    return np.asarray(n * weights if weights.ndim == 0 else weights.sum(axis=-1))
