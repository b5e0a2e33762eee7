"""The lam and sigma best supported by the data of an agent: those with the largest marginal likelihood.

With one lam and one sigma for all periods, and the targets b of all of them, the evidence is
    log p(b) = sum over periods and blocks of  - n/2 log(2 pi sigma^2) + 1/2 sum_j log(ridge / (ridge + g_j))
               - (|b|^2 + ridge |mean|^2 - sum_j y_j^2 / (ridge + g_j)) / (2 sigma^2)
where ridge = lam sigma^2, g_j are the eigenvalues of A'A, and y_j is A'b + ridge mean along their eigenvectors.
For any ridge, the best sigma^2 is the last bracket divided by n, so only the ridge is searched for.
The targets r + V depend on lam and sigma themselves, through the posterior mean used to compute them. They are
recomputed with each result until it no longer changes.
"""

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from rlsvi.core.checks import ridge_of
from rlsvi.core.compile import Floats, Ints
from rlsvi.core.regression import Factor

ROUNDS = 50
GRID = np.exp(np.linspace(math.log(1e-8), math.log(1e8), 65))  # of the ridge, in units of the mean eigenvalue
WHERE_FEATURES_MATTER = GRID[:45]  # up to 1e3; beyond it features have no effect and A'A is lost


class Evidence(NamedTuple):
    """The lam and sigma that the data support best."""

    lam: float
    sigma: float
    log_evidence: float  # of the last targets, given lam and sigma


class NoEvidence(ValueError):
    """The data do not determine lam and sigma."""


class Data(NamedTuple):
    """All regressions, along the eigenvectors of A'A, one after another."""

    g: Floats
    y: Floats  # A'b
    mean: Floats


def evidence(agent: Any) -> Evidence:
    """Return the lam and sigma with the largest evidence, given the experience of an agent.

    For LSVI the ridge is lam sigma^2. If the data fit without error, sigma would be 0; the search is limited to
    ridges from 1e-8 times the average diagonal of A'A to 1e8 times it, where features have no effect at all.

    Parameters
    ----------
    agent
        An agent that has learned. It is not changed.

    Returns
    -------
    Evidence
        The two numbers, `lam` and `sigma`, and their log evidence.

    Examples
    --------
    >>> import gymnasium, rlsvi
    >>> agent = rlsvi.RLSVI(seed=0).learn(gymnasium.make("rlsvi/Chain-v0", length=5), 50)
    >>> found = rlsvi.evidence(agent)
    >>> better = agent.clone(lam=found.lam, sigma=found.sigma)
    """
    learner = getattr(agent, "_learner", None)
    if learner is None or agent.steps == 0:
        raise ValueError("agent has learned nothing yet: call learn first")
    if not getattr(learner, "keeps_data", False):
        raise ValueError(
            f"{type(agent).__name__} keeps no sums of its data to judge by: learn with RLSVI, and ask that agent"
        )
    return _search(learner, GRID)


def _search(learner: Any, grid: Floats) -> Evidence:
    """Maximise the evidence over ridges on the grid and between its points."""
    spectra = [spectrum(learner, h) for h in range(len(learner.mind.memory.states))]
    n = float(learner.mind.memory.counts.sum())
    unit = float(np.mean(np.concatenate([g.ravel() for g, _ in spectra])))
    if not unit > 0:
        raise NoEvidence("all features seen are 0: there is nothing to tell lam and sigma by")
    ridge = learner.mind.prior.ridge
    for _ in range(ROUNDS):
        data, squares = _targets(learner, ridge, spectra)
        if not squares > 0:
            raise NoEvidence("all targets are 0, which no noise explains: learn until a reward is not 0")
        found = _best_ridge(data, squares, n, grid * unit)
        change = abs(math.log(found / ridge))
        if change < 1e-6:
            break
        ridge = found
    else:
        warnings.warn(
            f"lam and sigma still change each other after {ROUNDS} rounds, the ridge by {math.expm1(change):.1%}: "
            "the evidence has several peaks; learn more, and ask again",
            RuntimeWarning,
            stacklevel=3,
        )
    log_evidence, sigma = profile(data, squares, n, found)
    return Evidence(found / sigma**2, sigma, log_evidence)


def estimate_noise(learner: Any, lam: float, sigma: float) -> tuple[float, float, Any]:
    """Return the lam and sigma that a learner's data support best, and its mind with the factors of that ridge.

    If the data do not determine them, the given values are returned. The learner is not changed.
    """
    try:
        lam, sigma, _ = _search(learner, WHERE_FEATURES_MATTER)
    except NoEvidence:
        return lam, sigma, learner.mind
    ridge = ridge_of(lam, sigma)
    factor = Factor(*(part.copy() for part in learner.mind.factor))
    for h in range(len(learner.mind.memory.states)):
        g, vectors = spectrum(learner, h)
        factor.U[h] = math.sqrt(ridge) * np.eye(learner.features.dim)
        rows = np.sqrt(ridge + g)[:, :, None] * np.swapaxes(vectors, 1, 2)
        for b, root in zip(_live(learner, h), rows, strict=True):
            R = np.linalg.qr(root, mode="r")
            factor.U[h, b] = np.triu(R * np.sign(np.diag(R))[:, None])
        factor.inv[h] = 1.0 / np.diagonal(factor.U[h], axis1=1, axis2=2)
    prior = learner.mind.prior._replace(lam=lam, ridge=ridge, sigma=sigma)
    return lam, sigma, learner.mind._replace(factor=factor, prior=prior)


def profile(data: Data, squares: float, n: float, ridge: float) -> tuple[float, float]:
    """Return the log evidence at a ridge with the best sigma for it, and that sigma."""
    whole = ridge + data.g
    misfit = squares + float((ridge * data.mean**2 - (data.y + ridge * data.mean) ** 2 / whole).sum())
    log_det = 0.5 * float(np.log(ridge / whole).sum())
    variance = max(misfit, np.finfo(float).eps * squares) / n
    return log_det - 0.5 * n * (math.log(2 * math.pi * variance) + 1.0), math.sqrt(variance)


def spectrum(learner: Any, h: int) -> tuple[Floats, Floats]:
    """Return the eigenvalues (n, d) and, in columns, eigenvectors (n, d, d) of A'A for a period's live blocks.

    They come from the singular values of its factor, which preserve small ones.
    """
    _, s, rows = np.linalg.svd(np.triu(learner.mind.factor.U[h, _live(learner, h)]))
    g = s**2 - learner.mind.prior.ridge
    floor = 4 * s.shape[1] * np.finfo(float).eps * s * s[:, :1]  # values below it are rounding errors
    return np.where(g > floor, g, 0.0), np.swapaxes(rows, 1, 2)


def _best_ridge(data: Data, squares: float, n: float, grid: Floats) -> float:
    """Return the best ridge of a grid, refined between its neighbours."""

    def value(log: float) -> float:
        return profile(data, squares, n, math.exp(log))[0]

    logs = np.log(grid)
    best = int(np.argmax([value(log) for log in logs]))
    low, high = logs[max(best - 1, 0)], logs[min(best + 1, len(logs) - 1)]
    found = minimize_scalar(lambda log: -value(log), bounds=(low, high), method="bounded", options={"xatol": 1e-8})
    return math.exp(float(found.x))


def _targets(learner: Any, ridge: float, spectra: list[tuple[Floats, Floats]]) -> tuple[Data, float]:
    """Return the regressions of all periods with targets from the posterior mean for a ridge, and their |b|^2."""
    values, prior = learner.blank_values(), learner.mind.prior._replace(ridge=0.0)
    parts, squares = [], 0.0
    for h in reversed(range(len(learner.mind.memory.states))):
        g, vectors = spectra[h]
        live = _live(learner, h)
        squares += learner.set_targets(prior, values, h)
        y, mean = (np.einsum("nji,nj->ni", vectors, rows[h, live]) for rows in (values.theta, prior.mean))
        parts.append((g.ravel(), y.ravel(), mean.ravel()))
        values.theta[h, live] = np.einsum("nij,nj->ni", vectors, (y + ridge * mean) / (ridge + g))
        learner.set_values(prior, values, h)
    return Data(*(np.concatenate(part) for part in zip(*parts, strict=True))), float(squares)


def _live(learner: Any, h: int) -> Ints:
    live: Ints = learner.mind.memory.live[h, : learner.mind.memory.lives[h]]
    return live
