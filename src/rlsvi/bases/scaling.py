"""Observations scaled to [0, 1]: by given bounds, or by what has been observed within the bounds of the space.

The bounds of a space often lie far beyond all that happens; features of where nothing happens are wasted. A range
grows only when an observation leaves it, and then by half of its width at least, so that it happens O(log) times.
Whoever uses it must then work out all features anew, from the observations as they were.
"""

from typing import NamedTuple

import numpy as np

from rlsvi.core.compile import Floats

MARGIN, GROWTH = 0.1, 1.5


class Ranges(NamedTuple):
    """Where each measured number lies; NaN: nothing is known yet."""

    low: Floats  # (m,)
    high: Floats
    least: Floats  # what no range goes beyond; infinite where there is no bound
    most: Floats


def ranges_of(low: list[float | None], high: list[float | None], *, observed: bool = False) -> Ranges:
    """The ranges that bounds give (None: no bound), or with `observed` what is observed, within the bounds."""
    least = np.array([-np.inf if v is None else v for v in low], dtype=np.float64)
    most = np.array([np.inf if v is None else v for v in high], dtype=np.float64)
    open_ = np.full(len(least), observed) | np.isinf(least) | np.isinf(most)
    return Ranges(np.where(open_, np.nan, least), np.where(open_, np.nan, most), least, most)


def grown(ranges: Ranges, x: Floats) -> Ranges | None:
    """Ranges that hold all of x (N, m) too, as far as the bounds allow; None if these do already."""
    if not x.size:
        return None
    inside = np.clip(x, ranges.least, ranges.most)
    least, most = inside.min(axis=0), inside.max(axis=0)
    new, below, above = np.isnan(ranges.low), least < ranges.low, most > ranges.high
    if not (new | below | above).any():
        return None
    width = ranges.high - ranges.low
    low = np.where(below, np.fmin(least, ranges.high - GROWTH * width), ranges.low)
    high = np.where(above, np.fmax(most, ranges.low + GROWTH * width), ranges.high)
    pad = np.where(most > least, MARGIN * (most - least), 1.0)
    low, high = np.where(new, least - pad, low), np.where(new, most + pad, high)
    return ranges._replace(low=np.fmax(low, ranges.least), high=np.fmin(high, ranges.most))


def scaled(ranges: Ranges, x: Floats) -> Floats:
    """x (.., m) in [0, 1]; what lies outside of the ranges is taken at their edge."""
    return np.clip((x - ranges.low) / (ranges.high - ranges.low), 0.0, 1.0)
