"""The conjecture of appendix B: is what RLSVI needs on the chain a polynomial in K and H, and in nothing else?"""

import math
from collections.abc import Mapping
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from rlsvi import bases, mdp, problems
from rlsvi.agents import RLSVI
from rlsvi.bases.dense import Dense
from rlsvi.core.compile import Floats
from rlsvi.mdp import FiniteMDP
from rlsvi.problems import Problem
from rlsvi.study.experiment import Playing, experiment
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS
from rlsvi.study.statistics import Interval, bootstrap_summaries, power_laws
from rlsvi_paper.chain import chain_quadratic
from rlsvi_paper.chain.learning import (
    TIME,
    in_time,
    learning_time,
    less_error,
    medians,
    phi_of,
    regressors,
    seconds,
    until_learned,
)
from rlsvi_paper.claim import Part, Verdict, all_of, at_least, at_most, choice, claim, exactly, worst_of
from rlsvi_paper.drawing import LOGARITHMIC, Picture, labelled, panels, runs, ticks_at
from rlsvi_paper.figure import Figure
from rlsvi_paper.results import cells, rows_with, seeds_of

SHORT_CHAIN, FUNCTIONS = 15, 10  # the chain, and its basis, of what is varied at fixed K and H
SMALL_SIGMA = 0.1  # the paper's
LARGE_SIGMA = 1.0  # the least that the chain's reward of 1 allows in the conjecture
REWARD = 1.0
Found = Mapping[Any, Floats]  # times by setting
in_appendix = partial(claim, where="appendix B")


@experiment
def copied_time(
    *,
    length: int,
    features: int | None,
    states: int,
    actions: int,
    seed: int,
    limit: int,
    lam: float = 1.0,
    sigma: float = 0.1,
) -> Playing:
    """Episodes until RLSVI has ten rewards on the chain with `states` and `actions` copies of each.

    Parameters
    ----------
    features
        Of a coherent basis, whose functions are as large as those of the chain by itself; None: a table.
    """
    problem_seed, agent_seed = seeds_of(seed)
    problem = copied_chain(length, states, actions, features, seed=problem_seed)
    agent = RLSVI(lam=lam, sigma=sigma, seed=agent_seed)
    return {"time": (yield from until_learned(agent, problem, limit))}


def copied_chain(length: int, states: int, actions: int, features: int | None, *, seed: int = 0) -> Problem:
    """The chain with copies, so that S and A grow while K, H and what there is to learn do not.

    Place p is one of the states p, N + p, .., drawn afresh; even actions go left.
    """
    plain, N = mdp.chain(length).table, length
    S, A = N * states, 2 * actions

    def successors(s: int, a: int) -> list[tuple[float, int, float]]:
        row = (s % N) * 2 + a % 2
        entries = range(plain.indptr[row], plain.indptr[row + 1])
        return [
            (plain.probability[i] / states, int(plain.successor[i]) + N * copy, 0.0)
            for i in entries
            for copy in range(states)
        ]

    task = FiniteMDP.from_function(
        successors,
        horizon=N - 1,
        states=S,
        actions=A,
        start=np.tile(np.eye(N)[0], states) / states,
        terminal_reward=np.tile(np.eye(N)[-1], states),
        name=f"chain of length {N}, {states} x {actions} copies",
    )
    if features is None:
        return Problem(task)
    basis = bases.coherent(mdp.backward_induction(task).Q, features, seed=seed)
    return Problem(task, Dense(basis.phi / math.sqrt(states * actions)))


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

    Parameters
    ----------
    more
        Times as many seeds for the runs that no other figure has.
    """
    shorter: list[dict[str, Any]] = [{"length": N, "features": K, "sigma": LARGE_SIGMA} for N in wide for K in few]
    chain = {"length": SHORT_CHAIN, "features": FUNCTIONS}
    pairs = [(sigma, 1.0) for sigma in sigmas] + [(LARGE_SIGMA, lam) for lam in lams if lam != 1]
    noises: list[dict[str, Any]] = [{**chain, "sigma": sigma, "lam": lam} for sigma, lam in pairs]
    larger: list[dict[str, Any]] = [
        {"length": SHORT_CHAIN, "features": K, "states": S, "actions": A, "sigma": LARGE_SIGMA}
        for K, S, A in product((FUNCTIONS, None), copies, copies)
        if S * A <= max(copies)
    ]
    found = chain_quadratic.jobs(lengths, features, seeds, limit, short_runs)
    plan = [(learning_time, it) for it in shorter + noises] + [(copied_time, it) for it in larger]
    for function, settings in plan:
        cost = seconds(settings["length"], settings["features"], 60.0 * settings["length"])
        found += [Job.of(function, cost, **settings, seed=seed, limit=limit) for seed in range(more * seeds)]
    return found


# ---- Fits of learning times, judged by what they say of settings that were left out -----------------------------


def at_papers_sigma(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows at the paper's sigma."""
    return frame.filter(pl.col("sigma").is_null())


def at_large_sigma(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows at a sigma that the conjecture speaks of, of all lengths."""
    return frame.filter(pl.col("sigma") == LARGE_SIGMA, pl.col("lam").is_null(), pl.col("states").is_null())


of_noises, of_copies = rows_with("lam"), rows_with("states")


def by_horizon(frame: pl.DataFrame) -> dict[Any, Floats]:
    """Times for each horizon H = N - 1 and number of basis functions."""
    return {(N - 1, K): times for (N, K), times in cells(frame, "length", "features").items()}


def left_out(found: Found, switched: int = 0) -> Interval:
    """How much better a power law says the log median time of a setting from the others than an exponential.

    The mean squared error of the one less that of the other, each setting left out once. The exponential is one
    of the regressor `switched` alone, so that no other can decide in its place.
    """
    hats = [design @ np.linalg.pinv(design) for design in regressors(found, switched)]
    return less_error(found, [(np.eye(len(hat)) - hat) / (1 - np.diag(hat))[:, None] for hat in hats])


def beyond(found: Found) -> Interval:
    """The same for the settings in the upper half of the first regressor, from those in the lower half."""
    first = np.array([np.atleast_1d(key)[0] for key in found])
    low = first <= np.median(first)
    known = [(design[~low], np.linalg.pinv(design[low])) for design in regressors(found, 0)]

    def better(middle: Floats) -> float:
        T = np.log(middle)
        exponential, power = (float(np.mean((X @ (inverse @ T[low]) - T[~low]) ** 2)) for X, inverse in known)
        return exponential - power

    return bootstrap_summaries(better, list(found.values()))


def quadratic_left_out(found: Found) -> Interval:
    """The same of a quadratic in place of the power law, for settings that are single numbers.

    Its coefficients are not negative, so that it grows, and minimise the sum of squared relative errors.
    """
    from scipy.optimize import nnls

    x = np.array(list(found), dtype=np.float64)
    exponential, powers = np.column_stack([np.ones(len(x)), x]), np.column_stack([np.ones(len(x)), x, x**2])
    hat = exponential @ np.linalg.pinv(exponential)
    left = (np.eye(len(x)) - hat) / (1 - np.diag(hat))[:, None]
    others = [np.arange(len(x)) != i for i in range(len(x))]

    def better(middle: Floats) -> float:
        relative, ones = powers / middle[:, None], np.ones(len(x) - 1)
        shares = [relative[i] @ nnls(relative[part], ones)[0] for i, part in enumerate(others)]
        return float(np.mean((left @ np.log(middle)) ** 2) - np.mean(np.log(shares) ** 2))

    return bootstrap_summaries(better, list(found.values()))


def curvature(found: Found) -> Interval:
    """By how much the exponent of H grows when H doubles; of a power law it does not."""
    X = np.log(np.array(list(found), dtype=np.float64))
    centred = X[:, 0] - X[:, 0].mean()
    design = np.column_stack([np.ones(len(X)), X, centred**2])
    solve = np.linalg.pinv(design)[3]
    return bootstrap_summaries(lambda middle: float(2 * np.log(2) * solve @ np.log(middle)), list(found.values()))


@in_appendix(
    "The empirical results of appendix C are consistent with the conjecture, a polynomial in K and H",
    rows=at_papers_sigma,
)
def polynomial(frame: pl.DataFrame) -> Verdict:
    """A power law in H and K predicts the median times to ten rewards of settings left out better, in the mean
    squared error of log T, than with an exponential in H in its place, than with one in K, and long horizons
    from short ones; and most runs learn in every setting.
    """
    found = by_horizon(frame)
    in_horizon, in_features = power_laws(list(found), list(found.values()))
    fits = {
        "an exponential in H": left_out(found, 0),
        "an exponential in K": left_out(found, 1),
        "an exponential in H, for long horizons": beyond(found),
    }
    rows: list[Part] = [
        (
            at_least(less, 0.0, f"the power law's error is lower by {less} than with {name}"),
            (f"error with {name}, less the power law's", f"{less}"),
        )
        for name, less in fits.items()
    ]
    others = {
        "exponent of H": in_horizon,
        "exponent of K": in_features,
        "change of the exponent of H as H doubles": curvature(found),
    }
    rows.extend((None, (name, f"{it}")) for name, it in others.items())
    fitted = worst_of((f"of {len(found)} settings", "estimate"), rows)
    return all_of(fitted, in_time(found))._replace(table=fitted.table)


@in_appendix("The conjecture: if rewards lie within [−σ, σ], regret is polynomial in K and H", rows=at_large_sigma)
def conjectured(frame: pl.DataFrame) -> Verdict:
    """The same at σ = 1, where rewards and all other conditions are met; judged is the time to ten rewards, not
    regret, and not its growth as √T.
    """
    found, met = polynomial.judge(frame), conditions.judge(frame)
    return all_of(met._replace(measured=""), found)._replace(table=found.table)


@in_appendix("Its polynomial is one of σ and 1/λ too", rows=of_noises)
def in_sigma_and_lambda(frame: pl.DataFrame) -> Verdict:
    """A power law in σ predicts the median times of σ left out better than an exponential, and they grow at most
    as 1/λ for λ up to 1; and most runs learn in every setting with these.
    """
    in_sigma = cells(frame.filter(pl.col("lam") == 1, pl.col("sigma") >= LARGE_SIGMA), "sigma")
    in_lambda = cells(frame.filter(pl.col("sigma") == LARGE_SIGMA), "lam")
    small = {1 / lam: times for lam, times in in_lambda.items() if lam <= 1}
    large = {1 / lam: times for lam, times in in_lambda.items() if lam >= 1}
    (sigma,), (inverse,), (other,) = (
        power_laws([[key] for key in part], list(part.values())) for part in (in_sigma, small, large)
    )
    better = left_out(in_sigma)
    found = all_of(
        at_least(better, 0.0, f"a power law in σ is better by {better}"),
        at_most(
            inverse, choice("an exponent of", 1.0, 0.5, 2.0), f"the exponent of 1/λ is {inverse} for λ up to 1"
        ),
        in_time(in_sigma),
        in_time(small),
    )
    others = {
        "error with an exponential in σ, less a quadratic's": quadratic_left_out(in_sigma),
        "exponent of σ": sigma,
        "exponent of 1/λ for λ from 1 on": other,
    }
    return found._replace(table=(("not judged", "estimate"), *((name, f"{it}") for name, it in others.items())))


@in_appendix("This bound does not depend on the number of states or actions", rows=of_copies)
def independent(frame: pl.DataFrame) -> Verdict:
    """With copies of states and actions at fixed K and H the exponents of S and A are at most 1/2, nearer to 0
    than to the 1 of the lower bound for tables; and most runs learn in every setting.
    """
    table = pl.col("features").is_null()
    both = [cells(frame.filter(rows), "states", "actions") for rows in (~table, table)]
    (S, A), (table_S, table_A) = (power_laws(list(found), list(found.values())) for found in both)
    half = choice("an exponent of", 0.5, 0.25, 0.75)
    in_states, in_actions = at_most(S, half, f"the exponent of S is {S}"), at_most(A, half, f"of A {A}")
    return all_of(in_states, in_actions, in_time(both[0]), f"with a table {table_S} and {table_A}")


@cache
def _truth(length: int, features: int) -> tuple[float, bool]:
    """The sum of |θₕ|² for the largest of three bases, and whether theta is unique in all of them."""
    sizes, unique = [], True
    for seed in range(3):
        problem = problems.chain(length, features, seed=seed)
        size = 0.0
        for phi, q in zip(phi_of(problem), problem.solution.Q, strict=True):
            weights, _, rank, _ = np.linalg.lstsq(phi.reshape(q.size, -1), q.ravel())
            size, unique = size + float(weights @ weights), unique and int(rank) == features
        sizes.append(size)
    return max(sizes), unique


@in_appendix(
    "The experiments of appendix C meet the conditions of the conjecture", rows=at_papers_sigma, kind="ours"
)
def conditions(frame: pl.DataFrame) -> Verdict:
    """Rewards lie within [−σ, σ], and Q* has unique weights whose squares Σ|θₕ|² sum to at most KH/λ."""
    settings = [key for key in cells(frame, "length", "features") if key[0] <= 40]
    truth = {key: _truth(*key) for key in settings}
    double = [f"N = {N}, K = {K}" for (N, K), (_, unique) in truth.items() if not unique]
    share = max(size / (K * (N - 1)) for (N, K), (size, _) in truth.items())
    sigma = frame["sigma"].drop_nulls()
    noise = float(sigma.to_numpy()[0]) if len(sigma) else SMALL_SIGMA
    return exactly(
        not double and share <= 1 and noise >= REWARD,
        f"the reward is {REWARD:g}, σ is {noise:g}; at {len(settings)} settings Σ|θₕ|² is at most {share:.1g} "
        f"KH/λ, the weights of Q* are unique at {len(settings) - len(double)}",
    )


def draw(frame: pl.DataFrame) -> Picture:
    """Learning times with the joint power law at both sigmas, over sigma and lambda, and over S and A."""
    figure, (first, second, third, fourth) = panels(2, 4.2, rows=2)
    limit = frame["limit"][0]
    _lengths(first, at_papers_sigma(frame), limit, "sigma = .1")
    _lengths(second, at_large_sigma(frame), limit, f"sigma = {LARGE_SIGMA:g}")
    varied = (("sigma", "sigma", pl.col("lam") == 1), ("lam", "lambda", pl.col("sigma") == LARGE_SIGMA))
    for i, (name, symbol, part) in enumerate(varied):
        runs(third, cells(of_noises(frame).filter(part), name), limit, f"{symbol}, the other 1", i)
    table = pl.col("features").is_null()
    for i, (label, part) in enumerate({f"basis, K = {FUNCTIONS}": ~table, "table": table}.items()):
        rows = of_copies(frame).filter(part).with_columns(pairs=pl.col("states") * pl.col("actions"))
        runs(fourth, pairs := cells(rows, "pairs"), limit, label, i)
    labelled(third, "sigma or lambda", TIME, f"N = {SHORT_CHAIN}, K = {FUNCTIONS}", "best", **LOGARITHMIC)
    copies = "copies of states times copies of actions"
    labelled(fourth, copies, TIME, f"N = {SHORT_CHAIN}, sigma = 1", "best", **LOGARITHMIC)
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
        "Episodes until ten rewards on the chain, with coherent bases of K functions: every run and medians. "
        "Above, one power law in H and K (broad and pale), at the paper's σ = .1 and at σ = 1, as the conjecture "
        "asks. Below, the same against σ, λ, and copies of states and actions, which change S and A but neither "
        "K nor H."
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
)
