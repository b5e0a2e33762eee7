"""Runs on the chain that several figures share, and the bounds that their learning times are compared with."""

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from rlsvi import problems
from rlsvi.agents import LSVI, RLSVI
from rlsvi.agents.agent import Agent
from rlsvi.agents.finite.rlsvi import FiniteHorizonAgent
from rlsvi.bases.dense import Dense
from rlsvi.core.compile import Floats, Longs
from rlsvi.problems import Problem
from rlsvi.simulate.finite import History
from rlsvi.study.experiment import Play, Playing, experiment
from rlsvi.study.job import Job
from rlsvi.study.plot import INK
from rlsvi.study.statistics import Interval, bootstrap, bootstrap_summaries, median
from rlsvi_paper.claim import Outcome, Verdict, Verdicts, at_least, at_most, choice, share_of
from rlsvi_paper.degrees import most
from rlsvi_paper.results import seeds_of, unexplained
from rlsvi_paper.schedules import SCHEDULES

CHUNK = 100  # episodes between two looks at the rewards collected
MOST_EPISODES = 20_000  # of learning times, beyond which a run is given up
REWARDS = 10  # the paper's proxy of the learning time: episodes until ten rewards
TIME, LENGTH = "episodes until 10 rewards", "chain length N"  # names of axes


@experiment
def learning_time(
    *,
    length: int,
    features: int | None,
    seed: int,
    limit: int,
    lam: float = 1.0,
    sigma: float = 0.1,
    rho: float | None = None,
    rho_is: Any = "variance",
    deterministic: bool = False,
) -> Playing:
    """Episodes until RLSVI has ten rewards, infinite if not within `limit`.

    With `rho` also the misfit, the share of Q* that the basis leaves out.
    """
    problem_seed, agent_seed = seeds_of(seed)
    reading: dict[str, Any] = {"rho": rho, "rho_is": rho_is, "deterministic": deterministic}
    problem = problems.chain(length, features, **reading, seed=problem_seed)
    agent = RLSVI(lam=lam, sigma=sigma, seed=agent_seed)
    found = {} if rho is None else {"misfit": _misfit(problem)}
    return {"time": (yield from until_learned(agent, problem, limit)), **found}


def until_learned(
    agent: Agent,
    problem: Problem,
    limit: int,
    counted: Callable[[History], Any] = attrgetter("reward"),
    regret: bool = False,
) -> Generator[Play, History, float]:
    """Play until ten rewards, or ten of what is counted instead; return the number of episodes, infinite if not
    within `limit`.
    """
    found = 0.0
    for played in range(0, limit, CHUNK):
        history = yield Play(agent, problem, min(CHUNK, limit - played), regret=regret)
        reached = np.flatnonzero(found + np.cumsum(counted(history)) >= REWARDS)
        if len(reached):
            return float(played + reached[0] + 1)
        found += counted(history).sum()
    return math.inf


@experiment
def regret_curve(
    *,
    agent: str,
    length: int,
    features: int,
    episodes: int,
    seed: int,
    points: int,
    stretch: float = 1.0,
    per_period: bool = False,
    **settings: float,
) -> Playing:
    """Regret and rewards up to some of the episodes of a run, and what became of it.

    Parameters
    ----------
    points
        How many episodes at most, of the first 2000 and again of all.
    stretch
        A factor of all basis functions.
    per_period
        Whether the basis functions of each period are drawn on their own.
    time
        Episodes until ten rewards, infinite if never.
    last_mistake
        The last episode whose policy was not optimal.
    """
    problem_seed, agent_seed = seeds_of(seed)
    problem = problems.chain(length, features, per_period=per_period, seed=problem_seed)
    if stretch != 1.0:
        problem = Problem(problem.mdp, Dense(stretch * phi_of(problem)))
    history = yield Play(agent_called(agent, agent_seed, **settings), problem, episodes)
    best = problem.solution.V[0, 0]
    reached = np.flatnonzero(np.cumsum(history.reward) >= REWARDS)
    mistakes = np.flatnonzero(history.regret > 1e-9 * best)
    at = np.union1d(_marks(min(episodes, 2000), points), _marks(episodes, points))
    return {
        "episode": at + 1,
        "regret": np.cumsum(history.regret)[at],
        "reward": np.cumsum(history.reward)[at],
        "time": reached[0] + 1.0 if len(reached) else math.inf,
        "last_mistake": mistakes[-1] + 1 if len(mistakes) else 0,
        "best": best,
    }


def agent_called(name: str, seed: int, **settings: float) -> FiniteHorizonAgent:
    """An agent of the chain's figures: RLSVI, or LSVI with one of the ways to dither."""
    if name == "RLSVI":
        return RLSVI(lam=settings["lam"], sigma=settings["sigma"], seed=seed)
    if name in SCHEDULES:
        return LSVI(lam=1.0, explore=SCHEDULES[name], seed=seed)
    raise ValueError(f"unknown agent {name!r}")


def _marks(episodes: int, points: int) -> Longs:
    """At most so many of the episodes, evenly, the first and the last among them."""
    return np.unique(np.linspace(0, episodes - 1, min(points, episodes)).round().astype(np.int64))


def phi_of(problem: Problem) -> Floats:
    """The basis functions of a problem with a coherent basis."""
    assert isinstance(problem.basis, Dense)
    return problem.basis.phi


def _misfit(problem: Problem) -> float:
    """The share of Q* that the basis leaves out, as a ratio of 2-norms."""
    Q, left = problem.solution.Q, 0.0
    for phi, q in zip(phi_of(problem), Q, strict=True):
        left += float(np.square(unexplained(phi.reshape(q.size, -1), q.ravel())).sum())
    return math.sqrt(left / float(np.square(Q).sum()))


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


def typical(times: Floats) -> float:
    """The median of runs, or the mean, in which a run that never learns counts as if it had at the end."""
    means = choice("statistic", "median", "mean") == "mean"
    return float(np.minimum(times, MOST_EPISODES).mean()) if means else median(times)


def medians(found: Mapping[Any, Floats]) -> Floats:
    """The median of the runs of each setting."""
    return np.array([median(times) for times in found.values()])


def regressors(found: Mapping[Any, Floats], switched: int | None = None) -> list[Floats]:
    """Regressors of log T in the settings that are the keys: of an exponential, and of a power law.

    Parameters
    ----------
    switched
        The only setting that the exponential is one of, while the others stay powers; None: all of them.
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

    Parameters
    ----------
    left
        The matrices that take the logarithms of the median times to what the fits leave of them.
    """

    def advantage(middle: Floats) -> float:
        first, second = (float(np.mean((part @ np.log(middle)) ** 2)) for part in left)
        return first - second

    return bootstrap_summaries(advantage, list(found.values()))


def in_time(found: Mapping[Any, Floats]) -> Verdict:
    """Whether most runs of every setting get ten rewards; in words only if they do not.

    Without this a law of learning times says nothing: those of random play do not grow with K at all.
    """
    key, least = min(found.items(), key=lambda it: float(np.isfinite(it[1]).mean()))
    share, count = share_of(np.isfinite(least))
    verdict = at_least(share, most(), f"{count} runs learn in time, where fewest do (at {key})")
    return verdict._replace(measured="") if verdict.outcome is Outcome.REPRODUCED else verdict


def below_the_bounds(found: Mapping[int, Floats]) -> Verdicts:
    """Whether the median learning times, by the length of the chain, are below 2^(N-1) and H^2 S A / 10."""
    bounds = [min(dithering_bound(N), tabular_bound(N) / 10) for N in found]

    def largest(drawn: list[Floats]) -> float:
        return max(typical(times) / bound for times, bound in zip(drawn, bounds, strict=True))

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


def draw_bounds(axes: Axes, lengths: Floats) -> None:
    """The bounds for dithering and, a tenth of it, for tabular learning."""
    dithering, tabular = 2.0 ** (lengths - 1), [tabular_bound(N) / 10 for N in lengths]
    axes.plot(lengths, dithering, "--", color=INK, linewidth=1, label="dithering, $2^{N-1}$")
    axes.plot(lengths, tabular, color=INK, linewidth=1, label="tabular, $H^2SA/10$")
