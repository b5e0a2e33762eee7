"""Is it a polynomial? Fits of learning times, judged by what they say of settings that were left out."""

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import numpy as np
import polars as pl

from rlsvi import problems
from rlsvi.core.compile import Floats
from rlsvi.paper.chain.experiments import phi_of
from rlsvi.paper.chain.learning import less_error, regressors
from rlsvi.paper.claim import Part, Verdict, all_of, at_least, at_most, claim, exactly, worst_of
from rlsvi.paper.results import cells, rows_with
from rlsvi.study.statistics import Interval, bootstrap_medians, power_laws

SMALL, LARGE = 0.1, 1.0  # sigma of the paper, and the least that the chain's reward of 1 allows in the conjecture
REWARD = 1.0
Found = Mapping[Any, Floats]  # times by setting
in_appendix = partial(claim, where="appendix B")


def at_papers_sigma(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows at the paper's sigma."""
    return frame.filter(pl.col("sigma").is_null())


def at_large_sigma(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows at a sigma that the conjecture speaks of, of all lengths."""
    return frame.filter(pl.col("sigma") == LARGE, pl.col("lam").is_null(), pl.col("states").is_null())


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

    return bootstrap_medians(better, list(found.values()))


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

    return bootstrap_medians(better, list(found.values()))


def curvature(found: Found) -> Interval:
    """By how much the exponent of H grows when H doubles; of a power law it does not."""
    X = np.log(np.array(list(found), dtype=np.float64))
    centred = X[:, 0] - X[:, 0].mean()
    design = np.column_stack([np.ones(len(X)), X, centred**2])
    solve = np.linalg.pinv(design)[3]
    return bootstrap_medians(lambda middle: float(2 * np.log(2) * solve @ np.log(middle)), list(found.values()))


@in_appendix(
    "The empirical results of appendix C are consistent with the conjecture, a polynomial in K and H",
    rows=at_papers_sigma,
)
def polynomial(frame: pl.DataFrame) -> Verdict:
    """A power law in H and K predicts the median times to ten rewards of settings left out better, in the mean
    squared error of log T, than with an exponential in H in its place, than with one in K, and long horizons
    from short ones.
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
    return worst_of((f"of {len(found)} settings", "estimate"), rows)


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
    as 1/λ for λ up to 1.
    """
    in_sigma = cells(frame.filter(pl.col("lam") == 1, pl.col("sigma") >= LARGE), "sigma")
    in_lambda = cells(frame.filter(pl.col("sigma") == LARGE), "lam")
    small = {1 / lam: times for lam, times in in_lambda.items() if lam <= 1}
    large = {1 / lam: times for lam, times in in_lambda.items() if lam >= 1}
    (sigma,), (inverse,), (other,) = (
        power_laws([[key] for key in part], list(part.values())) for part in (in_sigma, small, large)
    )
    better = left_out(in_sigma)
    found = all_of(
        at_least(better, 0.0, f"a power law in σ is better by {better}"),
        at_most(inverse, 1.0, f"the exponent of 1/λ is {inverse} for λ up to 1"),
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
    than to the 1 of the lower bound for tables.
    """
    table = pl.col("features").is_null()
    both = [cells(frame.filter(rows), "states", "actions") for rows in (~table, table)]
    (S, A), (table_S, table_A) = (power_laws(list(found), list(found.values())) for found in both)
    in_states = at_most(S, 0.5, f"the exponent of S is {S}")
    return all_of(in_states, at_most(A, 0.5, f"of A {A}"), f"with a table {table_S} and {table_A}")


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
    noise = float(sigma.to_numpy()[0]) if len(sigma) else SMALL
    return exactly(
        not double and share <= 1 and noise >= REWARD,
        f"the reward is {REWARD:g}, σ is {noise:g}; at {len(settings)} settings Σ|θₕ|² is at most {share:.1g} "
        f"KH/λ, the weights of Q* are unique at {len(settings) - len(double)}",
    )
