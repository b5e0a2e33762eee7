"""Continual RLSVI: a river without end, and what the autocorrelation of the noise is good for."""

import math
from functools import partial
from itertools import product

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Verdict, Verdicts, at_least, at_most, between, claim, exactly, mean_se
from rlsvi.paper.drawing import Picture, curves, labelled, legend, panels
from rlsvi.paper.extensions.continual_runs import DITHERING, GAMMA, continual_reward, perturbations
from rlsvi.paper.figure import Figure
from rlsvi.paper.results import having, rows_where, rows_with
from rlsvi.study.job import Job
from rlsvi.study.means import mean
from rlsvi.study.statistics import Interval

NOISES = ("paper", "whitened", "independent")
THEORY = {"paper": math.sqrt(1 - GAMMA**2), "whitened": GAMMA, "independent": 0.0}
FEW = "epsilon = .1"  # the usual one, shown with features too
with_table, with_features = rows_where(basis="table"), rows_where(basis="places")
with_random_features, of_perturbations = rows_where(basis="random"), rows_with("noise")
in_appendix = partial(claim, where="appendix F.2")


def jobs(states: list[int], steps: int, few: int, watched: int, seeds: int) -> list[Job]:
    """All agents in rivers of several lengths: with a table, and with features for a life of `few` steps."""
    lives = [("table", agent, N, steps) for agent in (*NOISES, *DITHERING) for N in states]
    lives += [("places", agent, N, few) for agent in (*NOISES, FEW) for N in states]
    lives += [("random", "paper", states[0], few)]
    return [
        Job.of(continual_reward, 1e-5 * life, basis=basis, agent=agent, states=N, steps=life, seed=seed)
        for basis, agent, N, life in lives
        for seed in range(10 * seeds if basis == "random" else seeds)
    ] + [
        Job.of(perturbations, 1e-4 * watched, noise=noise, states=states[0], steps=watched, seed=seed)
        for noise in NOISES
        for seed in range(seeds)
    ]


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
def explores(frame: pl.DataFrame) -> Verdicts:
    """In the second half of its life RLSVI with a table has at least .95 of the best average reward, where
    LSVI with epsilon = .1 has at most .1.
    """
    for N in sorted(frame["states"].unique()):
        (ours, told), (theirs, told_of_theirs) = late(frame, "paper", N), late(frame, FEW, N)
        yield at_least(ours, 0.95, f"{N} states: RLSVI {told}")
        yield at_most(theirs, 0.1, f"{FEW} {told_of_theirs}")


@claim("Dithering in its place does not explore, however it is tuned", "section 3, appendix F.2", with_table)
def dithering_does_not(frame: pl.DataFrame) -> Verdicts:
    """With every epsilon, constant or falling, LSVI has at most .1 of the best average reward then, in every
    river.
    """
    for N, agent in product(sorted(frame["states"].unique()), DITHERING):
        share, told = late(frame, agent, N)
        yield at_most(share, 0.1, f"{N} states, {agent}: {told}")


def seen(frame: pl.DataFrame, noise: str, name: str) -> Floats:
    """What was measured of a kind of noise, for each seed."""
    return np.asarray(having(frame, noise=noise).sort("seed")[name].to_numpy())


@in_appendix("The perturbations are sampled to ensure autocorrelation", rows=of_perturbations)
def autocorrelated(frame: pl.DataFrame) -> Verdict:
    """As printed, consecutive perturbations have a correlation of at least one half at gamma = .99, over the
    second half of a life.
    """
    told = "; ".join(
        f"{noise}: {mean_se(seen(frame, noise, 'correlation'), 3)}, in theory {rho:.3f}"
        for noise, rho in THEORY.items()
    )
    printed = mean(seen(frame, "paper", "correlation"))
    return at_least(printed, 0.5, f"{told}; sqrt(1 - gamma^2) vanishes as gamma goes to 1")


@in_appendix("w follows N(sqrt(1 - gamma^2) w, gamma^2 Sigma)", rows=of_perturbations)
def as_in_theory(frame: pl.DataFrame) -> Verdicts:
    """Measured correlations are within .02 of sqrt(1 - gamma^2), and of gamma and 0 for the other noises, over
    the second half of a life.
    """
    for noise, rho in THEORY.items():
        away = mean(seen(frame, noise, "correlation") - rho)
        yield between(away, -0.02, 0.02, f"{noise}: {away} from {rho:.3f}")


@in_appendix(
    "Marginal covariance matrices of consecutive perturbations differ only slightly", rows=of_perturbations
)
def differ_slightly(frame: pl.DataFrame) -> Verdict:
    """Sigma changes by at most 5 % a step, on average over all steps of a life from its first on."""
    change, largest = seen(frame, "paper", "change"), seen(frame, "paper", "largest")
    usual = f"by {100 * mean(change).value:.2f} % a step, of the weight that changes most in it"
    first = f"by {100 * largest.max():.0f} % at most, the first time that a weight is touched"
    return at_most(mean(change), 0.05, f"{usual}; {first}")


def plans_need_it(frame: pl.DataFrame, basis: str) -> Verdicts:
    """Noise that is drawn anew in every step against noise that moves slowly, over the whole life."""
    for N in sorted(frame["states"].unique()):
        whole = {noise: np.asarray(shares(frame, noise, N, basis).mean(axis=1)) for noise in NOISES}
        less = mean(whole["whitened"] - whole["independent"])
        words = ", ".join(f"{noise} {mean_se(values, 3)}" for noise, values in whole.items())
        yield at_least(less, 0.0, f"{N} states: {words}; {less} more than independent")


@in_appendix(
    "Avoiding abrupt changes of the perturbation is important, for plans of several steps (table)", rows=with_table
)
def plans_need_it_with_a_table(frame: pl.DataFrame) -> Verdicts:
    """Over its whole life RLSVI has more reward with noise of correlation gamma than with independent noise,
    with a table.
    """
    return plans_need_it(frame, "table")


@in_appendix(
    "Avoiding abrupt changes of the perturbation is important, for plans of several steps (features)",
    rows=with_features,
)
def plans_need_it_with_features(frame: pl.DataFrame) -> Verdicts:
    """The same with three features an action."""
    return plans_need_it(frame, "places")


@in_appendix("A version of RLSVI for Q* in the span of any Phi", rows=with_random_features)
def stays_finite(frame: pl.DataFrame) -> Verdict:
    """With six random functions of place and action, which need not span Q*, no value diverges."""
    lives = frame.filter(pl.col("part") == 1)
    diverged = lives.filter(pl.col("noticed").is_finite() | pl.col("ended").is_finite())
    missed = int(diverged["noticed"].is_infinite().sum())
    words = f"in {diverged.height} of {lives.height} lives the values diverge, in {missed} of these unnoticed"
    return exactly(diverged.height == 0, words)


def draw(frame: pl.DataFrame) -> Picture:
    """The share of the best average reward as life goes on: with a table, and with features."""
    lengths = sorted(frame["states"].unique())
    figure, places = panels(len(lengths), 3.8, 2)
    for row, (basis, agents) in enumerate((("table", (*NOISES, *DITHERING)), ("places", (*NOISES, FEW)))):
        steps = int(having(frame, basis=basis)["steps"][0])
        for axes, N in zip(places[row * len(lengths) :], lengths, strict=False):
            for agent in agents:
                name = agent if agent in DITHERING else f"RLSVI, {agent}"
                at = (np.arange(10) + 0.5) * steps / 10_000
                curves(axes, at, shares(frame, agent, N, basis), name, (*NOISES, *DITHERING).index(agent))
            title = f"{N} states, {'a table' if basis == 'table' else 'three features an action'}"
            labelled(axes, "thousand steps", "share of the best average reward", title, ylim=(-0.02, 1.1))
    legend(places[0], loc="center right")
    return figure


FIGURE = Figure.of(
    __name__,
    title="Continual RLSVI",
    where="appendix F.2",
    caption=(
        "Average reward of continual RLSVI (lambda = sigma = 1, gamma = .99) in RiverSwim without end, as a share "
        "of the best, over tenths of a life: with the noise as printed, with an autoregression of correlation "
        "gamma (whitened), and drawn anew in every step (independent); and of LSVI that explores with a constant "
        "epsilon, or with one that falls from 1 to 0 in half of its life. Above with a table, below with 1, x and "
        "x^2 of the place x for each action, in a shorter life. Every seed thin, medians bold with their 95% band."
    ),
    quick={"states": [6], "steps": 60_000, "few": 20_000, "watched": 1000, "seeds": 5},
    paper={"states": [6, 10, 14], "steps": 200_000, "few": 20_000, "watched": 4000, "seeds": 10},
)
