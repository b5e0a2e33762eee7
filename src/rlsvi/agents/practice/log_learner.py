"""What is learned from a log that is read in chunks: the sums and weights of its regression, and no data.

    scale the features by what all rows have in common                               (log_summary.py)
    iterate to the posterior mean, one pass over the log per sweep                   (log_sweeps.py)

The plan is the posterior mean. A sample of the posterior is one of the last regression: its targets are those of
the mean, where a sample in learning would have targets of its own.
"""

import math
from copy import copy
from functools import reduce
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from rlsvi.agents.contract import EPISODES, STEPS, Step
from rlsvi.agents.noise import Model
from rlsvi.agents.practice.learner import (
    MEAN_SWEEPS,
    PLANNED,
    RECOVERIES,
    REPEAT,
    SCALED,
    UNBOUNDED,
    BoundedLearner,
    largest_value,
    steadied,
)
from rlsvi.agents.practice.length_scale import judges
from rlsvi.agents.practice.log_summary import Summary, joined, returns_in, scaled_by, summary_of
from rlsvi.agents.practice.log_sweeps import Targets, gram_of, swept_log
from rlsvi.agents.practice.regression import FeatureRegression
from rlsvi.agents.practice.value_iteration import SweptValues, fill_normal, with_margin
from rlsvi.bases import Observed
from rlsvi.core.archive import Archive, ArchiveError
from rlsvi.core.blas import one_thread
from rlsvi.core.compile import Floats, Words
from rlsvi.core.progress import bar
from rlsvi.core.random import gamma as gamma_variate
from rlsvi.core.regression import FactorError

if TYPE_CHECKING:
    from rlsvi.logs.chunks import Each
    from rlsvi.logs.stream import Stream

DONE = (
    "this agent was fitted to a log in chunks, of which it has kept only sums: it cannot learn more. Fit a clone, "
    "agent.clone(), to all of the data, or fit the log without chunk="
)


class LogLearner(BoundedLearner):
    """The posterior of the last regression: weights N(theta, sigma^2 P^-1), and sigma^2 known or not."""

    theta: Floats
    planned: SweptValues
    ridge: float
    shape: float  # of the posterior of sigma^2; 0 if sigma is known
    rate: float

    @classmethod
    def of(cls, begun: BoundedLearner) -> "LogLearner":
        """Return a learner without experience, like another one, whose features are of this kind."""
        lookup = begun.lookup
        if lookup.table or not isinstance(lookup.basis, Observed):
            raise ValueError(
                "chunk= is for features that are computed from many observations at once: give the agent a basis "
                "such as bases.Fourier(), or one of your own with rows(x), or fit the log without chunk="
            )
        learner = cls(begun.task, copy(lookup), begun.history.x.shape[1], begun.planning)
        learner.counters[REPEAT] = 1
        return learner

    def fit(self, stream: "Stream", each: "Each", progress: bool | None = None) -> None:
        """Learn from all of a log."""
        most, planning = self.planning.most * MEAN_SWEEPS, self.planning
        with one_thread(), bar((most + 3) * len(stream), "chunks", progress) as advance:

            def watched(*work: Any) -> Any:
                for part in each(*work):
                    yield part
                    advance(1)

            gamma, chosen = planning.noise[-1], judges(stream.rows)
            summary: Summary = reduce(joined, watched(summary_of, len(self.lookup.ranges.low), chosen))
            least, greatest, returns = returns_in(stream, gamma, chosen)
            self.lookup = scaled_by(self.lookup, summary, returns, planning.noise[0], planning.alike)
            sums = reduce(np.add, watched(gram_of, self.lookup))
            self.regression = regression = FeatureRegression(len(sums), sums.shape[1], planning.alike)
            regression.sums = sums
            bounds = planning.bounds or UNBOUNDED
            if bounds == "attainable":
                bounds = with_margin(least, greatest, summary.usual_reward)
            made = Targets(self.begin, bounds, gamma, self.trace)

            def swept(model: Model, first: bool) -> SweptValues:
                self.ridge = model.ridge
                outcome, self.rate = swept_log(
                    watched, self.lookup, regression, model, made, most, planning.tolerance
                )
                return outcome

            known = gamma, self.begin, *bounds
            model = self._model_of(summary, sums.shape[1])
            outcome = steadied(swept, model, largest_value(summary.rewards[-1], stream.rows, *known))
        self.shape = model.shape + 0.5 * stream.rows if model.shape else 0.0
        sigma = math.sqrt(self.rate / self.shape) if self.shape else model.sigma
        self.planned, self.theta = outcome._replace(sigma=sigma), outcome.theta
        for at, count in ((EPISODES, summary.episodes), (STEPS, stream.rows), (RECOVERIES, outcome.recoveries)):
            self.counters[at] = count
        self.counters[[PLANNED, SCALED]] = stream.rows

    def _model_of(self, summary: Summary, dim: int) -> Model:
        """Return prior and noise."""
        model = Model(np.full((self.lookup.actions, dim), self.begin), *self.planning.noise)
        unit = summary.usual_reward if self.planning.in_usual_rewards else 1.0
        return model._replace(scale=model.scale * unit**2)

    def plan(self, sampled: bool, stream: Words, learning: bool = False) -> SweptValues:
        """Return the posterior mean, or a sample of the last regression."""
        if learning:
            self.refuse_more()
        if not sampled:
            return self.planned
        assert isinstance(self.regression, FeatureRegression)
        sigma = self.planned.sigma
        if self.shape:
            sigma = math.sqrt(self.rate / gamma_variate(stream, self.shape))
        z = np.empty(self.regression.drawn)
        fill_normal(stream, z)
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
        assert self.regression is not None
        plan, ranges = self.planned, self.lookup.ranges
        made = [
            self.ridge,
            self.shape,
            self.rate,
            plan.sweeps,
            plan.change,
            plan.sigma,
            plan.at_bounds,
            *plan.span,
        ]
        arrays: dict[str, Any] = {
            "log.sums": self.regression.sums,
            "log.plan": np.array(made, np.float64),
            "theta": self.theta,
        }
        arrays |= {"ranges.low": ranges.low, "ranges.high": ranges.high, "counters": self.counters}
        if self.lookup.waves is not None:
            arrays["waves"] = np.array([self.lookup.waves.features, self.lookup.waves.length])
        return arrays

    def read(self, file: Archive, dim: int) -> None:
        """Read what was learned from a file. Features and counters have been read before."""
        A = self.lookup.actions
        self.regression = FeatureRegression(A, dim, self.planning.alike)
        self.regression.sums, self.theta = file.take("log.sums", (A, dim, dim)), file.take("theta", (A, dim))
        self.ridge, self.shape, self.rate, sweeps, *rest = file.take("log.plan", (9,)).tolist()
        if self.ridge <= 0 or (self.shape != 0 and not (self.shape > 0 and self.rate > 0)):
            raise ArchiveError("is damaged: its noise must be positive")
        if not np.allclose(self.regression.sums, self.regression.sums.transpose(0, 2, 1)):
            raise ArchiveError("is damaged: its sums are not those of features")
        try:
            with one_thread():
                self.regression.factor(self.ridge)
        except FactorError as error:
            raise ArchiveError(f"is damaged: {error}") from error
        change, sigma, at_bounds, *span = rest
        empty = np.zeros((0, A))
        self.planned = SweptValues(self.theta, empty, int(sweeps), change, sigma, at_bounds, (span[0], span[1]))
