"""The recommendation engine: RLSVI against bandits and against the optimal myopic policy."""

from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure as Picture

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Claim, Verdict, all_of, at_least, at_most, exactly, spoken
from rlsvi.paper.drawing import averaged, from_zero, labelled, legend, panels
from rlsvi.paper.figure import Figure
from rlsvi.paper.recommending import DISLIKES, LIKES, at_the_end, compared, curves_of, final, jobs_of, rates
from rlsvi.paper.recsys_boltzmann import facts, outcomes
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS, LINES
from rlsvi.study.statistics import Interval, bootstrap

AGENTS = ("RLSVI", "linear bandit", "linear bandit, pooled", "Thompson", "myopic")
BANDITS = ("linear bandit", "linear bandit, pooled", "Thompson")
SMOOTH = 5  # points of a curve whose mean rate is looked at


def jobs(episodes: int, runs: int, seeds: int) -> list[Job]:
    """All agents on `seeds` instances, in both codings."""
    return jobs_of(AGENTS, [LIKES, DISLIKES], episodes, runs, seeds)


def less_at_the_end(frame: pl.DataFrame, others: tuple[str, ...], coding: str = LIKES) -> Verdict:
    """RLSVI's regret an episode at the end as a share of that of others."""
    ours = at_the_end(frame, "RLSVI", coding)
    verdicts = []
    for name in others:
        theirs = at_the_end(frame, name, coding if name != "myopic" else LIKES)
        share = compared(ours, theirs)
        verdicts.append(at_most(share, 1.0, f"{name}: {spoken(theirs, 3)}, of which {share}"))
    decided = all_of(*verdicts)
    return decided._replace(measured=f"RLSVI: {spoken(ours, 3)} an episode in the end; {decided.measured}")


def thompson_learns_little(frame: pl.DataFrame) -> Verdict:
    """Thompson sampling's regret an episode at the end, as a share of what it was at first."""
    _, rate = rates(frame, "Thompson")
    twelfth = max(rate.shape[1] // 12, 1)
    share = compared(at_the_end(frame, "Thompson"), rate[:, :twelfth].mean(axis=1))
    return at_least(share, 0.9, f"its regret an episode is in the end {share} of what it was at first")


def bandit_is_better_at_first(frame: pl.DataFrame) -> Verdict:
    """The regret of the first twelfth of the episodes."""
    verdicts = []
    ours = _early(frame, "RLSVI")
    for name in BANDITS[:2]:
        theirs = _early(frame, name)
        share = compared(theirs, ours)
        verdicts.append(at_most(share, 1.0, f"{name}: {spoken(theirs)}, {share} of RLSVI's"))
    decided = all_of(*verdicts)
    return decided._replace(measured=f"RLSVI: {spoken(ours)} over the first twelfth; {decided.measured}")


def _early(frame: pl.DataFrame, name: str) -> Floats:
    _, regret = curves_of(frame, name)
    return regret[:, max(regret.shape[1] // 12, 1) - 1]


def overtakes(frame: pl.DataFrame) -> Verdict:
    """When RLSVI's regret an episode falls below that of the others for good, with intervals."""
    at, _ = curves_of(frame, "RLSVI")
    verdicts = []
    for name in ("linear bandit", "linear bandit, pooled", "myopic"):
        when = crossing(frame, name)
        verdicts.append(at_most(when, float(at[-1]), f"{name} from customer {when} on"))
    cumulative = compared(final(frame, "RLSVI"), final(frame, "myopic"))
    decided = all_of(*verdicts)
    words = f"RLSVI's regret an episode is below that of {decided.measured}"
    return decided._replace(measured=f"{words}; all its regret is {cumulative} of myopic's")


def crossing(frame: pl.DataFrame, other: str) -> Interval:
    """The episode from which on RLSVI's regret an episode, smoothed, is lower in the mean over instances."""
    middle, ours = rates(frame, "RLSVI")
    _, theirs = rates(frame, other)
    width = min(SMOOTH, len(middle))
    kernel = np.ones(width) / width

    def when(drawn: Floats) -> float:
        i = drawn.astype(np.int64)
        lead = np.convolve(theirs[i].mean(axis=0) - ours[i].mean(axis=0), kernel, "valid")
        behind = np.flatnonzero(lead <= 0)
        first = behind[-1] + 1 if len(behind) else 0
        return float(middle[first + width // 2]) if first < len(lead) else np.inf

    return bootstrap(when, np.arange(float(len(ours))))


def fixed_orders(frame: pl.DataFrame) -> Verdict:
    """What an order of products that ignores answers earns, exactly."""
    worth = frame["fixed_order"].to_numpy()
    off = float(np.abs(worth - 2.5).max())
    return exactly(
        off < 1e-9,
        f"any fixed order earns 2.5 likes, to {off:.0e}; the optimum is {spoken(frame['best'].to_numpy(), 3)}",
    )


def draw(frame: pl.DataFrame) -> Picture:
    """Regret a customer and cumulative regret, mean and standard error over instances, in both codings."""
    figure, axes = panels(2, 4.0, rows=2)
    for row, coding in enumerate((LIKES, DISLIKES)):
        left, right = axes[2 * row : 2 * row + 2]
        for index, name in enumerate(AGENTS):
            line: Any = LINES[index % len(LINES)]
            own = coding if name != "myopic" else LIKES
            averaged(left, *rates(outcomes(frame), name, own), name, COLOURS[index], line)
            averaged(right, *curves_of(outcomes(frame), name, own), name, COLOURS[index], line)
        labelled(left, "customers", "regret a customer", f"rewards {{{coding}}}")
        labelled(right, "customers", "cumulative regret", "")
    legend(axes[1], loc="upper left")
    from_zero(axes)
    return figure


FIGURE = Figure(
    name="recsys-myopic",
    title="Recommendations: RLSVI, bandits and the optimal myopic policy",
    where="section 6.3, figure 9",
    caption=(
        "Regret of RLSVI, of linear contextual bandits (a regression a slot as in the paper, or one for all), "
        "of Bernoulli Thompson sampling, and of the optimal myopic policy, which knows the truth but looks one "
        "step ahead: N = 10 products, J = 5 slots, c = 2, lambda = .2, sigma^2 = .001; mean and standard error "
        "over problem instances."
    ),
    sizes={
        "quick": {"episodes": 300, "runs": 1, "seeds": 5},
        "paper": {"episodes": 1200, "runs": 10, "seeds": 100},
    },
    jobs=jobs,
    claims=[
        Claim(
            "RLSVI is able to outperform even the optimal myopic policy",
            "section 6.3",
            "its regret an episode over the last 100 is lower",
            lambda frame: less_at_the_end(frame, ("myopic",)),
            outcomes,
        ),
        Claim(
            "RLSVI is able to outperform benchmark bandit algorithms",
            "section 6.3",
            "its regret an episode over the last 100 is lower than that of each",
            lambda frame: less_at_the_end(frame, BANDITS),
            outcomes,
        ),
        Claim(
            "RLSVI outperforms bandits and the optimal myopic policy: if rewards are coded -1 and 0 (our "
            "extension)",
            "section 6.3",
            "its regret an episode over the last 100 is lower than that of each",
            lambda frame: less_at_the_end(frame, (*BANDITS, "myopic"), DISLIKES),
            outcomes,
        ),
        Claim(
            "Bernoulli Thompson sampling does not learn much even after 1200 episodes",
            "section 6.3",
            "its regret an episode over the last 100 is at least .9 of that over the first 100",
            thompson_learns_little,
            outcomes,
        ),
        Claim(
            "It does not, since it does not take context into account",
            "section 6.3",
            "whatever order of products it learns, none earns more than random play, exactly",
            fixed_orders,
            facts,
        ),
        Claim(
            "The linear contextual bandit outperforms RLSVI at first",
            "section 6.3",
            "its regret over the first twelfth of the episodes is lower, in both its forms",
            bandit_is_better_at_first,
            outcomes,
        ),
        Claim(
            "As more data is gathered RLSVI eventually learns a richer policy, which outperforms the myopic "
            "policy",
            "section 6.3",
            "from some episode on, with an interval that ends before the last, its regret an episode is lower",
            overtakes,
            outcomes,
        ),
    ],
    draw=draw,
)
