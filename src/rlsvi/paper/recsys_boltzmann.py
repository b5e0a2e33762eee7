"""The recommendation engine: RLSVI against LSVI with Boltzmann exploration."""

import numpy as np
import polars as pl
from matplotlib.figure import Figure as Picture

from rlsvi.mdp.recommendation import count_histories
from rlsvi.paper.claim import Claim, Verdict, all_of, at_least, at_most, exactly, spoken
from rlsvi.paper.drawing import averaged, from_zero, labelled, legend, panels
from rlsvi.paper.figure import Figure
from rlsvi.paper.recommending import (
    DISLIKES,
    EPSILON,
    LIKES,
    PRODUCTS,
    SLOTS,
    TABLE,
    TEMPERATURES,
    at_the_end,
    boltzmann,
    compared,
    curves_of,
    final,
    jobs_of,
    rates,
    remaining,
)
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS, LINES
from rlsvi.study.statistics import bootstrap, proportion

DITHERING = (*(boltzmann(eta) for eta in TEMPERATURES), "epsilon-greedy")
AGENTS = ("RLSVI", *DITHERING, "greedy", TABLE)
LEARNED = 0.05  # of the optimal reward is the most that an agent loses which has learned to play
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


def learns_the_optimum(frame: pl.DataFrame) -> Verdict:
    """What RLSVI and dithering lose in the end, as a share of the optimal reward."""
    best, played = facts(frame).sort("seed")["best"].to_numpy(), outcomes(frame)
    ours = compared(at_the_end(played, "RLSVI"), best)
    verdicts = [at_most(ours, LEARNED, f"RLSVI loses {ours} of the optimal reward in the end")]
    for name in DITHERING:
        theirs = compared(at_the_end(played, name), best)
        verdicts.append(at_least(theirs, LEARNED, f"{name}: {theirs}"))
    return all_of(*verdicts)


def generalisation_is_crucial(frame: pl.DataFrame) -> Verdict:
    """How much of its first regret an episode RLSVI still has in the end, with its basis and with a table."""
    ours, tabular = remaining(frame, "RLSVI"), remaining(frame, TABLE)
    episodes = int(frame["episodes"][0])
    return all_of(
        at_most(
            ours, 0.5, f"after {episodes} episodes RLSVI's regret an episode is {ours} of what it was at first"
        ),
        at_least(tabular, 0.5, f"with a table {tabular}"),
    )


def both_are_crucial(frame: pl.DataFrame) -> Verdict:
    """Regret an episode in the end without generalisation, and without exploration."""
    ours = at_the_end(frame, "RLSVI")
    verdicts = []
    for name, without in ((TABLE, "generalisation (a table)"), ("greedy", "exploration (greedy LSVI)")):
        theirs = at_the_end(frame, name)
        more = compared(theirs, ours)
        verdicts.append(at_least(more, 2.0, f"without {without}: {spoken(theirs, 3)}, {more} times"))
    decided = all_of(*verdicts)
    return decided._replace(measured=f"RLSVI: {spoken(ours, 3)} an episode in the end; {decided.measured}")


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
    """By what the number of states over K is multiplied with every further slot and two further products.

    With J out of 2 J products K grows as J^2. If a slot multiplies states / K by ever more, their growth is
    exponential at least; that of a power of J would be multiplied by ever less.
    """
    slots = np.arange(2, 2 * SLOTS + 1)
    K = 4 * slots**2 + 2 * slots
    shares = np.array([count_histories(2 * int(J), int(J)) for J in slots]) / K
    times = shares[1:] / shares[:-1]
    words = (
        f"K = {PRODUCTS**2 + PRODUCTS}, {int(frame['states'][0])} states; J out of 2 J products: a slot more has"
    )
    grows = bool(times[0] > 1 and (np.diff(times) > 0).all())
    return exactly(
        grows, f"{words} {times[0]:.1f} times as many states / K at J = 2, {times[-1]:.1f} at {slots[-2]}"
    )


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
        for index, name in enumerate(AGENTS if coding == LIKES else AGENTS[:-1]):
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
        f"exploration at six temperatures, with epsilon = {EPSILON:g} and greedy, and of RLSVI with a table: N "
        "= 10 products, J = 5 slots, c = 2; mean and standard error over problem instances, several runs each; "
        "below, a customer. Left: a like pays 1 and a dislike 0, as in the paper. Right: a like pays 0 and a "
        "dislike -1, the same problem, in which a first guess of zero is optimistic."
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
        Claim(
            "RLSVI learns this optimal strategy when dithering strategies do not",
            "section 6",
            "over the last 100 episodes RLSVI loses at most a twentieth of the optimal reward, every temperature "
            "and epsilon-greedy more (rewards 0 and 1)",
            learns_the_optimum,
        ),
        Claim(
            "To learn in time less than |S| it is crucial that we can exploit generalization between states",
            "section 6.3",
            "in fewer episodes than there are states RLSVI's regret an episode falls by half, with a table it "
            "does not",
            generalisation_is_crucial,
            outcomes,
        ),
        Claim(
            "In some settings, efficient generalization and exploration can be crucial",
            "section 6.3",
            "without either, regret an episode over the last 100 is at least twice as large (rewards 0 and 1)",
            both_are_crucial,
            outcomes,
        ),
        Claim("Such problems have 4521 states", "section 6.3", "counted", states, facts),
        Claim("The number of states is 3^J", "section 6.3", "counted", printed_states, facts),
        Claim(
            "The dimension K = N^2 + N is exponentially smaller than the number of states",
            "section 6.3",
            "with J out of 2 J products, every further slot multiplies states / K by more than the one before",
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
