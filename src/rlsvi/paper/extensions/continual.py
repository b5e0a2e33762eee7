"""Continual RLSVI: a river without end, and what the autocorrelation of the noise is good for."""

import math
from functools import partial
from itertools import product

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Part, Verdict, at_least, at_most, claim, exactly, mean_se, worst_of
from rlsvi.paper.drawing import Picture, curves, labelled, legend, panels
from rlsvi.paper.extensions.continual_runs import (
    COHERENT,
    DITHERING,
    FUNCTIONS,
    GAMMA,
    continual_reward,
    perturbations,
)
from rlsvi.paper.figure import Figure
from rlsvi.paper.results import having, rows_where, rows_with
from rlsvi.study.job import Job
from rlsvi.study.statistics import Interval, mean

NOISES = ("paper", "whitened", "independent")
AGENTS = (*NOISES, *DITHERING)
THEORY = {"paper": math.sqrt(1 - GAMMA**2), "whitened": GAMMA, "independent": 0.0}
FEW = "epsilon = .1"  # the usual one, shown with features too
SPANNING = {"table": "a table", "coherent": f"{FUNCTIONS} functions that span Q*"}
OTHERS = {"coherent, small": "the same, scaled to √(HSA)", "places": "1, x, x² an action, which do not span Q*"}
SHARES = ("states", "agent", "share of the best average reward")
with_table = rows_where(basis="table")
of_perturbations = rows_with("noise")
in_appendix = partial(claim, where="appendix F.2")


def jobs(states: list[int], steps: int, few: int, watched: int, more: int, seeds: int) -> list[Job]:
    """All agents in rivers of several lengths: with a table, and with features for a life of `few` steps.

    more : times as many seeds where kinds of noise are compared and where values may diverge.
    """
    lives = [("table", agent, N, steps, more if agent in NOISES else 1) for agent in AGENTS for N in states]
    lives += [(basis, agent, N, few, more) for basis in COHERENT for agent in NOISES for N in states]
    lives += [("coherent", FEW, N, few, 1) for N in states]
    lives += [("places", noise, N, few, 1) for noise in NOISES for N in states]
    lives += [("random", "paper", N, few, more) for N in states]
    return [
        Job.of(continual_reward, 2e-6 * life, basis=basis, agent=agent, states=N, steps=life, seed=seed)
        for basis, agent, N, life, times in lives
        for seed in range(times * seeds)
    ] + [
        Job.of(perturbations, 2e-4 * watched, noise=noise, states=states[0], steps=watched, seed=seed)
        for noise in NOISES
        for seed in range(seeds)
    ]


def of_noises(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of RLSVI's lives, but for those with features that may not span Q*."""
    return frame.filter(pl.col("basis") != "random", pl.col("agent").is_in(NOISES))


def with_functions(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of RLSVI's lives with random functions, which span Q* or need not."""
    return frame.filter(pl.col("basis").is_in(["coherent", "random"]), pl.col("agent") == "paper")


def shares(frame: pl.DataFrame, agent: str, states: int, basis: str = "table") -> Floats:
    """The share of the best average reward in each part of a life, (seeds, 10)."""
    mine = having(frame, agent=agent, states=states, basis=basis)
    return np.asarray(mine.sort("seed", "part")["share"].to_numpy().reshape(-1, 10))


def late(frame: pl.DataFrame, agent: str, states: int) -> tuple[Interval, str]:
    """Its mean over the second half of a life and over seeds, and the same in words."""
    share = shares(frame, agent, states)[:, 5:].mean(axis=1)
    return mean(share), mean_se(share, 3)


@in_appendix(
    "Perturbing value estimates in directions of significant uncertainty incentivises exploration", rows=with_table
)
def explores(frame: pl.DataFrame) -> Verdict:
    """In the second half of its life RLSVI with a table has at least .95 of the best average reward, where
    LSVI with ε = .1 has at most .1.
    """
    rows = []
    for N in sorted(frame["states"].unique()):
        (ours, told), (theirs, told_of_theirs) = late(frame, "paper", N), late(frame, FEW, N)
        rows.append((at_least(ours, 0.95, f"{N} states: RLSVI has {told}"), (f"{N}", "RLSVI", told)))
        rows.append(
            (
                at_most(theirs, 0.1, f"{N} states: LSVI has {told_of_theirs}"),
                (f"{N}", "LSVI, ε = .1", told_of_theirs),
            )
        )
    return worst_of(SHARES, rows)


@claim(
    "Dithering in its place does not explore, however it is tuned",
    "section 3, appendix F.2",
    with_table,
    kind="ours",
)
def dithering_does_not(frame: pl.DataFrame) -> Verdict:
    """With every ε, constant or falling, LSVI has at most .1 of the best average reward then, in every river."""
    rows = []
    for N, agent in product(sorted(frame["states"].unique()), DITHERING):
        share, told = late(frame, agent, N)
        name = agent.replace("epsilon", "ε")
        words = f"with {N} states and {name} LSVI has {told} of the best reward"
        rows.append((at_most(share, 0.1, words), (f"{N}", name, told)))
    return worst_of(SHARES, rows)


def seen(frame: pl.DataFrame, noise: str, name: str) -> Floats:
    """What was measured of a kind of noise, for each seed."""
    return np.asarray(having(frame, noise=noise).sort("seed")[name].to_numpy())


@in_appendix("The perturbations are sampled to ensure autocorrelation", rows=of_perturbations)
def autocorrelated(frame: pl.DataFrame) -> Verdict:
    """As printed, the correlation of consecutive perturbations is above 0 at γ = .99, over the second half of a
    life.
    """
    found = {noise: mean_se(seen(frame, noise, "correlation"), 3) for noise in THEORY}
    words = (
        f"as printed it is {found['paper']}, in theory √(1 − γ²) = {THEORY['paper']:.3f}, which vanishes as γ → 1"
    )
    table = ("noise", "correlation", "in theory"), *((it, found[it], f"{rho:.3f}") for it, rho in THEORY.items())
    return at_least(mean(seen(frame, "paper", "correlation")), 0.0, words)._replace(table=table)


@in_appendix(
    "Marginal covariance matrices of consecutive perturbations differ only slightly", rows=of_perturbations
)
def differ_slightly(frame: pl.DataFrame) -> Verdict:
    """The variance Σ of a weight changes by at most 5% a step, on average over all steps of a life from its
    first on.
    """
    change, largest = seen(frame, "paper", "change"), seen(frame, "paper", "largest")
    usual = f"by {mean(change).value:.2%} a step, of the weight that changes most in it"
    return at_most(mean(change), 0.05, f"{usual}; by {largest.max():.0%} when a weight is first touched")


@in_appendix(
    "Avoiding abrupt changes of the perturbation is important, for plans of several steps", rows=of_noises
)
def plans_need_it(frame: pl.DataFrame) -> Verdict:
    """Over its whole life RLSVI has more reward with noise of correlation γ than with independent noise, with a
    table and with six random functions that span Q*, in every river.
    """
    rows: list[Part] = []
    for (basis, name), N in product((SPANNING | OTHERS).items(), sorted(frame["states"].unique())):
        whole = {noise: np.asarray(shares(frame, noise, N, basis).mean(axis=1)) for noise in NOISES}
        more = mean(whole["whitened"] - whole["independent"])
        cells = (name, f"{N}", *(mean_se(values, 3) for values in whole.values()), f"{more}")
        verdict = at_least(more, 0.0, f"{name}, {N} states: {more} more of the best reward")
        rows.append((verdict if basis in SPANNING else None, cells))
    return worst_of(("basis", "states", "as printed", "of correlation γ", "independent", "γ's lead"), rows)


@in_appendix("A version of RLSVI for Q* in the span of any Φ", rows=with_functions)
def stays_finite(frame: pl.DataFrame) -> Verdict:
    """With six random functions that span Q*, drawn as in appendix C, no value diverges in any river."""
    rows = [_diverged(having(frame, basis=basis)) for basis in ("coherent", "random")]
    (count, lives, missed), (others, many, _) = rows
    words = f"the values diverge in {count} of {lives} lives, in {missed} of these unnoticed"
    more = f"in {others} of {many} if the functions need not span Q*"
    return exactly(count == 0, f"{words}; {more}")


def _diverged(frame: pl.DataFrame) -> tuple[int, int, int]:
    """In how many lives the values diverged, of how many, and how often that was not noticed."""
    lives = frame.filter(pl.col("part") == 1)
    diverged = lives.filter(pl.col("noticed").is_finite() | pl.col("ended").is_finite())
    return diverged.height, lives.height, int(diverged["noticed"].is_infinite().sum())


def draw(frame: pl.DataFrame) -> Picture:
    """The share of the best average reward as life goes on: with a table, and with features."""
    lengths = sorted(frame["states"].unique())
    figure, places = panels(len(lengths), 3.8, 2)
    for row, (basis, agents) in enumerate((("table", AGENTS), ("coherent", (*NOISES, FEW)))):
        steps = int(having(frame, basis=basis)["steps"][0])
        for axes, N in zip(places[row * len(lengths) :], lengths, strict=False):
            for agent in agents:
                name = agent if agent in DITHERING else f"RLSVI, {agent}"
                at = (np.arange(10) + 0.5) * steps / 10_000
                curves(axes, at, shares(frame, agent, N, basis), name, AGENTS.index(agent))
            share = "share of the best average reward"
            labelled(axes, "thousand steps", share, f"{N} states, {SPANNING[basis]}", ylim=(-0.02, 1.1))
    legend(places[0], loc="center right")
    return figure


FIGURE = Figure.of(
    __name__,
    title="Continual RLSVI",
    where="appendix F.2",
    caption=(
        "Average reward in RiverSwim without end, as a share of the best, over tenths of a life, with a table "
        "(above) and with six random functions whose span contains Q* (below): every seed thin, medians bold "
        "with their 95% band. Continual RLSVI (λ = σ = 1, γ = .99) has the noise as printed, noise of "
        "correlation γ (whitened) or noise drawn anew in every step (independent); LSVI explores with a "
        "constant ε, or one that falls from 1 to 0."
    ),
    quick={"states": [6], "steps": 60_000, "few": 20_000, "watched": 1000, "more": 4, "seeds": 5},
    paper={"states": [6, 10, 14], "steps": 200_000, "few": 20_000, "watched": 4000, "more": 12, "seeds": 10},
)
