"""A run that earns less than it did at random says so, and one that never finds a reward.

The first episodes are played almost at random. After 32, 64, 128, .. episodes the returns of the last quarter of
all episodes are compared with the worst quarter of the first eight.

As long as exploration finds something new, a reward may yet be found, however long there was none. With a table,
Turing's estimate is that the next step shows something new with probability (outcomes met once) / (steps), so that
the next episode shows (outcomes met once) / (episodes) new outcomes. Below 1/16 of one, the search has ended. With
features, it has ended if the later half of the episodes did not widen the range of any observed number by a tenth.
"""

import numpy as np

from rlsvi.agents.contract import warn
from rlsvi.core.compile import Floats

FIRST = 8  # episodes that count as random
CHECKED_FROM = 32  # episodes
SELDOM = 1 / 16  # new outcomes in an episode
WIDER = 0.1  # of the range of an observed number


class NoProgressWarning(UserWarning):
    """Recent episodes earn less than the first ones, played almost at random, or none has ever had a reward."""


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
        warn(
            f"after {episodes} episodes, the recent ones earn {recent:.4g}, where most of the first {FIRST}, "
            f"played almost at random, earned more than {usual:.4g}: {remedy}",
            NoProgressWarning,
        )


def is_explored(times: Floats, episodes: int) -> bool:
    """Return whether hardly any new outcome is to be expected, given how many times each was met."""
    return bool(np.count_nonzero(times == 1.0) < SELDOM * episodes)


def is_no_wider(x: Floats, before: int) -> bool:
    """Return whether the rows of `x` from `before` on have hardly widened the range of any number."""
    low, high = x[:before].min(axis=0), x[:before].max(axis=0)
    margin = WIDER * (high - low)
    return bool((x.min(axis=0) >= low - margin).all() and (x.max(axis=0) <= high + margin).all())


def warn_of_no_reward(episodes: int, remedy: str) -> None:
    """Warn that no reward was found, and that exploration has come to an end."""
    warn(
        f"there was no reward in any of {episodes} episodes, and exploration makes no headway any more: make "
        f"sure that a reward can be reached before an episode ends, reward steps on the way to it, or {remedy}",
        NoProgressWarning,
    )
