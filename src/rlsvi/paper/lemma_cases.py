"""What random cases say about the lemmas: judged strictly, up to errors that are bounded, or sampled."""

import polars as pl

from rlsvi.paper.claim import Verdict, exactly
from rlsvi.paper.optimism import PRIORS
from rlsvi.study.statistics import proportion

ERRORS = 4.5  # standard errors that a sampled gap may fall below 0 by


def variables(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of Dirichlet variables."""
    return frame.filter(pl.col("cases").is_not_null())


def data(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of the data of MDPs."""
    return frame.filter(pl.col("draws").is_not_null())


def gaussian_dirichlet(frame: pl.DataFrame) -> Verdict:
    """The least gap where the lemma speaks, and where it is silent."""
    inside, below = frame.filter(pl.col("total") >= 1.999999), frame.filter(pl.col("total") < 1.999999)
    gap, error = inside["gap"].to_numpy(), inside["error"].to_numpy()
    silent = below["gap"].to_numpy() + below["error"].to_numpy()
    return exactly(
        bool((gap >= -error).all() and error.max() < 1e-8),
        f"in {len(gap)} random cases of sums from 2 on E[(X - t)+] - E[(Y - t)+] is at least {gap.min():.1e} over "
        f"all t, known to {error.max():.0e}; of {len(silent)} with sums below 2 it holds in {(silent >= 0).sum()}",
    )


def small_weights(frame: pl.DataFrame) -> Verdict:
    """Lemma 1 where some weight is below 1, as section 5 has it and appendix G has not."""
    some = frame.filter(pl.col("total") >= 1.999999, pl.col("smallest") < 1)
    gap, error, least = (some[name].to_numpy() for name in ("gap", "error", "smallest"))
    return exactly(
        bool((gap >= -error).all() and error.max() < 1e-8),
        f"in {len(gap)} random cases with a weight below 1, down to {least.min():.2f}, the gap is at least "
        f"{gap.min():.1e}, known to {error.max():.0e}",
    )


def gaussian_beta(frame: pl.DataFrame) -> Verdict:
    """The least gap of the normal over the matched Beta, where their CDFs cross once."""
    once = frame.filter(pl.col("cdfs") == 1)
    gap, error = once["normal_gap"].to_numpy(), once["normal_error"].to_numpy()
    return exactly(
        bool((gap >= -error).all() and error.max() < 1e-8),
        f"for {len(gap)} matched Betas whose CDF the normal's crosses once the gap is at least {gap.min():.1e} "
        f"over all t, known to {error.max():.0e}",
    )


def beta_dirichlet(frame: pl.DataFrame) -> Verdict:
    """The least gap of the matched Beta; with two weights it is the same variable."""
    more = frame.filter(pl.col("weights") > 2)
    gap, error = (more[name].to_numpy() for name in ("beta_gap", "beta_error"))
    return exactly(
        bool((gap >= -error).all() and error.max() < 1e-5),
        f"in {len(gap)} random cases of three weights or more E[(y~ - t)+] - E[(y - t)+] is at least "
        f"{gap.min():.1e} over all t, known to {error.max():.0e}",
    )


def crossing(name: str, most: int, words: str, frame: pl.DataFrame) -> Verdict:
    """How often CDFs or densities cross, for sums of at least 1."""
    counts = frame.filter(pl.col("total") >= 1)[name].to_numpy()
    return exactly(
        bool((counts <= most).all()),
        f"for {len(counts)} matched Betas of sums from 1 on {words} cross at most {counts.max()} times on (0, 1)",
    )


def never_below(frame: pl.DataFrame, name: str, words: str) -> Verdict:
    """In how many data sets something falls below 0 by more than sampling explains: none may."""
    least = frame[name].to_numpy()
    broken = int((least < -ERRORS).sum())
    share = proportion(broken, len(least), method="exact")
    verdict = exactly(
        broken == 0,
        f"{words} falls short by more than {ERRORS} standard errors in {broken} of {len(least)} data sets, a "
        f"share of {share}; the least is {least.min():.1f} standard errors",
    )
    return verdict._replace(interval=share)


def q_values(frame: pl.DataFrame) -> Verdict:
    """Whether RLSVI is optimistic everywhere for all data sets, up to sampling errors."""
    decided = never_below(frame, "least", f"one of {int(frame['pairs'].sum())} Q values at some t")
    tuned = (frame["least_tuned"].to_numpy() > -ERRORS).mean()
    words = f"{decided.measured}; at lambda = 1, sigma^2 = .1 none does in {tuned:.2f} of them"
    return decided._replace(measured=words)


def last_period(frame: pl.DataFrame) -> Verdict:
    """The exact gaps of the last period."""
    last, error = frame["last"].to_numpy(), frame["last_error"].to_numpy()
    return exactly(
        bool((last >= -error).all() and error.max() < 1e-8),
        f"in the last period of {len(last)} data sets, for {len(PRIORS)} alpha^R of sums from "
        f"{min(map(sum, PRIORS)):g} to {max(map(sum, PRIORS)):g}, E[(Q~ - t)+] - E[(Q* - t)+] is at least "
        f"{last.min():.1e} over all t, known to {error.max():.0e}",
    )
