"""The recommendation engine: RLSVI against LSVI with Boltzmann exploration."""

from functools import partial

import numpy as np
import polars as pl

from rlsvi.mdp.recommendation import count_histories
from rlsvi.paper.claim import Verdict, Verdicts, all_of, at_least, at_most, claim, exactly, mean_se
from rlsvi.paper.drawing import Picture, averaged, from_zero, labelled, legend, panels
from rlsvi.paper.figure import Figure
from rlsvi.paper.recommendation import experiments, losses
from rlsvi.paper.recommendation.experiments import EPSILON, LIKES, PRODUCTS, SLOTS, TABLE, TEMPERATURES, boltzmann
from rlsvi.paper.recommendation.losses import of_agents, of_instances, of_play, of_problems
from rlsvi.study.means import paired_ratio
from rlsvi.study.plot import COLOURS, LINES
from rlsvi.study.statistics import bootstrap, proportion

DITHERING = (*(boltzmann(eta) for eta in TEMPERATURES), "epsilon-greedy")
AGENTS = ("RLSVI", *DITHERING, "greedy", TABLE)
LEARNED = 0.05  # of the optimal reward is the most that an agent loses which has learned to play
jobs = partial(experiments.jobs_of, AGENTS)


def more_efficient(frame: pl.DataFrame, coding: str, factor: float) -> Verdicts:
    """The regret of each temperature as a multiple of RLSVI's."""
    ours = losses.final(frame, "RLSVI", coding)
    yield f"RLSVI: {mean_se(ours)}"
    for eta in TEMPERATURES:
        theirs = losses.final(frame, boltzmann(eta), coding)
        more = paired_ratio(theirs, ours)
        yield at_least(more, factor, f"eta = {eta:g}: {mean_se(theirs)}, {more} times")
    greedy, epsilon = (mean_se(losses.final(frame, name, coding)) for name in ("greedy", "epsilon-greedy"))
    yield f"greedy LSVI: {greedy}, epsilon-greedy LSVI: {epsilon}"


@of_play("RLSVI explores much more efficiently than Boltzmann exploration over a wide range of temperatures")
def explores_more_efficiently(frame: pl.DataFrame) -> Verdicts:
    """The regret of every temperature is at least twice that of RLSVI (rewards 0 and 1)."""
    return more_efficient(frame, LIKES, 2.0)


@of_play("RLSVI clearly outperforms LSVI with Boltzmann exploration: on single instances")
def on_every_instance(frame: pl.DataFrame) -> Verdict:
    """Its regret is below that of all temperatures on at least nine of ten instances (rewards 0 and 1)."""
    ours = losses.final(frame, "RLSVI")
    best = np.min([losses.final(frame, boltzmann(eta)) for eta in TEMPERATURES], axis=0)
    share = proportion(int((ours < best).sum()), len(ours))
    words = f"on {(ours < best).sum()} of {len(ours)} instances RLSVI's regret is below all of them"
    return at_least(share, 0.9, words)


@of_play(
    "RLSVI clearly outperforms LSVI with Boltzmann exploration: if rewards are coded -1 and 0 (our extension)"
)
def better_with_other_rewards(frame: pl.DataFrame) -> Verdicts:
    """The regret of every temperature is larger than that of RLSVI (rewards -1 and 0)."""
    return more_efficient(frame, experiments.DISLIKES, 1.0)


@claim("RLSVI learns this optimal strategy when dithering strategies do not", "section 6")
def learns_the_optimum(frame: pl.DataFrame) -> Verdicts:
    """Over the last 100 episodes RLSVI loses at most a twentieth of the optimal reward, every temperature and
    epsilon-greedy more (rewards 0 and 1).
    """
    best, played = of_instances(frame).sort("seed")["best"].to_numpy(), of_agents(frame)
    ours = paired_ratio(losses.at_the_end(played, "RLSVI"), best)
    yield at_most(ours, LEARNED, f"RLSVI loses {ours} of the optimal reward in the end")
    for name in DITHERING:
        theirs = paired_ratio(losses.at_the_end(played, name), best)
        yield at_least(theirs, LEARNED, f"{name}: {theirs}")


@of_play("To learn in time less than |S| it is crucial that we can exploit generalization between states")
def generalisation_is_crucial(frame: pl.DataFrame) -> Verdict:
    """In fewer episodes than there are states RLSVI's regret an episode falls by half, with a table it does
    not.
    """
    ours, tabular = losses.remaining(frame, "RLSVI"), losses.remaining(frame, TABLE)
    words = f"after {frame['episodes'][0]} episodes RLSVI's regret an episode is {ours} of what it was at first"
    return all_of(at_most(ours, 0.5, words), at_least(tabular, 0.5, f"with a table {tabular}"))


@of_play("In some settings, efficient generalization and exploration can be crucial")
def both_are_crucial(frame: pl.DataFrame) -> Verdicts:
    """Without either, regret an episode over the last 100 is at least twice as large (rewards 0 and 1)."""
    ours = losses.at_the_end(frame, "RLSVI")
    yield f"RLSVI: {mean_se(ours, 3)} an episode in the end"
    for name, without in ((TABLE, "generalisation (a table)"), ("greedy", "exploration (greedy LSVI)")):
        theirs = losses.at_the_end(frame, name)
        more = paired_ratio(theirs, ours)
        yield at_least(more, 2.0, f"without {without}: {mean_se(theirs, 3)}, {more} times")


@of_problems("Such problems have 4521 states")
def states(frame: pl.DataFrame) -> Verdict:
    """Counted."""
    count = int(frame["states"][0])
    return exactly(count == 4521, f"{count}: histories of at most {SLOTS - 1} of {PRODUCTS} products")


@of_problems("The number of states is 3^J")
def printed_states(frame: pl.DataFrame) -> Verdict:
    """Counted."""
    count = int(frame["states"][0])
    words = f"3^J = {3**SLOTS}, but there are sum_j C(N, j) 2^j = {count}, exponential in J too"
    return exactly(3**SLOTS == count, words)


@of_problems("The dimension K = N^2 + N is exponentially smaller than the number of states")
def smaller(frame: pl.DataFrame) -> Verdict:
    """With J out of 2 J products, every further slot multiplies states / K by more than the one before."""
    slots = np.arange(2, 2 * SLOTS + 1)
    K = 4 * slots**2 + 2 * slots
    shares = np.array([count_histories(2 * int(J), int(J)) for J in slots]) / K
    times = shares[1:] / shares[:-1]
    words = f"K = {PRODUCTS**2 + PRODUCTS}, {frame['states'][0]} states; J out of 2 J products: a slot more has"
    more = f"{times[0]:.1f} times as many states / K at J = 2, {times[-1]:.1f} at {slots[-2]}"
    return exactly(bool(times[0] > 1 and (np.diff(times) > 0).all()), f"{words} {more}")


@of_problems("Barring a freak event, this basis leads to an agnostic learning problem")
def agnostic(frame: pl.DataFrame) -> Verdict:
    """Q* is not in its span on any instance."""
    misfit = frame["misfit"].to_numpy()
    words = f"the basis leaves out {mean_se(misfit, 3)} of Q* in the 2-norm, at least {misfit.min():.3f}"
    return at_least(bootstrap(np.min, misfit), 1e-6, words)


def draw(frame: pl.DataFrame) -> Picture:
    """Cumulative regret and regret a customer, mean and standard error over instances, in both codings."""
    figure, axes = panels(2, 4.0, rows=2)
    for column, coding in enumerate(experiments.CODINGS):
        above, below = axes[column], axes[column + 2]
        for index, name in enumerate(AGENTS if coding == LIKES else AGENTS[:-1]):
            colour = "#000000" if name == "RLSVI" else COLOURS[(index - 1) % 6]
            line = "-" if name == "RLSVI" else LINES[1 + (index - 1) // 6]
            averaged(above, *losses.curves_of(of_agents(frame), name, coding), name, colour, line)
            averaged(below, *losses.rates(of_agents(frame), name, coding), name, colour, line)
        labelled(above, "customers", "cumulative regret", f"rewards {{{coding}}}")
        labelled(below, "customers", "regret a customer")
    legend(axes[0], loc="upper left")
    from_zero(axes)
    return figure


FIGURE = Figure.of(
    __name__,
    title="Recommendations: RLSVI and Boltzmann exploration",
    where="section 6.3, figure 8",
    caption=(
        "Cumulative regret of RLSVI (lambda = .2, sigma^2 = .001) and of LSVI (lambda = .2) with Boltzmann "
        f"exploration at six temperatures, with epsilon = {EPSILON:g} and greedy, and of RLSVI with a table: N "
        "= 10 products, J = 5 slots, c = 2; mean and standard error over problem instances, several runs each; "
        "below, a customer. Left: a like pays 1 and a dislike 0, as in the paper. Right: a like pays 0 and a "
        "dislike -1, the same problem, in which a first guess of zero is optimistic."
    ),
    quick={"episodes": 300, "runs": 1, "seeds": 5},
    paper={"episodes": 1200, "runs": 10, "seeds": 100},
)
