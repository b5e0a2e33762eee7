"""The recommendation engine: RLSVI against LSVI with Boltzmann exploration."""

import numpy as np
import polars as pl

from rlsvi.mdp.recommendation import count_histories
from rlsvi.study.job import Job
from rlsvi.study.plot import COLOURS, LINES
from rlsvi.study.statistics import bootstrap
from rlsvi_paper.claim import (
    Part,
    Verdict,
    Verdicts,
    all_of,
    at_least,
    at_most,
    choice,
    claim,
    exactly,
    mean_se,
    share_of,
    worst_of,
)
from rlsvi_paper.degrees import little, much, nearly_all
from rlsvi_paper.drawing import Picture, averaged, from_zero, labelled, legend, panels
from rlsvi_paper.figure import Figure
from rlsvi_paper.recommendation import engine
from rlsvi_paper.recommendation.engine import LIKES, TABLE, of_agents, of_instances
from rlsvi_paper.results import having, paired_times, total
from rlsvi_paper.schedules import PRINTED, SCHEDULES, best_of


def jobs(episodes: int, runs: int, seeds: int) -> list[Job]:
    """RLSVI and every way to dither, and the trials that choose among these."""
    size = {"episodes": episodes, "runs": runs, "seeds": seeds}
    return engine.jobs_of(("RLSVI", *SCHEDULES, "greedy", TABLE), **size) + engine.trials(**size)


def more_efficient(frame: pl.DataFrame, coding: str, factor: float) -> Verdict:
    """The regret of each temperature as a multiple of RLSVI's, of other agents in the table beside them."""
    ours = total(frame, agent="RLSVI", coding=coding)
    best, tried = best_of(having(frame, coding=coding), "tried")
    rows: list[Part] = [(None, ("RLSVI", mean_se(ours), "", ""))]
    more = {name: paired_times(total(frame, agent=name, coding=coding), ours) for name in (*SCHEDULES, "greedy")}
    for name, times in more.items():
        regret, elsewhere = mean_se(total(frame, agent=name, coding=coding)), tried.get(name)
        verdict = at_least(times, factor, f"{name} has {regret}, {times} times the regret of RLSVI")
        row = name, regret, f"{times}", "" if elsewhere is None else mean_se(elsewhere)
        rows.append((verdict if name in PRINTED else None, row))
    found = worst_of(("agent (in episode l)", "regret", "times RLSVI's", "regret on other instances"), rows)
    which = f"of {len(tried)} ways to dither the one that is best on other instances, {best}"
    return found._replace(caveat=f"{which}, has {more[best]} times RLSVI's regret")


@claim(
    "RLSVI explores much more efficiently than Boltzmann exploration over a wide range of temperatures",
    "section 6.3",
)
def explores_more_efficiently(frame: pl.DataFrame) -> Verdict:
    """The regret of every temperature is at least twice that of RLSVI, and RLSVI's is below all of them on at
    least four of five instances (rewards 0 and 1).
    """
    ours, found = total(frame, agent="RLSVI", coding=LIKES), more_efficient(frame, LIKES, much())
    least = np.min([total(frame, agent=name, coding=LIKES) for name in PRINTED], axis=0)
    share, count = share_of(ours < least)
    each = at_least(share, nearly_all(), f"RLSVI's is the least on {count} instances")
    return all_of(found, each)._replace(table=found.table, caveat=found.caveat)


@claim(
    "RLSVI clearly outperforms LSVI with Boltzmann exploration also if rewards are −1 and 0",
    "section 6.3",
    kind="ours",
)
def better_with_other_rewards(frame: pl.DataFrame) -> Verdict:
    """The regret of every temperature is larger than that of RLSVI (rewards −1 and 0)."""
    return more_efficient(frame, engine.DISLIKES, 1.0)


@claim("RLSVI learns this optimal strategy when dithering strategies do not", "section 6")
def learns_the_optimum(frame: pl.DataFrame) -> Verdict:
    """Over the last 100 episodes RLSVI loses at most 1/11 of the optimal reward, so that it is within a factor of
    1.1 of it, and the way to dither that loses least there on other instances loses more than 1/11 (rewards 0
    and 1).
    """
    optimum, played = of_instances(frame).sort("seed")["best"].to_numpy(), having(frame, coding=LIKES)
    rival, tried = best_of(played, "tried_late")
    lost = {name: paired_times(engine.at_the_end(played, name), optimum) for name in ("RLSVI", *tried)}
    words = f"RLSVI loses {lost['RLSVI']} of the optimal reward in the end"
    rows: list[Part] = [(at_most(lost["RLSVI"], little(), words), ("RLSVI", f"{lost['RLSVI']}", ""))]
    told = f"{rival}, of {len(tried)} ways to dither the one that is best on other instances, loses {lost[rival]}"
    for name, late in tried.items():
        verdict = at_least(lost[name], little(), told) if name == rival else None
        rows.append((verdict, (name, f"{lost[name]}", mean_se(late, 3))))
    more = paired_times(*(total(played, agent=name) for name in (rival, "RLSVI")))
    least = min(lost[name].value for name in PRINTED)
    found = worst_of(("agent (in episode l)", "share lost in the end", "regret then, on other instances"), rows)
    both = f"{words}, and {told} and has {more} times RLSVI's regret"
    return found._replace(measured=f"{both}; each temperature of the paper loses {least:.2f} or more")


@engine.of_play("To learn in time less than |S| it is crucial that we can exploit generalization between states")
def generalisation_is_crucial(frame: pl.DataFrame) -> Verdict:
    """In fewer episodes than there are states RLSVI's regret an episode falls by half, with a table it does
    not.
    """
    ours, tabular = engine.remaining(frame, "RLSVI"), engine.remaining(frame, TABLE)
    words = f"RLSVI's regret an episode falls to {ours} of what it was at first"
    return all_of(at_most(ours, 1 / much(), words), at_least(tabular, 1 / much(), f"with a table {tabular}"))


@claim("In some settings, efficient generalization and exploration can be crucial", "section 6.3")
def both_are_crucial(frame: pl.DataFrame) -> Verdicts:
    """Without either regret an episode over the last 100 is at least twice as large (rewards 0 and 1): with a
    table, and with the way to dither that loses least there on other instances, which explores, but not
    efficiently.
    """
    ours, tried = engine.at_the_end(frame, "RLSVI"), having(frame, coding=LIKES)
    yield f"RLSVI: {mean_se(ours, 2)} an episode"
    rival = choice("without exploration, by", best_of(tried, "tried_late")[0], "greedy")
    for name, without in ((TABLE, "generalisation"), (rival, "efficient exploration")):
        theirs = engine.at_the_end(frame, name)
        more = paired_times(theirs, ours)
        yield at_least(more, much(), f"without {without} ({name}): {mean_se(theirs, 2)}, {more} times")


@engine.of_problems("The number of states is 3ᴶ", otherwise="misprint")
def printed_states(frame: pl.DataFrame) -> Verdict:
    """Counted."""
    count = int(frame["states"][0])
    words = f"3ᴶ = {3**engine.SLOTS}, but there are {count}, the sum of C(N, j) 2ʲ over j < J"
    return exactly(3**engine.SLOTS == count, words)


@engine.of_problems(
    "There are 4521 states, and the dimension K = N² + N is exponentially smaller than their number"
)
def smaller(frame: pl.DataFrame) -> Verdict:
    """Counted; with J out of 2J products, every further slot multiplies states / K by more than the one before."""
    slots = np.arange(2, 2 * engine.SLOTS + 1)
    K = 4 * slots**2 + 2 * slots
    shares = np.array([count_histories(2 * int(J), int(J)) for J in slots]) / K
    times = shares[1:] / shares[:-1]
    count, grows = int(frame["states"][0]), bool(times[0] > 1 and (np.diff(times) > 0).all())
    words = f"K = {engine.PRODUCTS**2 + engine.PRODUCTS}, {count} states; a slot more multiplies states / K"
    more = f"by {times[0]:.1f} at J = 2 and by {times[-1]:.1f} at J = {slots[-2]}"
    return exactly(count == 4521 and grows, f"{words} {more}")


@engine.of_problems("Barring a freak event, this basis leads to an agnostic learning problem")
def agnostic(frame: pl.DataFrame) -> Verdict:
    """Q* is not in its span on any instance."""
    misfit = frame["misfit"].to_numpy()
    words = f"the basis leaves out {mean_se(misfit, 3)} of Q* in the 2-norm, at least {misfit.min():.3f}"
    return at_least(bootstrap(np.min, misfit), 1e-6, words)


def draw(frame: pl.DataFrame) -> Picture:
    """Cumulative regret and regret a customer, mean and standard error over instances, in both codings."""
    figure, axes = panels(2, 4.0, rows=2)
    for column, coding in enumerate(engine.CODINGS):
        above, below = axes[column], axes[column + 2]
        best, _ = best_of(having(frame, coding=coding), "tried")
        names = ("RLSVI", *PRINTED, best, "greedy", *([TABLE] if coding == LIKES else []))
        for index, name in enumerate(names):
            colour = "#000000" if name == "RLSVI" else COLOURS[(index - 1) % 6]
            line = "-" if name == "RLSVI" else LINES[1 + (index - 1) // 6]
            averaged(above, *engine.curves_of(of_agents(frame), name, coding), name, colour, line)
            averaged(below, *engine.rates(of_agents(frame), name, coding), name, colour, line)
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
        "Cumulative regret (above) and regret a customer (below) of RLSVI, of LSVI at the paper's temperatures "
        "and with the way to dither that has the least regret on other instances, and of RLSVI with a table: N "
        "= 10 products, J = 5 slots, c = 2, λ = .2, σ² = .001, means and standard errors over instances. On the "
        "left a like pays 1 and a dislike 0, as in the paper; on the right 0 and −1, where a first guess of "
        "zero is optimistic."
    ),
    quick={"episodes": 300, "runs": 1, "seeds": 5},
    paper={"episodes": 1200, "runs": 10, "seeds": 100},
)
