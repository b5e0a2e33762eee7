"""The length scale of waves: that whose regression on half of the episodes predicts the targets of the rest best.

    for each length n/16, n/16 sqrt 2, n/8, .., n, of n numbers
        fit the targets of every other episode, predict those of the rest, and compare

at up to `SAMPLE` steps spread evenly over the history. Episodes are held out as a whole: successive steps are
alike, and the marginal likelihood, which takes their noise to be independent, prefers lengths that are too short.
The number of waves grows with the data, to a quarter of the steps.
"""

from copy import copy
from typing import NamedTuple

import numpy as np

from rlsvi.agents.practice.episodes import EpisodeHistory
from rlsvi.agents.practice.lookup import Lookup
from rlsvi.agents.practice.regression import FeatureRegression
from rlsvi.core.compile import Bools, Floats, Longs

SAMPLE = 2000  # steps that judge a length
JUDGED = 200  # waves that judge a length
FEWEST = 64  # waves to begin with
STEPS_PER_WAVE = 4
USUAL = 0.25  # length of a single episode, in the same units
LENGTHS = 2.0 ** np.arange(-4, 0.5, 0.5)  # in units of the number of measured numbers


class Sample(NamedTuple):
    """Steps that judge a length."""

    x: Floats  # (n, width) their rows
    action: Longs
    odd: Bools  # whether the step belongs to every other episode, which is held out
    b: Floats  # their targets


def rescaled(lookup: Lookup, history: EpisodeHistory, b: Floats, ridge: float, alike: float) -> Lookup:
    """Return a lookup scaled by all observations; waves are those that the targets b support best."""
    lookup = copy(lookup)
    lookup.rescale(lookup.seen(history.x))
    if lookup.waves is None:  # a picture
        return lookup
    steps, ends, chosen = history.transitions, history.last.astype(np.int64), judges(len(b))
    odd = (ends.cumsum() - ends)[chosen] % 2 == 1
    sample = Sample(history.x[steps.row[chosen]], steps.action[chosen], odd, b[chosen])
    return best_waves(lookup, sample, len(b), ridge, alike)


def judges(steps: int) -> Longs:
    """Return which of all steps judge a length."""
    return np.unique(np.linspace(0, steps - 1, min(steps, SAMPLE)).astype(np.int64))


def best_waves(lookup: Lookup, sample: Sample, steps: int, ridge: float, alike: float) -> Lookup:
    """Return a lookup with as many waves as the steps allow, of the length that predicts best."""
    given = lookup.basis.basis
    count = min(given.features, max(FEWEST, steps // STEPS_PER_WAVE))
    few = min(count, JUDGED)

    def error(length: float) -> float:
        return held_out_error(lookup.with_waves(few, length), sample, ridge, alike)

    n = lookup.basis.layout.measured
    best = min(n * LENGTHS, key=error) if sample.odd.any() else n * USUAL
    return lookup.with_waves(count, float(best) if given.length is None else given.length)


def held_out_error(lookup: Lookup, sample: Sample, ridge: float, alike: float) -> float:
    """Return the squared error of predictions of every other episode from the rest."""
    action, odd, b, row = sample.action, sample.odd, sample.b - sample.b.mean(), np.arange(len(sample.b))
    phi = lookup.features(sample.x)
    regression = FeatureRegression(lookup.actions, phi.shape[1], alike)
    regression.extend(phi)
    regression.add(row[~odd], action[~odd], np.ones(np.count_nonzero(~odd)))
    regression.factor(ridge)
    sums = np.zeros((len(row), lookup.actions))
    sums[row[~odd], action[~odd]] = b[~odd]
    theta = regression.fit(sums, np.zeros((lookup.actions, phi.shape[1])))
    return float(((b - regression.values(theta)[row, action])[odd] ** 2).sum())
