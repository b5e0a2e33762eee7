"""Learning from a log that is read in chunks: nothing is kept but the sums and weights of its regression.

    scale the features by what all rows have in common                               one pass over the log
    G_a = the sum of phi phi' over the steps with action a                           one pass
    until Q changes little                                                           one pass each
        b_i = the lambda-return from step i, as in regression.py, but not beyond the end of its chunk
        y_a = the sum of phi b over the steps with action a
        Q = Phi (posterior mean for y)

Every chunk gives its own sums, and these are added in the order of the chunks. Wherever they are computed, the
weights therefore have the same bits for the same size of a chunk. Means, standard deviations and the returns
observed from any step on are exact up to rounding.

The sweeps of bounded_rlsvi.py are not those of a log of one chunk: they keep Q of all rows from one sweep to the
next, and take the misfit from residuals; here it follows from sums. Both give the same mean, in other bits.
"""

import math
from functools import reduce
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np

from rlsvi.agents.contract import Step
from rlsvi.agents.practice.features import Lookup, Sample, check_size, judges
from rlsvi.agents.practice.regression import (
    EpisodeHistory,
    FeatureRegression,
    Planning,
    SweptValues,
    Transitions,
    discounted_sums,
    targets,
    values_of,
    with_margin,
)
from rlsvi.bases.layout import Seen
from rlsvi.bases.observed import Observed
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.compile import Floats, Longs, Words
from rlsvi.core.machine import one_thread
from rlsvi.core.random import fill_normal
from rlsvi.core.random import gamma as gamma_variate
from rlsvi.core.regression import FactorError
from rlsvi.offline.stream import Chunk, Each, Stream
from rlsvi.progress import bar

DONE = (
    "this agent was fitted to a log in chunks, of which it has kept only sums: it cannot learn more. Fit a clone, "
    "agent.clone(), to all of the data, or fit the log without chunk="
)


class Summary(NamedTuple):
    """What all rows of a chunk, or of several, have in common."""

    rows: float
    mean: Floats  # (m,) of the measured numbers
    squares: Floats  # (m,) sum of squared distances from the mean
    least: Floats
    most: Floats
    episodes: int  # how many ended
    sizes: tuple[float, float]  # number of nonzero rewards, and the sum of the logarithms of their size
    rewards: tuple[float, float]  # the least and the greatest
    x: Floats  # the rows of the steps that judge a basis
    action: Longs
    episode: Longs  # the number of their episode

    @property
    def seen(self) -> Seen:
        """What scaling depends on."""
        return Seen(self.mean, np.sqrt(self.squares / self.rows), self.least, self.most)

    @property
    def usual_reward(self) -> float:
        """The geometric mean of all nonzero absolute rewards, or 1."""
        some, logarithms = self.sizes
        return math.exp(logarithms / some) if some else 1.0

    def join(self, other: "Summary") -> "Summary":
        """Return the summary of two successive parts of a log (Chan, Golub and LeVeque, 1983)."""
        rows, apart = self.rows + other.rows, other.mean - self.mean
        (some, logarithms), (some2, logarithms2) = self.sizes, other.sizes
        return Summary(
            rows,
            self.mean + apart * (other.rows / rows),
            self.squares + other.squares + apart**2 * (self.rows * other.rows / rows),
            np.fmin(self.least, other.least),
            np.fmax(self.most, other.most),
            self.episodes + other.episodes,
            (some + some2, logarithms + logarithms2),
            (min(self.rewards[0], other.rewards[0]), max(self.rewards[1], other.rewards[1])),
            np.concatenate([self.x, other.x]),
            np.concatenate([self.action, other.action]),
            np.concatenate([self.episode, other.episode + self.episodes]),
        )


def summary_of(chunk: "Chunk", measured: int, chosen: Longs) -> Summary:
    """Return the summary of a chunk. `chosen` are the rows of the log that judge a basis."""
    own = len(chunk.x) - (not chunk.last[-1])  # without the first row of the next chunk
    x, size = chunk.x[:own, :measured], np.abs(chunk.reward)
    mean, ends = x.mean(axis=0), chunk.last.astype(np.int64)
    judging = chosen[(chosen >= chunk.first) & (chosen < chunk.first + len(size))] - chunk.first
    return Summary(
        len(x),
        mean,
        ((x - mean) ** 2).sum(axis=0),
        x.min(axis=0),
        x.max(axis=0),
        int(ends.sum()),
        (float((size > 0).sum()), float(np.log(size[size > 0]).sum())),
        (float(chunk.reward.min()), float(chunk.reward.max())),
        chunk.x[judging],
        chunk.action[judging],
        (ends.cumsum() - ends)[judging],
    )


def returns_in(stream: "Stream", gamma: float, chosen: Longs) -> tuple[float, float, Floats]:
    """Return the least and greatest discounted return observed from any step on, and that of the chosen steps."""
    least, most, following, found = math.inf, -math.inf, 0.0, np.zeros(len(chosen))
    for k in reversed(range(len(stream))):
        reward, last = stream.rewards(k)
        out = discounted_sums(np.append(reward, following), np.append(last, True), gamma)
        least, most, following = min(least, float(out[:-1].min())), max(most, float(out[:-1].max())), float(out[0])
        here = (chosen >= k * stream.chunk) & (chosen < k * stream.chunk + len(reward))
        found[here] = out[chosen[here] - k * stream.chunk]
    return least, most, found


def features_of(chunk: "Chunk", lookup: Lookup) -> tuple[EpisodeHistory, FeatureRegression]:
    """Return a chunk as a history, and the features of its rows."""
    steps = Transitions(np.arange(len(chunk.action)), chunk.action, chunk.reward, chunk.next)
    history = EpisodeHistory.of(chunk.x, chunk.legal, steps, chunk.last)
    regression = FeatureRegression(lookup.actions, lookup.features(chunk.x[:1]).shape[1])
    regression.extend(chunk.x, lookup.features, lookup.threads)
    return history, regression


def gram_of(chunk: Chunk, lookup: Lookup) -> Floats:
    """Return the sums of phi phi' over the steps of each action, (A, d, d)."""
    with one_thread():
        history, regression = features_of(chunk, lookup)
        steps = history.transitions
        regression.add(steps.row, steps.action, np.ones(len(steps.row)))
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

    def join(self, other: "Products") -> "Products":
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

    bounds: tuple[float, float]
    gamma: float
    trace: float


def products_of(
    chunk: Chunk, lookup: Lookup, theta: Floats | None, before: Floats | None, made: Targets
) -> Products:
    """Return the sums of a chunk with targets under theta, and how its values differ from those before."""
    with one_thread(), np.errstate(over="ignore", invalid="ignore"):
        history, regression = features_of(chunk, lookup)
        Q, old = (
            np.zeros(chunk.legal.shape) if weights is None else regression.values(weights)
            for weights in (theta, before)
        )
        V, clipped = values_of(history, Q, made.bounds)
        b = targets(history, V, made.gamma, made.trace, lookup.centred)
        sums = np.zeros_like(Q)
        sums[np.arange(len(b)), chunk.action] = b
        change, rows = float(np.abs(Q - old).max()), len(chunk.x)
        y, span = regression.products(sums), (float(Q.min()), float(Q.max()))
        return Products(y, float(b @ b), change, *span, clipped * rows, rows)


def sweep_log(
    each: "Each",
    lookup: Lookup,
    regression: FeatureRegression,
    model: Planning,
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
        sums: Products = reduce(Products.join, each(products_of, lookup, theta, before, made))
        change = sums.change / max(1e-300, abs(sums.least), abs(sums.greatest))
        if theta is not None and (done >= most or not tolerance < change <= 1e300):
            break
        before, theta, done = theta, regression.solve(sums.y), done + 1
        within = float(np.einsum("ai,aij,aj->", theta, regression.sums, theta))
        misfit = max(0.0, sums.squares - 2 * float((theta * sums.y).sum()) + within)
        rate = model.scale + 0.5 * (misfit + regression.penalty(theta))
    if not np.isfinite(theta).all():
        raise FactorError("values of features are not finite: scale the features down, or give narrower bounds=")
    at_bounds = sums.clipped / sums.rows
    return SweptValues(theta, np.zeros((0, len(theta))), done, change, model.sigma, at_bounds), rate


class LogLearner:
    """The posterior of the last regression: weights N(theta, sigma^2 P^-1), and sigma^2 known or not.

    The plan is the posterior mean. A sample of the posterior is one of the last regression: its targets are those
    of the mean, where a sample in learning would have targets of its own.

    Parameters
    ----------
    begun
        A learner without experience, which looks at observations, has the features, and makes plans safe.
    """

    theta: Floats
    planned: SweptValues
    regression: FeatureRegression
    ridge: float
    shape: float  # of the posterior of sigma^2; 0 if sigma is known
    rate: float
    unsettled = 0

    def __init__(self, begun: Any) -> None:
        if not isinstance(begun.lookup.basis, Observed):
            raise ValueError(
                "chunk= is for features that are computed from many observations at once: give the agent a basis "
                "such as bases.Fourier(), or one of your own with rows(x), or fit the log without chunk="
            )
        if begun.lookup.categories is not None and begun.lookup.categories.values:
            raise ValueError("chunk= cannot number the texts or categories of a log: fit it without chunk=")
        self.begun, self.counters = begun, begun.counters
        self.look, self.values, self.exported = begun.look, begun.values, begun.exported

    @property
    def lookup(self) -> Lookup:
        """The features."""
        lookup: Lookup = self.begun.lookup
        return lookup

    def fit(self, stream: Stream, each: Each, progress: bool | None = None) -> None:
        """Learn from all of a log."""
        begun = self.begun
        most, planning = begun.SWEEPS, begun.planning
        with one_thread(), bar((most + 3) * len(stream), "chunks", progress) as advance:

            def watched(*work: Any) -> Any:
                for part in each(*work):
                    yield part
                    advance(1)

            gamma, chosen = planning.gamma, judges(stream.rows)
            summary: Summary = reduce(Summary.join, watched(summary_of, len(self.lookup.ranges.low), chosen))
            least, greatest, returns = returns_in(stream, gamma, chosen)
            self._scale(summary, returns)
            sums = reduce(np.add, watched(gram_of, self.lookup))
            self.regression = FeatureRegression(len(sums), sums.shape[1])
            self.regression.sums = sums
            bounds = planning.bounds
            if isinstance(bounds, str):
                bounds = with_margin((least, greatest), summary.rewards, summary.usual_reward, gamma)
            made = Targets(bounds, gamma, begun.trace)

            model = begun.model(summary.usual_reward)
            self.ridge = model.ridge
            outcome, self.rate = sweep_log(
                watched, self.lookup, self.regression, model, made, most, begun.TOLERANCE
            )
        self.shape = planning.shape + 0.5 * stream.rows if planning.shape else 0.0
        sigma = math.sqrt(self.rate / self.shape) if self.shape else planning.sigma
        self.planned, self.theta = outcome._replace(sigma=sigma), outcome.theta
        begun.count_log(summary.episodes, stream.rows)

    def _scale(self, summary: Summary, returns: Floats) -> None:
        """Choose the features for all rows, so that they predict the returns of some steps best."""
        lookup = self.lookup
        if not lookup.centred:
            for x in (summary.least, summary.most):
                lookup.warn_outside(x)
        lookup.follow(np.stack([summary.least, summary.most]))
        sample = Sample(summary.x, summary.action, summary.episode, returns)
        self.begun.lookup = lookup.tune(summary.seen, sample, int(summary.rows), self.begun.planning.ridge)

    def plan(self, sampled: bool, stream: Words, learning: bool = False) -> SweptValues:
        """Return the posterior mean, or a sample of the last regression."""
        if learning:
            self.refuse_more()
        if not sampled:
            return self.planned
        sigma = self.planned.sigma
        if self.shape:
            sigma = math.sqrt(self.rate / gamma_variate(stream, self.shape))
        z = np.empty(self.regression.drawn)
        fill_normal(z.reshape(-1), stream)
        with one_thread():
            return self.planned._replace(theta=self.theta + sigma * self.regression.shape(z), sigma=sigma)

    def refuse_more(self) -> NoReturn:
        """Raise the error that this learner cannot learn more."""
        raise ValueError(DONE)

    def remember(self, steps: list[Step], plan: Any, ended: bool) -> NoReturn:
        """Raise an error: there are no data to plan from again."""
        self.refuse_more()

    def state(self) -> dict[str, Any]:
        """Return the sums, the weights, and how the plan was made."""
        plan = self.planned
        made = self.ridge, self.shape, self.rate, plan.sweeps, plan.change, plan.sigma, plan.at_bounds, 0.0, 0.0
        arrays = {"log.sums": self.regression.sums, "log.plan": np.array(made, np.float64), "theta": self.theta}
        return arrays | {"counters": self.counters, **self.lookup.state()}

    @classmethod
    def read(cls, begun: Any, file: Archive) -> Self:
        """Return what was learned from a log in chunks, of which only sums are in the file."""
        task, lookup = begun.task, begun.lookup
        A, dim = task.actions, file.shape("log.sums", 3)[2]
        if file.shape("log.sums", 3) != (A, dim, dim):
            raise ArchiveError(f"is damaged: its sums are not those of {task}")
        begun.read_features(file, dim, np.zeros((1, lookup.basis.layout.size)))
        learner = cls(begun)
        check_size(task, dim)
        learner.regression = regression = FeatureRegression(A, dim)
        regression.sums, learner.theta = file.take("log.sums", (A, dim, dim)), file.take("theta", (A, dim))
        learner.ridge, learner.shape, learner.rate, sweeps, *rest = file.take("log.plan", (9,)).tolist()
        if learner.ridge <= 0 or (learner.shape != 0 and not (learner.shape > 0 and learner.rate > 0)):
            raise ArchiveError("is damaged: its noise must be positive")
        if not np.allclose(regression.sums, regression.sums.transpose(0, 2, 1)):
            raise ArchiveError("is damaged: its sums are not those of features")
        try:
            with one_thread():
                regression.factor(learner.ridge)
        except FactorError as error:
            raise ArchiveError(f"is damaged: {error}") from error
        learner.planned = SweptValues(learner.theta, np.zeros((0, A)), int(sweeps), *rest[:3])  # two are unused
        return learner
