"""Robustness to the noise sigma that RLSVI assumes, at lambda = 100."""

import numpy as np
import polars as pl

from rlsvi import problems
from rlsvi.agents import RLSVI
from rlsvi.core.compile import Floats
from rlsvi.study.experiment import Play, Playing, experiment
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS
from rlsvi.study.statistics import difference, ratio_of_medians
from rlsvi_paper.chain.chain_lambda import draw_sweep, final_regret, robust, run
from rlsvi_paper.claim import Verdict, Verdicts, at_least, choice, claim, share_of
from rlsvi_paper.drawing import Picture, labelled, panels
from rlsvi_paper.figure import Figure
from rlsvi_paper.results import cells, rows_with, seeds_of, times_as_much

LAMBDA, SIGMA = 100.0, 0.1
SIZE = 8  # of DeepSea
TRUE = 1.0  # the standard deviation of its rewards
on_chain, on_deep_sea = rows_with("length"), rows_with("size")


def jobs(powers: list[float], episodes: int, seeds: int, noisy: int) -> list[Job]:
    """σ = 10 to some powers on the chain, and `noisy` runs on a problem whose rewards are noisy."""
    grid = [10.0**power for power in powers]
    chain = [run(episodes, seed, LAMBDA, sigma) for sigma in grid for seed in range(seeds)]
    return chain + [
        Job.of(noisy_deep_sea, 3e-5 * episodes, size=SIZE, lam=1.0, sigma=sigma, episodes=episodes, seed=seed)
        for sigma in (grid[0], SIGMA, TRUE)
        for seed in range(noisy)
    ]


@experiment
def noisy_deep_sea(*, size: int, lam: float, sigma: float, episodes: int, seed: int) -> Playing:
    """RLSVI with a table on DeepSea with noisy rewards and transitions: its regret, and whether it is stuck.

    It is stuck (1) if in the last tenth of the episodes more than half of random play's regret is left.
    """
    problem_seed, agent_seed = seeds_of(seed)
    problem = problems.deep_sea(size, stochastic=True, seed=problem_seed)
    history = yield Play(RLSVI(lam=lam, sigma=sigma, seed=agent_seed), problem, episodes)
    left = history.regret[-(episodes // 10 or 1) :].mean()
    return {"total": float(history.regret.sum()), "stuck": float(left > 0.5 * problem.random_regret)}


@claim(
    "The results are remarkably robust over several orders of magnitude in σ, and stable for most of its values",
    "section 6.1.1 and appendix C.2",
    on_chain,
)
def robust_to_sigma(frame: pl.DataFrame) -> Verdicts:
    """The median regret is at most twice that at σ = .1, and at most half of random play's, over at least three
    orders of magnitude, and for at least half of the values tried, from 10⁻⁴ on.
    """
    return robust(final_regret(frame, "sigma"), frame["episodes"][0], "σ", SIGMA)


@claim("Large values of σ lead to slower learning", "appendix C.2", on_chain)
def slower(frame: pl.DataFrame) -> Verdict:
    """The median regret at σ = 1 is larger than at .1."""
    found = final_regret(frame, "sigma")
    ratio = times_as_much(_near(found, 1.0), _near(found, SIGMA), "median")
    return at_least(ratio, 1.0, f"at σ = 1 the median regret is {ratio} times that at .1")


@claim("Too small a σ may fail to explore in stochastic domains", "appendix C.2")
def too_small(frame: pl.DataFrame) -> Verdict:
    """On DeepSea with noisy rewards, a problem of ours, more runs (by .05 and more) are stuck at the smallest σ
    than at the true one.
    """
    found, regret = cells(on_deep_sea(frame), "sigma", value="stuck"), final_regret(on_chain(frame), "sigma")
    least, true = found[min(found)], found[TRUE]
    more = difference(int(least.sum()), len(least), int(true.sum()), len(true))
    stuck = f"{least.sum():.0f} of {len(least)} runs are stuck, {true.sum():.0f} of {len(true)} at the true σ"
    chain = ratio_of_medians(regret[min(regret)], _near(regret, SIGMA))
    return at_least(
        more,
        choice("more by", 0.05, 0.02, 0.1),
        f"{stuck}: {more} more; on the chain {chain} times the regret at .1",
    )


def _near(found: dict[float, Floats], value: float) -> Floats:
    return found[min(found, key=lambda other: abs(np.log10(other / value)))]


def draw(frame: pl.DataFrame) -> Picture:
    """The sweep on the chain, and how many runs are stuck where rewards are noisy."""
    figure, (left, middle, right) = panels(3, 3.6)
    draw_sweep(left, middle, on_chain(frame), "sigma", "lambda = 100")
    for sigma, stuck in cells(on_deep_sea(frame), "sigma", value="stuck").items():
        share, _ = share_of(stuck)
        right.plot([sigma, sigma], [share.low, share.high], color=COLOURS[1], linewidth=1.5)
        right.plot([sigma], [share.value], "o", color=COLOURS[1])
    share_of_runs, title = "share of runs that are stuck", "DeepSea with noisy rewards"
    labelled(right, "sigma", share_of_runs, title, xscale="log", ylim=(0, 1))
    return figure


FIGURE = Figure.of(
    __name__,
    title="Robustness to σ",
    where="appendix C.2, figure 11",
    caption=(
        "Expected regret on the chain (N = 50, K = 10, λ = 100) against σ, the noise that RLSVI's regression "
        "assumes, with 60 seeds at the paper's scale. On the right, a problem of ours: the share of runs with a "
        "table that end up stuck on DeepSea, 8 × 8, with rewards of standard deviation 1."
    ),
    quick={"powers": [-4.0, -3.0, -2.0, -1.0, 0.0, 1.0], "episodes": 2000, "seeds": 5, "noisy": 100},
    paper={"powers": [0.5 * i for i in range(-8, 5)], "episodes": 10_000, "seeds": 60, "noisy": 200},
)
