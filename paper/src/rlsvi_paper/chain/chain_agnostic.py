"""Agnostic learning: basis functions that are the true values seen through noise of scale rho."""

from collections.abc import Callable
from itertools import product

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.mdp import backward_induction, chain
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS, INK
from rlsvi.study.statistics import bootstrap, median
from rlsvi_paper.chain.learning import TIME, expected_first_reward, learning_time, seconds
from rlsvi_paper.claim import (
    Row,
    Verdict,
    all_of,
    at_least,
    at_most,
    choice,
    claim,
    computed,
    exactly,
    in_readings,
    share_of,
)
from rlsvi_paper.degrees import far, most, much, nearly_all
from rlsvi_paper.drawing import Picture, labelled, panels
from rlsvi_paper.figure import Figure
from rlsvi_paper.results import having, times_as_much

N = K = 20
# Of ρ, and of the chain. The first one decides, which is the formula that is printed, N(Q*, ρI). By the text
# around it ρ "determines the scale of this noise", and ρ = .5 is significant noise for values of 0 and 1.
READINGS = {
    ("variance", False): "ρ is a variance, as printed",
    ("std", False): "ρ is a standard deviation",
    ("std", True): "ρ is a standard deviation, right always succeeds",
    ("variance", True): "ρ is a variance, right always succeeds",
}
WINDOW = 0.05  # of rho
EDGES = [i / 100 for i in range(1, 6)] + [i / 20 for i in range(2, 21)]  # ends of windows of rho
Reading = tuple[str, bool]


def jobs(steps: int, limit: int, seeds: int) -> list[Job]:
    """rho = i / steps for i = 0 .. steps, each with a seed of its own, in all readings.

    Parameters
    ----------
    seeds
        How many runs there are for each rho of at most .05.
    """
    return [
        Job.of(
            learning_time,
            seconds(N, K, limit * (0.1 + 0.9 * i / steps)),
            length=N,
            features=K,
            seed=i + 10_000 * repeat,
            limit=limit,
            rho=i / steps,
            rho_is=rho_is,
            deterministic=deterministic,
        )
        for i, (rho_is, deterministic) in product(range(steps + 1), READINGS)
        for repeat in range(seeds if i / steps <= WINDOW else 1)
    ]


def within(frame: pl.DataFrame, reading: Reading, low: float, high: float) -> Floats:
    """The learning times of the runs with low < rho <= high, in one reading."""
    chosen = having(frame, rho_is=reading[0], deterministic=reading[1])
    return chosen.filter(pl.col("rho") > low, pl.col("rho") <= high)["time"].to_numpy()


@claim("For ρ = 0 the basis is coherent, for ρ > 0 it is not", "section 6.1.2")
def coherent_at_zero(frame: pl.DataFrame) -> Verdict:
    """Least squares leave nothing of Q* out at ρ = 0, and more than a millionth at any other."""
    zero = frame.filter(pl.col("rho") == 0)["misfit"].to_numpy().max()
    noisy = frame.filter(pl.col("rho") > 0)["misfit"].to_numpy().min()
    words = f"the basis leaves {zero:.0e} of Q* out at ρ = 0, and at least {noisy:.2g} for every ρ above"
    return exactly(bool(zero < 1e-9 and noisy > 1e-6), f"{words} (2-norms)")


def in_each_reading(headings: Row, judge: Callable[[Reading], tuple[Verdict, Row]]) -> Verdict:
    """The verdict in the reading that decides, with a table of all readings."""
    found = {words: judge(reading) for reading, words in READINGS.items()}
    return in_readings(("reading", *headings, "verdict"), found)


@claim("For large ρ, and an extremely misspecified basis, RLSVI is not effective", "section 6.1.2")
def large_rho(frame: pl.DataFrame) -> Verdict:
    """Fewer than half of the runs with ρ above .9 get ten rewards."""

    def judge(reading: Reading) -> tuple[Verdict, Row]:
        share, _ = share_of(np.isfinite(within(frame, reading, choice("ρ above", 0.9, 0.8, 0.95), 1.0)))
        return at_most(share, most(), f"for ρ above .9 a share of {share} gets ten rewards"), (f"{share}",)

    return in_each_reading(("share that learns",), judge)


@claim("There is some region 0 < ρ < ρ* where learning remains remarkably stable", "section 6.1.2")
def stable_region(frame: pl.DataFrame) -> Verdict:
    """In a region that the paper's figure can show, 0 < ρ ≤ .01 with ten of its thousand runs, the median of the
    episodes until ten rewards, which the figure shows, is at most twice that at ρ = 0, as for λ and σ in appendix
    C.2; and at least four of five runs get them. Of smaller ones it would show a few points.
    """

    def judge(reading: Reading) -> tuple[Verdict, Row]:
        least = float(frame.filter(pl.col("rho") > 0)["rho"].to_numpy().min())  # of few values in small runs
        region = max(least, choice("a region up to ρ =", 0.01, 0.005, 0.02, 0.05))
        close, until = within(frame, reading, 0.0, region), edge(frame, reading)
        longer = times_as_much(close, within(frame, reading, -1.0, 0.0), "median", frame["limit"][0])
        share, _ = share_of(np.isfinite(close))
        verdict = all_of(
            at_most(longer, much(), f"up to ρ = {region:g} it takes {longer} times the episodes at ρ = 0"),
            at_least(share, nearly_all(), f"and a share of {share} learns"),
            f"at most twice as many up to ρ* = {until:g}",
        )
        return verdict, (f"{longer}", f"{share}", f"{until:g}")

    headings = "episodes for ρ ≤ .01, times those at ρ = 0", "share that learns there", "both are met up to ρ*"
    return in_each_reading(headings, judge)


def edge(frame: pl.DataFrame, reading: Reading) -> float:
    """ρ*: up to where four of five runs learn, and the median is at most twice that at 0, in all windows of ρ."""
    at, most = 0.0, much() * median(within(frame, reading, -1.0, 0.0))
    for end in EDGES:
        times = within(frame, reading, at, end)
        if not len(times) or np.isfinite(times).mean() < nearly_all() or median(times) > most:
            break
        at = end
    return at


@claim(
    "RLSVI explores with both coherent and agnostic value functions what is intractable under dithering",
    "section 6",
)
def beats_dithering(frame: pl.DataFrame) -> Verdict:
    """At ρ = 0, with a coherent basis, and with ρ up to 0.05 ten rewards come at least ten times sooner than
    dithering's first one.
    """
    expected = expected_first_reward(N)

    def judge(reading: Reading) -> tuple[Verdict, Row]:
        parts = []
        for name, low, high in (("coherent", -1.0, 0.0), ("agnostic", 0.0, WINDOW)):
            times = within(frame, reading, low, high)
            faster, middle = bootstrap(lambda drawn: expected / median(drawn), times), bootstrap(median, times)
            parts.append(
                at_least(
                    faster,
                    far(),
                    f"{name}: ten rewards take {middle} episodes, dithering {faster} times as many to the first",
                )
            )
        return all_of(*parts, f"these are {expected:,.0f}, on average"), tuple(it.measured for it in parts)

    return in_each_reading(("coherent", "agnostic"), judge)


@computed("Q*ₕ(s, a) is 0 or 1", "section 6.1.2, footnote", otherwise="reading")
def values_are_binary() -> Verdict:
    """No value of the exact solution lies in between; for the chain of Example 1, and in the table if right always
    succeeds.
    """
    rows, others = [], []
    for deterministic, words in ((False, "right fails with probability 1/N"), (True, "right always succeeds")):
        Q = backward_induction(chain(N, deterministic=deterministic)).Q
        rest = Q[(Q > 0) & (Q < 1)]
        ends = f"{rest.min():.2g} to {rest.max():.2g}" if len(rest) else "no others"
        rows.append((words, f"{np.mean(Q == 0):.0%}", f"{np.mean(Q == 1):.0%}", ends))
        others.append(rest)
    words = f"Q* is 0 for {rows[0][1]} of all (h, s, a), and never 1: elsewhere it is from {rows[0][3]}"
    table = (("chain", "Q* is 0", "Q* is 1", "other values"), *rows)
    return exactly(not len(others[0]), f"{words}; if right always succeeds it is 0 or 1")._replace(table=table)


def draw(frame: pl.DataFrame) -> Picture:
    """Every run, for all readings; runs that did not learn on top."""
    figure, each = panels(2, 3.6, rows=2)
    limit = frame["limit"][0]
    for i, (axes, (reading, words)) in enumerate(zip(each, READINGS.items(), strict=True)):
        chosen = having(frame, rho_is=reading[0], deterministic=reading[1]).sort("rho")
        rho, time = chosen["rho"].to_numpy(), chosen["time"].to_numpy()
        done = np.isfinite(time)
        axes.plot(rho[done], time[done], ".", color=COLOURS[i], alpha=0.4, markersize=4)
        axes.plot(rho[~done], np.full((~done).sum(), limit), "^", color=COLOURS[i], alpha=0.2, markersize=4)
        starts = [0.0, *EDGES[:-1]]
        middle = [median(time[(rho > a) & (rho <= b)]) for a, b in zip(starts, EDGES, strict=True)]
        axes.plot(np.add(starts, EDGES) / 2, np.minimum(middle, limit), color=INK, linewidth=1.5)
        labelled(axes, "rho", TIME, words.replace("ρ", "rho"), yscale="log")
    return figure


FIGURE = Figure.of(
    __name__,
    title="RLSVI is somewhat robust to misspecification",
    where="section 6.1.2, figure 6",
    caption=(
        "Episodes until ten rewards on a chain of N = 20 states, with K = 20 basis functions drawn from N(Q*, "
        "ρI), λ = 1, σ = .1; below, right always succeeds. Each ρ has one run, or 20 up to ρ = .05 at the "
        "paper's scale. Triangles are runs with fewer rewards; the line is a moving median."
    ),
    quick={"steps": 100, "limit": 3000, "seeds": 10},
    paper={"steps": 1000, "limit": 10_000, "seeds": 20},
)
