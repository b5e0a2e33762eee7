"""Value iteration by regression, with one draw of the noise kept through all sweeps until convergence.

    V(s) = max_a Q(s, a), clipped to the bounds; 0 at the end
    b_i = r_i + gamma V(s_i')                                      at the last step of an episode; otherwise
    b_i = r_i + gamma ((1 - trace) V(s_i') + trace max(b_i+1, V(s_i')))          a lambda-return
    m = P^-1 (A'b + ridge mean)
    Q = Phi (m + sigma L^-T z)          z, and the gamma variate of sigma, drawn once

The bounds keep the iteration bounded: a regression on features is not a contraction, and can diverge without them.
Only the value that a target builds on is clipped. If the whole target were, the reward would be lost where values
lie at a bound.

A lambda-return follows an episode, here only as far as it was worth more than V: the best policy is at least as
good as the one that played (compare He, Liu, Schwing and Peng, 2017). With many numbers, `mistakes` are followed
too (Peng's lambda-return, b_i+1 instead of the maximum), because the maximum collects the errors of features that
do not fit well.
"""

import math
from typing import NamedTuple

import numpy as np

from rlsvi.agents.noise import Model
from rlsvi.agents.practice.episodes import EpisodeHistory
from rlsvi.agents.practice.history import CountedHistory
from rlsvi.agents.practice.regression import Regression
from rlsvi.core.compile import Bools, Floats, Words, compiled
from rlsvi.core.random import gamma as gamma_variate
from rlsvi.core.random import normal

MARGIN = 0.1  # of the span of observed returns, by which bounds exceed them
History = CountedHistory | EpisodeHistory


class SweptValues(NamedTuple):
    """The result of the sweeps."""

    theta: Floats  # (A, d)
    Q: Floats  # (N, A) the values of theta
    sweeps: int
    change: float  # of Q in the last sweep, relative to the size of Q
    sigma: float
    at_bounds: float  # fraction of the values behind targets that were clipped to the bounds
    span: tuple[float, float]  # smallest and largest value of the mean
    recoveries: int = 0  # how many times values diverged and were planned anew with ten times the ridge


def attainable(history: History, gamma: float) -> tuple[float, float]:
    """Return the least and the greatest plausible value of a state, given the rewards seen.

    With features, these are the discounted returns observed from any step to the end of its episode, and a tenth
    of their span more. A counted history does not know them: it is [r_min / (1 - gamma), r_max / (1 - gamma)].
    One usual reward is always considered possible: without it, nothing would be worth trying while there were no
    rewards or only costs.
    """
    usual = usual_reward(history)
    if isinstance(history, EpisodeHistory):
        returns = returns_to_go(history, gamma)
        return with_margin(float(returns.min()), float(returns.max()), usual)
    rewards = history.transitions.reward
    least, most = float(rewards.min()), float(rewards.max())
    if gamma >= 1:
        return (least if least >= 0 else -math.inf), (usual if most <= 0 else math.inf)
    return min(least, least / (1 - gamma)), max(most, most / (1 - gamma), usual)


def with_margin(least: float, most: float, usual: float) -> tuple[float, float]:
    """Return bounds of values, given the least and the greatest return observed, and the usual reward."""
    margin = max(MARGIN * (most - least), usual)
    return least - margin, most + margin


def usual_reward(history: History) -> float:
    """Return the unit of reward without prior knowledge: the geometric mean of all nonzero absolute rewards, or 1.

    With a table it is at least 1, because small costs say nothing about a prize that has not been found yet.
    """
    steps = history.transitions
    some = steps.reward != 0
    if not some.any():
        return 1.0
    usual = math.exp(float(np.average(np.log(np.abs(steps.reward[some])), weights=steps.times[some])))
    return usual if isinstance(history, EpisodeHistory) else max(1.0, usual)


def returns_to_go(history: EpisodeHistory, gamma: float) -> Floats:
    """Return the discounted sum of rewards from each step to the end of its episode, as far as it was observed."""
    reward = history.transitions.reward
    out = np.empty(len(reward))
    discounted_sums(reward, history.last, gamma, out)
    return out


@compiled
def discounted_sums(reward: Floats, last: Bools, gamma: float, out: Floats) -> None:
    """Sum the rewards from each step to the end of its episode."""
    following = 0.0
    for i in range(reward.size - 1, -1, -1):
        following = out[i] = reward[i] + (0.0 if last[i] else gamma * following)


def values_of(history: History, Q: Floats, bounds: tuple[float, float]) -> tuple[Floats, float]:
    """Return V of every row and, last, of the end, clipped to the bounds; and the fraction that was clipped."""
    legal = history.legal
    best = Q.max(axis=1) if legal.all() else np.where(legal, Q, -np.inf).max(axis=1)
    V = np.zeros(len(Q) + 1)  # the last entry stands for the end
    np.clip(best, *bounds, out=V[:-1])
    return V, float((V[:-1] != best).mean())


def targets(history: History, V: Floats, gamma: float, trace: float = 0.0, mistakes: bool = False) -> Floats:
    """Return the target of every transition, given V of the rows and of the end."""
    steps = history.transitions
    if trace == 0 or isinstance(history, CountedHistory):
        raw: Floats = steps.reward + gamma * V[steps.next]
        return raw
    out = np.empty(len(steps.reward))
    trace_back(steps.reward, V[steps.next], history.last, gamma, trace, mistakes, out)
    return out


@compiled
def trace_back(
    reward: Floats, V: Floats, last: Bools, gamma: float, trace: float, mistakes: bool, out: Floats
) -> None:
    """Compute lambda-returns, given the values V after each step; without mistakes, as far as they exceed V."""
    following = 0.0
    for i in range(reward.size - 1, -1, -1):
        if last[i] or i == reward.size - 1 or (following < V[i] and not mistakes):
            following = V[i]
        following = out[i] = reward[i] + gamma * ((1.0 - trace) * V[i] + trace * following)


def sweep(
    history: History,
    regression: Regression,
    model: Model,
    Q: Floats,
    stream: Words | None,
    bounds: tuple[float, float],
    most: int,
    tolerance: float,
    trace: float = 0.0,
    mistakes: bool = False,
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
        V, at_bounds = values_of(history, Q, bounds)
        b = targets(history, V, model.gamma, trace, mistakes)
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
    return SweptValues(theta, Q, done, change, sigma, at_bounds, (least, greatest))


@compiled
def fill_normal(stream: Words, out: Floats) -> None:
    """Fill an array with standard normal variates, row by row."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = normal(stream)
