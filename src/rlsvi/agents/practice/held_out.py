"""The error by which features are tuned: that of predicting half of the episodes from the rest.

It is measured at up to `SAMPLE` steps spread evenly over the history. Episodes are held out as a whole: successive
steps are alike, and the marginal likelihood, which takes their noise to be independent, prefers lengths that are
too short.
"""

from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.practice.history import EpisodeHistory
from rlsvi.agents.practice.parts import regression_of
from rlsvi.core.compile import Bools, Floats, Longs

SAMPLE = 2000  # steps that judge features


class Sample(NamedTuple):
    """Steps that judge features."""

    x: Floats  # (n, width) their rows
    action: Longs  # (n,), or (n, k) with the numbers of the values of its parts
    episode: Longs  # the number of their episode
    b: Floats  # their targets

    def of(self, some: Any) -> "Sample":
        """Return some of the steps, given as a slice or as booleans, which are copied."""
        return Sample(self.x[some], self.action[some], self.episode[some], self.b[some])


def sample_of(history: EpisodeHistory, b: Floats) -> Sample:
    """Return the steps of a history that judge features by the targets b."""
    steps, ends, chosen = history.transitions, history.last.astype(np.int64), judges(len(b))
    episode = (ends.cumsum() - ends)[chosen]
    return Sample(history.x[steps.row[chosen]], steps.action[chosen], episode, b[chosen])


def judges(steps: int) -> Longs:
    """Return which of all steps judge features."""
    return np.unique(np.linspace(0, steps - 1, min(steps, SAMPLE)).astype(np.int64))


def held_out_error(phi: Floats, actions: int, sample: Sample, ridge: float, parts: tuple[int, ...] = ()) -> float:
    """Return the squared error of predictions of every other episode from the rest, with features phi (n, d)."""
    odd, sample = sample.episode % 2 == 1, centred(sample)
    return float(errors_of(phi, weights(phi, actions, sample, ~odd, ridge, parts), sample)[odd].sum())


def centred(sample: Sample) -> Sample:
    """Return a sample whose targets have the mean 0, as the prior has."""
    return sample._replace(b=sample.b - sample.b.mean())


def weights(
    phi: Floats,
    actions: int,
    sample: Sample,
    known: Bools,
    ridge: float,
    parts: tuple[int, ...] = (),
) -> Floats:
    """Return the weights (A, d) of a regression on the steps that are `known`."""
    action, b, row = sample.action, sample.b, np.arange(len(sample.b))
    regression = regression_of(actions, phi.shape[1], parts)
    regression.extend(phi)
    regression.add(row[known], action[known], np.ones(np.count_nonzero(known)))
    regression.factor(ridge)
    sums = np.zeros((len(row), actions))
    np.put_along_axis(sums, action.reshape(len(row), -1), np.where(known, b, 0.0)[:, None], axis=1)
    return regression.fit(sums)


def errors_of(phi: Floats, theta: Floats, sample: Sample) -> Floats:
    """Return the squared errors of predictions of all steps by weights theta."""
    chosen = theta[sample.action]
    predicted = np.einsum("nd,nd->n", phi, chosen if chosen.ndim == 2 else chosen.sum(axis=1))
    errors: Floats = (sample.b - predicted) ** 2
    return errors
