"""Example 1: dithering needs 2^(N-1) episodes and more to the first reward."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from rlsvi.mdp import backward_induction, chain, evaluate
from rlsvi.paper.chain.experiments import first_reward
from rlsvi.paper.chain.learning import LENGTH, dithering_bound, expected_first_reward, success
from rlsvi.paper.claim import Verdict, Verdicts, at_least, between, claim, exactly
from rlsvi.paper.drawing import Picture, labelled, panels, runs
from rlsvi.paper.figure import Figure
from rlsvi.paper.results import cells
from rlsvi.study.job import Job
from rlsvi.study.plot import INK
from rlsvi.study.statistics import Interval, bootstrap, line

# Two ways to dither, three bases: a table, and coherent ones of few functions.
AGENTS: dict[str, tuple[str, int | None, dict[str, float]]] = {
    "epsilon-greedy, a table": ("epsilon-greedy", None, {"epsilon": 0.1}),
    "epsilon-greedy, 3 basis functions": ("epsilon-greedy", 3, {"epsilon": 0.5}),
    "Boltzmann, 5 basis functions": ("Boltzmann", 5, {"eta": 1.0}),
}


def jobs(lengths: list[int], seeds: int) -> list[Job]:
    """Until the first reward; after forty times the expected number of episodes a run is given up."""
    found = []
    for N, (i, (agent, features, settings)) in product(lengths, enumerate(AGENTS.values())):
        who: dict[str, Any] = {"agent": agent, "length": N, "features": features}
        expected = expected_first_reward(N)
        for seed in range(1000 * i, 1000 * i + seeds):  # random play of all three, but not the same game
            limit = int(40 * expected)
            found.append(Job.of(first_reward, 2e-6 * expected * N, **who, seed=seed, limit=limit, **settings))
    return found


@claim(
    "Always going right earns p* = (1 − 1/N)ᴺ⁻¹, any other policy nothing, and random play p*/2ᴺ⁻¹",
    "section 3, Example 1",
)
def exact_values(frame: pl.DataFrame) -> Verdict:
    """Dynamic programming gives these values at every length."""
    worst = turned = 0.0
    for N in frame["length"].unique().sort():
        mdp = chain(N)
        random = float(evaluate(mdp, np.full((N - 1, N, 2), 0.5))[0, 0]) * dithering_bound(N)
        worst = max(worst, *(abs(value / success(N) - 1.0) for value in (backward_induction(mdp).V[0, 0], random)))
        for h in range(N - 1):
            policy = np.tile([0.0, 1.0], (N - 1, N, 1))  # right
            policy[h, h] = [1.0, 0.0]
            turned = max(turned, float(evaluate(mdp, policy)[0, 0]))
    words = (
        f"V* is p* and random play's value p*/2ᴺ⁻¹, both to {worst:.1g}; one step to the left leaves {turned:g}"
    )
    return exactly(worst < 1e-12 and turned == 0.0, words)


@claim(
    "Before the first reward all weights are 0 and actions are uniformly random, for any basis",
    "section 3, Example 1",
)
def uniform_actions(frame: pl.DataFrame) -> Verdict:
    """The exact value of every policy played before is that of random play."""
    uneven = float(frame["uneven"].to_numpy().max())
    words = f"in {len(frame)} runs every policy up to the first reward was worth as much as random play"
    return exactly(uneven < 1e-9, f"{words}; the largest difference is {uneven:.1g}")


def _mean_ratio(frame: pl.DataFrame, value: str, unit: Callable[[int], float]) -> Interval:
    """The mean over all settings of a value in units that depend on the length."""
    units = pl.Series(np.array([unit(N) for N in frame["length"].to_numpy()]))
    found = cells(frame.with_columns(ratio=pl.col(value) / units), "length", "agent", "features", value="ratio")
    return bootstrap(lambda drawn: float(np.mean([np.mean(cell) for cell in drawn])), list(found.values()))


@claim(
    "The first reward comes after 2ᴺ⁻¹ − 1 episodes or more, on average, and regret grows to that",
    "section 3, Example 1",
)
def first_visit(frame: pl.DataFrame) -> Verdicts:
    """The mean time is within 10% of the exact 2ᴺ⁻¹/p* and not below the bound; the expected regret up to then is
    within 10% of the bound.
    """
    exact = _mean_ratio(frame, "time", expected_first_reward)
    yield between(exact, 0.9, 1.1, f"the mean time is {exact} times the exact 2ᴺ⁻¹/p*")
    bound, regret = (_mean_ratio(frame, name, lambda N: dithering_bound(N) - 1) for name in ("time", "regret"))
    yield at_least(bound, 1.0, f"{bound} times the bound")
    yield between(regret, 0.9, 1.1, f"regret is {regret} times the bound")


@claim("Dithering needs a number of episodes that is exponential in the length", "section 3", headline=True)
def exponential(frame: pl.DataFrame) -> Verdict:
    """The mean time to the first reward doubles with each state, to 10%."""
    found = cells(frame, "length")

    def factor(drawn: list[np.ndarray]) -> float:
        return float(2.0 ** line(list(found), [np.log2(np.mean(times)) for times in drawn])[0])

    known = bool(np.isfinite(frame["time"].to_numpy()).all())
    growth = bootstrap(factor, list(found.values())) if known else Interval(np.inf, -np.inf, np.inf)
    return between(growth, 1.8, 2.2, f"one more state takes {growth} times as long")


def draw(frame: pl.DataFrame) -> Picture:
    """Times to the first reward, every run, with the exact expectation."""
    figure, (axes,) = panels()
    lengths = np.array(sorted(frame["length"].unique()))
    for i, (label, (agent, features, _)) in enumerate(AGENTS.items()):
        chosen = frame.filter((pl.col("agent") == agent) & pl.col("features").eq_missing(pl.lit(features)))
        shifted = {N + 0.16 * (i - 1): times for N, times in cells(chosen, "length").items()}
        runs(axes, shifted, float(frame["limit"].to_numpy().max()), f"{label}: runs and medians", i)
    exact = [expected_first_reward(N) for N in lengths]
    axes.plot(lengths, exact, "_", color=INK, markersize=16, label="exact mean $2^{N-1}/p^*$")
    axes.plot(lengths, 2.0 ** (lengths - 1), "--", color=INK, linewidth=1, label="bound $2^{N-1}$")
    labelled(axes, LENGTH, "episodes to the first reward", key="best", yscale="log")
    return figure


FIGURE = Figure.of(
    __name__,
    title="Dithering takes exponentially long to the first reward",
    where="section 3, Example 1",
    caption=(
        "Episodes until LSVI with epsilon-greedy or Boltzmann exploration first reaches the end of the chain, "
        "for each length N. Shown are every run, medians, the exact expectation and the paper's bound."
    ),
    quick={"lengths": [4, 6, 8, 10], "seeds": 100},
    paper={"lengths": [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14], "seeds": 50},
)
