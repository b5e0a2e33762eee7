"""Value iteration over a log that is read in chunks: nothing is kept but sums and weights.

    G_a = the sum of phi phi' over the steps with action a                           one pass over the log
    until Q changes little                                                           one pass each
        b_i = the lambda-return from step i, as in value_iteration.py, but not beyond the end of its chunk
        y_a = the sum of phi b over the steps with action a
        Q = Phi (posterior mean for y)

Every chunk gives its own sums, and these are added in the order of the chunks. Wherever they are computed, the
weights therefore have the same bits for the same size of a chunk.
"""

from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rlsvi.agents.noise import Model
from rlsvi.agents.practice.episodes import EpisodeHistory
from rlsvi.agents.practice.history import Transitions
from rlsvi.agents.practice.lookup import Lookup
from rlsvi.agents.practice.regression import FeatureRegression
from rlsvi.agents.practice.value_iteration import SweptValues, targets, values_of
from rlsvi.core.blas import one_thread
from rlsvi.core.compile import Floats

if TYPE_CHECKING:
    from rlsvi.logs.chunks import Each
    from rlsvi.logs.stream import Chunk


def features_of(chunk: "Chunk", lookup: Lookup) -> tuple[EpisodeHistory, FeatureRegression]:
    """Return a chunk as a history, and the features of its rows."""
    steps = Transitions(
        np.arange(len(chunk.action)), chunk.action, chunk.reward, chunk.next, np.ones(len(chunk.action))
    )
    history = EpisodeHistory.of(chunk.x, chunk.legal, steps, chunk.last)
    regression = FeatureRegression(lookup.actions, lookup.features(chunk.x[:1]).shape[1])
    regression.extend(chunk.x, lookup.features, lookup.threads)
    return history, regression


def gram_of(chunk: "Chunk", lookup: Lookup) -> Floats:
    """Return the sums of phi phi' over the steps of each action, (A, d, d)."""
    with one_thread():
        history, regression = features_of(chunk, lookup)
        steps = history.transitions
        regression.add(steps.row, steps.action, steps.times)
        return regression.sums


class Products(NamedTuple):
    """What a pass under the weights theta gives: the sums of the next regression, and how theta did."""

    y: Floats  # (A, d) sums of phi b
    squares: float  # sum of b^2
    change: float  # the largest difference from the values before
    least: float  # value
    greatest: float
    clipped: float  # number of values that were clipped to the bounds
    rows: float

    def joined(self, other: "Products") -> "Products":
        """Return the sums of two successive parts of a log. What is not a number stays so."""
        return Products(
            self.y + other.y,
            self.squares + other.squares,
            float(np.maximum(self.change, other.change)),
            float(np.minimum(self.least, other.least)),
            float(np.maximum(self.greatest, other.greatest)),
            self.clipped + other.clipped,
            self.rows + other.rows,
        )


class Targets(NamedTuple):
    """What targets are made with."""

    begin: float  # the value of everything before the first sweep
    bounds: tuple[float, float]
    gamma: float
    trace: float


def products_of(
    chunk: "Chunk", lookup: Lookup, theta: Floats | None, before: Floats | None, made: Targets
) -> Products:
    """Return the sums of a chunk with targets under theta, and how its values differ from those before."""
    with one_thread(), np.errstate(over="ignore", invalid="ignore"):
        history, regression = features_of(chunk, lookup)
        Q, old = (
            np.full(chunk.legal.shape, made.begin) if weights is None else regression.values(weights)
            for weights in (theta, before)
        )
        V, clipped = values_of(history, Q, made.bounds)
        b = targets(history, V, made.gamma, made.trace, lookup.centred)
        sums = np.zeros_like(Q)
        sums[np.arange(len(b)), chunk.action] = b
        change, rows = float(np.abs(Q - old).max()), len(chunk.x)
        y, span = regression.products(sums), (float(Q.min()), float(Q.max()))
        return Products(y, float(b @ b), change, *span, clipped * rows, rows)


def swept_log(
    each: "Each",
    lookup: Lookup,
    regression: FeatureRegression,
    model: Model,
    made: Targets,
    most: int,
    tolerance: float,
) -> tuple[SweptValues, float]:
    """Iterate to the posterior mean, given a regression that has the sums of the log, one pass per sweep.

    Returns the mean, and the rate of the inverse gamma distribution of the variance of the noise.
    """
    regression.factor(model.ridge)
    theta: Floats | None = None
    before: Floats | None = None
    done, rate = 0, 0.0
    while True:
        sums: Products = reduce(Products.joined, each(products_of, lookup, theta, before, made))
        change = sums.change / max(1e-300, abs(sums.least), abs(sums.greatest))
        if theta is not None and (done >= most or not tolerance < change <= 1e300):
            break
        before, theta, done = theta, regression.solve(sums.y, model.mean), done + 1
        within = float(np.einsum("ai,aij,aj->", theta, regression.sums, theta))
        misfit = max(0.0, sums.squares - 2 * float((theta * sums.y).sum()) + within)
        rate = model.scale + 0.5 * (misfit + regression.penalty(theta - model.mean))
    span, at_bounds = (sums.least, sums.greatest), sums.clipped / sums.rows
    return SweptValues(theta, np.zeros((0, len(theta))), done, change, model.sigma, at_bounds, span), rate
