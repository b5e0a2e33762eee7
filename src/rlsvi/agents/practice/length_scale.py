"""The length scale of waves: that whose regression on half of the episodes predicts the targets of the rest best.

    for each length n/16, n/16 sqrt 2, n/8, .., n, of n numbers
        fit the targets of every other episode, predict those of the rest, and compare

at up to `SAMPLE` steps spread evenly over the history. Episodes are held out as a whole: successive steps are
alike, and the marginal likelihood, which takes their noise to be independent, prefers lengths that are too short.
The number of waves grows with the data, to a quarter of the steps.
"""

from copy import copy

import numpy as np

from rlsvi.agents.practice.episodes import EpisodeHistory
from rlsvi.agents.practice.lookup import Lookup
from rlsvi.agents.practice.regression import FeatureRegression
from rlsvi.core.compile import Floats

SAMPLE = 2000  # steps that judge a length
JUDGED = 200  # waves that judge a length
FEWEST = 64  # waves to begin with
STEPS_PER_WAVE = 4
USUAL = 0.25  # length of a single episode, in the same units
LENGTHS = 2.0 ** np.arange(-4, 0.5, 0.5)  # in units of the number of measured numbers


def rescaled(lookup: Lookup, history: EpisodeHistory, b: Floats, ridge: float, alike: float) -> Lookup:
    """Return a lookup scaled by all observations; waves are those that the targets b support best."""
    lookup = copy(lookup)
    lookup.rescale(history.x)
    if lookup.waves is None:  # a picture
        return lookup
    given = lookup.basis.basis
    count = min(given.features, max(FEWEST, len(b) // STEPS_PER_WAVE))
    few = min(count, JUDGED)

    def error(length: float) -> float:
        return held_out_error(lookup.with_waves(few, length), history, b, ridge, alike)

    n = lookup.basis.layout.measured
    best = n * USUAL if history.last[:-1].sum() == 0 else min(n * LENGTHS, key=error)
    return lookup.with_waves(count, float(best) if given.length is None else given.length)


def held_out_error(lookup: Lookup, history: EpisodeHistory, b: Floats, ridge: float, alike: float) -> float:
    """Return the squared error of predictions of every other episode from the rest."""
    steps, ends = history.transitions, history.last.astype(np.int64)
    chosen = np.unique(np.linspace(0, len(b) - 1, min(len(b), SAMPLE)).astype(np.int64))
    action, row, odd = steps.action[chosen], np.arange(len(chosen)), (ends.cumsum() - ends)[chosen] % 2 == 1
    b = b[chosen] - b[chosen].mean()
    phi = lookup.features(history.x[steps.row[chosen]])
    regression = FeatureRegression(lookup.actions, phi.shape[1], alike)
    regression.extend(phi)
    regression.add(row[~odd], action[~odd], np.ones(np.count_nonzero(~odd)))
    regression.factor(ridge)
    sums = np.zeros((len(row), lookup.actions))
    sums[row[~odd], action[~odd]] = b[~odd]
    theta = regression.fit(sums, np.zeros((lookup.actions, phi.shape[1])))
    return float(((b - regression.values(theta)[row, action])[odd] ** 2).sum())
