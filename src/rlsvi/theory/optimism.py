"""Lemma 1: N(alpha'V / alpha'1, 1 / alpha'1) is stochastically optimistic for P'V, P ~ Dirichlet(alpha)."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from rlsvi.core.checks import positive
from rlsvi.core.compile import Floats
from rlsvi.theory.excess import NODES, checked, dirichlet_excess
from rlsvi.theory.least import Gap, Pair, beta_curve, least_gap, normal_curve, with_rounding


def lemma_gap(alpha: ArrayLike, V: ArrayLike, *, tolerance: float = 1e-9, nodes: int = NODES) -> Gap:
    """Return the smallest margin by which the normal of Lemma 1 exceeds P'V; by the lemma it is never below 0.

    This is the minimum over all t in the range of V, up to the error; see `least_gap`. Outside of that range, P'V
    is deterministic and E[(X - t)+] >= (E[X] - t)+ suffices.
    alpha : weights, whose sum must be at least 2 for the lemma to apply; V : values in [0, 1].
    nodes : number of nodes of the integrals, as for `dirichlet_excess`; small weights need more for a small error.
    """
    weights, values = checked(alpha, V)
    if values.min() < 0 or values.max() > 1:
        raise ValueError("V must lie in [0, 1], as the lemma has it: shift and scale it")
    total = float(weights.sum())
    normal = normal_curve(float(weights @ values / total), 1 / math.sqrt(total))
    return least_gap(normal, _dirichlet(weights, values, nodes), values.min(), values.max(), tolerance=tolerance)


def matched_beta(alpha: ArrayLike, V: ArrayLike) -> tuple[float, float]:
    """Return the Beta with the same mean and sum on the ends of V, optimistic for P'V (appendix G)."""
    weights, values = checked(alpha, V)
    low, high = float(values.min()), float(values.max())
    if not low < high:
        raise ValueError("V must hold two different values: P'V is certain otherwise")
    return float(weights @ (values - low)) / (high - low), float(weights @ (high - values)) / (high - low)


def matched_gap(alpha: ArrayLike, V: ArrayLike, *, tolerance: float = 1e-6, nodes: int = NODES) -> Gap:
    """Return the smallest margin by which the matched Beta exceeds P'V.

    Both are deterministic at the ends of V, and nearly equal if V has about two distinct values. The tolerance is
    wider than for the normal, since many points would be needed.
    """
    weights, values = checked(alpha, V)
    low, high = float(values.min()), float(values.max())
    curve = beta_curve(*matched_beta(alpha, V), low, high)
    return least_gap(curve, _dirichlet(weights, values, nodes), low, high, tolerance=tolerance)


def beta_gap(alpha: float, beta: float, *, tolerance: float = 1e-9) -> Gap:
    """Return the smallest margin by which N(a / (a + b), 1 / (a + b)) exceeds Beta(a, b); a, b = alpha, beta."""
    a, b = positive("alpha", alpha), positive("beta", beta)
    normal, other = normal_curve(a / (a + b), 1 / math.sqrt(a + b)), with_rounding(beta_curve(a, b))
    return least_gap(normal, other, 0.0, 1.0, tolerance=tolerance)


def _dirichlet(weights: Floats, values: Floats, nodes: int) -> Callable[[Floats], Pair]:
    """Return E[(P'V - t)+] and its error, in batches of points, which take nodes x points of memory."""

    def curve(t: Floats) -> Pair:
        parts = [dirichlet_excess(weights, values, t[i : i + 256], nodes=nodes) for i in range(0, len(t), 256)]
        return np.concatenate([part.value for part in parts]), np.concatenate([part.error for part in parts])

    return curve
