"""The least difference of two convex functions, with a bound on its values between the points evaluated.

E[(X - t)+] is convex in t, so between two points it lies above its tangents there, and E[(Y - t)+] below its
chord. The difference of the two is at least that of tangents and chord, which is piecewise linear. If that bound
is lower than the least value seen by more than a tolerance, the interval is halved.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rlsvi.core.checks import finite, number, positive, shaped, shown, whole
from rlsvi.core.compile import Floats
from rlsvi.theory.excess import beta_excess, normal_excess

Pair = tuple[Floats, Floats]
ROUNDING = 1e-14  # of the closed forms


class Gap(NamedTuple):
    """The least E[(X - t)+] - E[(Y - t)+] over t, its error bound and the t where it occurs. >= 0: optimistic.

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
    """Return the minimum of `optimist` - `other` over [low, high], both convex.

    optimist : maps t to values and slopes. other : maps t to values and error bounds.
    tolerance : how far the bound may be below the least value seen. points, most : initial and maximum number
    of evaluations; if `most` are not enough, the reported error is larger than the tolerance.
    """
    positive("tolerance", tolerance)
    whole("most", most, whole("points", points, 2, 10**6))
    low, high = number("low", low), number("high", high)
    if not low <= high:
        raise ValueError(f"low must be at most high, got {shown(low)} and {shown(high)}")
    for name, curve in (("optimist", optimist), ("other", other)):
        if not callable(curve):
            raise TypeError(f"{name} must be a function of t, got {shown(curve)}")
    t = np.linspace(low, high, points) if low < high else np.array([float(low)])
    table = _looked_at(optimist, other, t)
    while True:
        t, value, slope, below, _ = table
        gaps, bounds = finite("the gap", value - below), _between(t, value, slope, below)
        wanted = bounds < gaps.min() - tolerance
        middle = 0.5 * (t[:-1] + t[1:])[wanted]
        middle = middle[(middle > t[:-1][wanted]) & (middle < t[1:][wanted])]
        if not len(middle) or len(t) + len(middle) > most:
            break
        table = np.concatenate([table, _looked_at(optimist, other, middle)], axis=1)
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


def _looked_at(optimist: Callable[[Floats], Pair], other: Callable[[Floats], Pair], t: Floats) -> Floats:
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
