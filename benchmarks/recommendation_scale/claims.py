"""Verdicts on shops: means over problem instances of differences on each, with Student's intervals."""

from collections.abc import Iterable
from functools import partial, wraps

import numpy as np
import polars as pl

from benchmarks.recommendation_scale.plan import (
    EXACT,
    FIRST,
    IN_ORDER,
    LAM,
    LAST,
    POOLED,
    gained,
    grid,
    in_crowd,
    of_study,
    parts,
    ridged,
    shops,
    with_saving,
)
from benchmarks.recommendation_scale.runs import LEARNERS, SIGMA2
from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Judge, Verdict, all_of, at_least, at_most, between, claim, worst_of
from rlsvi.study.means import mean

MOST, NEAR, BETTER = 0.75, 0.05, 0.01


in_shops = partial(claim, where="section 6.3", kind="ours")


def by_shop(found: Iterable[tuple[int, Verdict]]) -> Verdict:
    """The worst of the verdicts on shops, by their number of products."""
    parts = [(one.told(f"{N} products: "), (f"{N}", one.measured)) for N, one in found]
    return worst_of(("products", "measured"), parts)


def in_every_shop(judge: Judge) -> Judge:
    """The worst of the verdicts on all shops."""

    @wraps(judge)
    def judged(frame: pl.DataFrame) -> Verdict:
        return by_shop((N, judge(rows)) for N, rows in shops(frame))

    return judged


@in_shops(
    '"The reinforcement learning policy is able to outperform not only benchmark bandit algorithms": in shops',
    rows=of_study("shop"),
)
def over_bandits(frame: pl.DataFrame) -> Verdict:
    """In every shop: in the last fifth of the run RLSVI has more likes a customer than each of the three
    bandits.
    """
    parts = []
    for N, rows in shops(frame):
        for name in ("linear bandit", "tabular bandit", "Thompson sampling"):
            more = mean(gained(rows, last=LAST) - gained(rows, name, LAST))
            words = f"{N} products: {more} likes a customer more than {name}"
            parts.append((at_least(more, 0.0, words), (f"{N}", name, f"{more}")))
    return worst_of(("products", "bandit", "likes a customer that RLSVI has more"), parts)


@in_shops(
    '"An RL algorithm may outperform even an optimal myopic system, particularly where large amounts of '
    'data are available": in shops',
    rows=of_study("shop"),
)
@in_every_shop
def over_myopic(frame: pl.DataFrame) -> Verdict:
    """In every shop: in the last fifth of the run RLSVI has more likes a customer than the optimal
    myopic policy.
    """
    best, most = gained(frame, "myopic policy"), frame["slots"][0] / 2 - 0.5
    more = mean(gained(frame, last=LAST) - best)
    words = f"the myopic policy gains {best.mean():.2f} likes of at most {most:g}"
    return at_least(more, 0.0, f"{words}, RLSVI {more} more at the end")


@in_shops(
    '"To learn in time less than |S| it is crucial that we can exploit generalization between states": in shops',
    rows=of_study("shop"),
)
@in_every_shop
def generalizes(frame: pl.DataFrame) -> Verdict:
    """In every shop: in the last fifth of the run the likes of a bandit with a table of histories are
    within .05 of one half, and RLSVI has at least three quarters of what who knows the truth has over random
    play.
    """
    table = _near_half(frame, "tabular bandit")
    ours, best = gained(frame, last=LAST), gained(frame, "myopic policy")
    more = mean(ours - MOST * best)
    return all_of(table, at_least(more, 0.0, f"RLSVI gains {ours.mean():.2f}, {more} over {MOST:g} of the best"))


@in_shops(
    '"In some settings, efficient generalization and exploration can be crucial": exploration, in shops',
    rows=of_study("shop"),
)
@in_every_shop
def explores(frame: pl.DataFrame) -> Verdict:
    """In every shop: in the whole run RLSVI has more likes a customer than greedy LSVI with the same
    features.
    """
    ours, greedy = gained(frame), gained(frame, "greedy")
    more = mean(ours - greedy)
    words = f"RLSVI gains {ours.mean():.2f} likes a customer, greedy LSVI {greedy.mean():.2f}"
    return at_least(more, 0.0, f"{words}: {more} more")


@in_shops('"Bernoulli Thompson sampling does not learn much": in shops', rows=of_study("shop"))
@in_every_shop
def thompson_learns_little(frame: pl.DataFrame) -> Verdict:
    """In every shop: in the last fifth of the run its share of likes is within .05 of one half."""
    return _near_half(frame, "Thompson sampling")


def _near_half(frame: pl.DataFrame, agent: str) -> Verdict:
    more = mean(gained(frame, agent, LAST) / frame["slots"][0])
    return between(more, -NEAR, NEAR, f"{agent} ends {more} over one half")


@in_shops('"The linear contextual bandit outperforms RLSVI at first": in shops', rows=of_study("shop"))
@in_every_shop
def bandit_is_better_at_first(frame: pl.DataFrame) -> Verdict:
    """In every shop: it has more likes a customer in the first tenth of the run."""
    theirs, ours = (parts(frame, agent)[:, :FIRST].mean(axis=1) for agent in ("linear bandit", "RLSVI"))
    more = mean(theirs - ours)
    words = f"it has {theirs.mean():.2f} likes a customer, RLSVI {ours.mean():.2f}"
    return at_least(more, 0.0, f"{words}: {more} more")


@in_shops("Every agent has the best prior of a grid, chosen on other instances", rows=of_study("shop", "prior"))
def priors(frame: pl.DataFrame) -> Verdict:
    """For every agent in every shop, no other λ of the grid, nor for RLSVI one with ten or a hundred
    times the noise where answers are not sketched, has .01 more of the slots liked on the instances on which
    it was chosen (.08 to .2 likes a customer: what is smaller is not told apart).
    """
    compared, chosen = (frame.filter(pl.col("study") == name) for name in ("shop", "prior"))
    parts = []
    for N, rows in shops(chosen):
        for agent in LEARNERS:
            pairs = grid(agent, rows["sketch"][0])
            mine = compared.filter(pl.col("products") == N, pl.col("agent") == agent)["lam"][0], SIGMA2
            by = {pair: gained(ridged(rows, *pair), agent) for pair in pairs}
            best = max((pair for pair in pairs if pair != mine), key=lambda pair: float(by[pair].mean()))
            more = mean((by[best] - by[mine]) / rows["slots"][0])
            words = f"{N} products, {agent}: λ = {best[0]:g} has {more} more than the {mine[0]:g} taken"
            cells = (f"{N}", agent, f"{mine[0]:g}", f"{best[0]:g}", f"{best[1]:g}", f"{more}")
            parts.append((at_most(more, BETTER, words), cells))
    return worst_of(("products", "agent", "λ taken", "best other λ", "its σ²", "more of the slots liked"), parts)


def saved(frame: pl.DataFrame, name: str, share: float, base: str = EXACT) -> Verdict:
    """What a saving gains, less a share of what is gained without it, in every shop where both were tried."""
    found = []
    for N, rows in shops(frame):
        without, saving = with_saving(rows, base), with_saving(rows, name)
        if without.height and saving.height:
            found.append((N, _kept(gained(saving), gained(without), share)))
    return by_shop(found)


@in_shops("Pooling the slots costs nothing", rows=of_study("saving"))
def pooling(frame: pl.DataFrame) -> Verdict:
    """Pooled, RLSVI gains at least as much over random play in the whole run as in the exact form, in the
    shops where savings were tried and it fits.
    """
    return saved(frame, "pooled", 1.0)


@in_shops("A sample once in ten customers costs little", rows=of_study("saving"))
def sampling_seldom(frame: pl.DataFrame) -> Verdict:
    """With one sample in ten customers RLSVI gains at least .8 of what it gains with one a customer."""
    return saved(frame, "every 10", 0.8)


@in_shops("A sketch of half the size costs little", rows=of_study("saving"))
def half_a_sketch(frame: pl.DataFrame) -> Verdict:
    """With answers hashed to half as many places RLSVI gains at least .8 of what the exact form gains."""
    return saved(frame, "sketch N/2", 0.8)


@in_shops("Learning anew from the last fifth of the customers alone costs little", rows=of_study("saving"))
def remembering_a_fifth(frame: pl.DataFrame) -> Verdict:
    """RLSVI then gains at least .8 of what it gains if it learns anew from all of them."""
    return saved(frame, "remember 1/5", 0.8)


@in_shops(
    "The usual λ of a Recommender is for many products: at the paper's size less is better",
    rows=of_study("default"),
)
def prior_for_many(frame: pl.DataFrame) -> Verdict:
    """In the smallest shop, in the usual form (exact), RLSVI has more likes a customer in the last fifth of
    the run with the least λ of the grid, the paper's, than with the usual one.
    """
    N, rows = shops(frame)[0]
    rows = rows.filter(~pl.col("pooled"))
    least = float(rows["lam"].to_numpy().min())
    small, usual = (gained(ridged(rows, lam), last=LAST) for lam in (least, LAM))
    more = mean(small - usual)
    half = rows["slots"][0] / 2
    words = f"{N} products: {half + usual.mean():.2f} likes a customer at the end with λ = {LAM:g}"
    return at_least(more, 0.0, f"{words}, {half + small.mean():.2f} with {least:g}: {more} more")


@in_shops("A Recommender as it comes loses nothing if it is pooled", rows=of_study("default"))
@in_every_shop
def pooled_by_default(frame: pl.DataFrame) -> Verdict:
    """With the usual λ and as many samples as are usual, at the paper's size and in a shop: pooled, it
    gains at least as much over random play in the whole run as in the exact form.
    """
    rows = ridged(frame, LAM)
    pooled, exact = (gained(rows.filter(pl.col("pooled") == of)) for of in (True, False))
    return _kept(pooled, exact, 1.0)


@in_shops("A sketch of an eighth costs the pooled form little in the largest shop", rows=of_study("saving"))
def sketched(frame: pl.DataFrame) -> Verdict:
    """With answers hashed to an eighth as many places it gains at least .8 of what it gains without."""
    _, rows = shops(frame)[-1]
    return saved(rows, f"{POOLED}, sketch N/8", 0.8, POOLED)


@in_shops("Customers who overlap cost little", rows=of_study("crowd"))
def overlapping(frame: pl.DataFrame) -> Verdict:
    """With 50 customers in the shop at once RLSVI gains, in the last fifth of the run, at least .9 of what it
    gains with one after another.
    """
    together, alone = (gained(in_crowd(frame, name), last=LAST) for name in ("50 at once", IN_ORDER))
    return _kept(together, alone, 0.9)


@in_shops("Late and lost answers are learned from", rows=of_study("crowd"))
def late_and_lost(frame: pl.DataFrame) -> Verdict:
    """With 50 customers at once, answers a slot late in the mean and one in ten lost, RLSVI gains in the last
    fifth of the run at least three quarters of what who knows the truth gains there.
    """
    rows = in_crowd(frame, "50, a slot late, 1 in 10 lost")
    return _kept(gained(rows, last=LAST), gained(rows, "myopic policy"), MOST)


def _kept(values: Floats, others: Floats, share: float) -> Verdict:
    more = mean(values - share * others)
    words = f"{np.mean(values):.2f} likes a customer beside {np.mean(others):.2f}"
    return at_least(more, 0.0, f"{words}: {more} over {share:g} of that")
