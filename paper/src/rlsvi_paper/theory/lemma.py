"""Stochastic optimism: the lemmas of section 5 and appendix G in random cases.

They are judged strictly, up to errors that are bounded, or sampled; with them the steps of their proofs.
"""

from functools import partial
from typing import Any

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS
from rlsvi.study.statistics import proportion
from rlsvi_paper.claim import Verdict, all_of, claim, claims_in, exactly
from rlsvi_paper.drawing import DOTTED, LOGARITHMIC, Picture, labelled, panels
from rlsvi_paper.figure import Figure
from rlsvi_paper.results import rows_with
from rlsvi_paper.theory import lemma_proofs
from rlsvi_paper.theory.bounds import theorem_parameters
from rlsvi_paper.theory.optimism import (
    Gap,
    beta_gap,
    crossings,
    density_crossings,
    last_period_gap,
    lemma_gap,
    matched_beta,
    matched_gap,
    q_gap,
)

PRECISE = 2e-9
NODES = 96, 400, 1600  # of the integrals; more where the error is larger than that
TUNED = 1.0, 0.1**0.5  # lambda and sigma that learn fast, and are not the theorem's
PRIORS = (1.0, 1.0), (0.5, 0.5), (0.2, 3.0), (3.0, 0.2), (10.0, 10.0)  # alpha_R of the last period


def optimism_cases(*, cases: int, seed: int) -> dict[str, Any]:
    """Lemma 1 and its two halves for random Dirichlet variables, one row per case.

    Parameters
    ----------
    total, smallest
        1'alpha and the least weight; of every fifth case the total is below 2, where the lemma is silent.
    gap, error
        Of the normal over P'V, the least over all t, and a bound of its error.
    beta_gap, beta_error
        Of the matched Beta over P'V; of two weights they are one variable, and it is 0.
    normal_gap, normal_error
        Of the normal over the matched Beta.
    cdfs, densities
        How often those of the normal and the matched Beta cross on (0, 1).
    """
    rng = np.random.default_rng(seed)
    rows = [_case(*_draw_case(rng, i % 5 == 4)) for i in range(cases)]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def posterior_cases(*, draws: int, seed: int) -> dict[str, Any]:
    """Lemma 2 for the data of one small random MDP, at the theorem's parameters and at tuned ones.

    Parameters
    ----------
    least, least_tuned
        The least E[(Q~ - t)+] - E[(Q* - t)+] over all pairs, periods and t, in standard errors.
    mean, value
        The least E[Q~] - E[Q*] over pairs and periods, and E[V~_0] - E[V*_0] over first states, in
        standard errors.
    last, last_error
        Of the last period the least over all t, at lambda = 1'alpha^R and sigma = 1 for some alpha^R, and
        a bound of its error.
    """
    rng = np.random.default_rng(seed)
    H, S, A = 2 + seed % 2, 1 + seed % 3, 1 + seed // 6 % 2
    into = rng.poisson(np.exp(rng.uniform(np.log(0.3), np.log(10))), size=(H, S, A, S))
    lows = rng.binomial(into.sum(axis=-1), rng.uniform(size=(H, S, A)))
    parameters = theorem_parameters(S, H), TUNED
    sampled, tuned = (q_gap(into, lows, *it, draws=draws, seed=seed) for it in parameters)
    n = into[-1].sum(axis=-1)
    last = [
        last_period_gap(int(n[p]), int(lows[-1][p]), sum(prior), 1.0, alpha_R=prior)
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


def _draw_case(rng: np.random.Generator, below: bool) -> tuple[Floats, Floats]:
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
        lemma = lemma_gap(alpha, V, nodes=nodes)
        if lemma.error < PRECISE:
            break
    a, b = matched_beta(alpha, V)
    beta = matched_gap(alpha, V, nodes=nodes) if len(alpha) > 2 else Gap(0.0, 0.0, 0.0)
    normal = beta_gap(a, b)
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
        "cdfs": crossings(a, b, points=501),
        "densities": density_crossings(a, b),
    }


def jobs(cases: int, draws: int, seeds: int) -> list[Job]:
    """`cases` Dirichlet variables, and the data of one small MDP, for each seed."""
    return [
        job
        for seed in range(seeds)
        for job in (
            Job.of(optimism_cases, 0.008 * cases, cases=cases, seed=seed),
            Job.of(posterior_cases, 5e-6 * draws, draws=draws, seed=seed),
        )
    ]


ERRORS = 4.5  # standard errors that a sampled gap may fall below 0 by
of_variables, of_data = rows_with("cases"), rows_with("draws")
in_proof = partial(claim, kind="proof")


def never_less(rows: pl.DataFrame, gap: str, error: str, most: float) -> Verdict:
    """Whether no gap is negative by more than its error, and all errors are below `most`."""
    gaps, errors = rows[gap].to_numpy(), rows[error].to_numpy()
    holds = bool((gaps >= -errors).all() and (errors < most).all())
    return exactly(holds, f"in {len(rows)} cases the least difference is {gaps.min():.1e}")


@in_proof(
    "Lemma 1: N(αᵀV / αᵀ1, 1 / αᵀ1) is stochastically optimistic for PᵀV, P Dirichlet",
    "section 5 and appendix G",
    of_variables,
)
def gaussian_dirichlet(frame: pl.DataFrame) -> Verdict:
    """For X the normal and Y = PᵀV, E[(X − t)⁺] is never less than E[(Y − t)⁺], for any t, in any random case with
    αᵀ1 ≥ 2, weights below 1 included, with an error below 1e-8.
    """
    inside, below = frame.filter(pl.col("total") >= 1.999999), frame.filter(pl.col("total") < 1.999999)
    silent, smallest = int((below["gap"] + below["error"] >= 0).sum()), inside["smallest"].to_numpy().min()
    more = f"weights are down to {smallest:.2f}; it holds in {silent} of {len(below)} with αᵀ1 < 2"
    return all_of(never_less(inside, "gap", "error", 1e-8), more)


@in_proof(
    "Lemma 2: given any data the Q values of RLSVI are stochastically optimistic for the true ones",
    "section 5",
    of_data,
)
def q_values(frame: pl.DataFrame) -> Verdict:
    """In no random data set, by more than 4.5 standard errors, is E[(Q̃ − t)⁺] below E[(Q* − t)⁺] at any pair,
    period and t, or E[Q̃] below E[Q*], or E[Ṽ] below E[V*]; in the last period never, for several priors, with
    an error below 1e-8.
    """
    broken = int((frame.select(pl.min_horizontal("least", "mean", "value")).to_series() < -ERRORS).sum())
    share = proportion(broken, len(frame), method="exact")
    words = f"{broken} of {len(frame)} data sets fall short, a share of {share}"
    sampled = exactly(broken == 0, words)._replace(interval=share)
    held = len(frame) - broken, int((frame["least_tuned"] > -ERRORS).sum())
    table = [(name, f"{it} of {len(frame)}") for name, it in zip(("of Theorem 1", "1 and √.1"), held, strict=True)]
    last = never_less(frame, "last", "last_error", 1e-8)
    found = all_of(sampled, last._replace(measured=f"of the last period {last.measured}"))
    return found._replace(table=(("λ and σ", "data sets in which it holds"), *table))


@in_proof("Single crossing of CDFs implies optimism", "appendix G", of_variables)
def single_crossing(frame: pl.DataFrame) -> Verdict:
    """Of the normal for the matched Beta, in all random cases in which their CDFs cross once."""
    return never_less(frame.filter(pl.col("cdfs") == 1), "normal_gap", "normal_error", 1e-8)


@in_proof("The matched Beta is optimistic for PᵀV, P Dirichlet", "appendix G", of_variables)
def beta_for_dirichlet(frame: pl.DataFrame) -> Verdict:
    """In all random cases with more than two weights."""
    return never_less(frame.filter(pl.col("weights") > 2), "beta_gap", "beta_error", 1e-5)


@in_proof("The CDFs of normal and Beta cross once for α + β ≥ 1", "appendix G", of_variables)
def cdfs_cross_once(frame: pl.DataFrame) -> Verdict:
    """At most once, in all random cases."""
    most = int(frame.filter(pl.col("total") >= 1)["cdfs"].to_numpy().max())
    return exactly(most <= 1, f"they cross up to {most} times")


@in_proof("Their densities cross at most twice for α + β ≥ 1", "appendix G", of_variables)
def densities_cross_twice(frame: pl.DataFrame) -> Verdict:
    """In all random cases, and for α = 1.001 and β = .316."""
    heavy = [int(frame.filter(pl.col("total") >= least)["densities"].to_numpy().max()) for least in (1, 2)]
    most = max(heavy[0], density_crossings(1.001, 0.316))
    return exactly(most <= 2, f"they cross up to {most} times, and up to {heavy[1]} in cases with α + β ≥ 2")


STEPS = claims_in(lemma_proofs)


def draw(frame: pl.DataFrame) -> Picture:
    """Gaps of Lemma 1 against the sum of weights, and of Lemma 2 in standard errors."""
    figure, (left, right) = panels(2, 3.8)
    cases = of_variables(frame)
    total = cases["total"].to_numpy()
    shown = (("gap", "normal over Dirichlet"), ("normal_gap", "normal over matched Beta"))
    for i, (name, label) in enumerate(shown):
        gap = np.maximum(cases[name].to_numpy(), 1e-13)
        left.plot(total, gap, ".", color=COLOURS[i], alpha=0.4, markersize=4, label=label)
    left.axvline(2, **DOTTED)
    gap_over_t = "least gap over t (below 1e-13: 1e-13)"
    labelled(left, "sum of the weights", gap_over_t, "Lemma 1", "lower left", **LOGARITHMIC)
    shown = (("least", "the theorem's parameters"), ("least_tuned", "λ = 1, σ² = .1"))
    for i, (name, label) in enumerate(shown):
        found = np.sort(of_data(frame)[name].to_numpy())
        share = (np.arange(len(found)) + 1) / len(found)
        right.plot(found, share, ".-", color=COLOURS[i], linewidth=1, label=label)
    right.axvline(-ERRORS, **DOTTED)
    errors = "least gap of Q values in standard errors"
    labelled(right, errors, "share of data sets", "Lemma 2", "upper left", xscale="symlog")
    return figure


FIGURE = Figure.of(
    __name__,
    title="Stochastic optimism: the lemmas in random cases",
    where="section 5, appendix G",
    caption=(
        "Left: the least E[(X − t)⁺] − E[(PᵀV − t)⁺] over all t, for random Dirichlet P and values V and the "
        "normal X of Lemma 1, and the same for the matched Beta; it is optimistic where this is not negative. "
        "Right: the least such difference between the Q values of RLSVI and of the posterior, in standard "
        "errors, for random data of small MDPs."
    ),
    quick={"cases": 32, "draws": 5_000, "seeds": 40},
    paper={"cases": 32, "draws": 100_000, "seeds": 120},
)
