"""Counts of what followed each state and action, and models sampled from them; states appear as they come.

A cell (s, a) has a list of outcomes: each next state seen, or the end, with the number of times, the mean reward
and the squared deviations from it. A sampled model gives every cell

    chances ~ Dirichlet(times of each outcome, and alpha for one unseen outcome)
    shift   ~ N(0, variance / visits)                                              of the mean reward

An untried cell is all unseen outcome. The variance of the rewards of one outcome is that of the cell, with one
reward's worth of the variance pooled over all cells; where rewards never vary, there is no shift.

`alpha` follows the evidence of how random the problem is. Under a Dirichlet process, a cell visited i times shows
a new outcome next with probability alpha / (i + alpha). With a Gamma(2, 1) prior, the posterior given all
revisits, pooled over cells, is highest at the fixed point of

    alpha = (1 + new outcomes) / (1 + sum over revisits of 1 / (i + alpha)),

one iteration of which follows every visit. Only the first `EARLY` visits of every cell count.
"""

import math
from typing import NamedTuple

import numpy as np

from rlsvi.core.compile import Bools, Floats, Longs, Words, compiled
from rlsvi.core.elementary import power
from rlsvi.core.random import gamma as gamma_variate
from rlsvi.core.random import normal

END = -1  # the next state of an outcome that ends the episode
NONE = -1  # the end of a list
EARLY = 64
NEW, ALPHA, SPREAD, FREEDOM, BEST, WORST = range(6)  # indices of SparseModel.totals


class SparseModel(NamedTuple):
    """Counts, with room for more states and outcomes than there are. Lists are linked by indices."""

    legal: Bools  # (S, A) actions that were ever legal
    visits: Floats  # (S, A)
    first: Longs  # (S, A) the first outcome of a cell
    into: Longs  # (S,) the first outcome that leads to a state
    cell: Longs  # (O,) s A + a
    to: Longs  # (O,) the next state, or END
    also: Longs  # (O,) the next outcome of the same cell
    before: Longs  # (O,) the next outcome that leads to the same state
    times: Floats  # (O,)
    reward: Floats  # (O,) mean reward
    spread: Floats  # (O,) sum of squared deviations of rewards from their mean
    revisits: Floats  # (EARLY,) visits of cells that had been visited i times
    totals: (
        Floats  # (6,) new outcomes on revisits, alpha, all spreads and their degrees of freedom, best and worst
    )
    sizes: Longs  # (2,) states and outcomes


class SampledModel(NamedTuple):
    """A model drawn from the counts, its values, and the states whose values may have to change."""

    chance: Floats  # (O,)
    unseen: Floats  # (S, A) chance of the unseen outcome
    shift: Floats  # (S, A) of the mean reward
    V: Floats  # (S,)
    worth: Floats  # (1,) value of the unseen outcome
    queue: Longs  # (S,) a ring of states
    queued: Bools  # (S,)
    waiting: Longs  # (2,) where the ring begins, and how many states wait


def no_model(S: int, O: int, A: int) -> SparseModel:  # noqa: E741
    """Return counts of nothing, with room for S states and O outcomes."""
    cell, to, also, before = np.full((4, O), NONE, np.int64)
    times, reward, spread = np.zeros((3, O))
    totals = np.zeros(6)
    totals[ALPHA] = 1.0
    return SparseModel(
        np.zeros((S, A), np.bool_),
        np.zeros((S, A)),
        np.full((S, A), NONE, np.int64),
        np.full(S, NONE, np.int64),
        *(cell, to, also, before, times, reward, spread),
        np.zeros(EARLY),
        totals,
        np.zeros(2, np.int64),
    )


def no_sample(S: int, O: int, A: int, worth: float) -> SampledModel:  # noqa: E741
    """Return a model of untried cells alone."""
    return SampledModel(
        np.zeros(O),
        np.ones((S, A)),
        np.zeros((S, A)),
        np.full(S, worth),
        np.array([worth]),
        np.zeros(S, np.int64),
        np.zeros(S, np.bool_),
        np.zeros(2, np.int64),
    )


@compiled
def count(model: SparseModel, s: int, a: int, reward: float, to: int) -> None:
    """Count a visit of a cell and its outcome, for which there must be room."""
    n, o = model.visits[s, a], model.first[s, a]
    while o != NONE and model.to[o] != to:
        o = model.also[o]
    new = o == NONE
    if new:
        o = model.sizes[1]
        model.sizes[1] += 1
        link(model, o, s * model.legal.shape[1] + a, to)
    if 1.0 <= n < EARLY:
        model.revisits[int(n)] += 1.0
        model.totals[NEW] += new
        follow_evidence(model)
    model.visits[s, a] = n + 1.0
    model.times[o] += 1.0
    off = reward - model.reward[o]
    model.reward[o] += off / model.times[o]
    more = off * (reward - model.reward[o])
    model.spread[o] += more
    model.totals[SPREAD] += more
    model.totals[FREEDOM] += not new


@compiled
def link(model: SparseModel, o: int, cell: int, to: int) -> None:
    """Put an outcome at the head of the lists of its cell and of its next state."""
    A = model.legal.shape[1]
    s, a = cell // A, cell % A
    model.cell[o], model.to[o] = cell, to
    model.also[o] = model.first[s, a]
    model.first[s, a] = o
    if to != END:
        model.before[o] = model.into[to]
        model.into[to] = o


@compiled
def follow_evidence(model: SparseModel) -> None:
    """Take one step of the iteration for alpha."""
    alpha, exposure = model.totals[ALPHA], 1.0
    for i in range(1, EARLY):
        exposure += model.revisits[i] / (i + alpha)
    model.totals[ALPHA] = (1.0 + model.totals[NEW]) / exposure


@compiled
def draw_cell(model: SparseModel, sample: SampledModel, s: int, a: int, sampled: bool, stream: Words) -> None:
    """Draw the chances and the reward of a cell, or set them to what was counted, without an unseen outcome."""
    n = model.visits[s, a]
    if n == 0.0:
        return
    unseen = gamma_variate(stream, model.totals[ALPHA]) if sampled else 0.0
    total, spread, outcomes = unseen, 0.0, 0.0
    o = model.first[s, a]
    while o != NONE:
        sample.chance[o] = gamma_variate(stream, model.times[o]) if sampled else model.times[o]
        total += sample.chance[o]
        spread += model.spread[o]
        outcomes += 1.0
        o = model.also[o]
    o = model.first[s, a]
    while o != NONE:
        sample.chance[o] /= total
        o = model.also[o]
    sample.unseen[s, a] = unseen / total
    pooled = model.totals[SPREAD] / max(model.totals[FREEDOM], 1.0)
    variance = (spread + pooled) / (n - outcomes + 1.0)
    sample.shift[s, a] = math.sqrt(variance / n) * normal(stream) if sampled and variance > 0.0 else 0.0


@compiled
def cell_value(model: SparseModel, sample: SampledModel, s: int, a: int, gamma: float) -> float:
    """Return the value of choosing an action until it leads elsewhere, which solves loops from s to s at once."""
    value, stays = sample.unseen[s, a] * sample.worth[0] + sample.shift[s, a], 0.0
    o = model.first[s, a]
    while o != NONE:
        value += sample.chance[o] * model.reward[o]
        if model.to[o] == s:
            stays += sample.chance[o]
        elif model.to[o] != END:
            value += gamma * sample.chance[o] * sample.V[model.to[o]]
        o = model.also[o]
    return float(value / (1.0 - gamma * stays))


@compiled
def action_values(model: SparseModel, sample: SampledModel, s: int, gamma: float, Q: Floats) -> None:
    """Compute the values of all actions in a state."""
    for a in range(Q.size):
        Q[a] = cell_value(model, sample, s, a, gamma)


@compiled
def wait(sample: SampledModel, s: int) -> None:
    """Put a state into the queue, unless it waits already."""
    if not sample.queued[s]:
        sample.queued[s] = True
        sample.queue[(sample.waiting[0] + sample.waiting[1]) % sample.queue.size] = s
        sample.waiting[1] += 1


@compiled
def solve(model: SparseModel, sample: SampledModel, gamma: float, most: int) -> bool:
    """Update the values of waiting states, at most so many, and of those before them as far as changes reach.

    A change matters if it exceeds 1% of what one step of discounting changes. Return False unless all are finite.
    """
    A = model.legal.shape[1]
    while sample.waiting[1] > 0 and most > 0:
        most -= 1
        s = sample.queue[sample.waiting[0]]
        sample.waiting[0] = (sample.waiting[0] + 1) % sample.queue.size
        sample.waiting[1] -= 1
        sample.queued[s] = False
        best = -np.inf
        for a in range(A):
            if model.legal[s, a]:
                best = max(best, cell_value(model, sample, s, a, gamma))
        if not abs(best) < np.inf:
            return False
        matters = abs(best - sample.V[s]) > 0.01 * (1.0 - gamma) * abs(best)
        sample.V[s] = best
        o = model.into[s] if matters else NONE
        while o != NONE:
            if model.cell[o] // A != s:
                wait(sample, model.cell[o] // A)
            o = model.before[o]
    return True


@compiled
def draw_all(
    model: SparseModel, sample: SampledModel, gamma: float, most: int, sampled: bool, stream: Words
) -> bool:
    """Draw all cells and solve the model, starting from the values that it has, states found last first."""
    S, A = model.sizes[0], model.legal.shape[1]
    for s in range(S):
        for a in range(A):
            draw_cell(model, sample, s, a, sampled, stream)
    for s in range(S - 1, -1, -1):
        wait(sample, s)
    return solve(model, sample, gamma, most * S)


@compiled
def redraw(
    model: SparseModel, sample: SampledModel, s: int, a: int, gamma: float, most: int, stream: Words
) -> bool:
    """Draw a visited cell anew, and let values follow."""
    draw_cell(model, sample, s, a, True, stream)
    wait(sample, s)
    return solve(model, sample, gamma, most)


@compiled
def follow_returns(totals: Floats, rewards: Floats, gamma: float, cut_off: bool) -> None:
    """Extend the best and the worst discounted return from any step on to the end.

    An episode that was cut off would have gone on: it also counts as if it were repeated for ever.
    """
    total = 0.0
    for i in range(rewards.size - 1, -1, -1):
        total = rewards[i] + gamma * total
        totals[BEST] = max(totals[BEST], total)
        totals[WORST] = min(totals[WORST], total)
    if cut_off:
        total /= 1.0 - power(gamma, rewards.size)
        totals[BEST] = max(totals[BEST], total)
        totals[WORST] = min(totals[WORST], total)
