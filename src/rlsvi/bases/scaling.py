"""Observations scaled to [0, 1], by given bounds or by the observed range within the bounds of the space.

The bounds of a space often lie far beyond everything that happens, and features of unvisited regions are wasted. A
range grows only when an observation leaves it, and then by at least half its width, so this happens O(log) times.
All features must then be recomputed from the original observations.
"""

from typing import NamedTuple

import numpy as np

from rlsvi.bases.waves import WIDTH
from rlsvi.core.compile import Bools, Floats

MARGIN, GROWTH = 0.1, 1.5
SMALLEST = 1e-9  # the least width of a range, relative to its numbers


class Ranges(NamedTuple):
    """The range of each measured number; NaN if nothing is known yet."""

    low: Floats  # (m,)
    high: Floats
    least: Floats  # limits of the ranges; infinite if there is no bound
    most: Floats
    observed: Bools  # whether it follows what is observed; the others are given


class Seen(NamedTuple):
    """What ranges depend on: the mean, standard deviation, minimum and maximum of each number of many rows."""

    mean: Floats  # (m,)
    deviation: Floats
    least: Floats
    most: Floats


def seen_in(x: Floats) -> Seen:
    """Return what is needed of the numbers x (N, m)."""
    return Seen(x.mean(axis=0), x.std(axis=0), x.min(axis=0), x.max(axis=0))


def ranges_of(low: list[float | None], high: list[float | None], *, observed: bool = False) -> Ranges:
    """Return the ranges given by bounds (None: no bound); with `observed`, all are unknown within the bounds."""
    least = np.array([-np.inf if v is None else v for v in low], dtype=np.float64)
    most = np.array([np.inf if v is None else v for v in high], dtype=np.float64)
    open_ = np.full(len(least), observed) | np.isinf(least) | np.isinf(most)
    return Ranges(np.where(open_, np.nan, least), np.where(open_, np.nan, most), least, most, open_)


def grown(ranges: Ranges, x: Floats) -> Ranges | None:
    """Return ranges that also contain x (N, m), as far as the bounds allow, or None if these already do."""
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
    pad = np.where(most > least, MARGIN * (most - least), np.fmax(1.0, SMALLEST * np.abs(most)))
    low, high = np.where(new, least - pad, low), np.where(new, most + pad, high)
    return ranges._replace(low=np.fmax(low, ranges.least), high=np.fmin(high, ranges.most))


def scaled(ranges: Ranges, x: Floats) -> Floats:
    """Scale x (.., m) to [0, 1]; values outside the ranges are clipped."""
    return np.clip((x - ranges.low) / (ranges.high - ranges.low), 0.0, 1.0)


def spread(ranges: Ranges, seen: Seen) -> Ranges:
    """Return ranges of WIDTH standard deviations on each side of the mean, where none are given.

    A number that does not vary counts as one with standard deviation 1.
    """
    mean, deviation = seen.mean, seen.deviation
    deviation = np.where(deviation > 1e-9 * np.abs(mean), deviation, 1.0)
    low = np.where(ranges.observed, mean - WIDTH * deviation, ranges.low)
    return ranges._replace(low=low, high=np.where(ranges.observed, mean + WIDTH * deviation, ranges.high))
