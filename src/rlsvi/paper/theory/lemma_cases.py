"""What random cases say about the lemmas: judged strictly, up to errors that are bounded, or sampled."""

from functools import partial

import polars as pl

from rlsvi.paper.claim import Verdict, claim, exactly
from rlsvi.paper.results import rows_with
from rlsvi.paper.theory.optimism import PRIORS
from rlsvi.study.statistics import proportion

ERRORS = 4.5  # standard errors that a sampled gap may fall below 0 by
of_variables, of_data = rows_with("cases"), rows_with("draws")
in_section = partial(claim, where="section 5", rows=of_data)
in_appendix = partial(claim, where="appendix G", rows=of_variables)


def never_less(rows: pl.DataFrame, gap: str, error: str, most: float, words: str) -> Verdict:
    """Whether no gap is negative by more than its error, and all errors are below `most`.

    words : with three `{}`, for the number of gaps, the least of them and the largest error.
    """
    gaps, errors = rows[gap].to_numpy(), rows[error].to_numpy()
    told = words.format(len(gaps), f"{gaps.min():.1e}", f"known to {errors.max():.0e}")
    return exactly(bool((gaps >= -errors).all() and errors.max() < most), told)


@claim(
    "Lemma 1: N(alpha'V / alpha'1, 1 / alpha'1) is stochastically optimistic for P'V, P Dirichlet",
    "section 5 and appendix G",
    of_variables,
)
def gaussian_dirichlet(frame: pl.DataFrame) -> Verdict:
    """Never less, for any t, in any random case with alpha'1 >= 2, with an error below 1e-8."""
    inside, below = frame.filter(pl.col("total") >= 1.999999), frame.filter(pl.col("total") < 1.999999)
    silent = below["gap"].to_numpy() + below["error"].to_numpy()
    words = "in {} random cases of sums from 2 on E[(X - t)+] - E[(Y - t)+] is at least {} over all t, {}"
    more = f"; of {len(silent)} with sums below 2 it holds in {(silent >= 0).sum()}"
    return never_less(inside, "gap", "error", 1e-8, words).told("", more)


@claim("Lemma 1 for alpha in [0, inf)^N, where appendix G has [1, inf)^N", "section 5", of_variables)
def small_weights(frame: pl.DataFrame) -> Verdict:
    """The same in the random cases with a weight below 1."""
    some = frame.filter(pl.col("total") >= 1.999999, pl.col("smallest") < 1)
    down = f"down to {some['smallest'].to_numpy().min():.2f}"
    words = f"in {{}} random cases with a weight below 1, {down}, the gap is at least {{}}, {{}}"
    return never_less(some, "gap", "error", 1e-8, words)


@in_appendix("Single crossing dominance implies stochastic optimism: the normal's over the matched Beta")
def gaussian_beta(frame: pl.DataFrame) -> Verdict:
    """Never less, for any t, in any random case of CDFs that cross once, with an error below 1e-8."""
    once = frame.filter(pl.col("cdfs") == 1)
    words = "for {} matched Betas whose CDF the normal's crosses once the gap is at least {} over all t, {}"
    return never_less(once, "normal_gap", "normal_error", 1e-8, words)


@in_appendix("The Beta of the same mean and sum on the ends of v is stochastically optimistic for the Dirichlet")
def beta_dirichlet(frame: pl.DataFrame) -> Verdict:
    """Never less, for any t, in any random case, with an error below 1e-5."""
    more = frame.filter(pl.col("weights") > 2)
    words = "in {} random cases of three weights or more E[(y~ - t)+] - E[(y - t)+] is at least {} over all t, {}"
    return never_less(more, "beta_gap", "beta_error", 1e-5, words)


def crossing(frame: pl.DataFrame, name: str, most: int, words: str) -> Verdict:
    """How often CDFs or densities cross, for sums of at least 1."""
    counts = frame.filter(pl.col("total") >= 1)[name].to_numpy()
    told = f"for {len(counts)} matched Betas of sums from 1 on {words} cross at most {counts.max()} times"
    return exactly(bool((counts <= most).all()), f"{told} on (0, 1)")


def never_below(frame: pl.DataFrame, name: str, words: str) -> Verdict:
    """In how many data sets something falls below 0 by more than sampling explains: none may."""
    least = frame[name].to_numpy()
    broken = int((least < -ERRORS).sum())
    share = proportion(broken, len(least), method="exact")
    short = f"falls short by more than {ERRORS} standard errors in {broken} of {len(least)} data sets"
    told = f"{words} {short}, a share of {share}; the least is {least.min():.1f} standard errors"
    return exactly(broken == 0, told)._replace(interval=share)


@in_section("Lemma 2: given any data the Q values of RLSVI are stochastically optimistic for the true ones")
def q_values(frame: pl.DataFrame) -> Verdict:
    """In no random data set by more than 4.5 standard errors is E[(Q~ - t)+] - E[(Q* - t)+] below 0, at any
    pair, period and t looked at.
    """
    decided = never_below(frame, "least", f"one of {int(frame['pairs'].sum())} Q values at some t")
    tuned = (frame["least_tuned"].to_numpy() > -ERRORS).mean()
    return decided.told("", f"; at lambda = 1, sigma^2 = .1 none does in {tuned:.2f} of them")


@in_section("Lemma 2 holds in the last period for lambda > max 1'alpha^R and sigma > 1")
def last_period(frame: pl.DataFrame) -> Verdict:
    """Never less, for any t, at lambda = 1'alpha^R and sigma = 1, for random data and several alpha^R, with an
    error below 1e-8.
    """
    sums = f"for {len(PRIORS)} alpha^R of sums from {min(map(sum, PRIORS)):g} to {max(map(sum, PRIORS)):g}"
    gap = "E[(Q~ - t)+] - E[(Q* - t)+] is at least {} over all t, {}"
    words = f"in the last period of {{}} data sets, {sums}, {gap}"
    return never_less(frame, "last", "last_error", 1e-8, words)


@in_section("The inductive step: E[Q* | data] <= E[n (R-hat + P-hat'V~) / (n + lambda sigma^2) | data]")
def optimistic_means(frame: pl.DataFrame) -> Verdict:
    """In no random data set by more than 4.5 standard errors is E[Q~] below E[Q*], at any pair and period."""
    return never_below(frame, "mean", "E[Q~] - E[Q*]")


@in_section("Delta_opt has nonpositive expectation for any history")
def optimistic_values(frame: pl.DataFrame) -> Verdict:
    """In no random data set by more than 4.5 standard errors is E[V~_0] below E[V*_0], at any first state."""
    return never_below(frame, "value", "E[V~_0] - E[V*_0]")


@in_appendix("It does for all alpha, beta > 0 with alpha + beta >= 1")
def cdfs_cross_once(frame: pl.DataFrame) -> Verdict:
    """The CDFs of normal and Beta cross once in every random case with such a sum."""
    return crossing(frame, "cdfs", 1, "the CDFs")


@in_appendix("The densities of the normal and the Beta cross at most twice on (0, 1)")
def densities_cross_twice(frame: pl.DataFrame) -> Verdict:
    """In every random case with alpha + beta >= 1."""
    return crossing(frame, "densities", 2, "the densities")
