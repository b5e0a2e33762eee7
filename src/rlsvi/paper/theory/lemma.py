"""Stochastic optimism: the lemmas of section 5 and appendix G in random cases."""

import numpy as np
import polars as pl

from rlsvi.paper.claim import claims_in
from rlsvi.paper.drawing import DOTTED, LOGARITHMIC, Picture, labelled, panels
from rlsvi.paper.figure import Figure
from rlsvi.paper.theory import lemma_appendix, lemma_cases, lemma_proofs, lemma_regions
from rlsvi.paper.theory.lemma_cases import ERRORS, of_data, of_variables
from rlsvi.paper.theory.optimism import optimism_cases, posterior_cases
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS


def jobs(cases: int, draws: int, seeds: int) -> list[Job]:
    """`cases` Dirichlet variables, and the data of one small MDP, for each seed."""
    found = []
    for seed in range(seeds):
        found.append(Job.of(optimism_cases, 0.008 * cases, cases=cases, seed=seed))
        found.append(Job.of(posterior_cases, 5e-6 * draws, draws=draws, seed=seed))
    return found


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
        "Left: the least E[(X − t)⁺] − E[(PᵀV − t)⁺] over all t for random Dirichlet P and values V, X the "
        "normal of Lemma 1, and the same for the matched Beta in place of PᵀV; optimistic where it is not "
        "negative. Right: the least such difference between the Q values of RLSVI and of the posterior, for "
        "random data of small MDPs, in standard errors."
    ),
    quick={"cases": 32, "draws": 5_000, "seeds": 40},
    paper={"cases": 32, "draws": 100_000, "seeds": 120},
    claims=claims_in(lemma_cases, lemma_proofs, lemma_appendix, lemma_regions),
)
