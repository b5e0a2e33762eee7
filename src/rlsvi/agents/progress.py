"""A run that earns less than it did at random says so.

The first episodes are played almost at random. After 32, 64, 128, .. episodes the returns of the last quarter of
all episodes are compared with the worst quarter of the first eight.
"""

import warnings

import numpy as np

from rlsvi.core.compile import Floats

FIRST = 8  # episodes that count as random
CHECKED_FROM = 32  # episodes


class NoProgressWarning(UserWarning):
    """Recent episodes earn less than the first ones, which were played almost at random."""


def is_checked(episodes: int) -> bool:
    """Return whether progress is checked after this many episodes."""
    return episodes >= CHECKED_FROM and episodes & (episodes - 1) == 0


def nothing_earned() -> Floats:
    """Return what `earned` begins with: the returns of the first episodes, and the sum of recent ones."""
    return np.zeros(FIRST + 1)


def earned(before: Floats, episodes: int, total: float) -> Floats:
    """Return the summary with one more return. The sum is that of the last quarter when progress is checked."""
    after = before.copy()
    if episodes <= FIRST:
        after[episodes - 1] = total
    begins = episodes % 3 == 0 and is_checked(episodes // 3 * 4)
    after[FIRST] = 0.0 if begins else after[FIRST] + total
    return after


def warn_if_behind(first: Floats, recent: float, episodes: int, remedy: str) -> None:
    """Warn if the recent episodes earn less than most of the first ones."""
    usual = float(np.quantile(first, 0.25))
    if recent < usual - 1e-9 * abs(usual):
        warnings.warn(
            f"after {episodes} episodes, the recent ones earn {recent:.4g}, where most of the first {FIRST}, "
            f"played almost at random, earned more than {usual:.4g}: {remedy}",
            NoProgressWarning,
            stacklevel=5,
        )
