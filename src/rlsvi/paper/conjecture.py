"""The conjecture of appendix B: is what RLSVI needs on the chain a polynomial in K and H?"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure as Picture

from rlsvi import problems
from rlsvi.bases.dense import Dense
from rlsvi.core.compile import Floats
from rlsvi.paper import chain_quadratic
from rlsvi.paper.chain import learning_time
from rlsvi.paper.claim import Claim, Verdict, all_of, at_least, at_most, exactly
from rlsvi.paper.drawing import labelled, legend, panels, runs
from rlsvi.paper.figure import Figure
from rlsvi.paper.learning import cells, dithering_bound, power_over_exponential, seconds
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS
from rlsvi.study.statistics import bootstrap, bootstrap_medians, median, power_laws

SIGMA = 1.0  # the least that the chain's reward of 1 allows in the conjecture
DEGREE = 3.0  # of a polynomial that one would call one


def jobs(
    lengths: list[int], features: list[int], wide: list[int], few: list[int], seeds: int, limit: int
) -> list[Job]:
    """Those of chain-quadratic, and at sigma = 1 some with a few basis functions on shorter chains."""
    return chain_quadratic.jobs(lengths, features, seeds, limit) + [
        Job.of(
            learning_time,
            seconds(N, K, 60.0 * N),
            length=N,
            features=K,
            seed=seed,
            limit=limit,
            sigma=SIGMA,
        )
        for N in wide
        for K in few
        for seed in range(seeds)
    ]


def usual(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows at the paper's sigma."""
    return frame.filter(pl.col("sigma").is_null())


def allowed(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows at a sigma that the conjecture speaks of."""
    return frame.filter(pl.col("sigma").is_not_null())


def by_horizon(frame: pl.DataFrame) -> dict[Any, Floats]:
    """Times for each horizon H = N - 1 and number of basis functions."""
    return {(N - 1, K): times for (N, K), times in cells(frame, "length", "features").items()}


def curvature(found: Mapping[Any, Floats]) -> str:
    """By how much the exponent of H grows when H doubles; of a power law it does not."""
    X = np.log(np.array(list(found), dtype=np.float64))
    centred = X[:, 0] - X[:, 0].mean()
    design = np.column_stack([np.ones(len(X)), X, centred**2])
    solve = np.linalg.pinv(design)[3]
    grows = bootstrap_medians(lambda middle: float(2 * np.log(2) * solve @ np.log(middle)), list(found.values()))
    return f"for each doubling of H the exponent of H changes by {grows}"


def polynomial(frame: pl.DataFrame) -> Verdict:
    """Exponents of H and K, and whether an exponential fits better."""
    found = by_horizon(frame)
    better = power_over_exponential(found)
    in_horizon, in_features = power_laws(list(found), list(found.values()))
    decided = all_of(
        at_most(in_horizon, DEGREE, f"over {len(found)} settings T grows as H to the power {in_horizon}"),
        at_most(in_features, DEGREE, f"and K to the power {in_features}"),
        at_least(better, 0.0, f"the mean squared error of log T is {better} less than for an exponential in both"),
    )
    return decided._replace(measured=f"{decided.measured}; {curvature(found)}")


def far_beyond(frame: pl.DataFrame) -> Verdict:
    """What dithering pays for its first reward over RLSVI's time, at the longest chain and the most functions."""
    found = cells(frame, "length", "features")
    N, K = max(found)
    times = bootstrap(lambda drawn: dithering_bound(N) / median(drawn), found[N, K])
    return at_least(
        times,
        1000.0,
        f"at N = {N}, K = {K} RLSVI needs {median(found[N, K]):,.0f} episodes, dithering {times} times",
    )


@cache
def _truth(length: int, features: int) -> tuple[float, bool]:
    """The sum of |theta_h|^2 for the largest of five bases, and whether theta is unique in all of them."""
    sizes, unique = [], True
    for seed in range(5):
        problem = problems.chain(length, features, seed=seed)
        assert isinstance(problem.basis, Dense)
        size = 0.0
        for phi, q in zip(problem.basis.phi, problem.solution.Q, strict=True):
            weights, _, rank, _ = np.linalg.lstsq(phi.reshape(q.size, -1), q.ravel())
            size, unique = size + float(weights @ weights), unique and int(rank) == features
        sizes.append(size)
    return max(sizes), unique


def conditions(frame: pl.DataFrame) -> Verdict:
    """Rewards within [-sigma, sigma], unique weights, and their size, for lambda = 1."""
    length, features, reward, sigma = 30, 10, 1.0, 0.1
    size, unique = _truth(length, features)
    allowed = features * (length - 1)
    return exactly(
        unique and size <= allowed and reward <= sigma,
        f"the reward is {reward:g}, sigma {sigma:g}; at N = {length}, K = {features} the weights of Q* are "
        f"{'' if unique else 'not '}unique and sum_h |theta_h|^2 is {size:.2g}, with K H / lambda = {allowed}",
    )


def draw(frame: pl.DataFrame) -> Picture:
    """Learning times with the joint power law, at both sigmas."""
    figure, both = panels(2, 4.4)
    for axes, rows, title in zip(
        both, (usual(frame), allowed(frame)), ("sigma = .1", f"sigma = {SIGMA:g}"), strict=True
    ):
        found = by_horizon(rows)
        fit = _fit(found)
        for i, K in enumerate(sorted(rows["features"].unique())):
            mine = {H: times for (H, k), times in found.items() if k == K}
            runs(axes, mine, frame["limit"][0], f"K = {K}", i)
            if fit is not None:
                H = np.array(list(mine), dtype=float)
                law = np.exp(fit[0] + fit[1] * np.log(H) + fit[2] * np.log(K))
                axes.plot(H, law, color=COLOURS[i % len(COLOURS)], linewidth=4, alpha=0.3)
        axes.set_xscale("log")
        axes.set_yscale("log")
        labelled(axes, "horizon H", "episodes until 10 rewards", title)
        legend(axes)
    return figure


def _fit(found: Mapping[Any, Floats]) -> Floats | None:
    """Intercept and exponents of a power law in H and K, if all medians are finite."""
    T = np.array([median(times) for times in found.values()])
    if not np.isfinite(T).all():
        return None
    X = np.log(np.array(list(found), dtype=np.float64))
    return np.asarray(np.linalg.lstsq(np.column_stack([np.ones(len(X)), X]), np.log(T), rcond=None)[0])


FIGURE = Figure(
    name="conjecture",
    title="The conjecture: polynomial in K and H",
    where="appendix B",
    caption=(
        "Episodes until ten rewards on the chain, with coherent bases of K functions: every run, medians, and "
        "(broad and pale) one power law in H and K for all of them. Left: the paper's sigma = .1. Right: "
        "sigma = 1, for which rewards lie within [-sigma, sigma], as the conjecture asks."
    ),
    sizes={
        "quick": {
            **chain_quadratic.FIGURE.sizes["quick"],
            "wide": [10, 20, 30],
            "few": [5, 10, 20],
        },
        "paper": {
            **chain_quadratic.FIGURE.sizes["paper"],
            "wide": [10, 20, 30, 40, 60],
            "few": [5, 10, 20],
        },
    },
    jobs=jobs,
    claims=[
        Claim(
            "With generalisation RLSVI is far beyond what Boltzmann or epsilon-greedy exploration can achieve",
            "appendix B",
            "on the longest chain with the most basis functions dithering takes over 1000 times as long",
            far_beyond,
            usual,
        ),
        Claim(
            "The empirical results of appendix C are consistent with the conjecture, a polynomial in K and H",
            "appendix B",
            "a power law fits the median learning times better than an exponential, its exponents at most 3",
            polynomial,
            usual,
        ),
        Claim(
            "The conjecture: if rewards lie within [-sigma, sigma], regret is polynomial in K and H",
            "appendix B",
            "the same at sigma = 1, where rewards do",
            polynomial,
            allowed,
        ),
        Claim(
            "The experiments of appendix C meet the conditions of the conjecture",
            "appendix B",
            "rewards within [-sigma, sigma], Q* by unique weights with sum |theta_h|^2 at most K H / lambda",
            conditions,
            usual,
        ),
    ],
    draw=draw,
)
