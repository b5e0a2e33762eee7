"""Example 1: dithering, and a policy gradient, need 2^(N-1) episodes and more to the first reward."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from rlsvi import problems
from rlsvi.core.compile import Floats
from rlsvi.core.random import stream
from rlsvi.mdp import backward_induction, chain, evaluate
from rlsvi.problems import Problem
from rlsvi.study.experiment import Play, Playing, experiment
from rlsvi.study.job import Job
from rlsvi.study.plot import INK
from rlsvi.study.statistics import Interval, bootstrap_summaries, line
from rlsvi_paper.chain.learning import (
    LENGTH,
    agent_called,
    dithering_bound,
    expected_first_reward,
    phi_of,
    success,
    until_learned,
)
from rlsvi_paper.claim import Part, Verdict, Verdicts, all_of, at_least, claim, exactly, worst_of
from rlsvi_paper.degrees import about
from rlsvi_paper.drawing import Picture, labelled, panels, runs
from rlsvi_paper.figure import Figure
from rlsvi_paper.loops.policy_gradient import new_rollout, reinforce, softmax_policy
from rlsvi_paper.results import cells, having, rows_with, seeds_of
from rlsvi_paper.schedules import SCHEDULES, best_of, of_trials

# Three ways to dither and a policy gradient, with a table or with few basis functions.
DITHERING: dict[str, dict[str, Any]] = {
    "epsilon-greedy, a table": {"agent": "epsilon 0.1", "features": None},
    "epsilon-greedy, 3 basis functions": {"agent": "epsilon 0.2", "features": 3},
    "Boltzmann, 5 basis functions": {"agent": "Boltzmann 1", "features": 5},
}
GRADIENT: dict[str, dict[str, Any]] = {
    "policy gradient, a table": {"features": None, "step_size": 1.0},
    "policy gradient, 5 basis functions": {"features": 5, "step_size": 1.0},
}
AGENTS = {**DITHERING, **GRADIENT}
SHORT, FEW = 10, 4  # the longest chain on which all ways to dither are run, and the basis functions there
of_dithering, of_gradients = rows_with("agent"), rows_with("step_size")


def jobs(lengths: list[int], seeds: int) -> list[Job]:
    """Until the first reward; after forty times the expected number of episodes a run is given up.

    On short chains there are all ways to dither: with a twentieth of the seeds to choose among them, and as many
    others to judge.
    """
    short, few = [N for N in lengths if N <= SHORT], -(-seeds // 20)
    plan: list[tuple[Callable[..., Any], dict[str, Any], list[int], int]] = [
        *((first_reward, settings, lengths, seeds) for settings in DITHERING.values()),
        *((first_reward_of_policy_gradient, settings, lengths, seeds) for settings in GRADIENT.values()),
        *((all_ways, {"chooses": chooses}, short, few) for chooses in (True, False)),
    ]
    found = []
    for i, (function, settings, some, count) in enumerate(plan):
        for N, run in product(some, range(count)):
            thousand = i + len(plan) * (run // 1000)  # all play at random, but not the same game
            expected = expected_first_reward(N)
            size = {"length": N, "seed": 1000 * thousand + run % 1000, "limit": int(40 * expected)}
            found.append(Job.of(function, 2e-6 * expected * N, **size, **settings))
    return found


def all_ways(*, chooses: bool, length: int, seed: int, limit: int) -> dict[str, Any]:
    """Episodes until the first reward, and until ten, of every way to dither.

    Parameters
    ----------
    chooses
        Whether the best is chosen by this run, or judged by it.
    """
    size: dict[str, Any] = {"features": FEW, "length": length, "seed": seed, "limit": limit}
    first = [first_reward(agent=name, **size)["time"] for name in SCHEDULES]
    tenth = [ten_rewards(agent=name, **size)["time"] for name in SCHEDULES]
    return {"schedule": np.array(list(SCHEDULES)), "first": np.array(first), "tenth": np.array(tenth)}


@experiment
def ten_rewards(*, agent: str, length: int, features: int, seed: int, limit: int) -> Playing:
    """Episodes until ten rewards, infinite if not within `limit`."""
    problem_seed, agent_seed = seeds_of(seed)
    problem = problems.chain(length, features, seed=problem_seed)
    return {"time": (yield from until_learned(agent_called(agent, agent_seed), problem, limit))}


@experiment
def first_reward(
    *, agent: str, length: int, features: int | None, seed: int, limit: int, **settings: float
) -> Playing:
    """Episodes until the first reward, infinite if not within `limit`.

    Parameters
    ----------
    regret
        Expected regret of these episodes, the one with the reward included.
    uneven
        The largest difference, relative, between the value of a policy played in them and of random play.
    """
    problem_seed, agent_seed = seeds_of(seed)
    problem = problems.chain(length, features, seed=problem_seed)
    player = agent_called(agent, agent_seed, **settings)
    regret, uneven, chunk = 0.0, 0.0, 2 ** min(length - 1, 14)
    for played in range(0, limit, chunk):
        history = yield Play(player, problem, min(chunk, limit - played))
        reached = np.flatnonzero(history.reward)
        until = reached[0] + 1 if len(reached) else len(history.reward)
        regret += float(history.regret[:until].sum())
        off = np.abs(history.regret[:until] / problem.random_regret - 1.0)
        uneven = max(uneven, float(off.max()))
        if len(reached):
            return {"time": float(played + until), "regret": regret, "uneven": uneven}
    return {"time": math.inf, "regret": regret, "uneven": uneven}


def first_reward_of_policy_gradient(
    *, length: int, features: int | None, step_size: float, seed: int, limit: int
) -> dict[str, float]:
    """Episodes of REINFORCE until the first reward, infinite if not within `limit`.

    The policy is a softmax of phi theta, with a weight for each state and action or for each basis function. All
    weights are 0 at first; after every episode the estimate of the gradient times the step size is added.

    Parameters
    ----------
    gradient
        The largest number, in size, in the estimates before the first reward.
    regret
        Expected regret of these episodes, the one with the reward included.
    uneven
        The difference, relative, between the value of their policy and of random play.
    """
    problem_seed, agent_seed = seeds_of(seed)
    problem = problems.chain(length, features, seed=problem_seed)
    phi, table = features_of(problem), problem.mdp.table
    theta = np.zeros((table.horizon, phi.shape[-1]))
    played, found, largest = reinforce(table, phi, theta, step_size, limit, new_rollout(phi), stream(agent_seed))
    lost = problem.solution.V[0, 0] - evaluate(problem.mdp, softmax_policy(phi, theta))[0, 0]
    return {
        "time": float(played) if found else math.inf,
        "gradient": largest,
        "regret": played * lost,
        "uneven": abs(lost / problem.random_regret - 1.0),
    }


def features_of(problem: Problem) -> Floats:
    """The basis functions of a problem, (H, S, A, K); with a table one for each state and action."""
    t = problem.mdp.table
    if hasattr(problem.basis, "phi"):
        return phi_of(problem)
    each = np.eye(t.states * t.actions).reshape(t.states, t.actions, -1)
    return np.tile(each, (t.horizon, 1, 1, 1))


@claim(
    "Always going right earns p* = (1 − 1/N)ᴺ⁻¹, any other policy nothing, and random play p*/2ᴺ⁻¹",
    "section 3, Example 1",
)
def exact_values(frame: pl.DataFrame) -> Verdict:
    """Dynamic programming gives these values at every length."""
    worst = turned = 0.0
    for N in frame["length"].unique().sort():
        mdp = chain(N)
        random = float(evaluate(mdp, np.full((N - 1, N, 2), 0.5))[0, 0]) * dithering_bound(N)
        worst = max(worst, *(abs(value / success(N) - 1.0) for value in (backward_induction(mdp).V[0, 0], random)))
        for h in range(N - 1):
            policy = np.tile([0.0, 1.0], (N - 1, N, 1))  # right
            policy[h, h] = [1.0, 0.0]
            turned = max(turned, float(evaluate(mdp, policy)[0, 0]))
    words = (
        f"V* is p* and random play's value p*/2ᴺ⁻¹, both to {worst:.1g}; one step to the left leaves {turned:g}"
    )
    return exactly(worst < 1e-12 and turned == 0.0, words)


@claim(
    "Before the first reward all weights are 0 and actions are uniformly random, for any basis",
    "section 3, Example 1",
    of_dithering,
)
def uniform_actions(frame: pl.DataFrame) -> Verdict:
    """The exact value of every policy played before is that of random play."""
    uneven = float(frame["uneven"].to_numpy().max())
    words = f"in {len(frame)} runs every policy up to the first reward was worth as much as random play"
    return exactly(uneven < 1e-9, f"{words}; the largest difference is {uneven:.1g}")


def _mean_ratio(frame: pl.DataFrame, value: str, unit: Callable[[int], float]) -> Interval:
    """The mean over all settings of a value in units that depend on the length."""
    units = pl.Series(np.array([unit(N) for N in frame["length"].to_numpy()]))
    found = cells(frame.with_columns(ratio=pl.col(value) / units), "length", "features", value="ratio")
    return bootstrap_summaries(lambda means: float(means.mean()), list(found.values()), summary=np.mean)


@claim(
    "The first reward comes after 2ᴺ⁻¹ − 1 episodes or more, on average, and regret grows to that",
    "section 3, Example 1",
    of_dithering,
)
def first_visit(frame: pl.DataFrame) -> Verdicts:
    """The mean time is within a factor of 1.1 of the exact 2ᴺ⁻¹/p* and not below the bound; the expected regret up
    to then is within a factor of 1.1 of the bound.
    """
    exact = _mean_ratio(frame, "time", expected_first_reward)
    yield about(exact, 1.0, f"the mean time is {exact} times the exact 2ᴺ⁻¹/p*")
    bound, regret = (_mean_ratio(frame, name, lambda N: dithering_bound(N) - 1) for name in ("time", "regret"))
    yield at_least(bound, 1.0, f"{bound} times the bound")
    yield about(regret, 1.0, f"regret is {regret} times the bound")


def growth(frame: pl.DataFrame) -> Interval:
    """By what the mean time to the first reward is multiplied with each further state."""
    found = cells(frame, "length")
    return bootstrap_summaries(
        lambda means: 2.0 ** line(list(found), np.log2(means))[0], list(found.values()), summary=np.mean
    )


@claim("Dithering needs a number of episodes that is exponential in the length", "abstract and section 3")
def exponential(frame: pl.DataFrame) -> Verdict:
    """The mean time to the first reward doubles with each state, within a factor of 1.1; all ways to dither of a
    grid have it in the same episode with the same seed; and the one that has ten rewards soonest with other seeds
    takes 2ᴺ⁻¹ − 1 episodes or more to these, on average.
    """
    ways, slower = of_trials(frame), growth(of_dithering(frame))
    bound = pl.lit(2.0).pow(pl.col("length") - 1) - 1
    best, tried = best_of(having(ways, chooses=True).with_columns(times=pl.col("tenth") / bound), "times")
    same = all(len(set(times)) == 1 for times in cells(ways, "length", "seed", value="first").values())
    rows, judging = list[Part](), having(ways, chooses=False)
    for name, elsewhere in tried.items():
        ten = _mean_ratio(having(judging, schedule=name), "tenth", lambda N: dithering_bound(N) - 1)
        words = f"{name}, which has ten rewards soonest with other seeds, takes {ten} times the bound to these"
        rows.append(
            (at_least(ten, 1.0, words) if name == best else None, (name, f"{elsewhere.mean():.2f}", f"{ten}"))
        )
    score = worst_of(("agent (in episode l)", "ten rewards over 2ᴺ⁻¹ − 1, other seeds", "here"), rows)
    often = "always" if same else "not always"
    return all_of(
        about(slower, 2.0, f"one more state takes {slower} times as long"),
        exactly(same, f"{len(rows)} ways to dither {often} have their first reward in the same episode"),
        score,
    )._replace(table=score.table)


@claim("A similar result holds for policy gradient algorithms", "section 3", of_gradients)
def policy_gradients(frame: pl.DataFrame) -> Verdicts:
    """REINFORCE's estimates of the gradient are exactly 0 up to the first reward, so that it plays at random; the
    mean time to the reward is the exact 2ᴺ⁻¹/p*, and doubles with each state, both within a factor of 1.1.
    """
    gradient, uneven = (float(frame[name].to_numpy().max()) for name in ("gradient", "uneven"))
    yield exactly(gradient == 0.0 and uneven < 1e-9, f"the largest estimate is {gradient:g}")
    exact, times = _mean_ratio(frame, "time", expected_first_reward), growth(frame)
    yield about(exact, 1.0, f"the mean time is {exact} times the exact one")
    yield about(times, 2.0, f"one more state takes {times} times as long")


def draw(frame: pl.DataFrame) -> Picture:
    """Times to the first reward, every run, with the exact expectation."""
    figure, (axes,) = panels()
    lengths = np.array(sorted(frame["length"].unique()))
    for i, (label, settings) in enumerate(AGENTS.items()):
        rows = of_dithering(frame) if label in DITHERING else of_gradients(frame)
        chosen = rows.filter(pl.col(name).eq_missing(pl.lit(value)) for name, value in settings.items())
        shifted = {N + 0.12 * (i - 2): times for N, times in cells(chosen, "length").items()}
        runs(axes, shifted, float(frame["limit"].to_numpy().max()), f"{label}: runs and medians", i)
    exact = [expected_first_reward(N) for N in lengths]
    axes.plot(lengths, exact, "_", color=INK, markersize=16, label="exact mean $2^{N-1}/p^*$")
    axes.plot(lengths, 2.0 ** (lengths - 1), "--", color=INK, linewidth=1, label="bound $2^{N-1}$")
    labelled(axes, LENGTH, "episodes to the first reward", key="best", yscale="log")
    return figure


FIGURE = Figure.of(
    __name__,
    title="Dithering and policy gradients take exponentially long to the first reward",
    where="section 3, Example 1",
    caption=(
        "Episodes until LSVI with epsilon-greedy or Boltzmann exploration, or REINFORCE, first reaches the end "
        "of a chain of N states: every run, medians, the exact expectation and the paper's bound."
    ),
    quick={"lengths": [4, 6, 8, 10], "seeds": 100},
    paper={"lengths": [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14], "seeds": 100},
)
