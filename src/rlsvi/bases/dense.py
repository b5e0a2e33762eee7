"""A generalisation matrix given as an array, and the two random ones of the paper's chain experiments."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rlsvi.bases.basis import Features, from_table
from rlsvi.core.archive import storable
from rlsvi.core.checks import LARGEST_NUMBER, finite, fits, flag, one_of, shown, whole
from rlsvi.core.compile import Floats
from rlsvi.core.random import Seed, sequence


@storable
@dataclass(frozen=True, eq=False)
class Dense:
    """Features of all states and actions as an array.

    Parameters
    ----------
    phi
        The features, (H, S, A, K), or (S, A, K) if all periods share them.

    Examples
    --------
    >>> import numpy as np, rlsvi
    >>> basis = rlsvi.bases.Dense(np.ones((10, 2, 3)))
    >>> basis.bind(states=10, actions=2, horizon=5, example=0).dim
    3
    """

    phi: Floats

    def bind(self, states: int | None, actions: int, horizon: int, example: Any) -> Features:
        """Return features with one block of K weights."""
        phi = finite("phi", self.phi)
        phi = phi[None] if phi.ndim == 3 else phi
        if phi.ndim != 4 or phi.shape[0] not in (1, horizon) or phi.shape[1:3] != (states, actions):
            raise ValueError(
                f"phi must have shape (S, A, K) or (H, S, A, K) with S = {states}, A = {actions}, "
                f"H = {horizon}, got {phi.shape}"
            )
        return from_table(phi, np.zeros((phi.shape[1], actions), dtype=np.int32), 1, "Dense")


def coherent(
    Q: Floats,
    features: int,
    *,
    scale: Literal["HSA", "sqrt(HSA)"] = "HSA",
    per_period: bool = False,
    seed: Seed = 0,
) -> Dense:
    """Return a random basis whose span contains 1 and `Q*` but which is not otherwise informative.

    This is the algorithm "Generating a random coherent basis" (appendix C), step by step.

    Parameters
    ----------
    Q
        The optimal values, (H, S, A); illegal entries (-inf) count as 0.
    features
        K, from 2 to HSA.
    scale
        The 2-norm to which every column, stacked over all periods, is scaled. "HSA" is the paper's text.
    per_period
        Run the algorithm for every period on its own, with H = 1, instead of stacking the periods. So section
        6.1.1 describes it: the functions of Phi_h are drawn in R^SA, projected onto a subspace V_hK of their own
        and scaled to equal 2-norms, here SA (or sqrt(SA)).
    seed
        Seed for drawing Psi and W.

    Returns
    -------
    Dense
        The basis, with `features` functions.

    Examples
    --------
    >>> import rlsvi
    >>> Q = rlsvi.problems.chain(10).solution.Q
    >>> rlsvi.bases.coherent(Q, features=5, seed=1).phi.shape
    (9, 10, 2, 5)
    """
    q = _optimal_values(Q)
    whole("features", features, 2)
    if features > q.size:
        raise ValueError(f"features must be at most HSA = {q.size} for this Q, got {shown(features)}")
    one_of("scale", scale, ("HSA", "sqrt(HSA)"))
    rng = np.random.default_rng(sequence(seed))
    parts = q if flag("per_period", per_period) else [q]
    return Dense(np.concatenate([_projected(part, features, scale, rng) for part in parts]).reshape(*q.shape, -1))


def _projected(q: Floats, K: int, scale: str, rng: np.random.Generator) -> Floats:
    """Return K random functions projected onto a random subspace that contains 1 and q, (n, K)."""
    n = q.size
    Psi = rng.standard_normal((n, K))
    Psi[:, 0] = 1.0
    Psi[:, 1] = q.ravel()
    W = rng.standard_normal((n, K))
    W[:, 0] = 1.0
    span, triangle = np.linalg.qr(Psi)
    size = np.abs(np.diag(triangle))
    if size.min() < 1e-10 * size.max():
        raise ValueError("Q is constant, or nearly so: 1 and Q span one direction, and no coherent basis")
    W_P = span @ (span.T @ W)  # P W, for P = Psi (Psi' Psi)^-1 Psi'
    W_P *= (n if scale == "HSA" else np.sqrt(n)) / np.linalg.norm(W_P, axis=0)
    return np.asarray(W_P)


def _optimal_values(Q: Floats) -> Floats:
    """Return Q with 0 for illegal entries."""
    try:
        q = np.asarray(Q)
        q = finite("Q", np.where(np.isneginf(q), 0.0, q))
    except (TypeError, ValueError):
        raise ValueError(f"Q must be finite values of shape (H, S, A), got {shown(Q)}") from None
    if q.ndim != 3 or not q.size:
        raise ValueError(f"Q must be finite values of shape (H, S, A), got shape {q.shape}")
    return q


def agnostic(
    Q: Floats, features: int, rho: float, *, rho_is: Literal["variance", "std"] = "variance", seed: Seed = 0
) -> Dense:
    """Return basis functions `phi_hk ~ N(Q*_h, rho I)`: the true values with added noise (section 6.1.2).

    Parameters
    ----------
    Q
        The optimal values, (H, S, A).
    features
        K, the number of functions.
    rho
        The noise; 0 is coherent.
    rho_is
        "variance", taken literally, or "std": rho is a standard deviation.
    seed
        Seed of the noise.

    Examples
    --------
    >>> import rlsvi
    >>> Q = rlsvi.problems.chain(10).solution.Q
    >>> rlsvi.bases.agnostic(Q, features=5, rho=0.1).phi.shape
    (9, 10, 2, 5)
    """
    q = _optimal_values(Q)
    fits("features", q.size * whole("features", features, 1), "draw fewer")
    real = isinstance(rho, int | float | np.integer | np.floating) and not isinstance(rho, bool)
    if not real or not 0 <= rho <= LARGEST_NUMBER:
        raise ValueError(f"rho must be finite and not negative, got {shown(rho)}")
    std = np.sqrt(float(rho)) if one_of("rho_is", rho_is, ("variance", "std")) == "variance" else rho
    noise = np.random.default_rng(sequence(seed)).standard_normal((*q.shape, features))
    return Dense(q[..., None] + std * noise)
