"""How many members an ensemble needs, with RLSVI as the limit, and what becomes of it without a prior draw."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Part, Verdict, Verdicts, at_least, at_most, between, claim, worst_of
from rlsvi.paper.descendants.ensemble_size_runs import (
    DEEP,
    EXACT,
    KINDS,
    PROBLEMS,
    SHALLOW,
    STOCHASTIC,
    TARGETS,
    TARGETS_ALONE,
    WEIGHTS,
    WEIGHTS_ALONE,
    ensemble_regret,
)
from rlsvi.paper.drawing import Picture, labelled, legend, panels, runs, style, ticks_at
from rlsvi.paper.figure import Figure
from rlsvi.paper.results import cells, having, rows_where
from rlsvi.study.job import Job
from rlsvi.study.plot import INK
from rlsvi.study.statistics import Interval, bootstrap, mean, median, proportion, ratio, ratio_of_medians

FEW, ENOUGH, MANY = 3, 10, 100  # members, in the claims
MEMBERS = "members M"  # the name of an axis
WITH_PRIOR, ALONE = (TARGETS, WEIGHTS), (TARGETS_ALONE, WEIGHTS_ALONE)


def jobs(members: list[int], episodes: int, seeds: int, noisy: int) -> list[Job]:
    """RLSVI, and ensembles of every kind with these numbers of members, on all problems.

    noisy : the runs of RLSVI and of its limit in a stochastic sea, a few of which never learn.
    """
    found = []
    for task in PROBLEMS:
        players: list[dict[str, Any]] = [{"agent": EXACT}]
        players += [{"agent": kind, "members": M} for kind in KINDS for M in members]
        for player in players:
            cost = episodes * (2e-5 + 1e-6 * player.get("members", 0))
            what: dict[str, Any] = {"task": task, "episodes": episodes, **player}
            compared = player["agent"] == EXACT or player == {"agent": TARGETS, "members": MANY}
            runs = max(noisy, seeds) if task == STOCHASTIC and compared else seeds
            found += [Job.of(ensemble_regret, cost, **what, seed=seed) for seed in range(runs)]
    return found


def exact_of(frame: pl.DataFrame, task: str, value: str) -> Floats:
    """The `value` of every run of RLSVI on a problem."""
    return having(frame, task=task, agent=EXACT)[value].to_numpy()


def by_members(frame: pl.DataFrame, task: str, kind: str, value: str) -> dict[Any, Floats]:
    """The `value` of every run of a kind of ensemble on a problem, by the number of members."""
    return cells(having(frame, task=task, agent=kind), "members", value=value)


def regrets(frame: pl.DataFrame, judged: Callable[[str, int, Interval, str], Verdict | None]) -> Verdict:
    """The worst verdict on the regret of ensembles over RLSVI's, with a table.

    judged : from a kind of ensemble, its members, the ratio and words to a verdict, or to None for a remark.
    """
    rows = list[Part]()
    for task in PROBLEMS:
        ours = exact_of(frame, task, "regret")
        for kind in WITH_PRIOR:
            for M, theirs in by_members(frame, task, kind, "regret").items():
                share = ratio(theirs, ours)
                words = f"{kind}, M = {M}: {share} times RLSVI's regret, {task}"
                rows.append((judged(kind, M, share, words), (task, kind, f"{M}", f"{share}")))
    return worst_of(("problem", "members differ by", "members", "regret over RLSVI's"), rows)


@claim("Three members are too few", "section 7; Lu and Van Roy (2017), Osband et al. (2019)", kind="ours")
def too_few(frame: pl.DataFrame) -> Verdict:
    """With one member, and with three, the mean regret is at least twice that of RLSVI on every problem."""
    return regrets(frame, lambda kind, M, share, words: at_least(share, 2.0, words) if M <= FEW else None)


@claim(
    "Ten members are enough where nothing is random",
    "section 7; Lu and Van Roy (2017), Osband et al. (2019)",
    kind="ours",
)
def enough(frame: pl.DataFrame) -> Verdict:
    """On DeepSea with N = 10 and 20, the median learning time with ten members is at most 1.25 times RLSVI's."""
    rows = list[Part]()
    for task in (SHALLOW, DEEP):
        ours = exact_of(frame, task, "time")
        for kind in WITH_PRIOR:
            for M, theirs in by_members(frame, task, kind, "time").items():
                share = ratio_of_medians(theirs, ours)
                words = f"{kind}, M = {M}: {share} times as long as RLSVI, {task}"
                learned = f"{np.isfinite(theirs).sum()} of {len(theirs)}"
                row = (task, kind, f"{M}", f"{median(theirs):.5g}", learned, f"{share}")
                rows.append((at_most(share, 1.25, words) if M == ENOUGH else None, row))
    return worst_of(("problem", "members differ by", "members", "episodes", "learned", "over RLSVI's"), rows)


@claim(
    "With noise in its targets, an ensemble approaches RLSVI as its members become more",
    "section 7; Lu and Van Roy (2017), Osband et al. (2019)",
    kind="ours",
)
def limit(frame: pl.DataFrame) -> Verdict:
    """With 100 members, the mean regret is 0.8 to 1.25 times that of RLSVI on every problem, also on the two
    that are random.
    """
    return regrets(
        frame.filter((pl.col("agent") == EXACT) | (pl.col("members") == MANY)),
        lambda kind, M, share, words: between(share, 0.8, 1.25, words) if kind == TARGETS else None,
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
    for kinds, share, verdict in ((ALONE, 0.1, at_most), (WITH_PRIOR, 0.9, at_least)):
        found = [by_members(frame, DEEP, kind, "time") for kind in kinds]
        times = np.concatenate([it for sizes in found for M, it in sizes.items() if M >= ENOUGH])
        learned = int(np.isfinite(times).sum())
        words = f"{learned} of {len(times)} runs learn {'without' if kinds == ALONE else 'with'} a prior draw"
        yield verdict(proportion(learned, len(times)), share, words)


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
        middle = [it.value for it in found.values()]
        low, high = [max(it.low, 1e-3) for it in found.values()], [min(it.high, 2.0) for it in found.values()]
        axes.plot(list(found), middle, **style(index), label=kind)
        axes.fill_between(list(found), low, high, color=style(index)["color"], alpha=0.2, linewidth=0)
    labelled(axes, MEMBERS, "regret over random play's", xscale="log", yscale="log", ylim=(0.005, 1.5))


FIGURE = Figure.of(
    __name__,
    title="The number of members",
    where="section 7",
    caption=(
        "Above, episodes until the tenth whose policy is worth half of the optimum: dots are runs, triangles runs "
        "without it, and lines medians; below, the mean regret of all episodes over that of random play, with 95% "
        "intervals as bands, the grey ones of RLSVI. On DeepSea λ and σ are those of the figure deep-sea; "
        "RiverSwim has 6 states, 20 periods, λ = 1 and σ = .3."
    ),
    quick={"members": [1, 3, 10, 100], "episodes": 1000, "seeds": 10, "noisy": 20},
    paper={"members": [1, 3, 5, 10, 30, 100], "episodes": 2000, "seeds": 60, "noisy": 500},
)
