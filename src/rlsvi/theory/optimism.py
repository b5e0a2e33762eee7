"""Lemma 1: N(alpha'V / alpha'1, 1 / alpha'1) is stochastically optimistic for P'V, P ~ Dirichlet(alpha)."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rlsvi.core.checks import finite, positive, whole
from rlsvi.theory.excess import NODES, beta_excess, checked, dirichlet_excess, normal_excess


class Gap(NamedTuple):
    """The least E[(X - t)+] - E[(Y - t)+] over t, its error bound and the t where it is. >= 0: optimistic."""

    gap: float
    error: float
    t: float


def lemma_gap(alpha: ArrayLike, V: ArrayLike, *, points: int = 24, nodes: int = NODES) -> Gap:
    """How far the normal of Lemma 1 is ahead of P'V, where it is least so; the lemma says never below 0.

    Looks at `points` values of t, evenly within the range of V, and again between the neighbours of the least.
    Outside of that range there is nothing to see: P'V is certain there, and E[(X - t)+] >= (E[X] - t)+.
    alpha : weights, of sum at least 2 for the lemma to speak of them; V : values in [0, 1].
    nodes : of the integrals, as for `dirichlet_excess`; small weights need more for a small error.
    """
    weights, values = checked(alpha, V)
    whole("points", points, 3)
    if values.min() < 0 or values.max() > 1:
        raise ValueError("V must lie in [0, 1], as the lemma has it: shift and scale it")
    total = float(weights.sum())
    mean, std = float(weights @ values / total), 1 / math.sqrt(total)
    low, high = float(values.min()), float(values.max())
    best, worst = Gap(math.inf, 0.0, mean), 0.0
    for _ in range(2):
        t = np.linspace(low, high, points)
        excess = dirichlet_excess(weights, values, t, nodes=nodes)
        gaps = normal_excess(mean, std, t) - excess.value
        at, worst = int(np.argmin(gaps)), max(worst, float(excess.error.max()))
        if gaps[at] < best.gap:
            best = Gap(float(gaps[at]), 0.0, float(t[at]))
        low, high = float(t[max(at - 1, 0)]), float(t[min(at + 1, points - 1)])
    return best._replace(error=worst + 4e-16)


def matched_beta(alpha: ArrayLike, V: ArrayLike) -> tuple[float, float]:
    """The Beta of the same mean and sum on the ends of V: optimistic for P'V (appendix G, Beta vs Dirichlet)."""
    weights, values = checked(alpha, V)
    low, high = float(values.min()), float(values.max())
    if not low < high:
        raise ValueError("V must hold two different values: P'V is certain otherwise")
    return float(weights @ (values - low)) / (high - low), float(weights @ (high - values)) / (high - low)


def beta_gap(alpha: float, beta: float, *, points: int = 2000) -> Gap:
    """How far N(a / (a + b), 1 / (a + b)) is ahead of Beta(a, b), where it is least so; a, b = alpha, beta."""
    a, b = positive("alpha", alpha), positive("beta", beta)
    t = np.linspace(0.0, 1.0, whole("points", points, 3))
    gaps = normal_excess(a / (a + b), 1 / math.sqrt(a + b), t) - beta_excess(a, b, t)
    at = int(np.argmin(finite("the gap", gaps)))
    return Gap(float(gaps[at]), 1e-14, float(t[at]))
