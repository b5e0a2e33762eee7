"""RLSVI with the noise of worst-case bounds, clipped, and with bounded targets: what each is worth."""

from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Part, Verdict, at_least, at_most, between, claim, worst_of
from rlsvi.paper.drawing import LOGARITHMIC, Picture, labelled, legend, panels, style
from rlsvi.paper.extensions.worst_case_runs import (
    BOUNDED,
    CLIPPED,
    DIRICHLET,
    PROBLEMS,
    RANDOM,
    RUSSO,
    SCALES,
    THEOREM,
    TUNED,
    worst_case_regret,
)
from rlsvi.paper.figure import Figure
from rlsvi.paper.results import chosen_by_the_others, learning_curves
from rlsvi.study.job import Job
from rlsvi.study.plot import INK
from rlsvi.study.statistics import paired_ratio

OTHERS = [task for task in PROBLEMS if task != DIRICHLET]  # where scales are used that were chosen on random MDPs
AT_LEAST, AT_MOST = 0.8, 0.5  # shares of the regret of random play: of who hardly learns, and of who learns


def jobs(episodes: int, seeds: int) -> list[Job]:
    """All agents at all their scales, on all problems."""
    found = []
    for task in PROBLEMS:
        for agent, scales in SCALES.items():
            cost = episodes * (1e-4 if agent == "PSRL" else 3e-5)
            what: Any = {"task": task, "agent": agent, "episodes": episodes}
            for scale in scales:
                found += [Job.of(worst_case_regret, cost, **what, scale=scale, seed=i) for i in range(seeds)]
    return found


def final(frame: pl.DataFrame, task: str, agent: str, scale: float = 1.0) -> Floats:
    """Regret of all episodes, of every seed, rounded so that sums in another order are equal."""
    return learning_curves(frame, task=task, agent=agent, scale=scale)[1][:, -1].round(6)


def at_all_scales(frame: pl.DataFrame, task: str, agent: str) -> Floats:
    """The same at every scale, (scales, seeds)."""
    return np.stack([final(frame, task, agent, scale) for scale in SCALES[agent]])


def best_scale(frame: pl.DataFrame, task: str, agent: str) -> float:
    """The scale of the lowest mean regret on a problem."""
    return SCALES[agent][int(at_all_scales(frame, task, agent).mean(axis=1).argmin())]


def tuned(frame: pl.DataFrame, task: str, agent: str) -> Floats:
    """Regret at the best scale; for every seed, the one that is best for the other seeds."""
    return -chosen_by_the_others(-at_all_scales(frame, task, agent))


def carried(frame: pl.DataFrame, task: str, agent: str) -> Floats:
    """Regret at the scale that is best on random MDPs; there, for every seed, on the others."""
    if task == DIRICHLET:
        return tuned(frame, task, agent)
    return final(frame, task, agent, best_scale(frame, DIRICHLET, agent))


def told_scale(agent: str, best: float) -> str:
    """A best scale in words, which say where the grid ends there."""
    scales = SCALES[agent]
    return f"{best:g}, the grid's edge" if len(scales) > 1 and best in (scales[0], scales[-1]) else f"{best:g}"


@claim(
    "With the noise of its bounds of the worst case, RLSVI hardly learns in the time in which it learns with less",
    "section 5; Russo (2019), Theorem 1; Agrawal et al. (2021), Theorem 1",
    kind="ours",
)
def hardly_learns(frame: pl.DataFrame) -> Verdict:
    """On every problem the regret with Russo's noise, and clipped, is at least four fifths of that of random play,
    and that of RLSVI, whose σ is the best on random MDPs, at most a half.
    """
    rows = list[Part]()
    for task in PROBLEMS:
        chance = final(frame, task, RANDOM)
        shares = {agent: paired_ratio(final(frame, task, agent), chance) for agent in (RUSSO, CLIPPED, THEOREM)}
        ours = paired_ratio(carried(frame, task, TUNED), chance)
        for agent in (RUSSO, CLIPPED):
            words = f"{agent} has {shares[agent]} times the regret of random play, {task}"
            cells = (task, agent, f"{shares[agent]}") if agent == RUSSO else ("", agent, f"{shares[agent]}")
            rows.append((at_least(shares[agent], AT_LEAST, words), cells))
        rows.append((None, ("", THEOREM, f"{shares[THEOREM]}")))
        words = f"RLSVI has {ours} times the regret of random play, {task}"
        rows.append((at_most(ours, AT_MOST, words), ("", f"{TUNED}, tuned", f"{ours}")))
    return worst_of(("problem", "noise", "regret over that of random play"), rows)


@claim(
    "A scale of the worst-case noise that was chosen on one problem is worse on another than RLSVI's σ",
    "section 5; Russo (2019); Agrawal et al. (2021)",
    kind="ours",
)
def carries_over(frame: pl.DataFrame) -> Verdict:
    """At the scales that are best on random MDPs, the regret with Russo's noise, and clipped, is at least twice
    that of RLSVI on the chain and on RiverSwim.
    """
    rows = list[Part]()
    for task in OTHERS:
        ours, chance = carried(frame, task, TUNED), final(frame, task, RANDOM)
        for agent in (RUSSO, CLIPPED, TUNED, BOUNDED, "UCBVI", "PSRL"):
            theirs = carried(frame, task, agent)
            ratio, share = paired_ratio(theirs, ours), paired_ratio(theirs, chance)
            words = f"{agent} has {ratio} times RLSVI's regret, {task}"
            scale = told_scale(agent, best_scale(frame, DIRICHLET, agent))
            cells = (task if agent == RUSSO else "", agent, scale, f"{share}", f"{ratio}")
            rows.append((at_least(ratio, 2.0, words) if agent in (RUSSO, CLIPPED) else None, cells))
    headings = ("problem", "agent", "best scale on random MDPs", "regret over random play's", "over RLSVI's")
    return worst_of(headings, rows)


@claim(
    "Clipping lowers the regret, if the noise is chosen for the problem",
    "section 5; Agrawal et al. (2021), Theorem 1",
    kind="ours",
)
def clipping_helps(frame: pl.DataFrame) -> Verdict:
    """On every problem the clipped agent has a lower regret than Russo's noise gives, each at its best scale."""
    rows = list[Part]()
    for task in PROBLEMS:
        unclipped, chance = tuned(frame, task, RUSSO), final(frame, task, RANDOM)
        for agent in (RUSSO, CLIPPED, TUNED, BOUNDED, "UCBVI", "PSRL"):
            theirs = tuned(frame, task, agent)
            ratio, share = paired_ratio(theirs, unclipped), paired_ratio(theirs, chance)
            words = f"clipped has {ratio} times the regret with Russo's noise, {task}"
            scale = told_scale(agent, best_scale(frame, task, agent))
            cells = (task if agent == RUSSO else "", agent, scale, f"{share}", f"{ratio}")
            rows.append((at_most(ratio, 1.0, words) if agent == CLIPPED else None, cells))
    return worst_of(("problem", "agent", "best scale", "regret over random play's", "over Russo's"), rows)


@claim("Bounded targets change little, with a table and a good σ", "section 5", kind="ours")
def bounded_alike(frame: pl.DataFrame) -> Verdict:
    """On every problem the regret of RLSVI with bounded targets is within a factor of 1.5 of that of RLSVI, each
    with the σ that is best on random MDPs.
    """
    rows = list[Part]()
    for task in PROBLEMS:
        ratio = paired_ratio(carried(frame, task, BOUNDED), carried(frame, task, TUNED))
        words = f"bounded targets have {ratio} times RLSVI's regret, {task}"
        rows.append((between(ratio, 1 / 1.5, 1.5, words), (task, f"{ratio}")))
    return worst_of(("problem", "regret of bounded targets over RLSVI's"), rows)


def draw(frame: pl.DataFrame) -> Picture:
    """The regret of all agents at all scales, over that of random play, on each problem."""
    figure, axes = panels(len(PROBLEMS), 4.6)
    for place, task in zip(axes, PROBLEMS, strict=True):
        _scales(place, frame, task)
    axes[0].set_ylim(top=10.0)
    legend(axes[0], loc="upper left", ncols=2)
    return figure


def _scales(axes: Axes, frame: pl.DataFrame, task: str) -> None:
    chance = final(frame, task, RANDOM).mean()
    for i, agent in enumerate((RUSSO, CLIPPED, TUNED, BOUNDED, "UCBVI")):
        axes.plot(SCALES[agent], at_all_scales(frame, task, agent).mean(axis=1) / chance, **style(i), label=agent)
    for agent, dashes in (("PSRL", "--"), (THEOREM, ":")):
        axes.axhline(final(frame, task, agent).mean() / chance, color=INK, linestyle=dashes, label=agent)
    labelled(axes, "scale", "regret over that of random play", task, **LOGARITHMIC)


FIGURE = Figure.of(
    __name__,
    title="Noise for the worst case",
    where="section 5",
    caption=(
        "Regret over that of random play against the scale: 1 is what the worst-case bounds of Russo (2019), of "
        "Agrawal et al. (2021, clipped) and of UCBVI need, and for RLSVI, with λ = 1, with and without bounded "
        "targets, the scale is σ. Random MDPs have 5 states, 3 actions and 5 periods, the chain 10 states, and "
        "RiverSwim 6 states and 20 periods; lines across are PSRL and RLSVI with the λ and σ of Theorem 1."
    ),
    quick={"episodes": 2000, "seeds": 10},
    paper={"episodes": 10_000, "seeds": 30},
)
