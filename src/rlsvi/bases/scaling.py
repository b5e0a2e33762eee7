"""Observations scaled to [0, 1]: by the bounds of the space, or where there are none by what has been observed.

A range grows only when an observation leaves it, and then by half of its width at least, so that it happens
O(log) times. Whoever uses it must then work out all features anew, from the observations as they were.
"""

from typing import NamedTuple

import numpy as np

from rlsvi.core.compile import Bools, Floats

MARGIN, GROWTH = 0.1, 1.5


class Ranges(NamedTuple):
    """Where each measured number lies; NaN: nothing is known yet."""

    low: Floats  # (m,)
    high: Floats
    free: Bools  # (m,) whether the range follows what is observed


def ranges_of(low: list[float | None], high: list[float | None]) -> Ranges:
    """The ranges that bounds leave; None where there is no bound."""
    least, most = (np.array([np.nan if v is None else v for v in side], dtype=np.float64) for side in (low, high))
    free = np.isnan(least) | np.isnan(most)
    return Ranges(np.where(free, np.nan, least), np.where(free, np.nan, most), free)


def grown(ranges: Ranges, x: Floats) -> Ranges | None:
    """Ranges that hold all of x (N, m) too; None if these do already. Bounds of a space are never changed."""
    if not len(x) or not ranges.free.any():
        return None
    least, most = x.min(axis=0), x.max(axis=0)
    with np.errstate(invalid="ignore"):
        new = ranges.free & np.isnan(ranges.low)
        below, above = ranges.free & (least < ranges.low), ranges.free & (most > ranges.high)
    if not (new | below | above).any():
        return None
    width = ranges.high - ranges.low
    low = np.where(below, np.fmin(least, ranges.high - GROWTH * width), ranges.low)
    high = np.where(above, np.fmax(most, ranges.low + GROWTH * width), ranges.high)
    pad = np.where(most > least, MARGIN * (most - least), 1.0)
    return Ranges(np.where(new, least - pad, low), np.where(new, most + pad, high), ranges.free)


def scaled(ranges: Ranges, x: Floats) -> Floats:
    """x (.., m) in [0, 1]; what lies outside of the ranges is taken at their edge."""
    return np.clip((x - ranges.low) / (ranges.high - ranges.low), 0.0, 1.0)
