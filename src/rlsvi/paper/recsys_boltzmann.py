"""The recommendation engine: RLSVI against LSVI with Boltzmann exploration."""

import numpy as np
import polars as pl
from matplotlib.figure import Figure as Picture

from rlsvi.paper.claim import Claim, Verdict, all_of, at_least, exactly, spoken
from rlsvi.paper.drawing import averaged, from_zero, labelled, legend, panels
from rlsvi.paper.figure import Figure
from rlsvi.paper.recommending import (
    DISLIKES,
    EPSILON,
    LIKES,
    PRODUCTS,
    SLOTS,
    TEMPERATURES,
    boltzmann,
    compared,
    curves_of,
    final,
    jobs_of,
    rates,
)
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS, LINES
from rlsvi.study.statistics import bootstrap, proportion

AGENTS = ("RLSVI", *(boltzmann(eta) for eta in TEMPERATURES), "greedy", "epsilon-greedy")
CODINGS = (LIKES, DISLIKES)


def jobs(episodes: int, runs: int, seeds: int) -> list[Job]:
    """All agents, both codings, on `seeds` instances."""
    return jobs_of(AGENTS, CODINGS, episodes, runs, seeds)


def outcomes(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of the agents."""
    return frame.filter(pl.col("agent").is_not_null())


def facts(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of the instances."""
    return frame.filter(pl.col("best").is_not_null())


def more_efficient(frame: pl.DataFrame, coding: str, factor: float) -> Verdict:
    """The regret of each temperature as a multiple of RLSVI's."""
    ours = final(frame, "RLSVI", coding)
    verdicts = []
    for eta in TEMPERATURES:
        theirs = final(frame, boltzmann(eta), coding)
        more = compared(theirs, ours)
        verdicts.append(at_least(more, factor, f"eta = {eta:g}: {spoken(theirs)}, {more} times"))
    others = ", ".join(
        f"{name} LSVI: {spoken(final(frame, name, coding))}" for name in ("greedy", "epsilon-greedy")
    )
    decided = all_of(*verdicts)
    return decided._replace(measured=f"RLSVI: {spoken(ours)}; {decided.measured}; {others}")


def on_every_instance(frame: pl.DataFrame) -> Verdict:
    """The share of instances on which RLSVI's regret is below that of every temperature."""
    ours = final(frame, "RLSVI")
    best = np.min([final(frame, boltzmann(eta)) for eta in TEMPERATURES], axis=0)
    share = proportion(int((ours < best).sum()), len(ours))
    return at_least(
        share, 0.9, f"on {(ours < best).sum()} of {len(ours)} instances RLSVI's regret is below all of them"
    )


def states(frame: pl.DataFrame) -> Verdict:
    """The number of states that are not terminal."""
    count = int(frame["states"][0])
    return exactly(count == 4521, f"{count}: histories of at most {SLOTS - 1} of {PRODUCTS} products")


def printed_states(frame: pl.DataFrame) -> Verdict:
    """3^J against the number of states."""
    count = int(frame["states"][0])
    return exactly(
        3**SLOTS == count, f"3^J = {3**SLOTS}, but there are sum_j C(N, j) 2^j = {count}, exponential in J too"
    )


def smaller(frame: pl.DataFrame) -> Verdict:
    """K against the number of states."""
    K, count = PRODUCTS**2 + PRODUCTS, int(frame["states"][0])
    return exactly(K < count, f"K = {K}, {count} states; K does not depend on J")


def agnostic(frame: pl.DataFrame) -> Verdict:
    """What the basis leaves out of Q*, on the instance where it is least."""
    misfit = frame["misfit"].to_numpy()
    least = bootstrap(np.min, misfit)
    return at_least(
        least, 1e-6, f"the basis leaves out {spoken(misfit, 3)} of Q* in the 2-norm, at least {misfit.min():.3f}"
    )


def draw(frame: pl.DataFrame) -> Picture:
    """Cumulative regret and regret a customer, mean and standard error over instances, in both codings."""
    figure, axes = panels(2, 4.0, rows=2)
    for column, coding in enumerate(CODINGS):
        above, below = axes[column], axes[column + 2]
        for index, name in enumerate(AGENTS):
            colour = "#000000" if name == "RLSVI" else COLOURS[(index - 1) % 6]
            line = "-" if name == "RLSVI" else LINES[1 + (index - 1) // 6]
            averaged(above, *curves_of(outcomes(frame), name, coding), name, colour, line)
            averaged(below, *rates(outcomes(frame), name, coding), name, colour, line)
        labelled(above, "customers", "cumulative regret", f"rewards {{{coding}}}")
        labelled(below, "customers", "regret a customer", "")
    legend(axes[0], loc="upper left")
    from_zero(axes)
    return figure


FIGURE = Figure(
    name="recsys-boltzmann",
    title="Recommendations: RLSVI and Boltzmann exploration",
    where="section 6.3, figure 8",
    caption=(
        "Cumulative regret of RLSVI (lambda = .2, sigma^2 = .001) and of LSVI (lambda = .2) with Boltzmann "
        f"exploration at six temperatures, greedy and with epsilon = {EPSILON:g}: N = 10 products, J = 5 slots, "
        "c = 2; mean and standard error over problem instances, several runs each; below, a customer. Left: a "
        "like pays 1 and a dislike 0, as in the paper. Right: a like pays 0 and a dislike -1, the same "
        "problem, in which a first guess of zero is optimistic."
    ),
    sizes={
        "quick": {"episodes": 300, "runs": 1, "seeds": 5},
        "paper": {"episodes": 1200, "runs": 10, "seeds": 100},
    },
    jobs=jobs,
    claims=[
        Claim(
            "RLSVI explores much more efficiently than Boltzmann exploration over a wide range of temperatures",
            "section 6.3",
            "the regret of every temperature is at least twice that of RLSVI (rewards 0 and 1)",
            lambda frame: more_efficient(frame, LIKES, 2.0),
            outcomes,
        ),
        Claim(
            "RLSVI clearly outperforms LSVI with Boltzmann exploration: on single instances",
            "section 6.3",
            "its regret is below that of all temperatures on at least nine of ten instances (rewards 0 and 1)",
            on_every_instance,
            outcomes,
        ),
        Claim(
            "RLSVI clearly outperforms LSVI with Boltzmann exploration: if rewards are coded -1 and 0 (our "
            "extension)",
            "section 6.3",
            "the regret of every temperature is larger than that of RLSVI (rewards -1 and 0)",
            lambda frame: more_efficient(frame, DISLIKES, 1.0),
            outcomes,
        ),
        Claim("Such problems have 4521 states", "section 6.3", "counted", states, facts),
        Claim("The number of states is 3^J", "section 6.3", "counted", printed_states, facts),
        Claim(
            "The dimension K = N^2 + N is exponentially smaller than the number of states",
            "section 6.3",
            "K is smaller, and does not grow with J",
            smaller,
            facts,
        ),
        Claim(
            "Barring a freak event, this basis leads to an agnostic learning problem",
            "section 6.3",
            "Q* is not in its span on any instance",
            agnostic,
            facts,
        ),
    ],
    draw=draw,
)
