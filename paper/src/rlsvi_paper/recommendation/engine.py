"""The recommendation engine: its runs, which several figures share, and what agents lose in them.

A job is one agent on one problem instance, several times; ways to dither are also tried on other instances.
Regret is that along the path, sum_h V*_h(x_h) - E_mu Q*_h(x_h, a): its expectation is that of the policy, and it
carries less noise than the answers do. What an agent forgoes is the same for one that looks one step ahead:
sum_h max_a P(a | x_h) - P(a_h | x_h).
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from rlsvi import problems
from rlsvi.agents import LSVI, RLSVI, ContextualBandit, OptimalPolicy, ThompsonSampling
from rlsvi.agents.agent import Agent
from rlsvi.agents.explore import Explore, Greedy
from rlsvi.bases import Tabular
from rlsvi.core.compile import Floats
from rlsvi.mdp import myopic_values
from rlsvi.mdp.recommendation import count_histories, histories
from rlsvi.problems import Problem
from rlsvi.simulate import simulate
from rlsvi.study.job import Job
from rlsvi.study.statistics import Interval
from rlsvi_paper.claim import choice, claim
from rlsvi_paper.results import learning_curves, paired_times, rows_with, unexplained
from rlsvi_paper.schedules import PRINTED, SCHEDULES

PRODUCTS, SLOTS, SCALE = 10, 5, 2.0
LAM, SIGMA = 0.2, 1e-3**0.5
ELSEWHERE, TRIED = 10_000, 40  # the first instance that ways to dither are tried on, and how many at most
CODINGS = LIKES, DISLIKES = "0, 1", "-1, 0"  # how rewards are coded
POINTS = 60  # of a curve
LAST_EPISODES = 100  # episodes at the end
TABLE = "RLSVI, table"  # without generalisation
ONE_CODING = ("myopic", TABLE)  # agents that are run with rewards 0 and 1 alone
PRINTED_BANDITS = ("Thompson", "linear bandit")  # of appendix E
ORDERS = 20  # fixed orders of products that are tried
of_agents, of_instances = rows_with("agent"), rows_with("best")
of_play = partial(claim, where="section 6.3", rows=of_agents)
of_problems = partial(claim, where="section 6.3", rows=of_instances)


def _lsvi(explore: Explore) -> Callable[[int, float], Agent]:
    return lambda seed, offset: LSVI(lam=LAM, explore=explore, seed=seed)


MAKERS: dict[str, Callable[[int, float], Agent]] = {
    "RLSVI": lambda seed, offset: RLSVI(lam=LAM, sigma=SIGMA, seed=seed),
    TABLE: lambda seed, offset: RLSVI(lam=LAM, sigma=SIGMA, basis=Tabular(), seed=seed),
    "greedy": _lsvi(Greedy()),
    "Thompson": lambda seed, offset: ThompsonSampling(reward_offset=offset, seed=seed),
    "linear bandit": lambda seed, offset: ContextualBandit(lam=LAM, sigma=SIGMA, seed=seed),
    "linear bandit, pooled": lambda seed, offset: ContextualBandit(lam=LAM, sigma=SIGMA, pooled=True, seed=seed),
    "myopic": lambda seed, offset: OptimalPolicy(myopic=True, seed=seed),
    **{name: _lsvi(explore) for name, explore in SCHEDULES.items()},
}


def jobs_of(
    agents: Sequence[str], episodes: int, runs: int, seeds: int, bandit_runs: int | None = None
) -> list[Job]:
    """Every agent on every one of `seeds` instances, in both codings.

    Ways to dither that the paper does not have are run a third as often.

    Parameters
    ----------
    bandit_runs
        How many runs there are of the paper's bandits, with the paper's rewards; None: as of others.
    """
    found = [Job.of(instance_facts, 0.5, seed=seed) for seed in range(seeds)]
    for agent in agents:
        usual = max(runs // 3, 1) if agent in SCHEDULES and agent not in PRINTED else runs
        for coding in CODINGS if agent not in ONE_CODING else [LIKES]:
            count = bandit_runs or runs if agent in PRINTED_BANDITS and coding == LIKES else usual
            settings: dict[str, Any] = {"agent": agent, "coding": coding, "episodes": episodes, "runs": count}
            cost = 1e-4 * episodes * count
            found += [Job.of(recommending, cost, **settings, seed=seed) for seed in range(seeds)]
    return found


def trials(episodes: int, runs: int, seeds: int) -> list[Job]:
    """Every way to dither, in both codings, on at most 40 other instances, with a tenth of the runs."""
    size = {"episodes": episodes, "runs": max(runs // 10, 1)}
    return [
        Job.of(trial, 1e-4 * episodes * size["runs"], schedule=schedule, coding=coding, **size, seed=seed)
        for schedule, coding, seed in product(SCHEDULES, CODINGS, range(min(seeds, TRIED)))
    ]


def recommending(*, agent: str, coding: str, episodes: int, runs: int, seed: int) -> dict[str, Any]:
    """What an agent loses on the instance number `seed`, the mean of several runs, summed up to some episodes.

    Parameters
    ----------
    coding
        "0, 1" or "-1, 0", the rewards of a dislike and of a like.
    """
    regret, forgone = _losses_of(agent, coding, episodes, runs, seed)
    at = np.unique(np.ceil(np.linspace(0, episodes, POINTS + 1)[1:]).astype(np.int64))
    return {"episode": at, "regret": regret[at - 1], "forgone": forgone[at - 1]}


def trial(*, schedule: str, coding: str, episodes: int, runs: int, seed: int) -> dict[str, Any]:
    """What a way to dither loses on an instance that judges nothing: in all, and an episode at the end."""
    regret = _losses_of(schedule, coding, episodes, runs, ELSEWHERE + seed)[0]
    return {"tried": regret[-1], "tried_late": _last(regret)}


def without_context(*, bandit: str, episodes: int, runs: int, seed: int) -> dict[str, Any]:
    """Likes a customer that a bandit forgoes where it does not matter what the customer has seen.

    The probability of a like is that of the product, 1 / (1 + exp(-beta_a)) with beta_a ~ N(0, c^2).

    Parameters
    ----------
    first, last
        Over the first and the last hundred customers, or twelfth of fewer; the mean of several runs.
    """
    beta = np.random.default_rng(seed).normal(0.0, SCALE, PRODUCTS)
    problem = problems.recommendation(PRODUCTS, SLOTS, beta=beta, gamma=np.zeros((PRODUCTS, PRODUCTS)))
    players = (MAKERS[bandit](1000 * seed + run, 0.0) for run in range(runs))
    forgone = _mean_losses(problem, players, episodes)[1]
    some = max(min(LAST_EPISODES, episodes // 12), 1)
    return {"first": forgone[some - 1] / some, "last": _last(forgone)}


def _last(loss: Floats) -> float:
    """The loss an episode over the last hundred, or twelfth of fewer, from that up to each episode."""
    some = max(min(LAST_EPISODES, len(loss) // 12), 1)
    return float((loss[-1] - loss[-1 - some]) / some)


def _losses_of(agent: str, coding: str, episodes: int, runs: int, seed: int) -> tuple[Floats, Floats]:
    players = (MAKERS[agent](1000 * seed + run, float(coding == DISLIKES)) for run in range(runs))
    return _mean_losses(instance(seed, coding), players, episodes)


def _mean_losses(problem: Problem, players: Iterable[Agent], episodes: int) -> tuple[Floats, Floats]:
    """Regret, and likes forgone, up to each episode: the mean of some players."""
    ahead, slots = myopic_values(problem.mdp), np.arange(SLOTS)
    best, found = ahead.max(axis=2), []
    for player in players:
        history = simulate(player, problem, episodes, regret=False, trace=True)
        x, a = history.trace.states, history.trace.actions
        forgone = (best[slots, x] - ahead[slots, x, a]).sum(axis=1)
        found.append(np.cumsum([history.path_regret, forgone], axis=1))
    regret, forgone = np.mean(found, axis=0)
    return regret, forgone


def instance_facts(*, seed: int) -> dict[str, Any]:
    """V*, the number of states, what the basis leaves out of Q*, and the fixed order found farthest from J/2."""
    problem = instance(seed, LIKES)
    rng = np.random.default_rng(seed)
    worths = [_worth_of_order(problem, rng.permutation(PRODUCTS)[:SLOTS]) for _ in range(ORDERS)]
    V, Q = problem.solution.V, problem.solution.Q
    return {
        "best": float(V[0, 0]),
        "states": count_histories(PRODUCTS, SLOTS),
        "fixed_order": max(worths, key=lambda worth: abs(worth - SLOTS / 2)),
        "misfit": _misfit(Q),
    }


def instance(seed: int, coding: str) -> Problem:
    """A problem instance; the same taste whatever the coding."""
    values = (-1.0, 0.0) if coding == DISLIKES else (0.0, 1.0)
    return problems.recommendation(PRODUCTS, SLOTS, scale=SCALE, reward_values=values, seed=seed)


def _worth_of_order(problem: Problem, order: Any) -> float:
    """Expected likes of recommending products in one order, whatever the customer says: forward, exactly."""
    table = problem.mdp.table
    mass, worth = {0: 1.0}, 0.0
    for a in order:
        following: dict[int, float] = {}
        for s, weight in mass.items():
            row = s * table.actions + int(a)
            worth += weight * float(table.expected[row])
            for j in range(table.indptr[row], table.indptr[row + 1]):
                after = int(table.successor[j])
                following[after] = following.get(after, 0.0) + weight * float(table.probability[j])
        mass = following
    return worth


def _misfit(Q: Floats) -> float:
    """The share of Q* that the basis leaves out, as a ratio of 2-norms over all legal pairs and their periods."""
    x = histories(PRODUCTS, SLOTS)
    seen = np.count_nonzero(x, axis=1)
    left = total = 0.0
    for h in range(SLOTS):
        rows = np.flatnonzero(seen == h)
        for a in range(PRODUCTS):
            legal = rows[x[rows, a] == 0]
            design = np.column_stack([np.ones(len(legal)), x[legal]]).astype(np.float64)
            values = Q[h, legal, a]
            residual = unexplained(design, values)
            left, total = left + float(residual @ residual), total + float(values @ values)
    return float((left / total) ** 0.5)


def curves_of(frame: pl.DataFrame, agent: str, coding: str = LIKES, loss: str = "regret") -> tuple[Floats, Floats]:
    """The episodes of a curve, and the loss up to them on every instance, (instances, points)."""
    return learning_curves(frame, loss, agent=agent, coding=coding)


def rates(frame: pl.DataFrame, agent: str, coding: str = LIKES, loss: str = "regret") -> tuple[Floats, Floats]:
    """Loss an episode between two points of the curve, on every instance, and the episodes in their middle."""
    at, loss_so_far = curves_of(frame, agent, coding, loss)
    ends = np.concatenate([[0.0], at])
    return (ends[:-1] + ends[1:]) / 2, np.diff(loss_so_far, axis=1, prepend=0.0) / np.diff(ends)


def early(points: int) -> int:
    """How many points of a curve are its first twelfth."""
    return max(points // choice("the beginning, 1 part in", 12, 24, 6), 1)


def at_first(frame: pl.DataFrame, agent: str, coding: str = LIKES, loss: str = "regret") -> Floats:
    """Loss an episode over the first twelfth (100 of 1200), on every instance."""
    at, loss_so_far = curves_of(frame, agent, coding, loss)
    i = early(len(at)) - 1
    return np.asarray(loss_so_far[:, i] / at[i])


def at_the_end(frame: pl.DataFrame, agent: str, coding: str = LIKES, loss: str = "regret") -> Floats:
    """Loss an episode over the last twelfth, 100 of 1200, on every instance."""
    at, loss_so_far = curves_of(frame, agent, coding, loss)
    last = at[-1] / choice("the end, 1 part in", 12.0, 24.0, 6.0)
    i = max(int(np.searchsorted(at, at[-1] - last + 1e-9)) - 1, 0)
    i = i if at[i] <= at[-1] - last + 1e-9 else 0
    return np.asarray((loss_so_far[:, -1] - loss_so_far[:, i]) / (at[-1] - at[i]))


def remaining(frame: pl.DataFrame, agent: str) -> Interval:
    """Regret an episode at the end as a share of that at first."""
    return paired_times(at_the_end(frame, agent), at_first(frame, agent))
