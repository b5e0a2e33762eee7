"""The runs of the study, and how their results are read.

It has five parts, each of `served`: agents side by side in shops of several sizes ("shop"); priors and noises to
choose from, on problem instances of their own ("prior"); a `Recommender` as it comes, and with less of a prior,
from the paper's size on ("default"); what each saving costs ("saving"); customers who overlap ("crowd").
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from benchmarks.recommendation_scale.runs import LEARNERS, PARTS, SIGMA2, served
from rlsvi.core.compile import Floats
from rlsvi.study.job import Job
from rlsvi.study.statistics import Interval

LAST, FIRST = 4, 2  # parts of a run that are its end, and its beginning
KNOWING, FORGETFUL = 200, 1000  # customers served by those who do not learn, and by Thompson sampling, at most
OTHERS = 1000  # the first seed of the instances on which priors are chosen
FEW = 5  # instances, at most, on which they are, and for the usual form
LAMS = (1e3, 1e4, 1e5, 1e6)  # sigma^2 = .001: ridges of 1 to 1000
NOISIER = ((1e3, 0.01), (1e2, 0.1), (1e2, 0.01))  # lambda and sigma^2 that explore more: ridges of 10, 10, 1
LAM, EVERY = 1e4, 10  # of RLSVI in the other studies: the lambda that was the best in every shop
USUAL = 1e7  # numbers a customer that a sample may take, where it is not said how often one is drawn
AGENTS = (*LEARNERS, "tabular bandit", "Thompson sampling", "myopic policy", "random")

EXACT = "exact"
SAVINGS: dict[str, dict[str, Any]] = {  # sketch, remember: one in so many products, customers
    EXACT: {},
    "pooled": {"pooled": True},
    "every 10": {"every": 10},
    "every 50": {"every": 50},
    "sketch N/2": {"sketch": 2},
    "sketch N/4": {"sketch": 4},
    "sketch N/8": {"sketch": 8},
    "remember 1/5": {"remember": 5},
    "pooled, every 10": {"pooled": True, "every": 10},
    "pooled, every 10, sketch N/4": {"pooled": True, "every": 10, "sketch": 4},
    "pooled, every 10, sketch N/8": {"pooled": True, "every": 10, "sketch": 8},
    "pooled, every 10, sketch N/16": {"pooled": True, "every": 10, "sketch": 16},
}
POOLED = "pooled, every 10"  # what the largest shop is compared with, where the exact form does not fit

IN_ORDER = "in order"
CROWDS: dict[str, tuple[int, float, float]] = {  # at once, late, lost
    IN_ORDER: (1, 0.0, 0.0),
    "50 at once": (50, 0.0, 0.0),
    "50, a slot late": (50, 50.0, 0.0),
    "50, four slots late": (50, 200.0, 0.0),
    "1 in 10 lost": (1, 0.0, 0.1),
    "3 in 10 lost": (1, 0.0, 0.3),
    "50, a slot late, 1 in 10 lost": (50, 50.0, 0.1),
}


def jobs(
    sizes: Sequence[Sequence[Any]],
    prior: Sequence[Sequence[int]],
    default: Sequence[Sequence[Any]],
    exact: Sequence[Sequence[int]],
    large: Sequence[int],
    crowd: Sequence[int],
    seeds: int,
) -> list[Job]:
    """All five studies.

    sizes : products, slots, customers and sketch of each shop, and lambda of RLSVI, the bandit and the greedy.
    prior : products, slots and customers, when lambda was chosen; the sketch is that of the shop.
    default : products, slots, customers and lambdas of the usual form, exact, and of the same pooled.
    exact, large : those in which savings are tried, where the exact form fits, and where it does not.
    crowd : those of the shop in which customers overlap.
    """
    found = []
    for N, J, L, sketch, *lams in sizes:
        own: dict[str, Any] = dict.fromkeys(AGENTS) | dict(zip(LEARNERS, lams, strict=True))
        found += [
            _job("shop", agent, N, J, L, seed, lam=lam, sketch=sketch)
            for agent, lam in own.items()
            for seed in range(seeds)
        ]
    for (N, J, L), (_, _, _, sketch, *_) in zip(prior, sizes, strict=True):
        found += [
            _job("prior", agent, N, J, L, OTHERS + seed, lam=lam, sigma2=sigma2, sketch=sketch)
            for agent in LEARNERS
            for lam, sigma2 in grid(agent, sketch)
            for seed in range(min(seeds, FEW))
        ]
    for N, J, L, lams in default:
        found += [
            _job("default", agent, N, J, L, seed, lam=lam, pooled=pooled, every=None)
            for agent in ("RLSVI", "myopic policy")
            for pooled in (False, True)
            for lam in lams
            for seed in range(min(seeds, FEW))
        ]
    for N, J, L in (*exact, large):
        names = [name for name in SAVINGS if (N, J, L) != tuple(large) or name.startswith(POOLED)]
        found += [_job("saving", "RLSVI", N, J, L, s, **form(name, N, L)) for name in names for s in range(seeds)]
    N, J, L = crowd
    found += [
        _job("crowd", agent, N, J, L, seed, lam=LAM, at_once=at_once, late=late, lost=lost)
        for agent in ("RLSVI", "myopic policy")
        for at_once, late, lost in CROWDS.values()
        for seed in range(seeds)
    ]
    return list({job.name: job for job in found}.values())


def grid(agent: str, sketch: int | None) -> list[tuple[float, float]]:
    """Lambda and sigma^2 that an agent may choose from."""
    noisier = NOISIER if agent == "RLSVI" and sketch is None else ()
    return [*((lam, SIGMA2) for lam in LAMS), *noisier]


def form(name: str, N: int, L: int) -> dict[str, Any]:
    """The settings of a saving in a shop of N products and L customers."""
    given = {"pooled": False, "every": 1, **SAVINGS[name]}
    given |= {key: max(1, of // given[key]) for key, of in (("sketch", N), ("remember", L)) if key in given}
    return {"lam": LAM, "sketch": None, "remember": None, **given}


def _job(study: str, agent: str, N: int, J: int, L: int, seed: int, **given: Any) -> Job:
    """A run; who does not learn by a Recommender is not told its form."""
    learns = agent in LEARNERS
    most = {"myopic policy": KNOWING, "random": KNOWING, "Thompson sampling": FORGETFUL}.get(agent, L)
    way = {
        "pooled": True,
        "sketch": None,
        "every": EVERY,
        "remember": None,
        "lam": None,
        "sigma2": SIGMA2,
        **given,
    }
    if not learns:
        way |= {"pooled": True, **dict.fromkeys(("sketch", "every", "remember", "lam", "sigma2"))}
    way = {"at_once": 1, "late": 0.0, "lost": 0.0, **way}
    customers = min(most, L)
    cost = 1e-4 * customers * J
    if learns:
        numbers = (1 if way["pooled"] else J) * N * (way["sketch"] or N) ** 2
        sample = numbers + (1 if way["pooled"] else J) * N * customers * J
        cost += 1e-9 * sample * customers / (way["every"] or max(1.0, numbers / USUAL))
    settings = {"agent": agent, "products": N, "slots": J, "customers": customers, **way, "seed": seed}
    return Job.of(served, cost, study=study, **settings)


# ---- what they brought --------------------------------------------------------------------------------------


def of_study(*names: str) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """A function that selects the rows of some studies."""
    return lambda frame: frame.filter(pl.col("study").is_in(names))


def shops(frame: pl.DataFrame) -> list[tuple[int, pl.DataFrame]]:
    """The rows of every shop, the smallest first."""
    return [(N, frame.filter(pl.col("products") == N)) for N in sorted(frame["products"].unique())]


def parts(frame: pl.DataFrame, agent: str) -> Floats:
    """Likes a customer in the parts of each run of an agent, (seeds, parts)."""
    rows = frame.filter(pl.col("agent") == agent).sort("seed", "customer")
    return rows["likes"].to_numpy().reshape(-1, PARTS)


def gained(frame: pl.DataFrame, agent: str = "RLSVI", last: int = PARTS) -> Floats:
    """Likes a customer over the half of all slots that random play has, in the last parts of each run."""
    return np.asarray(parts(frame, agent)[:, -last:].mean(axis=1) - frame["slots"][0] / 2)


def share_of(values: Floats, others: Floats) -> Interval:
    """What is gained as a multiple of what is gained elsewhere on the same instances, with Fieller's interval.

    It holds the multiples f for which values - f others may be 0 in the mean, by Student's test, as claims judge
    them. It is open if the others may be 0.
    """
    x, y, n = float(values.mean()), float(others.mean()), len(values)
    if n < 2:
        return Interval(x / y, -np.inf, np.inf)
    allowed = stats.t.ppf(0.975, n - 1) ** 2 / n
    (xx, xy), (_, yy) = np.cov(values, others)
    a, b, c = y * y - allowed * yy, x * y - allowed * xy, x * x - allowed * xx
    if a <= 0:
        return Interval(x / y, -np.inf, np.inf)
    half = max(b * b - a * c, 0.0) ** 0.5
    return Interval(x / y, float((b - half) / a), float((b + half) / a))


def ridged(frame: pl.DataFrame, lam: float, sigma2: float = SIGMA2) -> pl.DataFrame:
    """The runs with a prior and a noise."""
    return frame.filter(pl.col("lam") == lam, pl.col("sigma2") == sigma2)


def with_saving(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """The runs of one shop with a saving; none if it was not tried there."""
    wanted = form(name, frame["products"][0], frame["customers"][0])
    same = [pl.col(key).eq_missing(pl.lit(value)) for key, value in wanted.items()]
    return frame.filter(*same)


def in_crowd(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """The runs in which customers come and answer in one way."""
    at_once, late, lost = CROWDS[name]
    return frame.filter(pl.col("at_once") == at_once, pl.col("late") == late, pl.col("lost") == lost)
