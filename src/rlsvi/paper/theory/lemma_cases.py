"""What random cases say about the lemmas: judged strictly, up to errors that are bounded, or sampled.

With the steps of their proofs that hold; those that do not are claims of their own, listed in docs/errata.md.
"""

from functools import cache, partial

import polars as pl

from rlsvi.paper.claim import Verdict, all_of, claim, computed, exactly
from rlsvi.paper.results import rows_with
from rlsvi.paper.theory import lemma_proofs, lemma_regions
from rlsvi.study.statistics import proportion

ERRORS = 4.5  # standard errors that a sampled gap may fall below 0 by
of_variables, of_data = rows_with("cases"), rows_with("draws")
in_proof = partial(claim, kind="proof")


def never_less(rows: pl.DataFrame, gap: str, error: str, most: float) -> bool:
    """Whether no gap is negative by more than its error, and all errors are below `most`."""
    gaps, errors = rows[gap].to_numpy(), rows[error].to_numpy()
    return bool((gaps >= -errors).all() and (errors < most).all())


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
    silent = int((below["gap"] + below["error"] >= 0).sum())
    smallest, least = (inside[name].to_numpy().min() for name in ("smallest", "gap"))
    words = f"in {len(inside)} cases, weights down to {smallest:.2f}, the least difference is {least:.1e}"
    more = f"it holds in {silent} of {len(below)} with αᵀ1 < 2"
    return exactly(never_less(inside, "gap", "error", 1e-8), f"{words}; {more}")


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
    words = f"in the last period the least difference is {frame['last'].to_numpy().min():.1e}"
    held = len(frame) - broken, int((frame["least_tuned"] > -ERRORS).sum())
    table = [(name, f"{it} of {len(frame)}") for name, it in zip(("of Theorem 1", "1 and √.1"), held, strict=True)]
    found = all_of(sampled, exactly(never_less(frame, "last", "last_error", 1e-8), words))
    return found._replace(table=(("λ and σ", "data sets in which it holds"), *table))


def gaussian_beta(frame: pl.DataFrame) -> bool:
    """Single crossing implies optimism: the normal's over the matched Beta, in all cases of CDFs that cross
    once.
    """
    return never_less(frame.filter(pl.col("cdfs") == 1), "normal_gap", "normal_error", 1e-8)


def beta_dirichlet(frame: pl.DataFrame) -> bool:
    """The Beta of the same mean and sum on the ends of v is optimistic for the Dirichlet."""
    return never_less(frame.filter(pl.col("weights") > 2), "beta_gap", "beta_error", 1e-5)


def crossings(frame: pl.DataFrame, name: str, most: int) -> bool:
    """CDFs, or densities, of normal and Beta cross at most so often, for sums of at least 1."""
    return bool((frame.filter(pl.col("total") >= 1)[name] <= most).all())


def every(steps: dict[str, bool]) -> Verdict:
    """Whether all of some steps hold."""
    held = sum(steps.values())
    found = exactly(held == len(steps), f"{held} of {len(steps)} steps hold in all cases tried")
    return found._replace(
        table=(("step", "holds"), *((name, "yes" if holds else "no") for name, holds in steps.items()))
    )


@computed("Every other step of the proofs of Lemma 2 and Theorem 1 holds", "section 5", kind="proof")
def steps_of_section_5() -> Verdict:
    """Each holds in all cases tried, by grids, quadrature or exact computation."""
    return every({name: step() for name, step in lemma_proofs.STEPS.items()})


@cache
def calculus() -> dict[str, bool]:
    """The steps of appendix G that no random case decides."""
    return {name: step() for name, step in lemma_regions.STEPS.items()}


@in_proof("Every other step of the proof of Lemma 1 holds", "appendix G", of_variables)
def steps_of_appendix_g(frame: pl.DataFrame) -> Verdict:
    """Each holds in all cases tried: random ones, grids and quadrature."""
    sampled = {
        "single crossing implies optimism": gaussian_beta(frame),
        "the matched Beta is optimistic for the Dirichlet": beta_dirichlet(frame),
        "CDFs of normal and Beta cross once for α + β ≥ 1": crossings(frame, "cdfs", 1),
        "their densities cross at most twice": crossings(frame, "densities", 2),
    }
    return every(sampled | calculus())
