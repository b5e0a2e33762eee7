"""Bounds of regret: that of Theorem 1, with the parameters it requires, and that of dithering in Example 1."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlsvi.agents import RLSVI
from rlsvi.bases import Tabular
from rlsvi.core.checks import finite, positive, shown, whole
from rlsvi.core.compile import Floats
from rlsvi.mdp.examples import weights_of

LARGEST_SIZE = 2**31 - 1  # states, actions and periods
STEP = math.pi / 8  # the least variance of a normal that is optimistic for all variables in [0, 1] of its mean


def theorem_parameters(
    states: int, horizon: int, *, alpha_P: ArrayLike = 1.0, alpha_R: ArrayLike = 1.0
) -> tuple[float, float]:
    """Return the smallest lambda and sigma that Theorem 1 allows, for MDPs from the prior of `mdp.dirichlet`.

    lambda = max over (s, a, h) of 1'alpha_R + 1'alpha_P, sigma = sqrt(H^2 + 1).

    Parameters
    ----------
    states
        S, the number of states.
    horizon
        H, the number of periods.
    alpha_P
        Weights of next states: a number, or (.., S) with any leading axes.
    alpha_R
        Weights of rewards: a number, or (.., 2).

    Returns
    -------
    tuple
        lambda and sigma.

    Examples
    --------
    >>> from rlsvi_paper.theory.bounds import theorem_parameters
    >>> lam, sigma = theorem_parameters(states=5, horizon=3)
    >>> lam, round(sigma, 3)
    (7.0, 3.162)
    """
    total = _sums("alpha_P", alpha_P, whole("states", states, 1, LARGEST_SIZE)), _sums("alpha_R", alpha_R, 2)
    try:
        lam = np.max(np.add(*total))
    except ValueError:
        raise ValueError("alpha_P and alpha_R must have the same leading axes, or none") from None
    return float(lam), math.sqrt(whole("horizon", horizon, 1, LARGEST_SIZE) ** 2 + 1)


def optimistic_parameters(
    states: int, horizon: int, *, alpha_P: ArrayLike = 1.0, alpha_R: ArrayLike = 1.0
) -> tuple[float, float]:
    """Return a lambda and a sigma that Lemma 2 needs, by the proof in docs/errata.md; smaller than Theorem 1's.

    sigma^2 = pi / 8 (1 + (H - 1)^2), and lambda sigma^2, the number of observations that the prior is worth, is
    the larger one of 1'alpha_R and 1'alpha_P, over all (s, a, h). The weights are as for `theorem_parameters`.

    Parameters
    ----------
    states
        S, the number of states.
    horizon
        H, the number of periods.
    alpha_P, alpha_R
        The prior, as for `theorem_parameters`.

    Returns
    -------
    tuple
        lambda and sigma.

    Examples
    --------
    >>> from rlsvi_paper.theory.bounds import optimistic_parameters
    >>> [round(number, 3) for number in optimistic_parameters(states=5, horizon=3)]
    [2.546, 1.401]
    """
    total = _sums("alpha_P", alpha_P, whole("states", states, 1, LARGEST_SIZE)), _sums("alpha_R", alpha_R, 2)
    variance = STEP * (1 + (whole("horizon", horizon, 1, LARGEST_SIZE) - 1) ** 2)
    return float(max(part.max() for part in total)) / variance, math.sqrt(variance)


def theorem_agent(
    states: int, horizon: int, *, alpha_P: ArrayLike = 1.0, alpha_R: ArrayLike = 1.0, **options: Any
) -> RLSVI:
    """Return RLSVI with a table and the theorem's parameters.

    Parameters
    ----------
    states
        S, the number of states.
    horizon
        H, the number of periods.
    alpha_P, alpha_R
        The prior, as for `theorem_parameters`.
    **options
        Other arguments of RLSVI, such as `seed`.

    Returns
    -------
    RLSVI
        The agent.

    Examples
    --------
    >>> from rlsvi_paper.theory.bounds import theorem_agent
    >>> theorem_agent(states=5, horizon=3, seed=0).lam
    7.0
    """
    lam, sigma = theorem_parameters(states, horizon, alpha_P=alpha_P, alpha_R=alpha_R)
    return RLSVI(lam=lam, sigma=sigma, basis=Tabular(), **options)


def regret_shape(states: int, actions: int, horizon: int, steps: ArrayLike) -> Floats:
    """Return sqrt(H^3 S A T), the bound of Theorem 1 without its constant and logarithms.

    Parameters
    ----------
    states
        S, the number of states.
    actions
        A, the number of actions.
    horizon
        H, the number of periods.
    steps
        T, the number of episodes times H: a number or an array.

    Returns
    -------
    Floats
        The bound for every T.

    Examples
    --------
    >>> from rlsvi_paper.theory.bounds import regret_shape
    >>> regret_shape(states=4, actions=1, horizon=1, steps=[100, 400]).tolist()
    [20.0, 40.0]
    """
    sizes = (("states", states), ("actions", actions), ("horizon", horizon))
    S, A, H = (float(whole(name, n, 1, LARGEST_SIZE)) for name, n in sizes)
    return np.sqrt(H**3 * S * A * _steps(steps))


def proof_bound(
    states: int,
    actions: int,
    horizon: int,
    steps: ArrayLike,
    *,
    alpha_P: ArrayLike = 1.0,
    alpha_R: ArrayLike = 1.0,
) -> Floats:
    """Return the bound that the proof of Theorem 1 derives, with constant 1 for O(.) and one prior everywhere.

    2 S A H + sum over (s, a, h) of K log(T + K) + H sqrt(S A H T log T), where K = alpha_R[0] + H 1'alpha_P.

    Parameters
    ----------
    states
        S, the number of states.
    actions
        A, the number of actions.
    horizon
        H, the number of periods.
    steps
        T, the number of episodes times H: a number or an array.
    alpha_P, alpha_R
        The prior, as for `theorem_parameters`.

    Returns
    -------
    Floats
        The bound for every T.

    Examples
    --------
    >>> from rlsvi_paper.theory.bounds import proof_bound
    >>> proof_bound(states=5, actions=2, horizon=3, steps=[1000, 4000]).round().tolist()
    [4749.0, 7036.0]
    """
    sizes = (("states", states), ("actions", actions), ("horizon", horizon))
    pairs = math.prod(whole(name, n, 1, LARGEST_SIZE) for name, n in sizes)
    weights = weights_of("alpha_R", alpha_R, 2)
    K = float(weights[0]) + horizon * float(_sums("alpha_P", alpha_P, states))
    T = _steps(steps)
    bound: Floats = 2 * pairs + pairs * K * np.log(T + K) + horizon * np.sqrt(pairs * T * np.log(T))
    return bound


def _sums(name: str, alpha: ArrayLike, n: int) -> Floats:
    """Return 1'alpha, over the last axis of n positive weights."""
    weights = finite(name, alpha)
    if weights.ndim == 0:
        return np.asarray(n * positive(name, float(weights)))
    if weights.shape[-1] != n:
        raise ValueError(f"{name} must be a number or have {n} weights along its last axis, got {weights.shape}")
    if not (weights > 0).all():
        raise ValueError(f"{name} must be positive")
    return np.asarray(weights.sum(axis=-1))


def _steps(steps: ArrayLike) -> Floats:
    T = finite("steps", steps)
    if not (T >= 1).all():
        raise ValueError("steps must be at least 1: T is the number of episodes times H")
    return T


# ---- Example 1: the exact cost of dithering on the chain ------------------------------------------------------
#
# Until the reward is first seen, all values are zero and actions uniform. An episode sees it with probability
# p = p* 2^-H, where p* = (1 - 1/N)^H is the value of the optimal policy and H = N - 1. The first reward therefore
# takes 1 / p episodes on average, each of which costs p* - p: in total 2^(N-1) - 1, whatever the basis and the
# dithering.


def dithering_chance(length: int) -> float:
    """Return p, the probability that uniform actions reach the end of a chain of `length` states in an episode.

    Parameters
    ----------
    length
        The number of states.

    Returns
    -------
    float
        The probability.

    Examples
    --------
    >>> from rlsvi_paper.theory.bounds import dithering_chance
    >>> dithering_chance(2)
    0.25
    """
    N = whole("length", length, 2, 1000)
    return float((0.5 * (1 - 1 / N)) ** (N - 1))


def dithering_regret(length: int, episodes: ArrayLike = np.inf) -> Floats:
    """Return a lower bound on the expected regret of dithering in `episodes` episodes; 2^(N-1) - 1 in the limit.

    It is the exact regret up to the first reward: (2^(N-1) - 1) (1 - (1 - p)^episodes).

    Parameters
    ----------
    length
        N, the number of states.
    episodes
        A number or an array.

    Returns
    -------
    Floats
        The bound for every number of episodes.

    Examples
    --------
    >>> from rlsvi_paper.theory.bounds import dithering_regret
    >>> float(dithering_regret(10))
    511.0
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
