"""An estimate with its interval."""

import math
from typing import Any, NamedTuple

import numpy as np

from rlsvi.core.checks import shown, whole


class Interval(NamedTuple):
    """An estimate and its interval. If both ends are infinite, the data do not bound it.

    Attributes
    ----------
    value
        The estimate.
    low, high
        The ends of its interval.

    Examples
    --------
    >>> from rlsvi.study.statistics import Interval
    >>> Interval(0.5, 0.25, 0.75).high
    0.75
    """

    value: float
    low: float
    high: float

    def inside(self, low: float, high: float) -> bool:
        """Return whether the whole interval lies within [low, high]."""
        return low <= self.low and self.high <= high

    def overlaps(self, low: float, high: float) -> bool:
        """Return whether the interval has a point in common with [low, high]."""
        return self.low <= high and low <= self.high

    @property
    def bounded(self) -> bool:
        """Whether both ends are finite."""
        return bool(np.isfinite(self.low) and np.isfinite(self.high))

    def __str__(self) -> str:
        if self.low == -np.inf and self.high == np.inf:
            return "undecided" if np.isinf(self.value) else f"{self._short(self.value)} (interval unknown)"
        if self.low == np.inf:
            return self._short(np.inf)
        return f"{self._short(self.value)} ({self._short(self.low)} to {self._short(self.high)})"

    def _short(self, number: float) -> str:
        """Format a number with two digits of the interval's width."""
        if np.isinf(number):
            return "infinity" if number > 0 else "-infinity"
        if abs(number) >= 1e6:
            return f"{number:.3g}"
        width = self.high - self.low if self.bounded and self.high > self.low else abs(number) / 10
        return f"{number:.{min(max(1 - int(np.floor(np.log10(width))), 0), 9) if width else 0}f}"


def check_level(level: Any, name: str = "", draws: Any = None, most: int | None = None) -> None:
    """Check the probability of an interval, and that there are enough draws for one beyond either end."""
    is_number = isinstance(level, int | float | np.integer | np.floating) and not isinstance(level, bool)
    if not is_number or not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, such as 0.95, got {shown(level)}")
    if name:
        whole(name, draws, math.ceil(round(2 / (1 - level), 9)), most)
