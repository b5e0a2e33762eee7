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

from rlsvi.core.checks import finite, function_of, number, positive, ridge_of, shaped, shown, whole
from rlsvi.core.compile import Floats
from rlsvi.core.random import Seed, sequence
from rlsvi.mdp.examples import weights_of
from rlsvi_paper.theory.bounds import STEP
from rlsvi_paper.theory.expected_excess import NODES, beta_excess, check_weights, dirichlet_excess, normal_excess

Pair = tuple[Floats, Floats]
ROUNDING = 1e-14  # of the closed forms


class Gap(NamedTuple):
    """The least `E[(X - t)+] - E[(Y - t)+]` over t. If it is not negative, X is stochastically optimistic for Y.

    The minimum over all t, not only those evaluated, lies within `gap` +- `error`.

    Attributes
    ----------
    gap
        The minimum.
    error
        Its error bound.
    t
        Where it occurs.

    Examples
    --------
    >>> from rlsvi_paper.theory.optimism import Gap
    >>> Gap(gap=0.01, error=1e-9, t=0.5).t
    0.5
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
    low, high
        The ends of the interval.
    tolerance
        How far the bound may be below the least value seen.
    points
        The initial number of evaluations.
    most
        The maximum number of evaluations. If it is not enough, the reported error is larger than the tolerance.

    Returns
    -------
    Gap
        The minimum, its error and where it occurs.

    Examples
    --------
    >>> import numpy as np
    >>> from rlsvi_paper.theory.optimism import least_gap
    >>> found = least_gap(lambda t: (t**2, 2 * t), lambda t: (0 * t, 0 * t), -1.0, 2.0)
    >>> abs(found.gap) < 1e-6
    True
    """
    positive("tolerance", tolerance)
    whole("most", most, whole("points", points, 2, 10**6))
    low, high = number("low", low), number("high", high)
    if not low <= high:
        raise ValueError(f"low must be at most high, got {shown(low)} and {shown(high)}")
    for name, curve in (("optimist", optimist), ("other", other)):
        function_of(name, curve, "t")
    t = np.linspace(low, high, points) if low < high else np.array([float(low)])
    table = _evaluate(optimist, other, t)
    while True:
        t, value, slope, below, _ = table
        gaps, bounds = finite("the gap", value - below), _between(t, value, slope, below)
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
    rows = [t]
    for name, curve in (("optimist", optimist), ("other", other)):
        try:
            first, second = curve(t)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name} must return two arrays as long as t: {error}") from error
        what = f"what {name} returns"
        rows += [shaped(what, finite(what, part), t.shape) for part in (first, second)]
    return np.stack(rows)


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

    Parameters
    ----------
    alpha
        Weights, whose sum must be at least 2 for the lemma to apply.
    V
        Values in [0, 1].
    tolerance
        As for `least_gap`.
    nodes
        The number of nodes of the integrals, as for `dirichlet_excess`; small weights need more for a small error.

    Returns
    -------
    Gap
        The margin, its error and where it occurs.

    Examples
    --------
    >>> from rlsvi_paper.theory.optimism import lemma_gap
    >>> lemma_gap([1, 1, 1], [0, 0.5, 1]).gap > 0
    True
    """
    weights, values = check_weights(alpha, V)
    if values.min() < 0 or values.max() > 1:
        raise ValueError("V must lie in [0, 1], as the lemma has it: shift and scale it")
    total = float(weights.sum())
    normal = normal_curve(float(weights @ values / total), 1 / math.sqrt(total))
    return least_gap(normal, _dirichlet(weights, values, nodes), values.min(), values.max(), tolerance=tolerance)


def optimistic_variance(total: float) -> float:
    """Return a variance of a normal that is optimistic for P'V of its mean, whatever the weights of sum `total`.

    It is pi / 8 times the sum of 1 / (total + k)^2 over k = 1, 2, .., which is below pi / (8 total + 4), and below
    the 1 / total of Lemma 1 for any positive sum. The proof is in docs/errata.md.

    Parameters
    ----------
    total
        The sum of the weights.

    Returns
    -------
    float
        The variance.

    Examples
    --------
    >>> from rlsvi_paper.theory.optimism import optimistic_variance
    >>> round(optimistic_variance(2.0), 4)
    0.1551
    """
    from scipy.special import polygamma

    return STEP * float(polygamma(1, positive("total", total) + 1))


def matched_beta(alpha: ArrayLike, V: ArrayLike) -> tuple[float, float]:
    """Return the Beta with the same mean and sum on the ends of V, optimistic for P'V (appendix G).

    Parameters
    ----------
    alpha
        The weights, (d,).
    V
        The values, (d,).

    Returns
    -------
    tuple
        The two weights of the Beta.

    Examples
    --------
    >>> from rlsvi_paper.theory.optimism import matched_beta
    >>> matched_beta([1, 1, 2], [0, 0.5, 1])
    (2.5, 1.5)
    """
    weights, values = check_weights(alpha, V)
    low, high = float(values.min()), float(values.max())
    if not low < high:
        raise ValueError("V must hold two different values: P'V is certain otherwise")
    return float(weights @ (values - low)) / (high - low), float(weights @ (high - values)) / (high - low)


def matched_gap(alpha: ArrayLike, V: ArrayLike, *, tolerance: float = 1e-6, nodes: int = NODES) -> Gap:
    """Return the smallest margin by which the matched Beta exceeds P'V.

    Both are deterministic at the ends of V, and nearly equal if V has about two distinct values. The tolerance is
    wider than for the normal, since many points would be needed.

    Parameters
    ----------
    alpha
        The weights, (d,).
    V
        The values, (d,).
    tolerance
        As for `least_gap`.
    nodes
        As for `dirichlet_excess`.

    Returns
    -------
    Gap
        The margin, its error and where it occurs.

    Examples
    --------
    >>> from rlsvi_paper.theory.optimism import matched_gap
    >>> found = matched_gap([1, 1, 2], [0, 0.5, 1])
    >>> found.gap > -found.error
    True
    """
    weights, values = check_weights(alpha, V)
    low, high = float(values.min()), float(values.max())
    curve = beta_curve(*matched_beta(alpha, V), low, high)
    return least_gap(curve, _dirichlet(weights, values, nodes), low, high, tolerance=tolerance)


def beta_gap(alpha: float, beta: float, *, tolerance: float = 1e-9) -> Gap:
    """Return the smallest margin by which N(a / (a + b), 1 / (a + b)) exceeds Beta(a, b).

    Parameters
    ----------
    alpha, beta
        a and b.
    tolerance
        As for `least_gap`.

    Returns
    -------
    Gap
        The margin, its error and where it occurs.

    Examples
    --------
    >>> from rlsvi_paper.theory.optimism import beta_gap
    >>> beta_gap(1, 2).gap > 0
    True
    """
    a, b = positive("alpha", alpha), positive("beta", beta)
    normal, other = normal_curve(a / (a + b), 1 / math.sqrt(a + b)), with_rounding(beta_curve(a, b))
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

    Attributes
    ----------
    gap, error, t
        `E[(Q~ - t)+] - E[(Q* - t)+]` for every pair and t, (H, S, A, points), its standard error, and t. >= 0:
        optimistic.
    mean, mean_error
        `E[Q~] - E[Q*]` for every pair, (H, S, A), and its standard error.
    value, value_error
        `E[V~_0] - E[V*_0]` for every first state, (S,), which is -E[Delta_opt], and its standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from rlsvi_paper.theory.optimism import q_gap
    >>> found = q_gap(np.ones((2, 2, 1, 2)), np.ones((2, 2, 1)), lam=4.0, sigma=2.3, draws=1000)
    >>> found.value.shape
    (2,)
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

    Parameters
    ----------
    n
        How often the pair was tried.
    lows
        How often it paid -1.
    lam, sigma
        The parameters of RLSVI.
    alpha_R
        The prior weights of the rewards -1 and 0.

    Returns
    -------
    Gap
        The margin, its error and where it occurs.

    Examples
    --------
    >>> from rlsvi_paper.theory.optimism import last_period_gap
    >>> last_period_gap(n=5, lows=2, lam=7.0, sigma=3.2).gap > 0
    True
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
    """Check Lemma 2 for all periods, states and actions of a small case, by sampling both sides.

    Parameters
    ----------
    into
        How often each transition was seen, (H, S, A, S).
    lows
        How often each pair paid -1, (H, S, A).
    lam, sigma
        The parameters of RLSVI.
    alpha_P, alpha_R
        The prior weights of next states, and of the rewards -1 and 0.
    points
        The number of values of t for each pair.
    draws
        The number of samples.
    seed
        Determines the samples.

    Returns
    -------
    QGap
        The differences, with standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> from rlsvi_paper.theory.optimism import q_gap
    >>> found = q_gap(np.ones((2, 2, 1, 2)), np.ones((2, 2, 1)), lam=4.0, sigma=2.3, draws=1000)
    >>> found.gap.shape
    (2, 2, 1, 9)
    """
    counts, paid = _check_counts(into, lows)
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


def _check_counts(into: ArrayLike, lows: ArrayLike) -> tuple[Floats, Floats]:
    counts, paid = finite("into", into), finite("lows", lows)
    if counts.ndim != 4 or counts.shape[1] != counts.shape[3] or 0 in counts.shape:
        raise ValueError(f"into must have shape (H, S, A, S), got {counts.shape}")
    if paid.shape != counts.shape[:3]:
        raise ValueError(f"lows must have shape {counts.shape[:3]}, got {paid.shape}")
    if (counts < 0).any() or (paid < 0).any() or (paid > counts.sum(axis=3)).any():
        raise ValueError("counts must not be negative, and lows at most into.sum(-1)")
    return counts, paid


# ---- Single crossing of Gaussian and Beta (appendix G): how often CDFs and densities cross ----------------------


LARGEST_LOGIT = 700.0  # log(x / (1 - x)) of the smallest x
LEAST_SUM = 1e-3  # the smallest sum of weights considered


class Crossings(NamedTuple):
    """Where F_normal - F_beta changes sign on [0, 1].

    Attributes
    ----------
    places
        The points.
    single
        Whether there is one, as the lemma says.

    Examples
    --------
    >>> from rlsvi_paper.theory.optimism import crossings
    >>> [round(place, 3) for place in crossings(3.0, 3.0).places]
    [0.5]
    """

    places: tuple[float, ...]
    single: bool


def crossings(alpha: float, beta: float, *, points: int = 4001) -> Crossings:
    """Return the crossings of the CDFs of Beta(alpha, beta) and N(alpha / (alpha + beta), 1 / (alpha + beta)).

    These are sign changes on a grid, refined by bisection. The grid is wide in log(x / (1 - x)), because a
    Beta of small weights has its mass next to 0 and 1, and dense around x = 1/2. Crossings closer to 0 or 1 than
    float64 resolves are returned as 0 or 1. Pairs between grid points, and differences below 1e-13, are missed.

    Parameters
    ----------
    alpha, beta
        The weights of the Beta distribution.
    points
        The number of points of the grid.

    Returns
    -------
    Crossings
        Where they cross.

    Examples
    --------
    >>> from rlsvi_paper.theory.optimism import crossings
    >>> crossings(3.0, 3.0).single
    True
    """
    a, b = positive("alpha", alpha), positive("beta", beta)
    changes = _changes(a, b, whole("points", points, 3, 10**6))
    at = [_sign_change(a, b, *change) for change in changes]
    places = tuple(1 / (1 + math.exp(-u)) if u > -0.99 * LARGEST_LOGIT else 0.0 for u in at)
    return Crossings(places, len(places) == 1)


def density_crossings(alpha: float, beta: float, *, points: int = 4001) -> int:
    """Return the number of crossings of the densities of the same two distributions on (0, 1).

    These are sign changes on a grid in log(x / (1 - x)); a pair between two neighbouring points would be missed.

    Parameters
    ----------
    alpha, beta
        The weights of the Beta distribution.
    points
        The number of points of the grid.

    Returns
    -------
    int
        The number of crossings.

    Examples
    --------
    >>> from rlsvi_paper.theory.optimism import density_crossings
    >>> density_crossings(3.0, 3.0)
    2
    """
    from scipy.special import betaln, log_expit

    a, b = positive("alpha", alpha), positive("beta", beta)
    u = np.linspace(-40.0, 40.0, whole("points", points, 3, 10**6))
    left, right = log_expit(u), log_expit(-u)
    beta_density = (a - 1) * left + (b - 1) * right - betaln(a, b)
    normal = -0.5 * (a + b) * (np.exp(left) - a / (a + b)) ** 2 + 0.5 * np.log((a + b) / (2 * np.pi))
    return int(np.count_nonzero(np.diff(np.sign(beta_density - normal))))


def failing_sums(mean: float = 0.5, *, tolerance: float = 1e-6) -> tuple[float, float] | None:
    """Return the range of alpha + beta in which the CDFs cross more than once, for a given mean.

    Here mean = alpha / (alpha + beta). The lemma, stated for any alpha, beta > 0, fails there. Sums from LEAST_SUM
    to 4 are tried in steps of 3% and refined at the ends; if it fails from LEAST_SUM on, the lower end is returned
    as 0.

    Parameters
    ----------
    mean
        The mean.
    tolerance
        How accurate the ends are.

    Returns
    -------
    tuple or None
        The range, or None if there is none.

    Examples
    --------
    >>> from rlsvi_paper.theory.optimism import failing_sums
    >>> low, high = failing_sums(0.5)
    >>> low < high
    True
    """
    if not 0 < positive("mean", mean) < 1:
        raise ValueError(f"mean must lie strictly between 0 and 1, got {shown(mean)}")
    if positive("tolerance", tolerance) < 1e-12:
        raise ValueError(f"tolerance must be at least 1e-12, the rounding, got {tolerance!r}")

    def fails(total: float) -> bool:
        return len(_changes(mean * total, (1 - mean) * total, 2001)) > 1

    def end(failing: float, fine: float) -> float:
        while abs(failing - fine) > tolerance:
            middle = 0.5 * (failing + fine)
            failing, fine = (middle, fine) if fails(middle) else (failing, middle)
        return failing

    sums = LEAST_SUM * 1.03 ** np.arange(math.ceil(math.log(4.0 / LEAST_SUM) / math.log(1.03)) + 1)
    failing = [i for i, total in enumerate(sums) if fails(float(total))]
    if not failing:
        return None
    first, last = failing[0], failing[-1]
    low = end(float(sums[first]), float(sums[first - 1])) if first > 0 else 0.0
    high = end(float(sums[last]), float(sums[last + 1])) if last + 1 < len(sums) else float(sums[last])
    return low, high


def _cdf_difference(a: float, b: float, u: Floats) -> Floats:
    """Return F_normal - F_beta at x = 1 / (1 + exp(-u)), computed from the nearer end for accuracy."""
    from scipy.special import betainc, expit, ndtr

    x, rest = expit(u), expit(-u)
    root, mean = math.sqrt(a + b), a / (a + b)
    left = ndtr(root * (x - mean)) - betainc(a, b, x)
    right = betainc(b, a, rest) - ndtr(root * (rest - b / (a + b)))
    return np.asarray(np.where(u < 0, left, right))


def _changes(a: float, b: float, points: int) -> list[tuple[float, float, float]]:
    """Return neighbours u with different signs, and the sign of the first."""
    reach = min(LARGEST_LOGIT, 40.0 / min(a, b, 1.0))
    u = np.sinh(np.linspace(-1.0, 1.0, points) * math.asinh(reach))
    difference = _cdf_difference(a, b, u)
    sign = np.where(np.abs(difference) < 1e-13, 0.0, np.sign(difference))
    # The normal has mass beyond both ends: its CDF is the higher one at 0, the lower one at 1.
    u, sign = (
        np.concatenate([[-LARGEST_LOGIT], u[sign != 0], [LARGEST_LOGIT]]),
        np.concatenate([[1.0], sign[sign != 0], [-1.0]]),
    )
    return [(float(u[i]), float(u[i + 1]), float(sign[i])) for i in np.flatnonzero(np.diff(sign))]


def _sign_change(a: float, b: float, low: float, high: float, sign: float) -> float:
    """Find a sign change between two points by bisection."""
    for _ in range(60):
        middle = 0.5 * (low + high)
        if _cdf_difference(a, b, np.array([middle]))[0] * sign > 0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
