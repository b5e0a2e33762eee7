"""Agnostic learning: basis functions that are the true values seen through noise of scale rho."""

from itertools import product
from typing import Any

import numpy as np
import polars as pl

from rlsvi.mdp import backward_induction, chain
from rlsvi.paper.chain.experiments import learning_time
from rlsvi.paper.chain.learning import expected_first_reward, seconds
from rlsvi.paper.claim import Verdict, at_least, at_most, claim, computed, exactly
from rlsvi.paper.drawing import Picture, labelled, panels
from rlsvi.paper.figure import Figure
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS, INK
from rlsvi.study.statistics import Interval, bootstrap, median, proportion

N = K = 20
READINGS = {"variance": "rho is a variance, as printed", "std": "rho is a standard deviation"}
WINDOW = 0.05


def jobs(steps: int, limit: int, seeds: int) -> list[Job]:
    """rho = i / steps for i = 0 .. steps, each with a seed of its own, in both readings."""
    found = []
    for i, reading, repeat in product(range(steps + 1), READINGS, range(seeds)):
        cost = seconds(N, K, limit * (0.1 + 0.9 * i / steps))
        chain: dict[str, Any] = {"length": N, "features": K, "rho": i / steps, "rho_is": reading}
        found.append(Job.of(learning_time, cost, **chain, seed=i + 10_000 * repeat, limit=limit))
    return found


def learned(frame: pl.DataFrame, reading: str, low: float, high: float) -> Interval:
    """The share of runs with low < rho <= high that got ten rewards in time."""
    chosen = frame.filter(pl.col("rho_is") == reading, pl.col("rho") > low, pl.col("rho") <= high)
    return proportion(int(chosen["time"].is_finite().sum()), len(chosen))


@claim("For ρ = 0 the basis is coherent, for ρ > 0 it is not", "section 6.1.2")
def coherent_at_zero(frame: pl.DataFrame) -> Verdict:
    """Least squares leave nothing of Q* out at ρ = 0, and more than a millionth at any other."""
    zero = frame.filter(pl.col("rho") == 0)["misfit"].to_numpy().max()
    noisy = frame.filter(pl.col("rho") > 0)["misfit"].to_numpy().min()
    words = f"the basis leaves {zero:.0e} of Q* out at ρ = 0, and at least {noisy:.2g} for every ρ above"
    return exactly(bool(zero < 1e-9 and noisy > 1e-6), f"{words} (2-norms)")


@claim("For large ρ, and an extremely misspecified basis, RLSVI is not effective", "section 6.1.2")
def large_rho(frame: pl.DataFrame) -> Verdict:
    """Fewer than half of the runs with ρ above .9 get ten rewards."""
    share, other = (learned(frame, reading, 0.9, 1.0) for reading in READINGS)
    words = f"for ρ above .9 a share of {share} gets ten rewards"
    return at_most(share, 0.5, f"{words} (ρ as a standard deviation: {other})")


@claim("There is some region 0 < ρ < ρ* where learning remains remarkably stable", "section 6.1.2", headline=True)
def stable_region(frame: pl.DataFrame) -> Verdict:
    """At least 80% of the runs with ρ up to 0.05 get ten rewards."""
    share, other = (learned(frame, reading, 0.0, WINDOW) for reading in READINGS)
    until, other_until = (edge(frame, reading) for reading in READINGS)
    words = f"a share of {share} learns there, 9 of 10 up to ρ* = {until:g}"
    return at_least(share, 0.8, f"{words} (ρ as a standard deviation: {other}, ρ* = {other_until:g})")


@claim(
    "RLSVI explores with agnostic value functions what is intractable under dithering", "section 6", headline=True
)
def beats_dithering(frame: pl.DataFrame) -> Verdict:
    """With ρ up to 0.05 ten rewards come at least ten times sooner than dithering's first one."""
    small = frame.filter(pl.col("rho_is") == "variance", pl.col("rho") > 0, pl.col("rho") <= WINDOW)
    times, expected = small["time"].to_numpy(), expected_first_reward(N)
    faster = bootstrap(lambda drawn: expected / median(drawn), times)
    words = f"ten rewards take {bootstrap(median, times)} episodes"
    dithering = f"dithering takes {expected:,.0f} to the first one, on average: {faster} times as long"
    return at_least(faster, 10.0, f"{words}; {dithering}")


def edge(frame: pl.DataFrame, reading: str) -> float:
    """ρ*: up to where at least nine of ten runs learn, in every window of rho."""
    at = WINDOW
    while at <= 1.0 and learned(frame, reading, round(at - WINDOW, 9), at).value >= 0.9:
        at = round(at + WINDOW, 9)
    return round(at - WINDOW, 9)


@computed("Q*ₕ(s, a) is 0 or 1", "section 6.1.2, footnote", otherwise="misprint")
def values_are_binary() -> Verdict:
    """No value of the exact solution lies in between."""
    Q = backward_induction(chain(N)).Q
    between = Q[(Q > 0) & (Q < 1)]
    words = f"Q* is 0 for {np.mean(Q == 0):.0%} of all (h, s, a), and never 1"
    rest = f"elsewhere it is from {between.min():.2g} to {between.max():.2g}"
    return exactly(len(between) == 0, f"{words}: {rest}")


def draw(frame: pl.DataFrame) -> Picture:
    """Every run, for both readings; runs that did not learn on top."""
    figure, both = panels(2, 3.8)
    limit = frame["limit"][0]
    for i, (axes, (reading, words)) in enumerate(zip(both, READINGS.items(), strict=True)):
        chosen = frame.filter(pl.col("rho_is") == reading).sort("rho")
        rho, time = chosen["rho"].to_numpy(), chosen["time"].to_numpy()
        done = np.isfinite(time)
        axes.plot(rho[done], time[done], ".", color=COLOURS[i], alpha=0.5, markersize=4)
        axes.plot(rho[~done], np.full((~done).sum(), limit), "^", color=COLOURS[i], alpha=0.25, markersize=4)
        edges = np.arange(0, 1 + WINDOW / 2, WINDOW)
        middle = [median(time[(rho >= a) & (rho <= a + WINDOW)]) for a in edges[:-1]]
        axes.plot(edges[:-1] + WINDOW / 2, np.minimum(middle, limit), color=INK, linewidth=1.5)
        times = f"episodes until 10 rewards (triangles: not in {limit:,})"
        labelled(axes, "rho", times, words, yscale="log")
    return figure


FIGURE = Figure.of(
    __name__,
    title="RLSVI is somewhat robust to misspecification",
    where="section 6.1.2, figure 6",
    caption=(
        "Episodes until ten rewards on a chain of N = 20 states with K = 20 basis functions drawn from N(Q*, ρI), "
        "λ = 1, σ = .1. There is one run for each ρ, and the line is the median in windows of .05."
    ),
    quick={"steps": 100, "limit": 3000, "seeds": 1},
    paper={"steps": 1000, "limit": 10_000, "seeds": 1},
)
