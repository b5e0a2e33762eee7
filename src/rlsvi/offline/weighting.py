"""Importance sampling: the episodes of a log, weighted by how likely the policy makes them.

The weight of an episode after t steps is the product of pi(a|s) / propensity up to there. Weights are divided by
their sum over all episodes, for each t. An episode that has ended keeps its weight, and receives nothing more.
"""

from typing import NamedTuple

import numpy as np
from scipy import stats

from rlsvi.core.compile import Bools, Floats, Longs
from rlsvi.offline.question import FEW, ROUNDING, Question

SOME = 10.0  # effective episodes that a horizon without an interval should have


class EpisodeWeights(NamedTuple):
    """Episodes by steps, up to the horizon."""

    share: Floats  # (E, T) adding up to one for each step; 0 where no episode follows the policy that far
    row: Longs  # (E, T) -1 after the end of an episode
    discount: Floats  # (T,)

    @property
    def effective(self) -> float:
        """The effective number of episodes at the last step that is followed; 0 if none is."""
        last = int(self.followed.sum()) - 1
        return float(1 / np.square(self.share[:, last]).sum()) if last >= 0 else 0.0

    @property
    def followed(self) -> Bools:
        """The steps up to which some episode does what the policy would do."""
        followed: Bools = np.asarray(self.share.any(axis=0))
        return followed

    def up_to(self, steps: int) -> "EpisodeWeights":
        """Return the weights of a shorter horizon."""
        return EpisodeWeights(self.share[:, :steps], self.row[:, :steps], self.discount[:steps])

    def spread_over(self, numbers: Floats) -> Floats:
        """Return numbers of rows (N,) by episode and step, 0 after the end."""
        return np.where(self.row < 0, 0.0, numbers[self.row])


def weights_of(question: Question) -> EpisodeWeights:
    """Return the weights of all episodes, after asking for the policy in every row up to the horizon."""
    log = question.log
    assert log.propensity is not None
    lengths = np.diff(log.start)
    T = int(min(lengths.max(), question.horizon or lengths.max()))
    steps = np.arange(T)
    row = np.where(steps < lengths[:, None], log.start[:-1, None] + steps, -1)
    ratio = np.ones(log.steps)
    for first, last in zip(log.start[:-1].tolist(), log.start[1:].tolist(), strict=True):
        for i in range(first, min(last, first + T)):
            ratio[i] = question.at(i, i - first)[log.action[i]] / log.propensity[i]
            if not ratio[i]:  # all later steps of the episode have no weight either
                break
        question.advance(last - first)
    with np.errstate(divide="ignore"):
        logs = np.cumsum(np.where(row < 0, 0.0, np.log(ratio[row])), axis=1)
    top = logs.max(axis=0)
    share = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
    total = share.sum(axis=0)
    return EpisodeWeights(
        share / np.where(total > 0, total, 1.0), row, np.power(question.gamma, steps, dtype=np.float64)
    )


def weighted(weights: EpisodeWeights, numbers: Floats, first: Floats, level: float) -> tuple[float, float, float]:
    """Return the mean of `first` (E,) plus the weighted sum of numbers of rows (N,), with an interval.

    The interval is Student's with the effective number of episodes: the estimate is linearised in the episodes. It
    is unknown for fewer than two of them, and for a few that are all alike.
    """
    table = weights.spread_over(numbers)
    size = np.abs(first).max() + (np.abs(table).max(axis=0) * weights.discount).sum()
    return weighted_sum(weights, weights.share * table, float(size), first, level)


def weighted_sum(
    weights: EpisodeWeights, terms: Floats, size: float, first: Floats, level: float
) -> tuple[float, float, float]:
    """Return the same of terms that are weighted already, (E, T), of which the largest sum is of this size."""
    means = terms.sum(axis=0)
    value = float(first.mean() + (means * weights.discount).sum())
    parts = (first - first.mean()) / len(first) + (terms - weights.share * means) @ weights.discount
    freedom = weights.effective - 1
    if freedom < 1 or (freedom < FEW and np.abs(parts).max() <= ROUNDING * size):
        return value, -np.inf, np.inf
    spread = np.sqrt(np.square(parts).sum() * weights.effective / freedom)
    half = float(stats.t.ppf((1 + level) / 2, freedom) * spread)
    return value, value - half, value + half
