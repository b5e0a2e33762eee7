"""The conjecture of appendix B: is what RLSVI needs on the chain a polynomial in K and H, and in nothing else?"""

from itertools import product
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from rlsvi.paper.chain import chain_quadratic
from rlsvi.paper.chain.experiments import learning_time
from rlsvi.paper.chain.learning import TIME, medians, regressors, seconds
from rlsvi.paper.claim import claims_in
from rlsvi.paper.drawing import LOGARITHMIC, Picture, labelled, panels, runs, ticks_at
from rlsvi.paper.figure import Figure
from rlsvi.paper.results import cells
from rlsvi.paper.theory import conjecture_fits
from rlsvi.paper.theory.chain_copies import copied_time
from rlsvi.paper.theory.conjecture_fits import LARGE, at_papers_sigma, by_horizon
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS

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
    short_runs: int | None = None,
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
        for K, S, A in product((FUNCTIONS, None), copies, copies)
        if S * A <= max(copies)
    ]
    found = chain_quadratic.jobs(lengths, features, seeds, limit, short_runs)
    plan = [(learning_time, it) for it in shorter + noises] + [(copied_time, it) for it in larger]
    for function, settings in plan:
        cost = seconds(settings["length"], settings["features"], 60.0 * settings["length"])
        found += [Job.of(function, cost, **settings, seed=seed, limit=limit) for seed in range(more * seeds)]
    return found


def draw(frame: pl.DataFrame) -> Picture:
    """Learning times with the joint power law at both sigmas, over sigma and lambda, and over S and A."""
    figure, (first, second, third, fourth) = panels(2, 4.2, rows=2)
    limit = frame["limit"][0]
    _lengths(first, at_papers_sigma(frame), limit, "sigma = .1")
    _lengths(second, conjecture_fits.at_large_sigma(frame), limit, f"sigma = {LARGE:g}")
    varied = (("sigma", "sigma", pl.col("lam") == 1), ("lam", "lambda", pl.col("sigma") == LARGE))
    for i, (name, symbol, part) in enumerate(varied):
        runs(third, cells(conjecture_fits.of_noises(frame).filter(part), name), limit, f"{symbol}, the other 1", i)
    table = pl.col("features").is_null()
    for i, (label, part) in enumerate({f"basis, K = {FUNCTIONS}": ~table, "table": table}.items()):
        rows = (
            conjecture_fits.of_copies(frame).filter(part).with_columns(pairs=pl.col("states") * pl.col("actions"))
        )
        runs(fourth, pairs := cells(rows, "pairs"), limit, label, i)
    labelled(third, "sigma or lambda", TIME, f"N = {SHORT}, K = {FUNCTIONS}", "best", **LOGARITHMIC)
    copies = "copies of states times copies of actions"
    labelled(fourth, copies, TIME, f"N = {SHORT}, sigma = 1", "best", **LOGARITHMIC)
    ticks_at(fourth, list(pairs))
    return figure


def _lengths(axes: Axes, rows: pl.DataFrame, limit: float, title: str) -> None:
    """Times over the horizon for each K, and one power law in H and K if all medians are finite."""
    found = by_horizon(rows)
    known = np.isfinite(T := medians(found)).all()
    fit = np.linalg.lstsq(regressors(found)[1], np.log(T), rcond=None)[0] if known else None
    for i, K in enumerate(sorted(rows["features"].unique())):
        mine = {H: times for (H, k), times in found.items() if k == K}
        runs(axes, mine, limit, f"K = {K}", i)
        if fit is not None:
            H = np.array(list(mine), dtype=float)
            law = np.exp(fit[0] + fit[1] * np.log(H) + fit[2] * np.log(K))
            axes.plot(H, law, color=COLOURS[i % len(COLOURS)], linewidth=4, alpha=0.3)
    labelled(axes, "horizon H", TIME, title, "best", **LOGARITHMIC)
    ticks_at(axes, sorted({H for H, _ in found}))


FIGURE = Figure.of(
    __name__,
    title="The conjecture: polynomial in K and H",
    where="appendix B",
    caption=(
        "Episodes until ten rewards on the chain, with coherent bases of K functions: every run, medians, and "
        "above (broad and pale) one power law in H and K, at the paper's σ = .1 and at σ = 1, as the conjecture"
        " asks. Below, the same over σ and over λ, and over copies of states and actions, which change S and A "
        "but neither K nor H."
    ),
    quick={
        **chain_quadratic.FIGURE.sizes["quick"],
        "wide": [10, 15, 20, 30],
        "few": [5, 10, 20],
        "sigmas": [1.0, 2.0, 4.0, 8.0, 16.0],
        "lams": [1e-4, 1e-2, 1.0, 1e2, 1e3],
        "copies": [1, 2, 4],
        "more": 3,
    },
    paper={
        **chain_quadratic.FIGURE.sizes["paper"],
        "wide": [10, 15, 20, 30, 40, 60],
        "few": [5, 10, 20],
        "sigmas": [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0],
        "lams": [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 1e2, 1e3],
        "copies": [1, 2, 4, 8],
        "more": 2,
    },
    claims=claims_in(conjecture_fits),
)
