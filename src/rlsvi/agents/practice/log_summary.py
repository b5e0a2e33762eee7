"""What a log has in common that is read in chunks, and the features that follow from it.

Chunks are summed up one by one and joined in their order. Means and standard deviations are exact up to rounding,
and so are the returns observed from any step on: rewards are read once more, from the last chunk to the first.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rlsvi.agents.practice.length_scale import Sample, best_waves
from rlsvi.agents.practice.lookup import Lookup, warn_outside
from rlsvi.agents.practice.value_iteration import discounted_sums
from rlsvi.bases.scaling import Seen
from rlsvi.core.compile import Bools, Floats, Longs

if TYPE_CHECKING:
    from rlsvi.logs.stream import Chunk, Stream


class Summary(NamedTuple):
    """What all rows of a chunk, or of several, have in common."""

    rows: float
    mean: Floats  # (m,) of the measured numbers
    squares: Floats  # (m,) sum of squared distances from the mean
    least: Floats
    most: Floats
    episodes: int  # how many ended
    rewards: tuple[float, float, float]  # number of nonzero ones, sum of the logarithms of their size, the largest
    x: Floats  # the rows of the steps that judge a length
    action: Longs
    odd: Bools  # whether they belong to every other episode

    @property
    def seen(self) -> Seen:
        """What scaling depends on."""
        return Seen(self.mean, np.sqrt(self.squares / self.rows), self.least, self.most)

    @property
    def usual_reward(self) -> float:
        """The geometric mean of all nonzero absolute rewards, or 1."""
        some, logarithms, _ = self.rewards
        return math.exp(logarithms / some) if some else 1.0


def summary_of(chunk: "Chunk", measured: int, chosen: Longs) -> Summary:
    """Return the summary of a chunk. `chosen` are the rows of the log that judge a length."""
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
        (float((size > 0).sum()), float(np.log(size[size > 0]).sum()), float(size.max())),
        chunk.x[judging],
        chunk.action[judging],
        (ends.cumsum() - ends)[judging] % 2 == 1,
    )


def joined(one: Summary, other: Summary) -> Summary:
    """Return the summary of two successive parts of a log (Chan, Golub and LeVeque, 1983)."""
    rows, apart = one.rows + other.rows, other.mean - one.mean
    (some, logarithms, largest), (some2, logarithms2, largest2) = one.rewards, other.rewards
    return Summary(
        rows,
        one.mean + apart * (other.rows / rows),
        one.squares + other.squares + apart**2 * (one.rows * other.rows / rows),
        np.fmin(one.least, other.least),
        np.fmax(one.most, other.most),
        one.episodes + other.episodes,
        (some + some2, logarithms + logarithms2, max(largest, largest2)),
        np.concatenate([one.x, other.x]),
        np.concatenate([one.action, other.action]),
        np.concatenate([one.odd, other.odd ^ (one.episodes % 2 == 1)]),
    )


def returns_in(stream: "Stream", gamma: float, chosen: Longs) -> tuple[float, float, Floats]:
    """Return the least and greatest discounted return observed from any step on, and that of the chosen steps."""
    least, most, following, found = math.inf, -math.inf, 0.0, np.zeros(len(chosen))
    for k in reversed(range(len(stream))):
        reward, last = stream.rewards(k)
        out = np.empty(len(reward) + 1)
        discounted_sums(np.append(reward, following), np.append(last, True), gamma, out)
        least, most, following = min(least, float(out[:-1].min())), max(most, float(out[:-1].max())), float(out[0])
        here = (chosen >= k * stream.chunk) & (chosen < k * stream.chunk + len(reward))
        found[here] = out[chosen[here] - k * stream.chunk]
    return least, most, found


def scaled_by(lookup: Lookup, summary: Summary, b: Floats, ridge: float, alike: float) -> Lookup:
    """Return a lookup with the features for all rows; the waves are those that the returns b support best."""
    if not lookup.centred:
        for x in (summary.least, summary.most):
            warn_outside(x, lookup.ranges.least, lookup.ranges.most)
    lookup.follow(np.stack([summary.least, summary.most]))
    lookup.rescale(summary.seen)
    if lookup.waves is None:
        return lookup
    sample = Sample(summary.x, summary.action, summary.odd, b)
    return best_waves(lookup, sample, int(summary.rows), ridge, alike)
