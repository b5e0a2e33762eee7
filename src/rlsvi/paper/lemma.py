"""Stochastic optimism: the lemmas of section 5 and appendix G in random cases."""

import numpy as np
import polars as pl
from matplotlib.figure import Figure as Picture

from rlsvi.paper import lemma_cases as judged
from rlsvi.paper.claim import Claim
from rlsvi.paper.drawing import labelled, legend, panels
from rlsvi.paper.figure import Figure
from rlsvi.paper.lemma_cases import ERRORS, data, never_below, variables
from rlsvi.paper.lemma_steps import STEPS
from rlsvi.paper.optimism import optimism_cases, posterior_cases
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS, INK


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


def draw(frame: pl.DataFrame) -> Picture:
    """Gaps of Lemma 1 against the sum of weights, and of Lemma 2 in standard errors."""
    figure, (left, right) = panels(2, 3.8)
    cases = variables(frame)
    total = cases["total"].to_numpy()
    shown = (("gap", "normal over Dirichlet"), ("normal_gap", "normal over matched Beta"))
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
STRICT = f"in no random data set by more than {ERRORS} standard errors"
FIGURE = Figure(
    name="lemma",
    title="Stochastic optimism: the lemmas in random cases",
    where="section 5, appendix G",
    caption=(
        "Left: the least E[(X - t)+] - E[(P'V - t)+] over all t for random Dirichlet P and values V, X the "
        "normal of Lemma 1, and the same for the matched Beta in place of P'V; optimistic where it is not "
        "negative. Right: the least such difference between the Q values of RLSVI and of the posterior over all "
        "pairs, periods and t, for random data of small MDPs, in standard errors."
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
            judged.gaussian_dirichlet,
            variables,
        ),
        Claim(
            "Lemma 1 for alpha in [0, inf)^N, where appendix G has [1, inf)^N",
            FIVE,
            "the same in the random cases with a weight below 1",
            judged.small_weights,
            variables,
        ),
        Claim(
            "Lemma 2: given any data the Q values of RLSVI are stochastically optimistic for the true ones",
            FIVE,
            f"{STRICT} is E[(Q~ - t)+] - E[(Q* - t)+] below 0, at any pair, period and t looked at",
            judged.q_values,
            data,
        ),
        Claim(
            "Lemma 2 holds in the last period for lambda > max 1'alpha^R and sigma > 1",
            FIVE,
            "never less, for any t, at lambda = 1'alpha^R and sigma = 1, for random data and several alpha^R, "
            "with an error below 1e-8",
            judged.last_period,
            data,
        ),
        Claim(
            "The inductive step: E[Q* | data] <= E[n (R-hat + P-hat'V~) / (n + lambda sigma^2) | data]",
            FIVE,
            f"{STRICT} is E[Q~] below E[Q*], at any pair and period",
            lambda frame: never_below(frame, "mean", "E[Q~] - E[Q*]"),
            data,
        ),
        Claim(
            "Delta_opt has nonpositive expectation for any history",
            FIVE,
            f"{STRICT} is E[V~_0] below E[V*_0], at any first state",
            lambda frame: never_below(frame, "value", "E[V~_0] - E[V*_0]"),
            data,
        ),
        Claim(
            "The Beta of the same mean and sum on the ends of v is stochastically optimistic for the Dirichlet",
            G,
            "never less, for any t, in any random case, with an error below 1e-5",
            judged.beta_dirichlet,
            variables,
        ),
        Claim(
            "Single crossing dominance implies stochastic optimism: the normal's over the matched Beta",
            G,
            "never less, for any t, in any random case of CDFs that cross once, with an error below 1e-8",
            judged.gaussian_beta,
            variables,
        ),
        Claim(
            "It does for all alpha, beta > 0 with alpha + beta >= 1",
            G,
            "the CDFs of normal and Beta cross once in every random case with such a sum",
            lambda frame: judged.crossing("cdfs", 1, "the CDFs", frame),
            variables,
        ),
        Claim(
            "The densities of the normal and the Beta cross at most twice on (0, 1)",
            G,
            "in every random case with alpha + beta >= 1",
            lambda frame: judged.crossing("densities", 2, "the densities", frame),
            variables,
        ),
        *STEPS,
    ],
    draw=draw,
)
