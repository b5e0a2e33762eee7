"""Random MDPs from the prior of Theorem 1: Dirichlet transitions, and rewards of -1 or 0."""

import numpy as np
from numpy.typing import ArrayLike

from rlsvi.core.checks import finite, fits, flag, shown, whole
from rlsvi.core.compile import Floats
from rlsvi.core.random import Seed, sequence
from rlsvi.mdp.finite import FiniteMDP


def dirichlet(
    states: int,
    actions: int,
    horizon: int,
    *,
    alpha_P: ArrayLike = 1.0,
    alpha_R: ArrayLike = 1.0,
    homogeneous: bool = False,
    start: ArrayLike | None = None,
    seed: Seed = 0,
) -> FiniteMDP:
    """Draw one MDP from the prior over which Theorem 1 takes its expectation.

    For every (s, a, h), independently, P(s, a, h) ~ Dirichlet(alpha_P) over the states, and the
    probabilities of the rewards -1 and 0 are Dirichlet(alpha_R).

    Parameters
    ----------
    alpha_P : a number, the weight of every state, or one weight for each state, (S,).
    alpha_R : a number, or the two weights of the rewards -1 and 0.
    homogeneous : draw once for all periods instead of for each.
    start : the first state, or its distribution, (S,). If None, state 0.
    seed : seed of the draw.
    """
    for key, count in (("states", states), ("actions", actions), ("horizon", horizon)):
        whole(key, count, 1, 2**31 - 1)
    numbers = states * actions * states * (1 if flag("homogeneous", homogeneous) else horizon)
    fits("states, actions and horizon", 3 * numbers, "make them fewer")
    weights_P, weights_R = weights_of("alpha_P", alpha_P, states), weights_of("alpha_R", alpha_R, 2)
    rng = np.random.default_rng(sequence(seed))
    shape = (states, actions) if homogeneous else (horizon, states, actions)
    P = rng.dirichlet(weights_P, size=shape)
    R = -rng.dirichlet(weights_R, size=shape)[..., 0]
    return FiniteMDP.from_arrays(
        P,
        R,
        horizon=horizon,
        start=_distribution(0 if start is None else start, states),
        rewards="bernoulli",
        reward_values=(-1.0, 0.0),
        name=f"random MDP with S = {states}, A = {actions}, H = {horizon}",
    )


def weights_of(name: str, alpha: ArrayLike, n: int) -> Floats:
    """Return `alpha` as n positive weights."""
    weights = finite(name, alpha)
    if weights.shape not in ((), (n,)):
        raise ValueError(f"{name} must be a number or have shape {(n,)}, got shape {weights.shape}")
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError(f"{name} must be positive and finite, got {shown(alpha)}")
    return np.broadcast_to(weights, (n,)).copy()


def _distribution(start: ArrayLike, states: int) -> Floats:
    """Return `start` as probabilities; FiniteMDP checks a given distribution."""
    s = finite("start", start)
    if s.shape == () and isinstance(start, int | np.integer | np.ndarray):
        if not 0 <= s < states:
            raise ValueError(f"start must be a state 0..{states - 1}, got {shown(start)}")
        s = np.arange(states) == s
    return np.asarray(s, dtype=np.float64)
