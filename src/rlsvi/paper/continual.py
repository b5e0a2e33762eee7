"""Continual RLSVI: a river without end, and what the autocorrelation of the noise is good for."""

import math

import numpy as np
import polars as pl
from matplotlib.figure import Figure as Picture

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Claim, Verdict, all_of, at_least, at_most, exactly, spoken
from rlsvi.paper.drawing import curves, labelled, legend, panels
from rlsvi.paper.extensions import GAMMA, living
from rlsvi.paper.figure import Figure
from rlsvi.study.job import Job
from rlsvi.study.means import mean

NOISES = ("paper", "whitened", "independent")
AGENTS = (*NOISES, "epsilon-greedy")


def jobs(states: list[int], steps: int, seeds: int) -> list[Job]:
    """All agents in rivers of several lengths."""
    return [
        Job.of(living, 1e-5 * steps, agent=agent, states=N, steps=steps, seed=seed)
        for agent in AGENTS
        for N in states
        for seed in range(seeds)
    ]


def shares(frame: pl.DataFrame, agent: str, states: int) -> Floats:
    """The share of the best average reward in each part of a life, (seeds, 10)."""
    mine = frame.filter(pl.col("agent") == agent, pl.col("states") == states).sort("seed", "part")
    found: Floats = mine["share"].to_numpy()
    return found.reshape(-1, 10)


def late(frame: pl.DataFrame, agent: str, states: int) -> Floats:
    """The same over the second half of a life, for each seed."""
    return np.asarray(shares(frame, agent, states)[:, 5:].mean(axis=1))


def explores(frame: pl.DataFrame) -> Verdict:
    """Continual RLSVI as printed against epsilon-greedy, in the second half of a life."""
    verdicts = []
    for N in sorted(frame["states"].unique()):
        ours, theirs = late(frame, "paper", N), late(frame, "epsilon-greedy", N)
        words = f"{N} states: RLSVI {spoken(ours, 3)}"
        verdicts.append(at_least(mean(ours), 0.95, words))
        verdicts.append(at_most(mean(theirs), 0.1, f"epsilon-greedy {spoken(theirs, 3)}"))
    return all_of(*verdicts)


def plans_need_it(frame: pl.DataFrame) -> Verdict:
    """Noise that is drawn anew in every step against noise that moves slowly, over the whole life."""
    verdicts = []
    for N in sorted(frame["states"].unique()):
        whole = {noise: np.asarray(shares(frame, noise, N).mean(axis=1)) for noise in NOISES}
        less = mean(whole["whitened"] - whole["independent"])
        words = ", ".join(f"{noise} {spoken(values, 3)}" for noise, values in whole.items())
        verdicts.append(at_least(less, 0.0, f"{N} states: {words}; {less} more than independent"))
    return all_of(*verdicts)


def autocorrelated(frame: pl.DataFrame) -> Verdict:
    """The correlation of consecutive perturbations as printed."""
    rho = math.sqrt(1 - GAMMA**2)
    return exactly(
        rho >= 0.5,
        f"sqrt(1 - gamma^2) = {rho:.2f} at gamma = {GAMMA:g}, and it vanishes as gamma goes to 1; the noise "
        "that keeps the covariance with correlation gamma would be N(gamma w, (1 - gamma^2) Sigma)",
    )


def draw(frame: pl.DataFrame) -> Picture:
    """The share of the best average reward as life goes on."""
    lengths = sorted(frame["states"].unique())
    figure, places = panels(len(lengths), 3.8)
    for axes, N in zip(places, lengths, strict=True):
        steps = int(frame["steps"][0])
        for index, agent in enumerate(AGENTS):
            values = shares(frame, agent, N)
            name = agent if agent == "epsilon-greedy" else f"RLSVI, {agent}"
            curves(axes, (np.arange(10) + 0.5) * steps / 10_000, values, name, index)
        axes.set_ylim(-0.02, 1.05)
        labelled(axes, "thousand steps", "share of the best average reward", f"{N} states")
    legend(places[0], loc="center right")
    return figure


FIGURE = Figure(
    name="continual",
    title="Continual RLSVI",
    where="appendix F.2",
    caption=(
        "Average reward of continual RLSVI (table, lambda = sigma = 1, gamma = .99) in RiverSwim without end, "
        "as a share of the best, over tenths of a life: with the noise as printed, with an autoregression of "
        "correlation gamma (whitened), and drawn anew in every step (independent); and of LSVI with epsilon = "
        ".1. Every seed thin, medians bold with their 95% band."
    ),
    sizes={
        "quick": {"states": [6], "steps": 60_000, "seeds": 5},
        "paper": {"states": [6, 10, 14], "steps": 200_000, "seeds": 10},
    },
    jobs=jobs,
    claims=[
        Claim(
            "Perturbing value estimates in directions of significant uncertainty incentivises exploration",
            "appendix F.2",
            "in the second half of its life RLSVI has at least .95 of the best average reward where "
            "epsilon-greedy has at most .1",
            explores,
        ),
        Claim(
            "The perturbations are sampled to ensure autocorrelation",
            "appendix F.2",
            "as printed, consecutive perturbations have a correlation of at least one half at gamma = .99",
            autocorrelated,
        ),
        Claim(
            "Avoiding abrupt changes of the perturbation is important, as it allows plans of several steps",
            "appendix F.2",
            "over its whole life RLSVI has more reward with noise of correlation gamma than with independent "
            "noise",
            plans_need_it,
        ),
    ],
    draw=draw,
)
