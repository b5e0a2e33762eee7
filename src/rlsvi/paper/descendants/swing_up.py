"""Swing-up of a cart and pole: how often the reward is found, against how sparse it is.

The pole hangs down, and pushing the cart costs. Only a step with the pole above some height pays: the higher, the
longer the series of pushes that leads there, and the sooner a learner that dithers concludes that pushing is bad.
"""

from typing import Any

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Part, Verdict, at_least, claim, worst_of
from rlsvi.paper.descendants.swing_up_runs import DEFAULT, DITHERING, GREEDY, NOISY, swung
from rlsvi.paper.drawing import DOTTED, Picture, labelled, legend, panels, style
from rlsvi.paper.figure import Figure
from rlsvi.paper.results import cells, having, rows_where
from rlsvi.study.job import Job
from rlsvi.study.statistics import Interval, mean, proportion, ratio

COST = 0.1  # of a push, as in the behaviour suite
PLAYERS = [(NOISY, COST), (DITHERING, COST), (DEFAULT, COST), (DEFAULT, 0.0), (GREEDY, COST)]
WHERE = "section 7; Osband et al. (2019)"
LEAST = 1e-9  # by which more is more than as much
UPPER = 0.5  # the height up to which the default agent is to find the reward if pushes are free
HEADINGS = "height", "runs that find it"


def jobs(heights: list[float], episodes: int, seeds: int) -> list[Job]:
    """All agents at all heights, the default agent also with free pushes; greedy actions at the first alone."""
    return [
        Job.of(swung, 0.1 * episodes, agent=agent, height=height, push_cost=cost, episodes=episodes, seed=seed)
        for agent, cost in PLAYERS
        for height in (heights[:1] if agent == GREEDY else heights)
        for seed in range(seeds)
    ]


def shares(frame: pl.DataFrame, agent: str, cost: float = COST, value: str = "rewarded") -> dict[float, Floats]:
    """The share of rewarded episodes, or another value, of the runs of an agent, by the height."""
    return cells(having(frame, agent=agent, push_cost=cost), "height", value=value)


def finders(found: dict[float, Floats]) -> tuple[int, int, list[tuple[str, str]]]:
    """How many runs find the reward in some episode, of how many, and the same for every height."""
    counts = {height: (int((share > 0).sum()), len(share)) for height, share in found.items()}
    rows = [(f"{height:g}", f"{some} of {runs}") for height, (some, runs) in counts.items()]
    return sum(some for some, _ in counts.values()), sum(runs for _, runs in counts.values()), rows


def share_of(values: Floats) -> Interval:
    """The mean of shares of episodes, with the part of its interval that lies in [0, 1]."""
    found = mean(values)
    return Interval(found.value, max(found.low, 0.0), min(found.high, 1.0))


def shown(interval: Interval) -> str:
    """A mean and its interval."""
    return f"{interval.value:.3g} ({interval.low:.3g} to {interval.high:.3g})"


@claim(
    "Where pushing is free, the default agent finds the reward",
    WHERE,
    rows_where(agent=DEFAULT, push_cost=0.0),
    kind="ours",
)
def free(frame: pl.DataFrame) -> Verdict:
    """At least half of its runs at heights up to .5 have the pole up in some step."""
    found = shares(frame, DEFAULT, 0.0)
    some, runs, _ = finders({height: share for height, share in found.items() if height <= UPPER})
    verdict = at_least(proportion(some, runs), 0.5, f"{some} of {runs} runs up to a height of {UPPER} find it")
    return verdict._replace(table=(HEADINGS, *finders(found)[2]))


@claim("Noise of a suitable size finds the reward more often than dithering or greed", WHERE, kind="ours")
def noise(frame: pl.DataFrame) -> Verdict:
    """RLSVI with σ = 1 has it in more episodes, on average over all heights, than ε-greedy actions with the same
    basis, ridge and bounds, and at the lowest height than greedy ones.
    """
    ours, rows = shares(frame, NOISY), list[Part]()
    for agent in (DITHERING, GREEDY):
        theirs = shares(frame, agent)
        for height, found in theirs.items() if len(theirs) > 1 else ():
            rows.append((None, (agent, f"{height:g}", shown(share_of(ours[height])), shown(share_of(found)), "")))
        pooled = [np.mean([found[height] for height in theirs], axis=0) for found in (ours, theirs)]
        where = "all" if len(theirs) > 1 else f"{min(theirs):g}"
        share = ratio(*pooled)
        row = (agent, where, *(shown(share_of(values)) for values in pooled), f"{share}")
        rows.append((at_least(share, 1.0 + LEAST, f"{share} times as many episodes as {agent}"), row))
    return worst_of(("compared with", "height", "RLSVI, σ = 1", "other", "ratio"), rows)


@claim("RLSVI finds the sparsest reward", WHERE, rows_where(agent=NOISY), kind="ours")
def sparsest(frame: pl.DataFrame) -> Verdict:
    """With σ = 1, at least half of the runs at the greatest height have the pole up in some step."""
    found = shares(frame, NOISY)
    height = max(found)
    some, runs, _ = finders({height: found[height]})
    verdict = at_least(proportion(some, runs), 0.5, f"{some} of {runs} runs find it at a height of {height:g}")
    return verdict._replace(table=(HEADINGS, *finders(found)[2]))


@claim("What RLSVI finds is worth its pushes", WHERE, rows_where(agent=NOISY), kind="ours")
def worth(frame: pl.DataFrame) -> Verdict:
    """With σ = 1, the mean return of the last third of the episodes is above 0, that of doing nothing, at every
    height.
    """
    late, up, rows = shares(frame, NOISY, value="late"), shares(frame, NOISY, value="up"), list[Part]()
    for height, values in late.items():
        found = mean(values)
        row = (f"{height:g}", shown(found), shown(mean(up[height])))
        rows.append((at_least(found, LEAST, f"a return of {shown(found)} at a height of {height:g}"), row))
    return worst_of(("height", "return, last third", "steps up, all episodes"), rows)


def lines(axes: Any, frame: pl.DataFrame, value: str) -> None:
    """A line of means with its band for every agent."""
    average = share_of if value == "rewarded" else mean
    for index, (agent, cost) in enumerate(PLAYERS):
        found = {height: average(values) for height, values in shares(frame, agent, cost, value).items()}
        middle, low, high = np.array([(it.value, it.low, it.high) for it in found.values()]).T
        if np.isfinite(low).all():
            axes.fill_between(list(found), low, high, color=style(index)["color"], alpha=0.2, linewidth=0)
        label = agent if cost else f"{agent}, free pushes"
        axes.plot(list(found), middle, marker="o", markersize=4, **style(index), label=label)


def draw(frame: pl.DataFrame) -> Picture:
    """The share of rewarded episodes, and the mean return, against the height."""
    figure, both = panels(2, height=4.8)
    names = {"rewarded": "share of episodes with the pole up", "late": "mean return, last third of episodes"}
    for axes, (value, name) in zip(both, names.items(), strict=True):
        lines(axes, frame, value)
        labelled(axes, "height above which the pole is up, cos θ", name)
    both[0].set(ylim=(0, None))
    both[1].axhline(0.0, **DOTTED)
    legend(both[0], loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)
    return figure


FIGURE = Figure.of(
    __name__,
    title="Swing-up of a cart and pole",
    where="section 7",
    caption=(
        "A task after Osband et al. (2019), with a reward only while the pole is above a height, slow, and the "
        "cart near the middle, and a cost of .1 for a push. Lines are means over runs of how often the reward is "
        "found and of the return, bands 95% intervals; the agents were tuned at a height of .5 on other seeds."
    ),
    quick={"heights": [0.0, 0.95], "episodes": 12, "seeds": 3},
    paper={"heights": [0.0, 0.5, 0.95], "episodes": 100, "seeds": 20},
)
