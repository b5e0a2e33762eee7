"""Which of the measured numbers matter, found by predicting held-out episodes without some of them.

    length = the length scale with which all numbers predict best
    e_i = the error of predictions without number i
    for each number i, in the order of e_i
        leave it out if the rest predict better without it

A number that is noise makes predictions worse, since the weights of its features are noise too. One that matters
makes them better, unless there are too few data to tell. The margin, and the episodes that must agree, keep what
is useful from being left out by chance; what was left out is judged anew when the data have doubled.
"""

from collections.abc import Callable

import numpy as np

from rlsvi.bases.waves import LENGTHS
from rlsvi.core.compile import Bools, Floats, Longs

FEWEST = 6  # episodes that are needed to tell
MARGIN = 0.02  # by which predictions must be better without a number, as a part of their error
AGREE = 2.0  # standard errors, over episodes, by which they must be better


def relevant_numbers(n: int, errors: Callable[[Bools, float], Floats], episode: Longs) -> Bools:
    """Return which of n numbers are relevant.

    errors : a function of which numbers are kept, and of the length scale of waves, to the squared errors of
        predictions of all steps, first those of episodes with an even number.
    episode : the number of the episode of every step.
    """
    kept = np.ones(n, np.bool_)
    which = np.concatenate([episode[episode % 2 == half] for half in (0, 1)])
    if len(np.unique(which)) < FEWEST:
        return kept
    length = min((float(n * each) for each in LENGTHS), key=lambda each: float(errors(kept, each).sum()))
    error = errors(kept, length)
    alone = [float(errors(without(kept, i), length).sum()) for i in range(n)]
    for i in np.argsort(alone, kind="stable")[: n - 1]:
        fewer = errors(without(kept, i), length)
        if not is_better(fewer, error, which):
            break
        kept, error = without(kept, i), fewer
    return kept


def without(kept: Bools, i: int) -> Bools:
    """Return the numbers kept but for one."""
    fewer = kept.copy()
    fewer[i] = False
    return fewer


def is_better(fewer: Floats, error: Floats, episode: Longs) -> bool:
    """Return whether errors have become less by a margin, and in most episodes."""
    if not fewer.sum() < (1 - MARGIN) * error.sum():
        return False
    _, numbered = np.unique(episode, return_inverse=True)
    gain = np.bincount(numbered, error - fewer)
    return bool(gain.mean() > AGREE * gain.std(ddof=1) / np.sqrt(len(gain)))
