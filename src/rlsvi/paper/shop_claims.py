"""Verdicts on shops: means over problem instances of differences on each, with Student's intervals."""

from collections.abc import Callable

import numpy as np
import polars as pl

from rlsvi.core.compile import Floats
from rlsvi.paper.claim import Verdict, all_of, at_least, at_most, between
from rlsvi.paper.shop_plan import (
    EXACT,
    FIRST,
    IN_ORDER,
    LAM,
    LAST,
    POOLED,
    gained,
    grid,
    in_crowd,
    parts,
    ridged,
    shops,
    with_saving,
)
from rlsvi.paper.shops import LEARNERS, SIGMA2
from rlsvi.study.means import mean

MOST, NEAR, BETTER = 0.75, 0.05, 0.01


def in_every_shop(judge: Callable[[pl.DataFrame], Verdict]) -> Callable[[pl.DataFrame], Verdict]:
    """The worst of the verdicts on all shops."""

    def judged(frame: pl.DataFrame) -> Verdict:
        found = [(N, judge(rows)) for N, rows in shops(frame)]
        return all_of(*(one._replace(measured=f"{N} products: {one.measured}") for N, one in found))

    return judged


def over_bandits(frame: pl.DataFrame) -> Verdict:
    """RLSVI's likes at the end less those of each bandit."""
    ours = gained(frame, last=LAST)
    verdicts = []
    for name in ("linear bandit", "tabular bandit", "Thompson sampling"):
        theirs = gained(frame, name, LAST)
        more = mean(ours - theirs)
        verdicts.append(at_least(more, 0.0, f"{name} {theirs.mean():.2f}: RLSVI has {more} more"))
    decided = all_of(*verdicts)
    words = f"at the end RLSVI gains {ours.mean():.2f} likes a customer over random play"
    return decided._replace(measured=f"{words}; {decided.measured}")


def over_myopic(frame: pl.DataFrame) -> Verdict:
    """RLSVI's likes at the end less those of the optimal myopic policy."""
    best, most = gained(frame, "myopic policy"), frame["slots"][0] / 2 - 0.5
    more = mean(gained(frame, last=LAST) - best)
    words = f"the myopic policy gains {best.mean():.2f} likes over random play, of at most {most:g}"
    return at_least(more, 0.0, f"{words}: RLSVI has {more} more at the end")


def generalizes(frame: pl.DataFrame) -> Verdict:
    """Whether RLSVI learns most of what there is to know, and a table nothing."""
    table = _near_half(frame, "tabular bandit")
    ours, best = gained(frame, last=LAST), gained(frame, "myopic policy")
    more = mean(ours - MOST * best)
    words = (
        f"RLSVI gains {ours.mean():.2f} likes over random play at the end, who knows the truth {best.mean():.2f}"
    )
    return all_of(table, at_least(more, 0.0, f"{words}: {more} over {MOST:g} of that"))


def explores(frame: pl.DataFrame) -> Verdict:
    """RLSVI's likes in the whole run less those of greedy LSVI."""
    ours, greedy = gained(frame), gained(frame, "greedy")
    more = mean(ours - greedy)
    words = f"in the whole run RLSVI gains {ours.mean():.2f} likes a customer over random play, greedy LSVI"
    return at_least(more, 0.0, f"{words} {greedy.mean():.2f}: {more} more")


def thompson_learns_little(frame: pl.DataFrame) -> Verdict:
    """Thompson sampling's share of likes at the end."""
    return _near_half(frame, "Thompson sampling")


def _near_half(frame: pl.DataFrame, agent: str) -> Verdict:
    more = mean(gained(frame, agent, LAST) / frame["slots"][0])
    return between(more, -NEAR, NEAR, f"the share of likes of {agent} at the end is {more} over one half")


def bandit_is_better_at_first(frame: pl.DataFrame) -> Verdict:
    """The linear bandit's likes in the beginning less RLSVI's."""
    theirs, ours = (parts(frame, agent)[:, :FIRST].mean(axis=1) for agent in ("linear bandit", "RLSVI"))
    more = mean(theirs - ours)
    words = f"over the first tenth of the run it has {theirs.mean():.2f} likes a customer, RLSVI {ours.mean():.2f}"
    return at_least(more, 0.0, f"{words}: {more} more")


def priors(frame: pl.DataFrame) -> Verdict:
    """Whether another prior or noise of the grid than the one taken is better where it was chosen."""
    compared, chosen = (frame.filter(pl.col("study") == name) for name in ("shop", "prior"))
    verdicts = []
    for N, rows in shops(chosen):
        for agent in LEARNERS:
            pairs = grid(agent, rows["sketch"][0])
            mine = compared.filter(pl.col("products") == N, pl.col("agent") == agent)["lam"][0], SIGMA2
            by = {pair: gained(ridged(rows, *pair), agent) for pair in pairs}
            best = max((pair for pair in pairs if pair != mine), key=lambda pair: float(by[pair].mean()))
            more = mean((by[best] - by[mine]) / rows["slots"][0])
            noise = "" if best[1] == SIGMA2 else f" with sigma^2 = {best[1]:g}"
            told = (
                f"{N} products, {agent}: taken {mine[0]:g}; {best[0]:g}{noise} has {more} more of the slots liked"
            )
            verdicts.append(at_most(more, BETTER, told))
    return all_of(*verdicts)


def saved(frame: pl.DataFrame, name: str, share: float, base: str = EXACT) -> Verdict:
    """What a saving gains, less a share of what is gained without it, in every shop where both were tried."""
    verdicts = []
    for N, rows in shops(frame):
        without, saving = with_saving(rows, base), with_saving(rows, name)
        if without.height and saving.height:
            kept = _kept(gained(saving), gained(without), share)
            verdicts.append(kept._replace(measured=f"{N} products: {kept.measured}"))
    return all_of(*verdicts)


def prior_for_many(frame: pl.DataFrame) -> Verdict:
    """What the exact form has more at the end with the least lambda than the usual one, in the smallest shop."""
    N, rows = shops(frame)[0]
    rows = rows.filter(~pl.col("pooled"))
    least = float(rows["lam"].to_numpy().min())
    small, usual = (gained(ridged(rows, lam), last=LAST) for lam in (least, LAM))
    more = mean(small - usual)
    half = rows["slots"][0] / 2
    words = f"{N} products: {half + usual.mean():.2f} likes a customer at the end with lambda {LAM:g}"
    return at_least(more, 0.0, f"{words}, {half + small.mean():.2f} with {least:g}: {more} more")


def pooled_by_default(frame: pl.DataFrame) -> Verdict:
    """What is gained pooled, less what is gained in the exact form, with the usual lambda and as many samples."""
    rows = ridged(frame, LAM)
    pooled, exact = (gained(rows.filter(pl.col("pooled") == of)) for of in (True, False))
    return _kept(pooled, exact, 1.0)


def sketched(frame: pl.DataFrame) -> Verdict:
    """What a sketch of an eighth costs the pooled form, in the largest shop."""
    _, rows = shops(frame)[-1]
    return saved(rows, f"{POOLED}, sketch N/8", 0.8, POOLED)


def overlapping(frame: pl.DataFrame) -> Verdict:
    """What is gained with many customers at once, less .9 of what is gained with one after another."""
    together, alone = (gained(in_crowd(frame, name), last=LAST) for name in ("50 at once", IN_ORDER))
    return _kept(together, alone, 0.9)


def late_and_lost(frame: pl.DataFrame) -> Verdict:
    """What is gained where answers are late and lost, less most of what who knows the truth gains there."""
    rows = in_crowd(frame, "50, a slot late, 1 in 10 lost")
    return _kept(gained(rows, last=LAST), gained(rows, "myopic policy"), MOST)


def _kept(values: Floats, others: Floats, share: float) -> Verdict:
    more = mean(values - share * others)
    words = f"{np.mean(values):.2f} likes a customer over random play, beside {np.mean(others):.2f}"
    return at_least(more, 0.0, f"{words}: {more} over {share:g} of that")
