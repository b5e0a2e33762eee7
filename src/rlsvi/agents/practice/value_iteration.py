"""Value iteration by regression, with one draw of the noise kept through all sweeps until convergence.

    b_i = r_i + gamma max_a Q(s_i', a), or r_i at the end, clipped to the bounds
    m = P^-1 (A'b + ridge mean)
    Q = Phi (m + sigma L^-T z)          z, and the gamma variate of sigma, drawn once

The bounds, [r_min / (1 - gamma), r_max / (1 - gamma)] for the rewards seen, contain every value that a policy can
have with these rewards, also at the end of an episode. They keep the iteration bounded: a regression on features
is not a contraction, and can diverge without them.
"""

import math
from typing import NamedTuple

import numpy as np

from rlsvi.agents.noise import Model
from rlsvi.agents.practice.history import CountedHistory
from rlsvi.agents.practice.regression import Regression
from rlsvi.core.compile import Floats, Words, compiled
from rlsvi.core.random import gamma as gamma_variate
from rlsvi.core.random import normal


class SweptValues(NamedTuple):
    """The result of the sweeps."""

    theta: Floats  # (A, d)
    Q: Floats  # (N, A) the values of theta
    sweeps: int
    change: float  # of Q in the last sweep, relative to the size of Q
    sigma: float
    at_bounds: float  # fraction of the targets that were clipped to the bounds
    span: tuple[float, float]  # smallest and largest value of the mean
    recoveries: int = 0  # how many times values diverged and were planned anew with ten times the ridge


def attainable(history: CountedHistory, gamma: float) -> tuple[float, float]:
    """Return the least and the greatest plausible value of an episode of one step or more, given the rewards seen.

    One usual reward is always considered possible: without it, nothing would be worth trying while there were no
    rewards or only costs.
    """
    rewards = history.transitions.reward
    least, most, usual = float(rewards.min()), float(rewards.max()), usual_reward(history)
    if gamma >= 1:
        return (least if least >= 0 else -math.inf), (usual if most <= 0 else math.inf)
    return min(least, least / (1 - gamma)), max(most, most / (1 - gamma), usual)


def usual_reward(history: CountedHistory) -> float:
    """Return the unit of reward without prior knowledge: the geometric mean of all nonzero absolute rewards, or 1.

    It is at least 1, because small costs say nothing about a prize that has not been found yet.
    """
    steps = history.transitions
    some = steps.reward != 0
    if not some.any():
        return 1.0
    return max(1.0, math.exp(float(np.average(np.log(np.abs(steps.reward[some])), weights=steps.times[some]))))


def targets(history: CountedHistory, Q: Floats, gamma: float) -> Floats:
    """Return r + gamma max_a Q(s', a) for every transition, or r at the end, for values Q (N, A) of the rows."""
    steps, legal = history.transitions, history.legal
    best = np.zeros(len(Q) + 1)  # the last entry stands for the end
    best[:-1] = Q.max(axis=1) if legal.all() else np.where(legal, Q, -np.inf).max(axis=1)
    raw: Floats = steps.reward + gamma * best[steps.next]
    return raw


def sweep(
    history: CountedHistory,
    regression: Regression,
    model: Model,
    Q: Floats,
    stream: Words | None,
    bounds: tuple[float, float],
    most: int,
    tolerance: float,
) -> SweptValues:
    """Iterate from the values Q (N, A) to a sample of the posterior, or to its mean if there is no stream."""
    steps = history.transitions
    cell = steps.row * Q.shape[1] + steps.action
    regression.factor(model.ridge)
    shift, variate = np.zeros_like(model.mean), 1.0
    if stream is not None:
        if model.shape > 0:
            variate = gamma_variate(stream, model.shape + 0.5 * float(steps.times.sum()))
        z = np.empty(regression.drawn)
        fill_normal(stream, z)
        shift = regression.shape(z)
    drift = regression.values(shift)
    sigma, change, done = model.sigma, math.inf, 0
    while done < most and change > tolerance:
        raw = targets(history, Q, model.gamma)
        b = np.clip(raw, *bounds)
        sums: Floats = np.bincount(cell, steps.times * b, minlength=Q.size).astype(np.float64).reshape(Q.shape)
        theta = regression.fit(sums, model.mean)
        fitted = regression.values(theta)
        if stream is not None and model.shape > 0:
            misfit = (steps.times * (b - fitted.ravel()[cell]) ** 2).sum() + regression.penalty(theta - model.mean)
            sigma = math.sqrt((model.scale + 0.5 * misfit) / variate)
        new = fitted if stream is None else fitted + sigma * drift
        change = float(np.abs(new - Q).max() / max(1e-300, np.abs(new).max()))
        Q, done = new, done + 1
        if not change <= 1e300:  # NaN or infinity: it cannot recover
            break
    if stream is not None:
        theta = theta + sigma * shift
    least, greatest = float(fitted.min()), float(fitted.max())
    return SweptValues(theta, Q, done, change, sigma, float((raw != b).mean()), (least, greatest))


@compiled
def fill_normal(stream: Words, out: Floats) -> None:
    """Fill an array with standard normal variates, row by row."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = normal(stream)
