"""A run that earns less than it did at random says so.

The first episodes are played almost at random. After 32, 64, 128, .. episodes the median return of the last
quarter of all episodes is compared with the worst quarter of the first.
"""

import warnings

import numpy as np

from rlsvi.agents.practice.episodes import EpisodeHistory
from rlsvi.core.compile import Floats

FIRST = 8  # episodes that count as random
CHECKED_FROM = 32  # episodes


class NoProgressWarning(UserWarning):
    """Recent episodes earn less than the first ones, which were played almost at random."""


def returns_of(history: EpisodeHistory) -> Floats:
    """Return the sum of rewards of every complete episode."""
    ends = np.flatnonzero(history.last)
    sums = np.concatenate([[0.0], np.cumsum(history.transitions.reward)])[ends + 1]
    returns: Floats = np.diff(sums, prepend=0.0)
    return returns


def warn_if_behind(history: EpisodeHistory, episodes: int) -> None:
    """Warn, after 32, 64, .. episodes, if the recent ones earn less than the first, unless those were dropped."""
    if episodes < CHECKED_FROM or episodes & (episodes - 1):
        return
    returns = returns_of(history)
    if len(returns) != episodes:
        return
    first, recent = np.quantile(returns[:FIRST], 0.25), np.median(returns[-(episodes // 4) :])
    if recent < first - 1e-9 * abs(first):
        warnings.warn(
            f"after {episodes} episodes, the recent ones earn {recent:.4g}, where most of the first {FIRST}, "
            f"played almost at random, earned more than {first:.4g}: try repeat=1 or 4, larger gamma= or trace=, "
            "or another basis=, such as bases.Waves(features=1000) or features of your own",
            NoProgressWarning,
            stacklevel=5,
        )
