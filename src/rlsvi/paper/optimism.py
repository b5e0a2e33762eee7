"""What the figure on the lemmas measures: the functions of its jobs. The seed draws the cases."""

from typing import Any

import numpy as np

from rlsvi.core.compile import Floats
from rlsvi.theory import (
    beta_excess,
    crossings,
    dirichlet_excess,
    last_period_gap,
    lemma_gap,
    matched_beta,
    q_gap,
    theorem_parameters,
)

POINTS = 8  # values of t that a case is looked at, twice
PRECISE = 1e-9
NODES = 96, 400, 1600  # of the integrals; more where the error is larger than that
TUNED = 1.0, 0.1**0.5  # lambda and sigma that learn fast, and are not the theorem's


def optimism_cases(*, cases: int, seed: int) -> dict[str, Any]:
    """Lemma 1 and its two halves for random Dirichlet variables: a row each.

    total : 1'alpha; of every fifth case below 2, where the lemma is silent.
    gap, error : of the normal over P'V, the least over t, and a bound of its error.
    beta_gap : of the matched Beta over P'V, the least over t.
    cdfs, densities : how often those of the normal and the matched Beta cross on (0, 1).
    """
    rng = np.random.default_rng(seed)
    rows = [_case(*_drawn(rng, i % 5 == 4)) for i in range(cases)]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def posterior_cases(*, draws: int, seed: int) -> dict[str, Any]:
    """Lemma 2 for the data of one small random MDP, at the theorem's parameters and at tuned ones.

    least, least_tuned : the least E[(Q~ - t)+] - E[(Q* - t)+] over all pairs, periods and t, in standard errors.
    last : the least of the last period, exactly.
    """
    rng = np.random.default_rng(seed)
    H, S, A = 2 + seed % 2, 1 + seed % 3, 1 + seed // 6 % 2
    into = rng.poisson(np.exp(rng.uniform(np.log(0.3), np.log(10))), size=(H, S, A, S))
    lows = rng.binomial(into.sum(axis=-1), rng.uniform(size=(H, S, A)))
    lam, sigma = theorem_parameters(S, H)
    found = {}
    for name, parameters in (("least", (lam, sigma)), ("least_tuned", TUNED)):
        sampled = q_gap(into, lows, *parameters, draws=draws, seed=seed)
        found[name] = float((sampled.gap / sampled.error).min())
    n = into[-1].sum(axis=-1)
    exact = [last_period_gap(int(n[p]), int(lows[-1][p]), lam, sigma).gap for p in np.ndindex(S, A)]
    return {**found, "last": min(exact), "pairs": H * S * A}


def _drawn(rng: np.random.Generator, below: bool) -> tuple[Floats, Floats]:
    """Weights over more than two orders of magnitude, of a sum of at least 2 or below it, and values in [0, 1]."""
    d = int(rng.integers(2, 9))
    alpha, V = np.exp(rng.uniform(np.log(0.1), np.log(20), d)), rng.uniform(size=d)
    total, least = alpha.sum(), np.exp(rng.uniform(np.log(0.2), np.log(2)))
    if below or total < 2:
        alpha = alpha * ((least if below else 2.0) / total)
    if rng.uniform() < 0.5:
        V[:2] = 0.0, 1.0
    return alpha, V


def _case(alpha: Floats, V: Floats) -> dict[str, Any]:
    """One row; with more nodes where the error is not small enough."""
    for nodes in NODES:
        row = _row(alpha, V, nodes)
        if row["error"] < PRECISE:
            break
    return row


def _row(alpha: Floats, V: Floats, nodes: int) -> dict[str, Any]:
    lemma = lemma_gap(alpha, V, points=POINTS, nodes=nodes)
    a, b = matched_beta(alpha, V)
    low, width = V.min(), np.ptp(V)
    share = np.linspace(0.0, 1.0, POINTS + 2)[1:-1]
    excess = dirichlet_excess(alpha, V, low + width * share, nodes=nodes)
    return {
        "weights": len(alpha),
        "total": float(alpha.sum()),
        "gap": lemma.gap,
        "error": max(lemma.error, float(excess.error.max())),
        "beta_gap": float((width * beta_excess(a, b, share) - excess.value).min()),
        "cdfs": len(crossings(a, b, points=501).places),
        "densities": density_crossings(a, b),
    }


def density_crossings(a: float, b: float, *, points: int = 4001) -> int:
    """How often the densities of N(a / (a + b), 1 / (a + b)) and Beta(a, b) cross on (0, 1), seen on a grid."""
    from scipy.special import betaln, log_expit

    u = np.linspace(-40.0, 40.0, points)
    left, right = log_expit(u), log_expit(-u)
    beta = (a - 1) * left + (b - 1) * right - betaln(a, b)
    normal = -0.5 * (a + b) * (np.exp(left) - a / (a + b)) ** 2 + 0.5 * np.log((a + b) / (2 * np.pi))
    return int(np.count_nonzero(np.diff(np.sign(beta - normal))))
