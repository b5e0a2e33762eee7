"""Which lam and sigma the data of an agent speak for: those of the largest evidence (marginal likelihood).

With one lam and one sigma for all periods, and the targets b of all of them, the evidence is
    log p(b) = sum over periods and blocks of  - n/2 log(2 pi sigma^2) + 1/2 sum_j log(ridge / (ridge + g_j))
               - (|b|^2 + ridge |mean|^2 - sum_j y_j^2 / (ridge + g_j)) / (2 sigma^2)
where ridge = lam sigma^2, g_j are the eigenvalues of A'A, and y_j is A'b + ridge mean along their eigenvectors.
For any ridge the best sigma^2 is the last bracket over n; so only the ridge is searched for.
The targets r + V depend on lam and sigma themselves, through the posterior mean they are made with: they are made
anew with what was found, until it no longer changes.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from rlsvi.agents.agent import FiniteHorizonAgent
from rlsvi.agents.incremental import IncrementalLearner
from rlsvi.agents.learner import Learner
from rlsvi.agents.value_iteration import known_values, regression_targets, squared_targets
from rlsvi.core.compile import Floats, Ints

ROUNDS = 50
GRID = np.exp(np.linspace(math.log(1e-8), math.log(1e8), 65))  # of the ridge, in units of the mean eigenvalue


class Evidence(NamedTuple):
    """What the data speak for."""

    lam: float
    sigma: float
    log_evidence: float  # of the last targets, under lam and sigma


class Period(NamedTuple):
    """The regression of one period and block, along the eigenvectors of A'A."""

    g: Floats  # (d,)
    y: Floats  # (d,) A'b
    mean: Floats  # (d,)


def evidence(agent: FiniteHorizonAgent) -> Evidence:
    """The lam and sigma of the largest evidence, given all that `agent` has learned from. It is not changed.

    To use them: `agent.clone(lam=found.lam, sigma=found.sigma)`. For LSVI the ridge is lam sigma^2.
    Where the data fit without any error sigma would be 0; the search ends at a ridge of 1e-8 of the average
    diagonal of A'A, and at 1e8 times it where the data speak for no effect of the features at all.
    """
    learner = agent._learner
    if learner is None or agent.episodes == 0:
        raise ValueError("agent has learned nothing yet: call learn first")
    if not isinstance(learner, Learner):
        raise ValueError(
            f"{type(agent).__name__} keeps no sums of its data to judge by: learn with RLSVI, and ask that agent"
        )
    if isinstance(learner, IncrementalLearner):
        raise ValueError(
            "agent has forgotten its data: IncrementalRLSVI keeps sums of targets that were made once"
        )
    grams = [[_gram(learner, h, b) for b in _live(learner, h)] for h in range(learner.horizon)]
    eigen = [[np.linalg.eigh(gram) for gram in period] for period in grams]
    n = float(learner.memory.counts.sum())
    total = sum(float(np.trace(gram)) for period in grams for gram in period)
    weights = sum(len(gram) for period in grams for gram in period)
    unit = total / weights
    if not unit > 0:
        raise ValueError("all features seen are 0: there is nothing to tell lam and sigma by")
    ridge = learner.prior.ridge
    for _ in range(ROUNDS):
        data, squares = _targets(learner, ridge, grams, eigen)
        found = _best_ridge(data, squares, n, unit)
        if abs(math.log(found / ridge)) < 1e-6:
            break
        ridge = found
    log_evidence, sigma = profile(data, squares, n, found)
    return Evidence(found / sigma**2, sigma, log_evidence)


def profile(data: list[Period], squares: float, n: float, ridge: float) -> tuple[float, float]:
    """The log evidence at a ridge and the sigma that is best for it, and that sigma."""
    misfit, log_det = squares, 0.0
    for g, y, mean in data:
        misfit += float((ridge * mean**2 - (y + ridge * mean) ** 2 / (ridge + g)).sum())
        log_det += 0.5 * float(np.log(ridge / (ridge + g)).sum())
    variance = max(misfit, np.finfo(float).eps * max(squares, 1e-300)) / n
    return log_det - 0.5 * n * (math.log(2 * math.pi * variance) + 1.0), math.sqrt(variance)


def _best_ridge(data: list[Period], squares: float, n: float, unit: float) -> float:
    """The best on a grid, and then by golden section between its neighbours."""

    def value(log: float) -> float:
        return profile(data, squares, n, math.exp(log))[0]

    logs = np.log(GRID * unit)
    best = int(np.argmax([value(log) for log in logs]))
    low, high = logs[max(best - 1, 0)], logs[min(best + 1, len(logs) - 1)]
    golden = (math.sqrt(5) - 1) / 2
    while high - low > 1e-8:
        first, second = high - golden * (high - low), low + golden * (high - low)
        if value(first) >= value(second):
            high = second
        else:
            low = first
    return math.exp((low + high) / 2)


def _targets(
    learner: Learner, ridge: float, grams: list[list[Floats]], eigen: list[list[Any]]
) -> tuple[list[Period], float]:
    """The regressions of all periods with the targets of the posterior mean for a ridge, and |b|^2 of them all."""
    values, prior = learner.blank_values(), learner.prior._replace(ridge=0.0)
    data, squares = [], 0.0
    for h in reversed(range(learner.horizon)):
        regression_targets(learner.memory, prior, values, h)
        squares += squared_targets(learner.memory, values, h)
        for b, gram, (g, vectors) in zip(_live(learner, h), grams[h], eigen[h], strict=True):
            y, mean = values.theta[h, b].copy(), prior.mean[h, b]
            floor = len(g) * np.finfo(float).eps * max(float(g[-1]), 0.0)  # below it a number is rounding
            data.append(Period(np.where(g > floor, g, 0.0), vectors.T @ y, vectors.T @ mean))
            values.theta[h, b] = np.linalg.solve(gram + ridge * np.eye(len(g)), y + ridge * mean)
        known_values(learner.memory, values, h)
    return data, float(squares)


def _live(learner: Learner, h: int) -> Ints:
    live: Ints = learner.memory.live[h, : learner.memory.lives[h]]
    return live


def _gram(learner: Learner, h: int, b: int) -> Floats:
    """A'A, from its factor."""
    upper = np.triu(learner.factor.U[h, b])
    gram: Floats = upper.T @ upper - learner.prior.ridge * np.eye(len(upper))
    return gram
