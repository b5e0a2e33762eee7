"""Lemma 2: given any data, the Q values sampled by RLSVI are stochastically optimistic for the posterior's.

The posterior is that of Theorem 1's prior: Dirichlet transitions, rewards -1 and 0. The data are counts: `into`
(H, S, A, S) of the next states and `lows` (H, S, A) of the rewards -1; their number is n = into.sum(-1).
In the last period both sides have a closed form. In earlier periods both are sampled: Q~ by Algorithm 1, and Q* by
drawing MDPs from the posterior and solving them.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rlsvi.core.checks import finite, ridge_of, whole
from rlsvi.core.compile import Floats
from rlsvi.core.random import Seed, sequence
from rlsvi.mdp.examples import weights_of
from rlsvi.theory.least import ROUNDING, Gap, beta_curve, least_gap, normal_curve, with_rounding


class QGap(NamedTuple):
    """Estimated difference between the samples of Algorithm 1 and the posterior, with standard errors.

    gap, error, t : E[(Q~ - t)+] - E[(Q* - t)+] for every pair and t, (H, S, A, points). >= 0: optimistic.
    mean, mean_error : E[Q~] - E[Q*] for every pair, (H, S, A).
    value, value_error : E[V~_0] - E[V*_0] for every first state, (S,): -E[Delta_opt].
    """

    gap: Floats
    error: Floats
    t: Floats
    mean: Floats
    mean_error: Floats
    value: Floats
    value_error: Floats


def last_period_gap(n: int, lows: int, lam: float, sigma: float, *, alpha_R: ArrayLike = 1.0) -> Gap:
    """Check Lemma 2 in period H - 1 exactly, for a pair tried n times of which `lows` paid -1.

    The minimum is over all t: within [-1, 0] by `least_gap`. Below, E[max(X, t)] only decreases with t, to the
    difference of the means; above, Q* has no excess.
    """
    whole("lows", lows, 0, whole("n", n, 0, 2**53))
    ridge, (low, high) = ridge_of(lam, sigma), weights_of("alpha_R", alpha_R, 2)
    a, b, mean = high + n - lows, low + lows, -lows / (n + ridge)
    normal, posterior = normal_curve(mean, sigma / math.sqrt(n + ridge)), beta_curve(a, b, -1.0, 0.0)
    inside = least_gap(normal, with_rounding(posterior), -1.0, 0.0)
    below = Gap(mean - (a / (a + b) - 1), ROUNDING, -math.inf)
    return min(inside, below, key=lambda found: found.gap)._replace(error=max(inside.error, below.error))


def q_gap(
    into: ArrayLike,
    lows: ArrayLike,
    lam: float,
    sigma: float,
    *,
    alpha_P: ArrayLike = 1.0,
    alpha_R: ArrayLike = 1.0,
    points: int = 9,
    draws: int = 100_000,
    seed: Seed = 0,
) -> QGap:
    """Check Lemma 2 for all periods, states and actions of a small case, by sampling both sides."""
    counts, paid = _checked(into, lows)
    H, S, A, _ = counts.shape
    ridge = ridge_of(lam, sigma)
    weights_P, weights_R = weights_of("alpha_P", alpha_P, S), weights_of("alpha_R", alpha_R, 2)
    whole("points", points, 1, 10**4)
    N, rng = whole("draws", draws, 2, 10**6), np.random.default_rng(sequence(seed))
    sampled, true = np.zeros((N, S)), np.zeros((N, S))  # V_{h+1}
    gap, error, ts = (np.empty((H, S, A, points)) for _ in range(3))
    mean, mean_error = (np.empty((H, S, A)) for _ in range(2))
    for h in reversed(range(H)):
        n = counts[h].sum(axis=2)
        targets = -paid[h] + np.einsum("say,ny->nsa", counts[h], sampled)
        Q = targets / (n + ridge) + rng.standard_normal((N, S, A)) * sigma / np.sqrt(n + ridge)
        lost = rng.beta(weights_R[0] + paid[h], weights_R[1] + n - paid[h], size=(N, S, A))
        gammas = rng.standard_gamma(weights_P + counts[h], size=(N, S, A, S))
        Q_star = -lost + np.einsum("nsay,ny->nsa", gammas, true) / gammas.sum(axis=3)
        for s, a in np.ndindex(S, A):
            t = np.quantile(Q_star[:, s, a], np.linspace(0, 1, points + 2)[1:-1])
            X, Y = (np.maximum(q[:, s, a, None] - t, 0.0) for q in (Q, Q_star))
            gap[h, s, a], error[h, s, a] = _difference(X, Y)
            ts[h, s, a] = t
        mean[h], mean_error[h] = _difference(Q, Q_star)
        sampled, true = Q.max(axis=2), Q_star.max(axis=2)
    return QGap(gap, error, ts, mean, mean_error, *_difference(sampled, true))


def _difference(X: Floats, Y: Floats) -> tuple[Floats, Floats]:
    """Return the mean over the first axis of independent draws X minus that of Y, and its standard error."""
    return X.mean(axis=0) - Y.mean(axis=0), np.sqrt((X.var(axis=0) + Y.var(axis=0)) / len(X))


def _checked(into: ArrayLike, lows: ArrayLike) -> tuple[Floats, Floats]:
    counts, paid = finite("into", into), finite("lows", lows)
    if counts.ndim != 4 or counts.shape[1] != counts.shape[3] or 0 in counts.shape:
        raise ValueError(f"into must have shape (H, S, A, S), got {counts.shape}")
    if paid.shape != counts.shape[:3]:
        raise ValueError(f"lows must have shape {counts.shape[:3]}, got {paid.shape}")
    if (counts < 0).any() or (paid < 0).any() or (paid > counts.sum(axis=3)).any():
        raise ValueError("counts must not be negative, and lows at most into.sum(-1)")
    return counts, paid
