"""Which of the measured numbers matter, found by predicting the targets of held-out episodes.

Before that, numbers are left out that are sums of multiples of earlier ones and a constant, up to rounding: copies
in other units, sums and differences. They tell nothing new, but features of the others would be fewer or coarser.

    fit waves of all numbers to half of the episodes, with the length scale that predicts the other half best
    for each number i
        loss_i = by how much the error of predictions rises if number i is that of another step
        if loss_i, and two standard errors more, is a small part of what is explained: i seems not to matter
        if loss_i is more than that, and more than two standard errors: i matters
    take back those that matter
    leave out those that seem not to, in the order of loss_i, if a new fit without them predicts no worse

Numbers are exchanged with those of the step that is half of all held-out steps away, without chance. For a number
that is independent of all others, this changes the error by chance alone. Standard errors are over episodes. Where
little is explained, as at the beginning, nothing changes; nor does it where no number matters, as when actions
cost something and nothing else has been found. All are judged again when the data have doubled, so that a number
that was left out can come back.
"""

from collections.abc import Callable

import numpy as np

from rlsvi.agents.practice.held_out import Sample, centred, errors_of, weights
from rlsvi.core.compile import Bools, Floats

MOST_NUMBERS = 64  # numbers; for more of them this takes too long
ROWS_PER_NUMBER = 5  # observations that are needed to tell whether numbers are copies
COPIED = 1e-5  # standard deviations; by no more does a copy differ from a combination of others, besides rounding
MOST_ROUNDED = 1e-2  # standard deviations, to which rounding may amount
FEWEST_EPISODES = 6  # episodes that are needed to tell
STEPS = 1000  # steps that judge
LEAST_PART = 0.03  # of what predictions explain; what loses less may not matter
SURE_ERRORS = 2.0  # standard errors
LENGTHS = 0.125, 0.25, 0.5  # of waves, in units of the number of numbers

Features = Callable[[Floats, float], Floats]


def copies_in(x: Floats) -> Bools:
    """Return which of the numbers x (n, m) are linear combinations of earlier ones and a constant, to rounding.

    Numbers whose values are all of single precision are taken to be rounded to it, others to double precision.
    Numbers that have never changed are no copies.
    """
    copies = np.zeros(x.shape[1], np.bool_)
    if x.shape[1] > MOST_NUMBERS or len(x) < ROWS_PER_NUMBER * x.shape[1]:
        return copies
    largest, moves = np.abs(x).max(axis=0), x.min(axis=0) < x.max(axis=0)
    with np.errstate(over="ignore"):
        single = (x.astype(np.float32) == x).all(axis=0)
    spread = np.where(moves, x.std(axis=0), 1.0)
    z = (x - x.mean(axis=0)) / spread
    rounding = np.finfo(np.float64).eps * largest / spread
    rounding[single] *= 2.0**29  # 24 bits instead of 53
    kept: list[int] = []
    for i in np.flatnonzero(moves):
        weight = np.linalg.lstsq(z[:, kept], z[:, i])[0]
        rounded = rounding[i] + float(np.abs(weight) @ rounding[kept])
        copies[i] = np.abs(z[:, i] - z[:, kept] @ weight).max() <= COPIED + min(rounded, MOST_ROUNDED)
        if not copies[i]:
            kept.append(int(i))
    return copies


def relevant_numbers(features: Features, actions: int, sample: Sample, before: Bools, ridge: float) -> Bools:
    """Return which of the first numbers of all rows are relevant.

    Parameters
    ----------
    features
        A function of rows, and of the length scale of waves, to features of all numbers.
    before
        Which numbers were relevant before.
    """
    sample = centred(sample.of(slice(None, None, 1 + len(sample.b) // (STEPS + 1))))
    halves = [sample.episode % 2 == half for half in (0, 1)]
    _, episode = np.unique(sample.episode, return_inverse=True)
    if len(before) > MOST_NUMBERS or episode.max() + 1 < FEWEST_EPISODES:
        return before

    def fit(x: Floats, length: float) -> tuple[list[Floats], Floats]:
        """Return the weights of either half, and the errors of predictions of the other."""
        phi, errors = features(x, length), np.empty(len(x))
        fitted = [weights(phi, actions, sample, half, ridge) for half in halves]
        for theta, half in zip(fitted, halves, strict=True):
            errors[~half] = errors_of(phi, theta, sample)[~half]
        return fitted, errors

    def lost(i: int, fitted: list[Floats], errors: Floats, length: float) -> tuple[float, float]:
        """Return by how much the error rises if number i is that of another step, and its standard error."""
        rise = -errors
        for theta, half in zip(fitted, halves, strict=True):
            held = sample.of(~half)
            held.x[:, i] = np.roll(held.x[:, i], len(held.x) // 2)
            rise[~half] += errors_of(features(held.x, length), theta, held)
        each = np.bincount(episode, rise)
        return float(each.sum()), float(np.sqrt(len(each)) * each.std(ddof=1))

    found = {length: fit(sample.x, length) for length in (each * len(before) for each in LENGTHS)}
    length = min(found, key=lambda each: float(found[each][1].sum()))
    error = float(found[length][1].sum())
    small = LEAST_PART * (float((sample.b**2).sum()) - error)
    loss, doubt = np.array([lost(i, *found[length], length) for i in range(len(before))]).T
    matters = (loss > small) & (loss > SURE_ERRORS * doubt)
    if small <= 0 or not matters.any():
        return before
    kept: Bools = before | matters
    x = sample.x.copy()
    x[:, : len(kept)][:, ~kept] = x.mean(axis=0)[: len(kept)][~kept]
    for i in np.argsort(loss, kind="stable"):
        if not kept[i] or loss[i] + SURE_ERRORS * doubt[i] > small or np.count_nonzero(kept) == 1:
            continue
        fewer = x.copy()
        fewer[:, i] = x[:, i].mean()
        errors = float(fit(fewer, length)[1].sum())
        if errors <= error:
            x, error, kept[i] = fewer, errors, False
    return kept
