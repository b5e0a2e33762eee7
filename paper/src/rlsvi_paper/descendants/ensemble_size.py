"""How many members an ensemble needs, with RLSVI as the limit, and what becomes of it without a prior draw."""

import math
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from rlsvi import problems
from rlsvi.agents import RLSVI, EnsembleRLSVI
from rlsvi.core.compile import Floats
from rlsvi.problems import Problem
from rlsvi.study.experiment import Play, Playing, experiment
from rlsvi.study.job import Job
from rlsvi.study.plot import INK
from rlsvi.study.statistics import Interval, bootstrap, mean, median
from rlsvi_paper.chain.learning import REWARDS
from rlsvi_paper.claim import Parts, Verdict, Verdicts, at_least, at_most, between, claim, share_of
from rlsvi_paper.degrees import as_good, hardly_any, much
from rlsvi_paper.descendants.deep_sea import CHOSEN
from rlsvi_paper.drawing import Picture, labelled, legend, means, panels, runs, ticks_at
from rlsvi_paper.figure import Figure
from rlsvi_paper.results import cells, having, rows_where, seeds_of, times_as_much

SHALLOW, DEEP, STOCHASTIC, RIVER = "DeepSea, N = 10", "DeepSea, N = 20", "stochastic DeepSea, N = 10", "RiverSwim"
EXACT, TARGETS, WEIGHTS = "RLSVI", "noise", "random weights"
TARGETS_ALONE, WEIGHTS_ALONE = "noise, no prior draw", "random weights, no prior draw"
FEW_MEMBERS, ENOUGH_MEMBERS, MANY_MEMBERS = 3, 10, 100  # members, in the claims
WHERE = "section 7; Lu and Van Roy (2017), Osband et al. (2019)"
MEMBERS = "members M"  # the name of an axis
OVER_EXACT = "problem", "members differ by", "members", "regret over RLSVI's"
WITH_PRIOR, ALONE = (TARGETS, WEIGHTS), (TARGETS_ALONE, WEIGHTS_ALONE)


# By the name of a problem: how a seed draws it, and the lambda and sigma of all agents on it.
PROBLEMS: dict[str, tuple[Callable[[int], Problem], float, float]] = {
    SHALLOW: (lambda seed: problems.deep_sea(10, seed=seed), *CHOSEN[False]),
    DEEP: (lambda seed: problems.deep_sea(20, seed=seed), *CHOSEN[False]),
    STOCHASTIC: (lambda seed: problems.deep_sea(10, stochastic=True, seed=seed), *CHOSEN[True]),
    RIVER: (lambda seed: problems.river_swim(6, 20), 1.0, 0.3),
}
# Of ensembles: how members differ, and the scale of their prior draws.
KINDS = {
    TARGETS: ("targets", 1.0),
    WEIGHTS: ("weights", 1.0),
    TARGETS_ALONE: ("targets", 0.0),
    WEIGHTS_ALONE: ("weights", 0.0),
}


def jobs(members: list[int], episodes: int, seeds: int, noisy: int) -> list[Job]:
    """RLSVI, and ensembles of every kind with these numbers of members, on all problems.

    Parameters
    ----------
    noisy
        The runs of RLSVI and of its limit in a stochastic sea, a few of which never learn.
    """
    found = []
    ensembles: list[dict[str, Any]] = [{"agent": kind, "members": M} for kind in KINDS for M in members]
    for task, player in product(PROBLEMS, [{"agent": EXACT}, *ensembles]):
        cost = episodes * (2e-5 + 1e-6 * player.get("members", 0))
        compared = player["agent"] == EXACT or player == {"agent": TARGETS, "members": MANY_MEMBERS}
        runs = max(noisy, seeds) if task == STOCHASTIC and compared else seeds
        run = partial(Job.of, ensemble_regret, cost, task=task, episodes=episodes, **player)
        found += [run(seed=seed) for seed in range(runs)]
    return found


@experiment
def ensemble_regret(*, task: str, agent: str, episodes: int, seed: int, members: int | None = None) -> Playing:
    """Regret of all episodes over that of random play, and the episodes until one has learned.

    Parameters
    ----------
    members
        Of an ensemble; None for RLSVI, which samples anew in every episode.
    time
        Episodes until the tenth whose policy is worth half of the optimum or more, infinite if there are
        fewer.
    """
    problem_seed, agent_seed = seeds_of(seed)
    make, lam, sigma = PROBLEMS[task]
    problem = make(problem_seed)
    prior: dict[str, Any] = {"lam": lam, "sigma": sigma, "seed": agent_seed}
    if members is None:
        history = yield Play(RLSVI(**prior), problem, episodes)
    else:
        perturb, prior_scale = KINDS[agent]
        player = EnsembleRLSVI(members=members, perturb=perturb, prior_scale=prior_scale, **prior)
        history = yield Play(player, problem, episodes)
    best = float(problem.mdp.table.start @ problem.solution.V[0])
    reached = np.flatnonzero(np.cumsum(history.regret <= 0.5 * best) >= REWARDS)
    return {
        "time": float(reached[0] + 1) if len(reached) else math.inf,
        "regret": float(history.regret.sum() / (episodes * problem.random_regret)),
    }


def exact_of(frame: pl.DataFrame, task: str, value: str) -> Floats:
    """The `value` of every run of RLSVI on a problem."""
    return having(frame, task=task, agent=EXACT)[value].to_numpy()


def by_members(frame: pl.DataFrame, task: str, kind: str, value: str) -> dict[Any, Floats]:
    """The `value` of every run of a kind of ensemble on a problem, by the number of members."""
    return cells(having(frame, task=task, agent=kind), "members", value=value)


def regrets(frame: pl.DataFrame, judged: Callable[[str, int, Interval, str], Verdict | None]) -> Parts:
    """Verdicts on the regret of ensembles over RLSVI's.

    Parameters
    ----------
    judged
        From a kind of ensemble, its members, the ratio and words to a verdict, or to None for a remark.
    """
    for task, kind in product(PROBLEMS, WITH_PRIOR):
        for M, theirs in by_members(frame, task, kind, "regret").items():
            share = times_as_much(theirs, exact_of(frame, task, "regret"))
            words = f"{kind}, M = {M}: {share} times RLSVI's regret, {task}"
            yield judged(kind, M, share, words), (task, kind, f"{M}", f"{share}")


@claim("Three members are too few", WHERE, kind="ours", table=OVER_EXACT)
def too_few(frame: pl.DataFrame) -> Parts:
    """With one member, and with three, the mean regret is at least twice that of RLSVI on every problem."""
    return regrets(
        frame, lambda kind, M, share, words: at_least(share, much(), words) if M <= FEW_MEMBERS else None
    )


@claim(
    "Ten members are enough where nothing is random",
    WHERE,
    kind="ours",
    table=("problem", "members differ by", "members", "episodes", "learned", "over RLSVI's"),
)
def enough(frame: pl.DataFrame) -> Parts:
    """On DeepSea with N = 10 and 20, the median learning time with ten members is at most 1.25 times RLSVI's."""
    for task, kind in product((SHALLOW, DEEP), WITH_PRIOR):
        for M, theirs in by_members(frame, task, kind, "time").items():
            share = times_as_much(theirs, exact_of(frame, task, "time"), "median", frame["episodes"][0])
            verdict = at_most(share, as_good(), f"{kind}, M = {M}: {share} times as long as RLSVI, {task}")
            row = task, kind, f"{M}", f"{median(theirs):.5g}", share_of(np.isfinite(theirs))[1], f"{share}"
            yield verdict if M == ENOUGH_MEMBERS else None, row


@claim(
    "With noise in its targets, an ensemble approaches RLSVI as its members become more",
    WHERE,
    kind="ours",
    table=OVER_EXACT,
)
def limit(frame: pl.DataFrame) -> Parts:
    """With 100 members, the mean regret is 0.8 to 1.25 times that of RLSVI on every problem, also on the two
    that are random.
    """
    return regrets(
        frame.filter((pl.col("agent") == EXACT) | (pl.col("members") == MANY_MEMBERS)),
        lambda kind, M, share, words: between(share, 1 / as_good(), as_good(), words) if kind == TARGETS else None,
    )


@claim(
    "Members without a prior draw of their own agree where no reward was seen, and do not explore",
    "section 7; Osband, Aslanides and Cassirer (2018)",
    rows_where(task=DEEP),
    kind="ours",
)
def prior_needed(frame: pl.DataFrame) -> Verdicts:
    """On DeepSea with N = 20, of the runs with ten members or more at most a tenth learn without a prior draw, and
    at least nine tenths with it.
    """
    for kinds, share, verdict in ((ALONE, hardly_any(), at_most), (WITH_PRIOR, 1 - hardly_any(), at_least)):
        found = [by_members(frame, DEEP, kind, "time") for kind in kinds]
        times = np.concatenate([it for sizes in found for M, it in sizes.items() if M >= ENOUGH_MEMBERS])
        learned, count = share_of(np.isfinite(times))
        words = f"{count} runs learn {'without' if kinds == ALONE else 'with'} a prior draw"
        yield verdict(learned, share, words)


def draw(frame: pl.DataFrame) -> Picture:
    """Learning time above and regret below, against the number of members, on each problem."""
    figure, places = panels(len(PROBLEMS), 3.6, rows=2)
    for place, (axes, task) in enumerate(zip(places, PROBLEMS, strict=False)):
        below = places[len(PROBLEMS) + place]
        _times(axes, frame, task)
        _regrets(below, frame, task)
        for each in (axes, below):
            ticks_at(each, sorted(by_members(frame, task, TARGETS, "time")))
    legend(places[-1], loc="lower left")
    return figure


def _times(axes: Axes, frame: pl.DataFrame, task: str) -> None:
    most, ours = float(frame["episodes"].to_numpy().max()), bootstrap(median, exact_of(frame, task, "time"))
    if ours.bounded:
        axes.axhspan(ours.low, ours.high, color=INK, alpha=0.3, linewidth=0)
    for index, kind in enumerate((*WITH_PRIOR, WEIGHTS_ALONE)):
        shift = 1.12 ** (index - 1)  # so that the runs of different agents lie side by side
        found = by_members(frame, task, kind, "time")
        runs(axes, {shift * M: times for M, times in found.items()}, most, kind, index)
    labelled(axes, MEMBERS, "episodes until learned", task, xscale="log", yscale="log", ylim=(10, 1.4 * most))


def _regrets(axes: Axes, frame: pl.DataFrame, task: str) -> None:
    ours = mean(exact_of(frame, task, "regret"))
    axes.axhspan(max(ours.low, 0.0), min(ours.high, 1.2), color=INK, alpha=0.3, linewidth=0, label=EXACT)
    for index, kind in enumerate((*WITH_PRIOR, WEIGHTS_ALONE, TARGETS_ALONE)):
        found = {M: mean(values) for M, values in by_members(frame, task, kind, "regret").items()}
        means(axes, found, kind, index, positive=True)
    labelled(axes, MEMBERS, "regret over random play's", xscale="log", yscale="log", ylim=(0.005, 1.5))


FIGURE = Figure.of(
    __name__,
    title="The number of members",
    where="section 7",
    caption=(
        "Above, episodes until the tenth whose policy is worth half of the optimum: dots are runs, triangles "
        "runs without it, and lines medians. Below, mean regret over that of random play, with 95% intervals as "
        "bands, grey for RLSVI. DeepSea has the λ and σ of the figure deep-sea; RiverSwim has 6 states, 20 "
        "periods, λ = 1 and σ = .3."
    ),
    quick={"members": [1, 3, 10, 100], "episodes": 1000, "seeds": 10, "noisy": 20},
    paper={"members": [1, 3, 5, 10, 30, 100], "episodes": 2000, "seeds": 60, "noisy": 500},
)
