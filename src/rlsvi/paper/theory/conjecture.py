"""The conjecture of appendix B: is what RLSVI needs on the chain a polynomial in K and H, and in nothing else?"""

from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from rlsvi.core.compile import Floats
from rlsvi.paper.chain import chain_quadratic
from rlsvi.paper.chain.experiments import learning_time
from rlsvi.paper.chain.learning import dithering_bound, regressors, seconds
from rlsvi.paper.claim import Verdict, at_least, claim, claims_in
from rlsvi.paper.drawing import labelled, legend, panels, runs
from rlsvi.paper.figure import Figure
from rlsvi.paper.results import cells
from rlsvi.paper.theory import conjecture_fits
from rlsvi.paper.theory.chain_copies import copied_time
from rlsvi.paper.theory.conjecture_fits import (
    LARGE,
    Found,
    at_large_sigma,
    at_papers_sigma,
    by_horizon,
    of_copies,
    of_noises,
)
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS
from rlsvi.study.statistics import bootstrap, median

SHORT, FUNCTIONS = 15, 10  # the chain, and its basis, of what is varied at fixed K and H


def jobs(
    lengths: list[int],
    features: list[int],
    wide: list[int],
    few: list[int],
    sigmas: list[float],
    lams: list[float],
    copies: list[int],
    more: int,
    seeds: int,
    limit: int,
) -> list[Job]:
    """Those of chain-quadratic; at sigma = 1 shorter chains, more sigma and lambda, and copies of all.

    more : times as many seeds for the runs that no other figure has.
    """
    shorter: list[dict[str, Any]] = [{"length": N, "features": K, "sigma": LARGE} for N in wide for K in few]
    chain = {"length": SHORT, "features": FUNCTIONS}
    noises: list[dict[str, Any]] = [{**chain, "sigma": sigma, "lam": 1.0} for sigma in sigmas]
    noises += [{**chain, "sigma": LARGE, "lam": lam} for lam in lams if lam != 1]
    larger: list[dict[str, Any]] = [
        {"length": SHORT, "features": K, "states": S, "actions": A, "sigma": LARGE}
        for K in (FUNCTIONS, None)
        for S in copies
        for A in copies
        if S * A <= max(copies)
    ]
    return chain_quadratic.jobs(lengths, features, seeds, limit) + [
        Job.of(
            function,
            seconds(settings["length"], settings["features"], 60.0 * settings["length"]),
            **settings,
            seed=seed,
            limit=limit,
        )
        for function, many in ((learning_time, shorter + noises), (copied_time, larger))
        for settings in many
        for seed in range(more * seeds)
    ]


@claim(
    "With generalisation RLSVI is far beyond what Boltzmann or epsilon-greedy exploration can achieve",
    "appendix B",
    at_papers_sigma,
)
def far_beyond(frame: pl.DataFrame) -> Verdict:
    """On the longest chain with the most basis functions dithering takes over 1000 times as long."""
    found = cells(frame, "length", "features")
    N, K = max(found)
    times = bootstrap(lambda drawn: dithering_bound(N) / median(drawn), found[N, K])
    return at_least(
        times,
        1000.0,
        f"at N = {N}, K = {K} RLSVI needs {median(found[N, K]):,.0f} episodes, dithering {times} times",
    )


def draw(frame: pl.DataFrame) -> Picture:
    """Learning times with the joint power law at both sigmas, over sigma and lambda, and over S and A."""
    figure, (first, second, third, fourth) = panels(2, 4.2, rows=2)
    limit = frame["limit"][0]
    _lengths(first, at_papers_sigma(frame), limit, "sigma = .1")
    _lengths(second, at_large_sigma(frame), limit, f"sigma = {LARGE:g}")
    rows = of_noises(frame)
    for i, (name, part) in enumerate({"sigma": pl.col("lam") == 1, "lam": pl.col("sigma") == LARGE}.items()):
        runs(
            third, cells(rows.filter(part), name), limit, f"{'lambda' if name == 'lam' else name}, the other 1", i
        )
    table = pl.col("features").is_null()
    for i, (label, part) in enumerate({f"basis, K = {FUNCTIONS}": ~table, "table": table}.items()):
        rows = of_copies(frame).filter(part).with_columns(pairs=pl.col("states") * pl.col("actions"))
        pairs = cells(rows, "pairs")
        runs(fourth, pairs, limit, label, i)
    labelled(third, "sigma or lambda", "episodes until 10 rewards", f"N = {SHORT}, K = {FUNCTIONS}")
    labelled(
        fourth, "copies of states times copies of actions", "episodes until 10 rewards", f"N = {SHORT}, sigma = 1"
    )
    for axes in (first, second, third, fourth):
        axes.set(xscale="log", yscale="log")
        legend(axes)
    horizons = [
        rows["length"].unique().sort().to_numpy() - 1 for rows in (at_papers_sigma(frame), at_large_sigma(frame))
    ]
    for axes, places in zip((first, second, fourth), (*horizons, np.array(list(pairs))), strict=True):
        axes.set_xticks(places, [str(place) for place in places])
        axes.set_xticks([], minor=True)
    return figure


def _lengths(axes: Axes, rows: pl.DataFrame, limit: float, title: str) -> None:
    found = by_horizon(rows)
    fit = _fit(found)
    for i, K in enumerate(sorted(rows["features"].unique())):
        mine = {H: times for (H, k), times in found.items() if k == K}
        runs(axes, mine, limit, f"K = {K}", i)
        if fit is not None:
            H = np.array(list(mine), dtype=float)
            law = np.exp(fit[0] + fit[1] * np.log(H) + fit[2] * np.log(K))
            axes.plot(H, law, color=COLOURS[i % len(COLOURS)], linewidth=4, alpha=0.3)
    labelled(axes, "horizon H", "episodes until 10 rewards", title)


def _fit(found: Found) -> Floats | None:
    """Intercept and exponents of a power law in H and K, if all medians are finite."""
    T = np.array([median(times) for times in found.values()])
    if not np.isfinite(T).all():
        return None
    return np.asarray(np.linalg.lstsq(regressors(found)[1], np.log(T), rcond=None)[0])


FIGURE = Figure(
    name="conjecture",
    title="The conjecture: polynomial in K and H",
    where="appendix B",
    caption=(
        "Episodes until ten rewards on the chain, with coherent bases of K functions: every run, medians, and "
        "above (broad and pale) one power law in H and K for all of them. Above left: the paper's sigma = .1. "
        "Above right: sigma = 1, for which rewards lie within [-sigma, sigma], as the conjecture asks. Below "
        "left: over sigma and over lambda. Below right: over copies of states and actions, which change S and "
        "A but neither K nor H; with a basis, and with a table beside it."
    ),
    sizes={
        "quick": {
            **chain_quadratic.FIGURE.sizes["quick"],
            "wide": [10, 15, 20, 30],
            "few": [5, 10, 20],
            "sigmas": [1.0, 2.0, 4.0, 8.0, 16.0],
            "lams": [1e-4, 1e-2, 1.0, 1e2, 1e3],
            "copies": [1, 2, 4],
            "more": 3,
        },
        "paper": {
            **chain_quadratic.FIGURE.sizes["paper"],
            "wide": [10, 15, 20, 30, 40, 60],
            "few": [5, 10, 20],
            "sigmas": [1.0, 2.0, 4.0, 8.0, 16.0, 32.0],
            "lams": [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 1e2, 1e3],
            "copies": [1, 2, 4, 8],
            "more": 6,
        },
    },
    jobs=jobs,
    claims=[far_beyond, *claims_in(conjecture_fits)],
    draw=draw,
)
