"""The prior of a table by empirical Bayes: what the cells tried so far imply about cells not tried yet.

    v_c = the mean target of cell c, for the K cells tried
    mean = sum_c v_c / K
    s^2 = (u^2 + sum_c (v_c - mean)^2) / (1 + K)                               of the values; u: the usual reward
    sigma^2 = (scale + misfit / 2) / (shape + n / 2)                           of the targets within a cell
    ridge = sigma^2 / s^2

A fixed ridge shrinks a value known from one visit towards the prior more than its noise justifies, and claims that
untried cells lie within a few sigma of the prior. Where outcomes are deterministic, sigma falls to 0 and nothing
new is tried. With the ridge from the evidence, a single deterministic outcome is believed, and an untried cell is
as uncertain as the values are diverse.
"""

import numpy as np

from rlsvi.agents.noise import Model
from rlsvi.agents.practice.history import CountedHistory
from rlsvi.core.compile import Floats


def empirical_prior(
    history: CountedHistory, b: Floats, mean: float | None, unit: float, model: Model
) -> tuple[float, float]:
    """Return the prior mean of all cells, unless given, and the ridge, from the targets b of all transitions.

    `unit` is the usual reward, and `model` describes the noise.
    """
    steps, actions = history.transitions, history.legal.shape[1]
    cell = steps.row * actions + steps.action
    counts, sums = np.bincount(cell, steps.times), np.bincount(cell, steps.times * b)
    tried = counts > 0
    v = sums[tried] / counts[tried]
    level = float(v.mean()) if mean is None else mean
    spread = (unit**2 + float(((v - level) ** 2).sum())) / (1 + len(v))
    noise = model.sigma**2
    if model.shape > 0:
        misfit = float((steps.times * (b - (sums / np.maximum(counts, 1))[cell]) ** 2).sum())
        noise = (model.scale + 0.5 * misfit) / (model.shape + 0.5 * float(steps.times.sum()))
    return level, noise / spread
