"""Learning times on the chain: jobs of several figures, results setting by setting, and bounds on them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rlsvi.core.compile import Floats
from rlsvi.paper.chain.experiments import learning_time
from rlsvi.paper.claim import Verdicts, at_most
from rlsvi.study.job import Job
from rlsvi.study.statistics import Interval, bootstrap, bootstrap_medians, median

TIME, LENGTH = "episodes until 10 rewards", "chain length N"  # names of axes


def learning_jobs(lengths: Sequence[int], features: Sequence[int | None], seeds: int, limit: int) -> list[Job]:
    """One job per length, number of basis functions and seed, where such a basis exists."""
    return [
        Job.of(
            learning_time, seconds(N, K, 1.2 * N * (K or N) ** 0.73), length=N, features=K, seed=seed, limit=limit
        )
        for N in lengths
        for K in features
        if K is None or K <= (N - 1) * 2 * N
        for seed in range(seeds)
    ]


def seconds(length: int, features: int | None, episodes: float) -> float:
    """About how long a run takes, for progress bars."""
    K = features or 10
    return 1e-6 * episodes * length * (0.3 + 0.04 * K + 0.003 * K**2)


def medians(found: Mapping[Any, Floats]) -> Floats:
    """The median of the runs of each setting."""
    return np.array([median(times) for times in found.values()])


def regressors(found: Mapping[Any, Floats], switched: int | None = None) -> list[Floats]:
    """Regressors of log T in the settings that are the keys: of an exponential, and of a power law.

    switched : the only setting that the exponential is one of, while the others stay powers; None: all of them.
    """
    X = np.array([np.atleast_1d(key) for key in found], dtype=np.float64)
    power, exponential = np.log(X), X.copy()
    if switched is not None:
        exponential = power.copy()
        exponential[:, switched] = X[:, switched]
    return [np.column_stack([np.ones(len(X)), part]) for part in (exponential, power)]


def power_over_exponential(found: Mapping[Any, Floats]) -> Interval:
    """How much better a power law fits the median times than an exponential, in the settings that are the keys.

    The mean squared error of log T left by a regression on the settings, less that of one on their logarithms.
    """
    left = [np.eye(len(found)) - design @ np.linalg.pinv(design) for design in regressors(found)]
    return less_error(found, left)


def less_error(found: Mapping[Any, Floats], left: Sequence[Floats]) -> Interval:
    """The mean squared error of log T of a first fit less that of a second.

    left : the matrices that take the logarithms of the median times to what the fits leave of them.
    """

    def advantage(middle: Floats) -> float:
        first, second = (float(np.mean((part @ np.log(middle)) ** 2)) for part in left)
        return first - second

    return bootstrap_medians(advantage, list(found.values()))


def below_the_bounds(found: Mapping[int, Floats]) -> Verdicts:
    """Whether the median learning times, by the length of the chain, are below 2^(N-1) and H^2 S A / 10."""
    bounds = [min(dithering_bound(N), tabular_bound(N) / 10) for N in found]

    def largest(drawn: list[Floats]) -> float:
        return max(median(times) / bound for times, bound in zip(drawn, bounds, strict=True))

    ratio, longest = bootstrap(largest, list(found.values())), max(found)
    yield at_most(ratio, 1.0, f"at most {ratio} of the smaller bound")
    yield f"{bootstrap(median, found[longest])} episodes at N = {longest}"


def success(length: int) -> float:
    """p*, the value of the optimal policy: all N - 1 steps to the right succeed."""
    return (1.0 - 1.0 / length) ** (length - 1)


def dithering_bound(length: int) -> float:
    """2^(N-1)."""
    return 2.0 ** (length - 1)


def expected_first_reward(length: int) -> float:
    """The expected number of episodes of random play until the first reward, each rewarded with p* 2^-(N-1)."""
    return dithering_bound(length) / success(length)


def tabular_bound(length: int) -> float:
    """H^2 S A, the scaling of the lower bound for tabular learning that the paper quotes."""
    return float((length - 1) ** 2 * 2 * length)


def fixed_horizon_bound(H: int, S: int, A: int, C: int, epsilon: float = 1.0, delta: float = 1.0) -> float:
    """Bound the number of episodes of UCFH, a UCRL for fixed horizons, that are worse by more than epsilon.

    By Dann and Brunskill (2015) there are at most 6 |S x A| m E_max, with probability 1 - delta. There m is the
    number of visits that make a state and action known, and E_max = log2(H / w) log2 |S|, where w = epsilon /
    (4 H |S|).

    C : the largest number of successors of a state and action, from 2 to S.
    """
    visits = 512 * math.log2(math.log2(H)) ** 2 * (C * H**2 / epsilon**2)
    visits *= math.log2(8 * H**2 * S**2 / epsilon) ** 2
    visits *= math.log(6 * S * A * C * math.log2(4 * S**2 * H**2 / epsilon) ** 2 / delta)
    return 6 * S * A * visits * math.log2(4 * H**2 * S / epsilon) * math.log2(S)
