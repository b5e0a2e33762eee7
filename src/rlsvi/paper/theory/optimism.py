"""What the figure on the lemmas measures: the functions of its jobs. The seed draws the cases."""

from typing import Any

import numpy as np

from rlsvi import theory
from rlsvi.core.compile import Floats

PRECISE = 2e-9
NODES = 96, 400, 1600  # of the integrals; more where the error is larger than that
TUNED = 1.0, 0.1**0.5  # lambda and sigma that learn fast, and are not the theorem's
PRIORS = (1.0, 1.0), (0.5, 0.5), (0.2, 3.0), (3.0, 0.2), (10.0, 10.0)  # alpha_R of the last period


def optimism_cases(*, cases: int, seed: int) -> dict[str, Any]:
    """Lemma 1 and its two halves for random Dirichlet variables, one row per case.

    total, smallest : 1'alpha and the least weight; of every fifth case the total is below 2, where the lemma is
        silent.
    gap, error : of the normal over P'V, the least over all t, and a bound of its error.
    beta_gap, beta_error : of the matched Beta over P'V; of two weights they are one variable, and it is 0.
    normal_gap, normal_error : of the normal over the matched Beta.
    cdfs, densities : how often those of the normal and the matched Beta cross on (0, 1).
    """
    rng = np.random.default_rng(seed)
    rows = [_case(*_drawn(rng, i % 5 == 4)) for i in range(cases)]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def posterior_cases(*, draws: int, seed: int) -> dict[str, Any]:
    """Lemma 2 for the data of one small random MDP, at the theorem's parameters and at tuned ones.

    least, least_tuned : the least E[(Q~ - t)+] - E[(Q* - t)+] over all pairs, periods and t, in standard errors.
    mean, value : the least E[Q~] - E[Q*] over pairs and periods, and E[V~_0] - E[V*_0] over first states, in
        standard errors.
    last, last_error : of the last period the least over all t, at lambda = 1'alpha^R and sigma = 1 for some
        alpha^R, and a bound of its error.
    """
    rng = np.random.default_rng(seed)
    H, S, A = 2 + seed % 2, 1 + seed % 3, 1 + seed // 6 % 2
    into = rng.poisson(np.exp(rng.uniform(np.log(0.3), np.log(10))), size=(H, S, A, S))
    lows = rng.binomial(into.sum(axis=-1), rng.uniform(size=(H, S, A)))
    parameters = theory.theorem_parameters(S, H), TUNED
    sampled, tuned = (theory.q_gap(into, lows, *it, draws=draws, seed=seed) for it in parameters)
    n = into[-1].sum(axis=-1)
    last = [
        theory.last_period_gap(int(n[p]), int(lows[-1][p]), sum(prior), 1.0, alpha_R=prior)
        for p in np.ndindex(S, A)
        for prior in PRIORS
    ]
    return {
        "least": float((sampled.gap / sampled.error).min()),
        "least_tuned": float((tuned.gap / tuned.error).min()),
        "mean": float((sampled.mean / sampled.mean_error).min()),
        "value": float((sampled.value / sampled.value_error).min()),
        "last": min(gap.gap for gap in last),
        "last_error": max(gap.error for gap in last),
        "pairs": H * S * A,
    }


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
        lemma = theory.lemma_gap(alpha, V, nodes=nodes)
        if lemma.error < PRECISE:
            break
    a, b = theory.matched_beta(alpha, V)
    beta = theory.matched_gap(alpha, V, nodes=nodes) if len(alpha) > 2 else theory.Gap(0.0, 0.0, 0.0)
    normal = theory.beta_gap(a, b)
    return {
        "weights": len(alpha),
        "total": float(alpha.sum()),
        "smallest": float(alpha.min()),
        "gap": lemma.gap,
        "error": lemma.error,
        "beta_gap": beta.gap,
        "beta_error": beta.error,
        "normal_gap": normal.gap,
        "normal_error": normal.error,
        "cdfs": len(theory.crossings(a, b, points=501).places),
        "densities": theory.density_crossings(a, b),
    }
