"""Stochastic optimism: the lemmas of section 5 and appendix G in random cases."""

import numpy as np
import polars as pl
from matplotlib.figure import Figure as Picture

from rlsvi.paper import lemma_proofs as proofs
from rlsvi.paper.claim import Claim, Verdict, at_least, exactly
from rlsvi.paper.drawing import labelled, legend, panels
from rlsvi.paper.figure import Figure
from rlsvi.paper.optimism import optimism_cases, posterior_cases
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS, INK
from rlsvi.study.statistics import proportion

ERRORS = 4.5  # standard errors that a sampled gap may fall below 0 by


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


def beta_dirichlet(frame: pl.DataFrame) -> Verdict:
    """The least gap of the matched Beta; with two weights it is the same variable."""
    more = frame.filter(pl.col("weights") > 2)
    gap, error = (frame[name].to_numpy() for name in ("beta_gap", "error"))
    return exactly(
        bool((gap >= -error - 1e-14).all()),
        f"in {len(gap)} random cases E[(y~ - t)+] - E[(y - t)+] is at least {gap.min():.1e}, with an error of at "
        f"most {error.max():.0e}, and at least {more['beta_gap'].to_numpy().min():.1e} with three weights or more",
    )


def crossing(name: str, most: int, words: str, frame: pl.DataFrame) -> Verdict:
    """How often CDFs or densities cross, for sums of at least 1."""
    counts = frame.filter(pl.col("total") >= 1)[name].to_numpy()
    return exactly(
        bool((counts <= most).all()),
        f"for {len(counts)} matched Betas of sums from 1 on {words} cross at most {counts.max()} times on (0, 1)",
    )


def q_values(frame: pl.DataFrame) -> Verdict:
    """For how many data sets RLSVI is optimistic everywhere, up to sampling errors."""
    least, tuned = (frame[name].to_numpy() for name in ("least", "least_tuned"))
    good = proportion(int((least > -ERRORS).sum()), len(least))
    return at_least(
        good,
        0.9,
        f"no Q value of {int(frame['pairs'].sum())} falls short by more than {ERRORS} standard errors in {good} "
        f"of {len(least)} data sets, at the theorem's lambda and sigma; at lambda = 1, sigma^2 = .1 in "
        f"{(tuned > -ERRORS).mean():.2f}",
    )


def last_period(frame: pl.DataFrame) -> Verdict:
    """The exact gaps of the last period."""
    last = frame["last"].to_numpy()
    return exactly(
        bool((last >= -1e-14).all()),
        f"in the last period of {len(last)} data sets E[(Q~ - t)+] - E[(Q* - t)+] is at least {last.min():.1e}",
    )


def draw(frame: pl.DataFrame) -> Picture:
    """Gaps of Lemma 1 against the sum of weights, and of Lemma 2 in standard errors."""
    figure, (left, right) = panels(2, 3.8)
    cases = variables(frame)
    total = cases["total"].to_numpy()
    shown = (("gap", "normal over Dirichlet"), ("beta_gap", "matched Beta over Dirichlet"))
    for i, (name, label) in enumerate(shown):
        gap = np.maximum(cases[name].to_numpy(), 1e-13)
        left.plot(total, gap, ".", color=COLOURS[i], alpha=0.4, markersize=4, label=label)
    left.axvline(2, color=INK, linewidth=0.8, linestyle=":")
    left.set_xscale("log")
    left.set_yscale("log")
    labelled(left, "sum of the weights", "least gap over t (below 1e-13: 1e-13)", "Lemma 1")
    legend(left, loc="lower left")
    for i, (name, label) in enumerate(
        (("least", "the theorem's parameters"), ("least_tuned", "lambda = 1, sigma^2 = .1"))
    ):
        found = np.sort(data(frame)[name].to_numpy())
        share = (np.arange(len(found)) + 1) / len(found)
        right.plot(found, share, ".-", color=COLOURS[i], linewidth=1, label=label)
    right.axvline(-ERRORS, color=INK, linewidth=0.8, linestyle=":")
    right.set_xscale("symlog")
    labelled(right, "least gap of Q values in standard errors", "share of data sets", "Lemma 2")
    legend(right, loc="upper left")
    return figure


FIVE, G = "section 5", "appendix G"
FIGURE = Figure(
    name="lemma",
    title="Stochastic optimism: the lemmas in random cases",
    where="section 5, appendix G",
    caption=(
        "Left: the least E[(X - t)+] - E[(P'V - t)+] over t for random Dirichlet P and values V, X the normal of "
        "Lemma 1 or the matched Beta; optimistic where it is not negative. Right: the least such difference "
        "between the Q values of RLSVI and of the posterior over all pairs, periods and t, for random data of "
        "small MDPs, in standard errors."
    ),
    sizes={
        "quick": {"cases": 32, "draws": 5_000, "seeds": 40},
        "paper": {"cases": 32, "draws": 100_000, "seeds": 120},
    },
    jobs=jobs,
    claims=[
        Claim(
            "Lemma 1: N(alpha'V / alpha'1, 1 / alpha'1) is stochastically optimistic for P'V, P Dirichlet",
            "section 5 and appendix G",
            "never less, for any t, in any random case with alpha'1 >= 2, with an error below 1e-8",
            gaussian_dirichlet,
            variables,
        ),
        Claim(
            "Lemma 2: given any data the Q values of RLSVI are stochastically optimistic for the true ones",
            FIVE,
            f"in at least .9 of random data sets no gap is below 0 by more than {ERRORS} standard errors",
            q_values,
            data,
        ),
        Claim(
            "Lemma 2 holds in the last period for lambda > max 1'alpha^R and sigma > 1",
            FIVE,
            "computed, at the theorem's parameters, for random data",
            last_period,
            data,
        ),
        Claim(
            "The posterior of a table is diagonal, sigma^2 / (n + lambda sigma^2), its mean n (..) / (n + lambda "
            "sigma^2)",
            FIVE,
            "a regression agrees to 1e-12",
            proofs.closed_form,
        ),
        Claim(
            "The empirical mean reward is at least the posterior mean",
            FIVE,
            "for all data of at most 30 visits",
            proofs.empirical_above_posterior,
        ),
        Claim(
            "b^R and b^P are optimistic bias terms",
            FIVE,
            "not negative for all data of at most 30 visits and next values of either sign",
            proofs.biases_are_optimistic,
        ),
        Claim(
            "Up to O~ b^R is alpha_1^R / (n + 1'alpha^P) and b^P is H 1'alpha^P / (n + 1'alpha^P)",
            FIVE,
            "the largest ratio for any n does not double from H = 5 to 20",
            proofs.biases_are_small,
        ),
        Claim(
            "For independent Gammas E[g_1 | g_1 + g_2] = k_1 / (k_1 + k_2) (g_1 + g_2)",
            G,
            "quadrature agrees to 1e-12",
            proofs.gammas,
        ),
        Claim(
            "The Beta of the same mean and sum on the ends of v is stochastically optimistic for the Dirichlet",
            G,
            "never less, for any t looked at, in any random case, up to the error",
            beta_dirichlet,
            variables,
        ),
        Claim(
            "The coupling of Gammas by alpha^0 and alpha^1 gives E[y~ | y] = E[y]",
            G,
            "its line after (a) is an identity",
            proofs.coupling,
        ),
        Claim(
            "For any alpha, beta > 0 the normal single crossing dominates the Beta",
            G,
            "the CDFs cross once for alpha = beta, however small",
            proofs.any_weights,
        ),
        Claim(
            "It does for all alpha, beta > 0 with alpha + beta >= 1",
            G,
            "the CDFs cross once in every random case with such a sum",
            lambda frame: crossing("cdfs", 1, "the CDFs", frame),
            variables,
        ),
        Claim(
            "The densities of the normal and the Beta cross at most twice on (0, 1)",
            G,
            "in every random case with alpha + beta >= 1",
            lambda frame: crossing("densities", 2, "the densities", frame),
            variables,
        ),
        Claim(
            "For alpha > 1, beta <= 1, g = l_N' - l_B' has no root",
            G,
            "g is below 0 on a grid of alpha, beta and x",
            proofs.special_case,
        ),
        Claim(
            "For (alpha - 1)(beta - 1) >= 1/9, alpha, beta > 1, h = l_N'' - l_B'' has no root",
            G,
            "h is not negative at its minimum on the border of the region, and the closed form of it right",
            proofs.convex_case,
        ),
        Claim(
            "In the final region the bounds g~_i(1/3) are above .01, and the Beta's density is above the normal's "
            "where it must be",
            G,
            "f_1 and f_2 are positive on a grid of the region",
            proofs.final_region,
        ),
    ],
    draw=draw,
)
