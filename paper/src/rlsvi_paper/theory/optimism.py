"""Stochastic optimism in numbers: Lemma 1, Lemma 2 and the single crossing of appendix G.

X is optimistic for Y if E[(X - t)+] - E[(Y - t)+] is nowhere negative: what is wanted is the least difference of
two convex functions, over all t and not only over those evaluated. Between two points the first lies above its
tangents there, and the second below its chord. The difference is at least that of tangents and chord, which is
piecewise linear. If that bound is lower than the least value seen by more than a tolerance, the interval is
halved.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rlsvi.core.compile import Floats
from rlsvi.core.random import Seed, sequence
from rlsvi_paper.theory.bounds import STEP
from rlsvi_paper.theory.expected_excess import NODES, beta_excess, dirichlet_excess, normal_excess, weighted

Pair = tuple[Floats, Floats]
ROUNDING = 1e-14  # of the closed forms


class Gap(NamedTuple):
    """The least `E[(X - t)+] - E[(Y - t)+]` over t. If it is not negative, X is stochastically optimistic for Y.

    The minimum over all t, not only those evaluated, lies within `gap` +- `error`.
    """

    gap: float
    error: float
    t: float


def least_gap(
    optimist: Callable[[Floats], Pair],
    other: Callable[[Floats], Pair],
    low: float,
    high: float,
    *,
    tolerance: float = 1e-9,
    points: int = 9,
    most: int = 4000,
) -> Gap:
    """Return the minimum of the difference of two convex functions over an interval.

    Parameters
    ----------
    optimist
        Maps t to values and slopes.
    other
        Maps t to values and error bounds; it is subtracted.
    tolerance
        How far the bound may be below the least value seen.
    points, most
        Evaluations at first, and in all; if these are not enough, the error exceeds the tolerance.
    """
    t = np.linspace(low, high, points) if low < high else np.array([float(low)])
    table = _evaluate(optimist, other, t)
    while True:
        t, value, slope, below, _ = table
        gaps, bounds = value - below, _between(t, value, slope, below)
        wanted = bounds < gaps.min() - tolerance
        middle = 0.5 * (t[:-1] + t[1:])[wanted]
        middle = middle[(middle > t[:-1][wanted]) & (middle < t[1:][wanted])]
        if not len(middle) or len(t) + len(middle) > most:
            break
        table = np.concatenate([table, _evaluate(optimist, other, middle)], axis=1)
        table = table[:, np.argsort(table[0], kind="stable")]
    at = int(gaps.argmin())
    unseen = max(float(gaps[at] - bounds.min(initial=gaps[at])), 0.0)
    return Gap(float(gaps[at]), unseen + float(table[4].max()) + ROUNDING, float(t[at]))


def normal_curve(mean: float, std: float) -> Callable[[Floats], Pair]:
    """Return E[(X - t)+] and its slope, for X ~ N(mean, std^2)."""
    from scipy.special import ndtr

    return lambda t: (normal_excess(mean, std, t), -ndtr((mean - t) / std))


def beta_curve(alpha: float, beta: float, low: float = 0.0, high: float = 1.0) -> Callable[[Floats], Pair]:
    """Return E[(Y - t)+] and its slope, for a Beta variable Y stretched from [0, 1] to [low, high]."""
    from scipy.special import betainc

    def curve(t: Floats) -> Pair:
        x = (t - low) / (high - low)
        return (high - low) * beta_excess(alpha, beta, x), -betainc(beta, alpha, 1 - np.clip(x, 0.0, 1.0))

    return curve


def with_rounding(curve: Callable[[Floats], Pair]) -> Callable[[Floats], Pair]:
    """Return a closed form as `other`, with its rounding error."""
    return lambda t: (curve(t)[0], np.full(len(t), ROUNDING))


def _evaluate(optimist: Callable[[Floats], Pair], other: Callable[[Floats], Pair], t: Floats) -> Floats:
    return np.stack([t, *optimist(t), *other(t)])


def _between(t: Floats, value: Floats, slope: Floats, below: Floats) -> Floats:
    """Return bounds of the difference on each interval: at the ends, and where the two tangents meet."""
    width, rise, gaps = np.diff(t), np.diff(value), value - below
    bend = np.diff(slope)
    x = np.divide(slope[1:] * width - rise, bend, out=np.zeros_like(width), where=bend > 0)
    x = np.clip(x, 0.0, width)
    tangent = np.maximum(value[:-1] + slope[:-1] * x, value[1:] + slope[1:] * (x - width))
    inside = tangent - (below[:-1] + np.diff(below) * x / width)
    return np.minimum(inside, np.minimum(gaps[:-1], gaps[1:]))


# ---- Lemma 1: N(alpha'V / alpha'1, 1 / alpha'1) is stochastically optimistic for P'V, P ~ Dirichlet(alpha) ------


def lemma_gap(alpha: ArrayLike, V: ArrayLike, *, tolerance: float = 1e-9, nodes: int = NODES) -> Gap:
    """Return the smallest margin by which the normal of Lemma 1 exceeds P'V; by the lemma it is never below 0.

    This is the minimum over all t in the range of V, up to the error; see `least_gap`. Outside of that range, P'V
    is deterministic and `E[(X - t)+] >= (E[X] - t)+` suffices.
    """
    weights, values = weighted(alpha, V)
    total = float(weights.sum())
    normal = normal_curve(float(weights @ values / total), 1 / math.sqrt(total))
    return least_gap(normal, _dirichlet(weights, values, nodes), values.min(), values.max(), tolerance=tolerance)


def optimistic_variance(total: float) -> float:
    """Return a variance of a normal that is optimistic for P'V of its mean, whatever the weights of sum `total`.

    It is pi / 8 times the sum of 1 / (total + k)^2 over k = 1, 2, .., which is below pi / (8 total + 4), and below
    the 1 / total of Lemma 1 for any positive sum. The proof is in docs/errata.md.
    """
    from scipy.special import polygamma

    return STEP * float(polygamma(1, total + 1))


def matched_beta(alpha: ArrayLike, V: ArrayLike) -> tuple[float, float]:
    """Return the Beta with the same mean and sum on the ends of V, optimistic for P'V (appendix G)."""
    weights, values = weighted(alpha, V)
    low, high = float(values.min()), float(values.max())
    return float(weights @ (values - low)) / (high - low), float(weights @ (high - values)) / (high - low)


def matched_gap(alpha: ArrayLike, V: ArrayLike, *, tolerance: float = 1e-6, nodes: int = NODES) -> Gap:
    """Return the smallest margin by which the matched Beta exceeds P'V.

    Both are deterministic at the ends of V, and nearly equal if V has about two distinct values. The tolerance is
    wider than for the normal, since many points would be needed.
    """
    weights, values = weighted(alpha, V)
    low, high = float(values.min()), float(values.max())
    curve = beta_curve(*matched_beta(alpha, V), low, high)
    return least_gap(curve, _dirichlet(weights, values, nodes), low, high, tolerance=tolerance)


def beta_gap(alpha: float, beta: float, *, tolerance: float = 1e-9) -> Gap:
    """Return the smallest margin by which N(a / (a + b), 1 / (a + b)) exceeds Beta(a, b)."""
    total = alpha + beta
    normal, other = normal_curve(alpha / total, 1 / math.sqrt(total)), with_rounding(beta_curve(alpha, beta))
    return least_gap(normal, other, 0.0, 1.0, tolerance=tolerance)


def _dirichlet(weights: Floats, values: Floats, nodes: int) -> Callable[[Floats], Pair]:
    """Return E[(P'V - t)+] and its error, in batches of points, which take nodes x points of memory."""

    def curve(t: Floats) -> Pair:
        parts = [dirichlet_excess(weights, values, t[i : i + 256], nodes=nodes) for i in range(0, len(t), 256)]
        return np.concatenate([part.value for part in parts]), np.concatenate([part.error for part in parts])

    return curve


# ---- Lemma 2: given any data, the Q values that RLSVI samples are optimistic for the posterior's ----------------
#
# The posterior is that of Theorem 1's prior: Dirichlet transitions, rewards -1 and 0. The data are counts: `into`
# (H, S, A, S) of the next states and `lows` (H, S, A) of the rewards -1; their number is n = into.sum(-1). In the
# last period both sides have a closed form. In earlier periods both are sampled: Q~ by Algorithm 1, and Q* by
# drawing MDPs from the posterior and solving them.


class QGap(NamedTuple):
    """Estimated difference between the samples of Algorithm 1 and the posterior, with standard errors.

    Parameters
    ----------
    gap
        E[(Q~ - t)+] - E[(Q* - t)+] for every pair and t, (H, S, A, points); not negative: optimistic.
    mean
        E[Q~] - E[Q*] for every pair, (H, S, A).
    value
        E[V~_0] - E[V*_0] for every first state, (S,), which is -E[Delta_opt].
    """

    gap: Floats
    error: Floats
    t: Floats
    mean: Floats
    mean_error: Floats
    value: Floats
    value_error: Floats


def last_period_gap(n: int, lows: int, lam: float, sigma: float, *, alpha_R: ArrayLike = 1.0) -> Gap:
    """Check Lemma 2 in period H - 1 exactly, for a pair that was tried n times.

    The minimum is over all t: within [-1, 0] by `least_gap`. Below, `E[max(X, t)]` only decreases with t, to the
    difference of the means; above, `Q*` has no excess.
    """
    ridge, (low, high) = lam * sigma * sigma, np.broadcast_to(np.asarray(alpha_R, np.float64), 2)
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
    points: int = 9,
    draws: int = 100_000,
    seed: Seed = 0,
) -> QGap:
    """Check Lemma 2 for all periods, states and actions of a small case, by sampling both sides."""
    counts, paid = np.asarray(into, np.float64), np.asarray(lows, np.float64)
    H, S, A, _ = counts.shape
    N, ridge, rng = draws, lam * sigma * sigma, np.random.default_rng(sequence(seed))
    sampled, true = np.zeros((N, S)), np.zeros((N, S))  # V_{h+1}
    gap, error, ts = np.empty((3, H, S, A, points))
    mean, mean_error = np.empty((2, H, S, A))
    for h in reversed(range(H)):
        n = counts[h].sum(axis=2)
        targets = -paid[h] + np.einsum("say,ny->nsa", counts[h], sampled)
        Q = targets / (n + ridge) + rng.standard_normal((N, S, A)) * sigma / np.sqrt(n + ridge)
        lost = rng.beta(1.0 + paid[h], 1.0 + n - paid[h], size=(N, S, A))
        gammas = rng.standard_gamma(1.0 + counts[h], size=(N, S, A, S))
        Q_star = -lost + np.einsum("nsay,ny->nsa", gammas, true) / gammas.sum(axis=3)
        for s, a in np.ndindex(S, A):
            t = np.quantile(Q_star[:, s, a], np.linspace(0, 1, points + 2)[1:-1])
            X, Y = (np.maximum(q[:, s, a, None] - t, 0.0) for q in (Q, Q_star))
            ts[h, s, a], gap[h, s, a], error[h, s, a] = t, *_difference(X, Y)
        mean[h], mean_error[h] = _difference(Q, Q_star)
        sampled, true = Q.max(axis=2), Q_star.max(axis=2)
    return QGap(gap, error, ts, mean, mean_error, *_difference(sampled, true))


def _difference(X: Floats, Y: Floats) -> tuple[Floats, Floats]:
    """Return the mean over the first axis of independent draws X minus that of Y, and its standard error."""
    return X.mean(axis=0) - Y.mean(axis=0), np.sqrt((X.var(axis=0) + Y.var(axis=0)) / len(X))


# ---- Single crossing of Gaussian and Beta (appendix G): how often CDFs and densities cross ----------------------


LARGEST_LOGIT = 700.0  # log(x / (1 - x)) of the smallest x


def crossings(alpha: float, beta: float, *, points: int = 4001) -> int:
    """Return how often the CDFs of Beta(alpha, beta) and N(alpha / (alpha + beta), 1 / (alpha + beta)) cross.

    These are sign changes on a grid. The grid is wide in log(x / (1 - x)), because a Beta of small weights has its
    mass next to 0 and 1, and dense around x = 1/2. Crossings closer to 0 or 1 than float64 resolves are counted.
    Pairs between grid points, and differences below 1e-13, are missed.
    """
    from scipy.special import betainc, expit, ndtr

    a, b, total = alpha, beta, alpha + beta
    u = np.sinh(np.linspace(-1.0, 1.0, points) * math.asinh(min(LARGEST_LOGIT, 40.0 / min(a, b, 1.0))))
    x, rest, root = expit(u), expit(-u), math.sqrt(total)
    left = ndtr(root * (x - a / total)) - betainc(a, b, x)
    right = betainc(b, a, rest) - ndtr(root * (rest - b / total))
    difference = np.where(u < 0, left, right)  # from the nearer end, for accuracy
    sign = np.sign(difference[np.abs(difference) >= 1e-13])
    # The normal has mass beyond both ends: its CDF is the higher one at 0, the lower one at 1.
    return int(np.count_nonzero(np.diff([1.0, *sign, -1.0])))


def density_crossings(alpha: float, beta: float, *, points: int = 4001) -> int:
    """Return the number of crossings of the densities of the same two distributions on (0, 1).

    These are sign changes on a grid in log(x / (1 - x)); a pair between two neighbouring points would be missed.
    """
    from scipy.special import betaln, log_expit

    a, b, u = alpha, beta, np.linspace(-40.0, 40.0, points)
    left, right = log_expit(u), log_expit(-u)
    beta_density = (a - 1) * left + (b - 1) * right - betaln(a, b)
    normal = -0.5 * (a + b) * (np.exp(left) - a / (a + b)) ** 2 + 0.5 * np.log((a + b) / (2 * np.pi))
    return int(np.count_nonzero(np.diff(np.sign(beta_density - normal))))
