"""The length scale of waves by evidence: the one under which the present targets are most likely.

    for each length n/16, n/8, .., 4 n, of n numbers
        log p(b) = 1/2 log |ridge prior| / |P| - (shape + T/2) log(scale + misfit/2)

for targets b less their mean, at up to `SAMPLE` steps spread evenly over the history. The number of waves grows
with the data, to a quarter of the steps.
"""

import math
from copy import copy

import numpy as np

from rlsvi.agents.noise import Model
from rlsvi.agents.practice.episodes import EpisodeHistory
from rlsvi.agents.practice.lookup import Lookup
from rlsvi.agents.practice.regression import FeatureRegression
from rlsvi.core.compile import Floats

SAMPLE = 2000  # steps that judge a length
JUDGED = 200  # waves that judge a length
FEWEST = 64  # waves to begin with
STEPS_PER_WAVE = 4
LENGTHS = 2.0 ** np.arange(-4, 2.5, 0.5)  # in units of the number of measured numbers


def rescaled(lookup: Lookup, history: EpisodeHistory, b: Floats, model: Model, alike: float) -> Lookup:
    """Return a lookup scaled by all observations, with the waves that the targets b of all steps support best."""
    given = lookup.basis.basis
    count = min(given.features, max(FEWEST, len(b) // STEPS_PER_WAVE))
    few = min(count, JUDGED)

    def support(length: float) -> float:
        return evidence(lookup.with_waves(few, length), history, b, model, alike)

    lookup = copy(lookup)
    lookup.rescale(history.x)
    lengths = lookup.basis.layout.measured * LENGTHS
    return lookup.with_waves(count, float(max(lengths, key=support)) if given.length is None else given.length)


def evidence(lookup: Lookup, history: EpisodeHistory, b: Floats, model: Model, alike: float) -> float:
    """Return the log marginal likelihood of the targets, up to a constant."""
    steps = history.transitions
    chosen = np.unique(np.linspace(0, len(b) - 1, min(len(b), SAMPLE)).astype(np.int64))
    action, row, b = steps.action[chosen], np.arange(len(chosen)), b[chosen] - b[chosen].mean()
    phi = lookup.features(history.x[steps.row[chosen]])
    regression = FeatureRegression(lookup.actions, phi.shape[1], alike)
    regression.extend(phi)
    regression.add(row, action, np.ones(len(row)))
    regression.factor(model.ridge)
    sums = np.zeros((len(row), lookup.actions))
    sums[row, action] = b
    theta = regression.fit(sums, np.zeros((lookup.actions, phi.shape[1])))
    misfit = float(((b - regression.values(theta)[row, action]) ** 2).sum()) + regression.penalty(theta)
    if model.shape == 0:
        return regression.log_shrinkage() - misfit / (2 * model.sigma**2)
    return regression.log_shrinkage() - (model.shape + len(row) / 2) * math.log(model.scale + misfit / 2)
